"""Sessions: one client's conversation, its transaction, and what lives as long as it does.

session       the conversation itself
transaction   reads at one time, writes at one time
commit        COMMIT of what a transaction did to the catalog
holds         since stays while somebody reads
cursor        the rest of a query's rows, kept between FETCHes
temporary     objects that go with their session
"""
