"""Compute: views on Spark, exact at every time. Each room may use those below it.

    layer         the formalism's Compute: `maintain_view` and what goes with it
    view          maintained views: made, hydrated, ticked, explained, audited
    spark         Spark's own operators: hydration, audits, very large reads
    runner        who runs the tasks of ticks: residents, processes, Spark jobs of one task or many
    operator      one file an operator: its law, its state, its keys, delta, contents; the table
    incremental   changes of a view from the changes of its inputs: what operators are made of
    contents      relations by kernels, all rows at once: interactive reads
    plan          what a view needs, decided on its plan: no Spark, no data
    trace         collections before a tick, read by key
    kernel        columns in Arrow and numpy
    jvm           the JVM under Spark

How views are maintained, with the law of each rule, is in ``docs/incremental.md``. Nothing is
imported here: who only needs a session does not pay for the rest.
"""
