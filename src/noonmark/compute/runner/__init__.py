"""Who runs the tasks of ticks: resident tasks, processes of this machine, or ordinary Spark jobs.

job         the one task of a small tick, and how the driver has it run
runner      the choice between those that can run it
processes   small ticks without Spark
resident    long-lived Spark tasks that take ticks over a connection
limit       ticks with an end
"""
