"""How much it is to read and plan a text, with the views that it names: about how many steps.

A view is planned as part of the query that names it, once for every time that it is named, and so
is what it names: a view of a view that is there twice, and so on, doubles with every one of a few
short texts. So a view weighs what its text weighs and what the views weigh that its text names.

    text     words, and much more for queries inside of queries, which are rewritten together
    views    for every time that the name of a view is in the text, what that view weighs

Law (bound): the names of views are counted as words, wherever they stand: too many, never too few.
Law (own): what one query weighs is not changed by views that it does not name.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from noonmark.adapter.catalog import Catalog, Item

if TYPE_CHECKING:
    from noonmark.adapter.session.session import AdapterSession

#: How much more a query inside of a query is than another word.
_QUERY = 60
#: A longer text is heavy anyhow.
_LONG = 60_000
#: What is not counted further.
_MAX = 1_000_000_000
_WORD = re.compile(r"\w+")
#: How a name begins that may be written with numbers of characters.
_ESCAPED = "u&"


def text_weight(text: str) -> int:
    """What a text weighs, the views that it names aside."""
    if len(text) > _LONG:
        return len(text) // 3
    lower = text.lower()
    queries = max(0, lower.count("select") - 1) + lower.count("join") + lower.count("with ")
    return len(text) // 3 + _QUERY * queries * queries


def weight_of(catalog: Catalog, text: str) -> int:
    """What a text weighs with the views that it names."""
    return text_weight(text) + _weights(catalog).of(text)


def statement_weight(session: AdapterSession) -> int:
    """What the statement weighs that a session has under way, however much of it is recorded."""
    return max(weight_of(session.catalog, session.text), session.length // 3)


@dataclass(frozen=True)
class _Weights:
    """What the views of one catalog weigh."""

    catalog: Catalog
    by_number: Mapping[int, int]

    def of(self, text: str) -> int:
        """What the views weigh that a text names, by any name that one of them has."""
        return _named(text, self._by_name) if self.by_number else 0

    @cached_property
    def _by_name(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for number, weight in self.by_number.items():
            name = self.catalog.by_number[number].name.lower()
            found[name] = max(found.get(name, 0), weight)
        return found

    def with_changes(self, catalog: Catalog) -> _Weights:
        """Those of a later catalog: only what is new there is weighed."""
        weights: dict[int, int] = {}
        for item in catalog.items("view"):  # what a view needs has a smaller number
            known = self.catalog.by_number.get(item.number) is item
            number = item.number
            weights[number] = self.by_number[number] if known else _view(item, weights)
        return _Weights(catalog, weights)


def _view(item: Item, weights: Mapping[int, int]) -> int:
    """What a view weighs: by the names that it was written with, whatever they are called now."""
    text = item.definition["query"]
    names: dict[str, int] = {}
    for written, (number, _) in item.definition["names"].items():
        if number in weights:
            for name in {written.lower(), written.rpartition(".")[2].lower()}:
                names[name] = max(names.get(name, 0), weights[number])
    return min(_MAX, text_weight(text) + _named(text, names))


def _named(text: str, weights: Mapping[str, int]) -> int:
    """The weights of the names that are in a text, for every time that they are."""
    if not weights:
        return 0
    lower = text.lower()
    words = Counter(_WORD.findall(lower))
    total = max(weights.values()) * lower.count(_ESCAPED)
    for name in weights.keys() & words.keys():
        total += weights[name] * words[name]
    for name in weights:
        if _WORD.fullmatch(name) is None:  # a quoted name
            total += weights[name] * lower.count(name.replace('"', '""'))
    return total


_KNOWN = _Weights(Catalog(), {})


def _weights(catalog: Catalog) -> _Weights:
    global _KNOWN  # noqa: PLW0603 - of the newest catalog only
    if _KNOWN.catalog is not catalog:
        _KNOWN = _KNOWN.with_changes(catalog)
    return _KNOWN
