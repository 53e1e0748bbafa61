"""SQL: text in PostgreSQL's dialect to a typed, frozen plan.

    text -> parse (sqlglot) -> plan (names and types) -> ir -> rules -> ir

Law (nothing passes through): the plan holds only nodes of `ir` and functions of `functions`. What
is not in them is refused when it is planned, by name and with its position.
"""
