"""Maintained views: made, hydrated, ticked, explained and audited.

view        one maintained view
dataflow    many views, each after those that it reads
tick        what a tick computes, by its size; `large` for those beyond one task
owned       what a view has in the location; `written`, `adoption` for what was there before
poison      the row that a tick does not get past
explain     why a view costs what it costs
audit       a view against its query as it is written
"""
