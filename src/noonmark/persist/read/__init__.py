"""Reading: what to open for a read, and what it gives back.

plan, slices    pure planning over the state; a plan cut by key
updates         plans, executed
handle          the read half of a collection: `snapshot` and `listen`
snapshot        what they give back
"""
