"""Random SQL over random tables, put to Noonmark and to a real PostgreSQL by the same client.

choices     where randomness comes from: a sequence of numbers that can be cut down
values      types, their literals (plain and hostile), tables with rows of every type
scalars     expressions of a type: literals, columns, every function, casts, forms of syntax
calls       functions by PostgreSQL's own signatures: typed NULLs, wrong types
mutations   queries with words too many, too few or exchanged
changes     INSERT, UPDATE, DELETE, MERGE of them
withs       WITH of a part that writes, and what reads what it returned
queries     joins, subqueries, aggregates, windows, set operations, CTEs over them
places      subqueries in every place, groups by keys, rows as values, nested set operations
versus      the two servers, what counts as a difference, and how a failure is made small
"""
