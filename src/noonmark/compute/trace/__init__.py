"""Collections as they were before a tick, read by key from local, mappable forms of their parts.

cache     parts in a mappable form, on the executor's own disk, with indexes by key
by_key    a collection before the tick, by key
pending   the arrangements of temporal filters, read by the time at which they act
"""
