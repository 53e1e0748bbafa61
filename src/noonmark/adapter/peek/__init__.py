"""Peeks: reads at one time, without Spark where a look-up or a small evaluation answers.

    shape      what a plan needs: which rows of which collections, and what is left to evaluate
    mirror     a collection in memory, exact at one time and brought forward by its updates
    mirrors    the mirrors of a process, bounded, fed from persist
    gather     the rows of one leaf of a plan, the cheapest exact way
    spark      the same answer as a Spark job, for what is large

Law: every way gives the answer that `sql.meaning.relation` defines, at the one time that was
chosen.
"""
