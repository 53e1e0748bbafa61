"""CHECK of a webhook: a condition over what was posted and over secrets.

    CHECK (WITH (HEADERS, BODY BYTES, SECRET s AS key)
           constant_time_eq(decode(headers->'x-signature', 'base64'), hmac(body, key, 'sha256')))

What WITH names are its columns, text unless it says BYTES; without WITH they are `headers` and
`body`. The names of headers are in lower case, and ``headers->'name'`` is one header, or NULL.

Law (shut): a post is taken when the condition is true. NULL, false and an error in it (bytes that
do not decode) all refuse it, in the same words: who posts learns nothing about the secret.
Law (closed): the condition reads nothing but its columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from sqlglot import exp

from noonmark.adapter.catalog import Catalog
from noonmark.adapter.catalog.rights import Access
from noonmark.adapter.upstream.secret import secret_of, unseal
from noonmark.adapter.worker.effort import is_little
from noonmark.errors import DatatypeMismatch, EvaluationError, InvalidPassword, TooComplex
from noonmark.rows import types as t
from noonmark.rows.jsonb import canonical
from noonmark.rows.schema import Column, Schema
from noonmark.sql import dialect
from noonmark.sql.meaning.relation import evaluate
from noonmark.sql.parse import Query, plan_query
from noonmark.sql.statement import statement as st

_POST = "post"
_DEFAULT = (("headers", "headers", False, None), ("body", "body", False, None))


def check_definition(access: Access, check: st.Check) -> dict[str, Any]:
    """What an item remembers of a CHECK.

    Raises:
        DatatypeMismatch: it is no condition.
        TooComplex: it is much work, whatever is posted.
    """
    # A column that nothing looks at need not be a text.
    used = {node.name for node in check.condition.tree.find_all(exp.Column)}
    given = [
        [each.what, each.name, each.as_bytes, _number(access, each.secret)] for each in check.given
    ] or [list(each) for each in _DEFAULT if each[1] in used]
    planned = _planned(check.condition.tree, given)
    if not is_little(planned.relation, {_POST: 1}):
        # It is asked before anybody has shown who they are.
        raise TooComplex(
            "the CHECK of a webhook cannot be much work",
            hint="A pattern of it has to be a constant without back references.",
            position=check.condition.position,
        )
    kind = planned.relation.schema.columns[0].type
    if not isinstance(kind, t.Boolean):
        raise DatatypeMismatch(
            f"argument of CHECK must be type boolean, not type {kind}",
            position=check.condition.position,
        )
    return {"text": check.condition.text, "given": given}


def _number(access: Access, secret: st.Name | None) -> int | None:
    return None if secret is None else secret_of(access, secret).number


def check_secrets(definition: Mapping[str, Any] | None) -> tuple[int, ...]:
    """The numbers of the secrets that a CHECK opens."""
    given = () if definition is None else definition["given"]
    return tuple(secret for *_, secret in given if secret is not None)


def check(
    catalog: Catalog,
    definition: Mapping[str, Any],
    body: bytes,
    headers: Mapping[str, str],
    now_ms: int,
) -> None:
    """Refuse a post that does not satisfy the condition.

    Raises:
        InvalidPassword: it does not.
    """
    given = tuple(tuple(each) for each in definition["given"])
    query = _plan_of(definition["text"], given).bound((), now_ms)
    row = tuple(_value(catalog, each, body, headers) for each in given)
    try:
        holds = None not in row and evaluate(query.relation, {_POST: {row: 1}}) == {(True,): 1}
    except EvaluationError:
        holds = False
    if not holds:
        raise InvalidPassword("the CHECK of the webhook does not hold")


@lru_cache(maxsize=100)
def _plan_of(text: str, given: tuple[tuple[Any, ...], ...]) -> Query:
    return _planned(dialect.parse_scalar(text, 0), given)


def _planned(condition: exp.Expr, given: Any) -> Query:
    headers = {name: raw for what, name, raw, _ in given if what == "headers"}
    tree = condition.copy().transform(lambda node: _one_header(node, headers))
    columns = tuple(
        Column(name, _type(what, as_bytes), nullable=False) for what, name, as_bytes, _ in given
    )
    select = exp.Select(expressions=[tree]).from_(exp.to_table(_POST))
    return plan_query(select, {_POST: Schema(columns)})


def _one_header(node: exp.Expr, headers: Mapping[str, bool]) -> exp.Expr:
    """``headers->'name'`` is a text; of headers that are BYTES, which are kept in hex, bytes."""
    if not isinstance(node, exp.Anonymous) or node.this != "->":
        return node
    column = node.expressions[0]
    if not isinstance(column, exp.Column) or column.name not in headers:
        return node
    text = exp.Anonymous(this="->>", expressions=node.expressions)
    if not headers[column.name]:
        return text
    return exp.Anonymous(this="decode", expressions=[text, exp.Literal.string("hex")])


def _type(what: str, as_bytes: bool) -> t.SqlType:
    return t.Jsonb() if what == "headers" else t.Bytea() if as_bytes else t.Text()


def _value(
    catalog: Catalog, given: tuple[Any, ...], body: bytes, headers: Mapping[str, str]
) -> Any:
    """The value of one column; None where it is no text."""
    what, _, as_bytes, number = given
    if what == "headers":
        shown = {k: v.encode("latin-1").hex() if as_bytes else v for k, v in headers.items()}
        return canonical(shown)
    if what == "secret":
        secret = catalog.by_number[number]
        body = unseal(secret.definition["sealed"], secret.name).encode()
    try:
        return body if as_bytes else body.decode()
    except UnicodeDecodeError:
        return None
