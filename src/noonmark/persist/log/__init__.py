"""The log of a location, and the state that its entries make.

command, state       what can be said, and what it is said about
machine, draft       one transaction after the other: `on_collection`, `on_hold`; `invariants`
journal, queue       the log itself: followed, appended to, in the order of calls
pending, dependence  what is not committed yet, and what fails behind a failure
frame, head          how entries are written, and how far there are some
writer_lock          who may append; `host_lock` where the operating system knows
definite             errors that are data
"""
