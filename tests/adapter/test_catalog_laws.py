"""The catalog as a value: names, numbers, dependencies, rights; and items as rows."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noonmark.adapter.catalog import Catalog, Item
from noonmark.adapter.catalog.item import KINDS, Kind
from noonmark.adapter.catalog.privilege import has, memberships
from noonmark.adapter.catalog.rights import OWN
from noonmark.adapter.catalog.store import from_row, to_row
from noonmark.errors import DuplicateObject, NameTaken, NewerFormat, UndefinedTable
from noonmark.rows.schema import Schema

COLUMNS = Schema.of(a="bigint not null", b="text")


def item(number: int, kind: Kind = "table", name: str = "", **more: object) -> Item:
    made = Item(number, kind, "" if kind in ("role", "schema") else "public", name or f"n{number}")
    return replace(made, schema=COLUMNS, **more)  # type: ignore[arg-type]


def test_a_name_is_looked_for_in_its_schema_or_along_the_path() -> None:
    other = replace(item(2, name="t"), schema_name="s")
    catalog = Catalog.of([item(1, name="t"), other])
    assert catalog.resolve(("t",)).number == 1
    assert catalog.resolve(("s", "t")).number == 2
    assert catalog.resolve(("anything", "public", "t")).number == 1
    with pytest.raises(UndefinedTable) as refused:
        catalog.resolve(("s", "u"), position=15)
    assert refused.value.position == 15
    assert str(refused.value) == 'relation "s.u" does not exist'


def test_no_two_items_have_one_name() -> None:
    with pytest.raises(NameTaken, match='relation "t" already exists'):
        Catalog.of([item(1, name="t"), item(2, "view", name="t")])
    with pytest.raises(DuplicateObject):
        Catalog.of([item(1, "role", name="t"), item(2, "role", name="t")])
    Catalog.of([item(1, name="t"), item(2, "role", name="t"), item(3, "schema", name="t")])


def test_a_number_never_comes_back() -> None:
    catalog = Catalog.of([item(1), item(2)])
    assert catalog.next_number == 3
    assert catalog.changed(removed=[1, 2]).next_number == 3
    assert catalog.changed(removed=[2]).changed([item(3)]).next_number == 4


def test_dependents_come_before_what_they_need() -> None:
    catalog = Catalog.of(
        [
            item(1, "source"),
            item(2, "subsource", part_of=1),
            item(3, "view", needs=(2,)),
            item(4, "materialized-view", needs=(3,)),
            item(5),
            item(6, "materialized-view", needs=(4, 5)),
        ]
    )
    assert [each.number for each in catalog.dependents([1])] == [6, 4, 3]
    assert [each.number for each in catalog.dependents([5])] == [6]
    assert [each.number for each in catalog.needs([6])] == [1, 2, 3, 4, 5, 6]
    assert catalog.dependents([6]) == []


@settings(deadline=None)
@given(
    needs=st.lists(st.sets(st.integers(0, 9)), min_size=1, max_size=10),
    dropped=st.sets(st.integers(0, 9)),
)
def test_without_the_dependents_nothing_dangles(needs: list[set[int]], dropped: set[int]) -> None:
    items = [
        item(at + 1, needs=tuple(sorted(n + 1 for n in below if n < at)))
        for at, below in enumerate(needs)
    ]
    catalog = Catalog.of(items)
    gone = {number + 1 for number in dropped if number < len(items)}
    doomed = gone | {each.number for each in catalog.dependents(gone)}
    left = catalog.changed(removed=doomed)
    for each in left.items():
        assert set(each.needs) <= set(left.by_number)
    # And no more goes than must: every dependent needs something that goes.
    for each in catalog.dependents(gone):
        assert set(each.needs) & doomed


names = st.text(min_size=1, max_size=8)
plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**50), 2**50) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
)


@settings(deadline=None)
@given(
    kind=st.sampled_from(KINDS),
    name=names,
    definition=st.dictionaries(st.text(max_size=6), plain, max_size=3),
    needs=st.lists(st.integers(1, 2**40), max_size=3).map(tuple),
    retain_ms=st.none() | st.integers(0, 2**40),
    comments=st.dictionaries(st.text(max_size=4), names, max_size=2),
    grants=st.dictionaries(names, st.frozensets(st.sampled_from(["SELECT", "INSERT"])), max_size=2),
)
def test_an_item_comes_back_from_its_row(kind: Kind, name: str, **more: object) -> None:
    made = replace(item(7, kind, name), key=("a",), owner="me", **more)  # type: ignore[arg-type]
    assert from_row(to_row(made)) == made


def test_a_kind_of_a_newer_version_is_refused() -> None:
    number, _, *rest = to_row(item(1))
    with pytest.raises(NewerFormat, match="this version does not know"):
        from_row((number, "hologram", *rest))  # type: ignore[arg-type]


def test_rights_come_from_ownership_grants_and_memberships() -> None:
    roles = [
        item(1, "role", "root", definition={"superuser": True}),
        item(2, "role", "ann", definition={"member_of": ["readers"]}),
        item(3, "role", "bob"),
        item(4, "role", "readers"),
    ]
    table = item(5, name="t", owner="bob", grants={"readers": frozenset({"SELECT"})})
    catalog = Catalog.of([*roles, table])
    assert memberships(catalog, "ann") == {"ann", "readers", "public"}
    assert has(catalog, "root", OWN, table)
    assert has(catalog, "bob", OWN, table)
    assert has(catalog, "ann", "SELECT", table)
    assert not has(catalog, "ann", "INSERT", table)
    assert not has(catalog, "ann", OWN, table)
    everybody = replace(table, grants={"public": frozenset({"SELECT"})})
    assert has(catalog, "stranger", "SELECT", everybody)
    # Until somebody makes a role, every user may do everything.
    assert has(Catalog.of([table]), "stranger", OWN, table)
