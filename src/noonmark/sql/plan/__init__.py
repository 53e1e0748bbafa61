"""The planner: a syntax tree and the schemas of collections to a relation of `ir`.

`row` is what an expression can see; `scalar` plans expressions (with `leaf`, `operator`, `form` and
`function`), `subquery` those that ask a query; `source` plans FROM, `group` aggregation, `window`
window functions, `rowset` table functions in SELECT, `sets` VALUES and UNION, `recursive` names
that use themselves, and `query` puts them together.
"""
