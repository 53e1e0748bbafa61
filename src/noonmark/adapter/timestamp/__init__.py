"""At which time a query is asked.

choice     one time for all inputs of a query
oracle     the timestamp oracle, for coroutines
recency    the time by which all that upstream had is in
"""
