"""Statements that write rows: INSERT, UPDATE, DELETE, TRUNCATE and COPY.

write, plan, read   planned, computed from what they read, committed
target              the table, and what its columns take
insert, change      INSERT; UPDATE and DELETE
copy                COPY, both ways
"""
