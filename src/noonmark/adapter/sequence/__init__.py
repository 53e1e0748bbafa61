"""Sequences: numbers that are given out once.

default      how a column remembers where it takes from
options      what a sequence is made with, and what of it can be wrong
sequences    which numbers were given out; durable by reserved ranges
taken        what one session was given
"""
