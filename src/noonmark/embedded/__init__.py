"""A database inside of this process, without a server.

database     blocking calls: what `noonmark.open` gives
aio          the same for programs that await
answer       what a query gives back
statements   what both run on the database's own loop, which `bridge` reaches
"""
