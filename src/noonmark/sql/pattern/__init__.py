"""Patterns: LIKE, SIMILAR TO and regular expressions, in time that is linear in the text.

`regex`, `similar` and `like` are the one matcher of every way to evaluate a scalar.
"""
