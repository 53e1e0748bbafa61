"""CREATE TABLE (LIKE other INCLUDING ...): the columns of another relation, and what is asked for.

What is copied is what CREATE TABLE would be told of the other relation now; from then on the two
have nothing to do with each other. Only a DEFAULT that takes from a sequence goes on taking from
the same one, as in PostgreSQL; an identity has a sequence of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from noonmark.adapter.catalog import Catalog, Item
from noonmark.adapter.catalog.type_names import scalar_now
from noonmark.adapter.sequence.default import by_uid, shown_defaults
from noonmark.adapter.table.checks import texts_of as checks_of
from noonmark.adapter.table.constraints import uniques_of
from noonmark.adapter.table.expressions import unqualified
from noonmark.adapter.table.generated import shown_generated
from noonmark.rows.types import quote_name
from noonmark.sql.dialect import parse_scalar
from noonmark.sql.statement import statement as st
from noonmark.sql.statement.tables import InvalidTable

if TYPE_CHECKING:
    from noonmark.adapter.session.session import AdapterSession


@dataclass
class Copied:
    """A CREATE TABLE without LIKE, and what is made behind it.

    Attributes:
        statement: the table.
        comments: of its columns.
        indexes: those that are no constraints of it.
    """

    statement: st.CreateTable
    comments: dict[str, str] = field(default_factory=dict)
    indexes: list[st.CreateIndex] = field(default_factory=list)


def copied_from(session: AdapterSession, statement: st.CreateTable) -> Copied:
    """What CREATE TABLE (LIKE ...) makes.

    Raises:
        UndefinedTable, InsufficientPrivilege: a relation is not there, or may not be read.
        InvalidTable: two primary keys.
    """
    access = session.access("CREATE TABLE")
    made = Copied(replace(statement, likes=()))
    for like in reversed(statement.likes):
        item = access.resolve("relation", like.table.parts, like.table.position)
        _copy(session.catalog, made, item, like)
    return made


def _copy(catalog: Catalog, made: Copied, item: Item, like: st.Like) -> None:
    before, asked = made.statement, like.including
    columns = (
        *before.columns[: like.at],
        *_columns(catalog, item, like),
        *before.columns[like.at :],
    )
    uniques, key = before.uniques, before.key
    if "indexes" in asked:
        plain = [each for each in uniques_of(item) if each.is_plain]
        own = [st.UniqueText(each.columns, None, each.nulls_distinct) for each in plain]
        if item.key:
            if key:
                raise InvalidTable(
                    f'multiple primary keys for table "{before.name.last}" are not allowed',
                    position=like.table.position,
                )
            own, key = [st.UniqueText(item.key, primary=True), *own], item.key
        uniques = (*uniques, *own)
        made.indexes += [_index(each, before.name) for each in _indexes(catalog, item)]
        made.indexes += [
            _index_of(before.name, each.elements, each.where, not each.nulls_distinct)
            for each in uniques_of(item)
            if not each.is_plain
        ]
    checks = before.checks
    if "constraints" in asked:
        checks = (*checks, *(_check(catalog, item, *each[:2]) for each in checks_of(item)))
    if "comments" in asked:
        made.comments |= {column: text for column, text in item.comments.items() if column}
    made.statement = replace(before, columns=columns, uniques=uniques, key=key, checks=checks)


def _columns(catalog: Catalog, item: Item, like: st.Like) -> list[st.ColumnSpec]:
    asked, is_table = like.including, item.kind == "table"
    defaults = shown_defaults(catalog, item, ()) if "defaults" in asked else {}
    computed = shown_generated(catalog, item, ()) if "generated" in asked else {}
    identities = item.definition.get("identity", {}) if "identity" in asked and is_table else {}
    more = item.definition.get("not_null", ())
    found = []
    for column in item.schema:
        identity = None
        if column.name in identities:
            kind, uid = identities[column.name]
            identity = st.Identity(kind == "a", _options(by_uid(catalog)[uid].definition))
        found.append(
            st.ColumnSpec(
                column.name,
                column.type,
                not is_table or (column.nullable and column.name not in more),
                _scalar(defaults.get(column.name)),
                like.table.position,
                identity=identity,
                generated=_scalar(computed.get(column.name)),
                domain=column.domain,
            )
        )
    return found


def _options(sequence: Mapping[str, Any]) -> st.Options:
    """The options of another sequence of the kind."""
    named = {"minvalue": "min", "maxvalue": "max"}
    words = ("increment", "minvalue", "maxvalue", "start", "cache", "cycle")
    return {word: sequence[named.get(word, word)] for word in words}


def _scalar(text: str | None) -> st.ScalarText | None:
    """An expression of the other table, without that table's name."""
    return None if text is None else _written(text)


def _written(text: str) -> st.ScalarText:
    text = unqualified(text)
    return st.ScalarText(text, 1, parse_scalar(text))


def _check(catalog: Catalog, item: Item, name: str, text: str) -> st.CheckText:
    return st.CheckText(_written(scalar_now(catalog, item, text, ())), name)


def _indexes(catalog: Catalog, item: Item) -> list[Item]:
    return [each for each in catalog.items("index") if each.definition.get("on") == item.number]


def _index(index: Item, on: st.Name) -> st.CreateIndex:
    has = index.definition
    if "elements" not in has:
        return _index_of(on, [quote_name(name) for name in index.key], None)
    return _index_of(on, [text for _, text in has["elements"]], has["where"])


def _index_of(
    on: st.Name, elements: Sequence[str], where: str | None, nulls: bool | None = None
) -> st.CreateIndex:
    """CREATE INDEX; a unique one, where it is said whether NULL is equal to NULL."""
    return st.CreateIndex(
        None,
        on,
        tuple(map(_written, elements)),
        unique=nulls is not None,
        nulls_distinct=not nulls,
        where=_scalar(where),
    )
