"""What a cast to a domain asks, as a function that plans call and SQL cannot: its name has a blank.

``domain value(x, holds, domain, check)`` is x, unless `holds` is false: then x is no value of the
domain. No name of a check stands for NOT NULL.
"""

from __future__ import annotations

from typing import Any

from noonmark.errors import EvaluationError
from noonmark.rows import types as t
from noonmark.sql.functions.function import Any_, Function

DOMAIN_VALUE = "domain value(any, boolean, text, text)"


class DomainViolation(EvaluationError, id="domain_violation", sqlstate="23514"):
    """A value that a CHECK of its domain is false of."""


class DomainNull(EvaluationError, id="domain_null", sqlstate="23502"):
    """NULL as a value of a domain that has none."""


def _value(value: Any, holds: bool | None, domain: str, check: str) -> Any:
    if holds is not False:
        return value
    *schema, name = domain.replace('"', "").split(".")
    where: dict[str, Any] = {"schema": schema[0] if schema else "public", "datatype": name}
    if not check:
        raise DomainNull(f"domain {domain} does not allow null values", **where)
    raise DomainViolation(
        f'value for domain {domain} violates check constraint "{check}"', constraint=check, **where
    )


def _same(types: tuple[t.SqlType, ...]) -> t.SqlType:
    return types[0]


TABLE = (
    Function(
        "domain value", (Any_.ANY, t.Boolean, t.Text, t.Text), _same, _value,
        strict=False, gives_null=True, fallible=True, linear=True,
    ),
)  # fmt: skip
