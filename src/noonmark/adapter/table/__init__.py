"""Tables: writes of many sessions, committed together at one time.

committer    the one that commits
requests     what waits for it
keys         no two rows of one key; `key_query` reads the rows of given keys
copy_memory  the rows of COPYs that have not ended: bounded
"""
