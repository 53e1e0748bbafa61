"""Delta rules, one file per kind of operator.

Notation. R is a relation, R(t) its contents at time t, dR its updates at times in [lower, upper),
R_old its contents before `lower`. Every rule computes, exactly for every time inside the range,

    d(op)(R)  ==  differentiate(op(integrate(R)))  over [lower, upper)

from dR and from as little of R_old as the keys of dR ask for.
"""
