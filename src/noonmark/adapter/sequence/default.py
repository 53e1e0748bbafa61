"""DEFAULT nextval('s'): the sequence is remembered by its uid, whatever it is called later.

The default of a column is kept as text. Where it names a sequence in `nextval('...')`, the name is
replaced by ``sequence:UID``: no name that somebody writes looks like that, because a colon needs
quotes. What users are shown has the name of now.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from noonmark.adapter.catalog.catalog import Catalog
from noonmark.adapter.catalog.item import PUBLIC, Item
from noonmark.adapter.catalog.type_names import scalar_now
from noonmark.rows.types import quote_name
from noonmark.sql.lexer import Token, tokens_of

_MARK = "sequence:"


def default_text(uid: str) -> str:
    """The default of a column that takes its values from a sequence."""
    return f"nextval('{_MARK}{uid}'::regclass)"


def remembered(catalog: Catalog, name: str) -> Item | None:
    """The sequence that a kept text means."""
    if not name.startswith(_MARK):
        return None
    return by_uid(catalog).get(name.removeprefix(_MARK))


def by_uid(catalog: Catalog) -> Mapping[str, Item]:
    """Every sequence by its uid."""
    return {item.definition["uid"]: item for item in catalog.items("sequence")}


def used(text: str) -> list[str]:
    """The uids of the sequences that a kept default takes from."""
    return [
        token.value.removeprefix(_MARK) for token in _names(text) if token.value.startswith(_MARK)
    ]


def kept(text: str, find: Callable[[str], Item]) -> str:
    """A default as it is written, as it is kept; `find` raises where there is no sequence."""
    return _replaced(text, lambda name: _MARK + find(name).definition["uid"])


def shown(catalog: Catalog, text: str, path: Sequence[str] = (PUBLIC,)) -> str:
    """A kept default as users see it: names need no schema where it is in the path."""
    if _MARK not in text:
        return text
    found = by_uid(catalog)

    def name(mark: str) -> str:
        item = found.get(mark.removeprefix(_MARK))
        if item is None:
            return mark
        own = quote_name(item.name)
        return own if item.schema_name in path else f"{quote_name(item.schema_name)}.{own}"

    return _replaced(text, name)


def shown_defaults(catalog: Catalog, item: Item, path: Sequence[str] = (PUBLIC,)) -> dict[str, str]:
    """The defaults of a table's columns as users see them; those of identities are none."""
    if item.kind != "table":
        return {}
    found: Mapping[str, str] = item.definition.get("defaults", {})
    return {
        name: scalar_now(catalog, item, shown(catalog, text, path), path)
        for name, text in found.items()
    }


def _names(text: str) -> Iterator[Token]:
    """The strings that are the first argument of nextval."""
    tokens = tokens_of(text)
    for at, token in enumerate(tokens[2:], 2):
        call = [each.value for each in tokens[at - 2 : at]]
        if token.kind == "string" and call == ["nextval", "("]:
            yield token


def _replaced(text: str, change: Callable[[str], str]) -> str:
    made, at = "", 0
    for token in _names(text):
        name = change(token.value).replace("'", "''")
        made += text[at : token.start] + f"'{name}'"
        at = token.end
        if not text[at:].lstrip().lower().startswith("::"):
            made += "::regclass"
    return made + text[at:]
