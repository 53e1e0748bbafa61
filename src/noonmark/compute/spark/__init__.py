"""Views by Spark's own operators: hydration, audits, large changes and very large reads.

column, expression, native, foreign   scalars as Spark columns, or asked in Python workers
frame                                 one layout for every frame of updates
linear, flatmap, match, keyed, whole  operators over frames
aggregates, summing, lookup           accumulators
contents                              a relation at one time, as one query
as_written, judge_task                a query as it is written: the judge of large views
inputs, stage, pending                what is read, what is stored, what waits for its time
delta                                 the delta rules of large changes
"""
