"""The planner: a syntax tree and the schemas of collections to a relation of `ir`.

`row` is what an expression can see; `scalar` plans expressions, `subquery` those that ask a query;
`source` plans FROM, `group` aggregation, `window` window functions, and `query` puts them together.
"""
