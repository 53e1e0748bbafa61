"""Incremental evaluation: the changes of a view from the changes of its inputs, in one task.

The task has the changes of the inputs and evaluates the plan from them: filters and projections by
kernels, joins by look-ups of keys (`noonmark.compute.trace`), everything else by the keys that
changed.

    rules         the changes of a relation: which rule serves which operator
    old           a relation as it was before the tick, by key
    lookups       delta joins of many inputs; `binding` for rows that are partly joined, `matching`
    accumulate    linear aggregates
    first         the first rows of a key, in an order
    range_delta   rows for which a comparison with one row switches
    temporal      temporal filters
    by_key        operators that have no kernel, asked of their meaning key by key
    output        what a view shows of what it keeps
    beginning     what is there when nothing is

    share         a task's share of a tick that is cut over many

Law: for every plan and range of times, the changes that are found are
differentiate(plan(integrate(inputs))); in one task or, cut over many, as the sum of their shares.
"""
