"""Operators, one a file: the law of each, what it keeps, the keys it is asked by, delta, contents.

base     what an operator is
table    from the class of a relation to its operator
"""
