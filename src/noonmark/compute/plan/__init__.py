"""What a view needs, decided on its plan: no Spark, no data.

definition     a view: its name, its text, its plan, and the collections that belong to it
reductions     aggregations split into parts that are maintained without the rows of their groups
window_limit   windows of which only the first places are asked for
arrangement    what operators have to keep, sorted by the key by which they ask for it
pushdown       which relations can be asked by key, and what has to be kept for the others
multiway       inner joins of many inputs as one, and the orders of their look-ups
range_delta    comparisons with one row: only the rows whose answer switches are asked for
maintenance    how each operator is maintained, and whether a change may cost all of its state
"""
