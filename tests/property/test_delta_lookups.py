"""Look-ups in the order that touches least, in batches: the answer does not depend on either."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from noonmark.compute.incremental import lookups
from noonmark.compute.plan.definition import Definition
from noonmark.rows.schema import Schema
from noonmark.tvc import Update
from support.view.queries import QUERIES
from support.view.views import SCHEMAS, answer, seeded_history
from support.view.walk import Walker

TIMES = 10
AUCTIONS = {
    "auction": Schema.of(id="bigint not null", category="integer"),
    "bid": Schema.of(auction="bigint", price="bigint"),
}
#: The key is of both inputs: asked by its first part alone it is a whole category.
LISTED = (
    "SELECT a.category, b.auction, array_agg(b.price) AS prices FROM auction a JOIN bid b "
    "ON a.id = b.auction GROUP BY a.category, b.auction"
)


@pytest.mark.parametrize("pairs", [1, 7])
def test_neither_order_nor_batches_change_an_answer(
    tmp_path: Path, pairs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every look-up is weighed against the others, and what it finds goes on in small batches."""
    monkeypatch.setattr(lookups, "PAIRS_MAX", pairs)
    monkeypatch.setattr(lookups, "FEW", 0)
    monkeypatch.setattr(lookups, "FEW_EACH", 0)
    before = seeded_history(pairs, TIMES)
    history = {n: [Update(u.data, u.time + 1, u.diff) for u in x] for n, x in before.items()}
    walker = Walker(tmp_path, SCHEMAS, {})
    joins = {name: sql for name, sql in QUERIES.items() if "join" in sql.lower() or "," in sql}
    definitions = [Definition.of_sql(name, sql, SCHEMAS) for name, sql in joins.items()]
    for each in definitions:
        walker.create(each)
    for upper in (4, 7, TIMES + 1):
        walker.write(history, upper)
        for each in definitions:
            walker.tick(each.name)
    wrong = [
        (each.name, time)
        for each in definitions
        for time in (3, 6, TIMES)
        if walker.at(each.name, time) != answer(each.plan, history, time)
    ]
    walker.stop()
    assert wrong == []


def touched(path: Path, auctions: int) -> float:
    """How many stored rows a tick looks at, for each row that changed."""
    path.mkdir()
    chance, changes = random.Random(1), 20
    walker = Walker(path, AUCTIONS, {})
    bids = [Update((at % auctions, at), 1, 1) for at in range(5 * auctions)]
    begun = {"auction": [Update((at, at % 5), 1, 1) for at in range(auctions)], "bid": bids}
    walker.write(begun, 2)
    walker.create(Definition.of_sql("listed", LISTED, AUCTIONS))
    before = walker.traces.touched
    more = [Update((at, 1), 2, 1) for at in chance.sample(range(auctions), changes)]
    walker.write({"bid": more}, 3)
    walker.tick("listed")
    walker.stop()
    return (walker.traces.touched - before) / changes


def test_a_key_of_two_inputs_is_looked_up_as_a_whole(tmp_path: Path) -> None:
    small, large = touched(tmp_path / "small", 100), touched(tmp_path / "large", 2_000)
    assert 0 < large <= 1.3 * small
