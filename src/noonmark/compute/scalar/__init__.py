"""Scalars: one table from a function to its meaning, its kernel and its Spark form.

`table` is where to look first. What computes whole columns exactly is in `number`, `floats` and
`moments`; `columns` computes a scalar by kernels, `row_by_row` by its meaning. Spark's columns are
put together in `compute.spark.expression`.
"""
