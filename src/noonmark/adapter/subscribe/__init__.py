"""SUBSCRIBE: a query's contents at one time, and every change from then on.

    changes     what happened to a collection, read once for all who follow it
    follow      the changes of a query: linear plans by their changes, others recomputed
    envelope    changes as the rows that a client asked for
    stream      all of it as chunks, with progress, until it ends or is let go

Law (contents): the updates at times up to t, added to the snapshot, are the query's contents at t,
for every t that a progress statement has passed.
Law (resume): what follows progress p is what ``AS OF p - 1 WITH (SNAPSHOT = false)`` gives.
"""
