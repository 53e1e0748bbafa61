"""The work behind a database: sources, views and sinks that go on by themselves.

schedule          everything that ticks, begun and ended
sources, sinks    a source and a sink at work
views, rounds     a view at work; views that one commit lets go on tick together
engine            Spark: begun when it is needed, begun again when it is lost
definitions       from an item of the catalog to what maintains it
ended             collections in a definite error now
rates, totals     how much was read, and what ticks did
"""
