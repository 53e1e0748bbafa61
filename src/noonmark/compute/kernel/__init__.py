"""Columns of rows, all at once, in Arrow and numpy: what ticks and reads are computed with.

updates                        rows with their times, diffs and errors
scalar                         scalars over columns; without a kernel, `row_by_row` asks the meaning
number, large_number, floats   exact numbers, whole numbers of any size, floats
moments                        dates and timestamps
accumulator, sums, finish      what is kept of a group, summed, and turned into aggregates
index, sorting                 where the rows with a key are; rows in order
keyed, windows                 operators with keys, of all rows of some keys at once
"""
