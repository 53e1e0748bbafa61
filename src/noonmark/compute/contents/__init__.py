"""Relations computed by kernels, all rows at once: what a read that is no look-up goes by.

    evaluation   a relation from the bottom up, each by its operator (`noonmark.compute.operator`)
    group    aggregates, DISTINCT, INTERSECT and EXCEPT: rows by the values that they share
    join     pairs of rows with equal keys
    order    sorting, and the first rows of each partition

Windows are those of the ticks (`noonmark.compute.kernel.windows`).

Law: ``contents(relation, inputs)`` is the multiset that the relation means
(`noonmark.sql.meaning.relation`), or `NoKernel`: there is no rule for it, or it is beyond what the
kernels hold; then another engine is asked.
"""
