"""Resident tasks: long-lived Spark tasks that take ticks over a connection to the driver.

lines   a connection between the driver and a task
known   what both of its ends know, which is not sent again
task    what runs on an executor
pool    the residents of a Spark context, on the driver
"""
