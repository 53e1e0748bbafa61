"""Values of domains: an expression with what its domain asks about it.

The text of a CHECK is kept, and planned once for each state of its domain.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from noonmark.errors import Unsupported
from noonmark.rows.domain import Domain
from noonmark.rows.schema import Column
from noonmark.rows.types import SqlType, Text, quote_name
from noonmark.sql.dialect import parse_scalar
from noonmark.sql.functions.domain import DOMAIN_VALUE
from noonmark.sql.ir.asked import is_volatile
from noonmark.sql.ir.scalar import Call, Is, Literal, Not, Scalar, map_columns
from noonmark.sql.plan.frame import Frame
from noonmark.sql.plan.row import Statement
from noonmark.sql.plan.scalar import plan_boolean
from noonmark.sql.scope import Entry, Scope

_KEPT_MAX = 512


def checked(scalar: Scalar, domain: Domain | None, position: int | None = None) -> Scalar:
    """An expression of the domain's base as one of the domain; it fails where it is none.

    What is of no domain is asked nothing.

    Raises:
        Unsupported: an expression with other values whenever it is asked.
    """
    if domain is None:
        return scalar
    if domain.is_constrained and is_volatile(scalar):
        raise Unsupported(
            f"a cast of a volatile expression to domain {domain} is not supported",
            hint="Compute it in a subquery or WITH, and cast what that gives.",
            position=position,
        )
    found = scalar
    if not domain.takes_null:
        found = _asked(found, Not(Is(scalar, None)), domain, "")
    for name, condition in _conditions(domain, domain.state):
        holds = map_columns(condition, lambda _: scalar)
        found = _asked(found, holds, domain, name)
    return found


def _asked(scalar: Scalar, holds: Scalar, domain: Domain, check: str) -> Scalar:
    texts = [Literal(Text(), each) for each in (str(domain), check)]
    return Call(DOMAIN_VALUE, (scalar, holds, *texts))


@lru_cache(_KEPT_MAX)
def _conditions(domain: Domain, _state: Any) -> tuple[tuple[str, Scalar], ...]:
    return tuple(
        (name, condition(parse_scalar(text), each.base, _named(each)))
        for each in domain.chain()
        for name, text in sorted(each.checks)
    )


def _named(domain: Domain) -> Statement:
    known = dict(domain.types)

    def find(parts: Sequence[str]) -> SqlType | None:
        return known.get(".".join(map(quote_name, parts)))

    return Statement({}, types=find)


def condition(tree: Any, base: SqlType, statement: Statement) -> Scalar:
    """The CHECK of a domain over a type, as a scalar whose one column is VALUE."""
    row = Frame(statement).row("check constraints", Scope((Entry(None, "value", 0),)))
    row.columns = (Column("value", base),)
    return plan_boolean(tree, row, "CHECK")
