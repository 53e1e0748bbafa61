"""Parts: immutable Parquet objects of sorted updates, read whole or page by page.

part, store            what the state knows of one; where they are kept
order, coarse, run     the one order of rows; sorted runs, merged and consolidated
pages, tail, excerpt   a few rows by key without the rest; `thrift` for Parquet's own words
statistics, ranges     what a part may hold; work cut by key
"""
