"""Statement workers: processes that evaluate what is too much for the adapter's loop.

    job        what is evaluated: a plan or scalars; here when it is little, else in a worker
    effort     how much work that is at most, before it is done
    frames     messages between the two processes
    zygote     the process from which workers are forked: it has read all code, and has no secrets
    child      a worker: takes a job, evaluates it under its limits, gives rows
    limits     what a server may use, as settings
    pool       the workers of a database: who gets one, who is killed, what a dead one means

Law (isolation): a statement that is cancelled, or whose time is up, is over within a second: its
worker is killed. A worker has a limit of memory. What happens to it happens to one statement.
"""
