"""Functions of numbers: integers, floats and exact numerics, also as texts by a template."""
