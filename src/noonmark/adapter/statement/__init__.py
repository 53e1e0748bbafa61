"""What each kind of statement does; `handlers` is the table from a statement's class to it.

handler    what a handler is
ddl        statements that change the catalog
dml        statements that write rows
query      statements that answer
session    statements about the session itself
"""
