"""Small changes: a whole delta query walked by one task, in Arrow.

A tick over a small change is one Spark job of one task. The task has the changes of the inputs, and
walks the plan from them: filters and projections by Arrow's kernels, joins by looking keys up in
sorted, mapped forms of the parts (`cache`), everything else by the keys that changed.

    rows      updates as Arrow columns
    scalar    scalars over columns; what has no kernel is asked of the meaning, row by row
    cache     parts in a mappable form on the executor's own disk, with indexes by key
    state     a collection as it was before the tick, by key
    ask       a relation as it was before the tick, by key
    rules     the changes of a relation
    job       the task, and how the driver runs it

Law: for every plan and range of times the changes are those of `noonmark.compute.delta`, which does
the same for large changes with Spark's own operators.
"""
