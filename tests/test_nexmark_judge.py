"""The judge of F11 against plain counting: it knows the answer of an input from any other."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from support.house.repository import ROOT

SEED, TOTAL = 5, 2_000


@pytest.fixture
def nexmark(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(ROOT))
    import bench.nexmark.answers
    import bench.nexmark.events
    import bench.nexmark.judge

    return bench.nexmark


def published(nexmark, numbers: list[int], place: Path):
    """The three answers over some bids, as an engine would publish them."""
    events = nexmark.events.Events(SEED)
    auctions, prices = (column.tolist() for column in events.columns(TOTAL))
    answers = nexmark.answers.Answers(place)
    sellers: dict[int, list[int]] = defaultdict(list)
    categories: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for number in numbers:
        auction, price = auctions[number], prices[number]
        sellers[int(events.sellers[auction])].append(price)
        categories[int(events.categories[auction])][auction].append(price)
    for seller, paid in sellers.items():
        answers.seller(seller, len(paid), sum(paid), 1)
    for category, each in categories.items():
        average = sum(map(max, each.values())) / len(each)
        answers.category(category, average, sum(map(len, each.values())), 1)
    for number in sorted(numbers, key=lambda at: (-prices[at], at))[:10]:
        answers.bid(number, prices[number], 1)
    for view in ("sellers", "categories", "top"):
        answers.publish(view)
    answers.close()
    return nexmark.judge.read_answers(place)


def states() -> Iterator[list[int]]:
    chance = random.Random(SEED)
    for _ in range(8):
        held = [chance.randrange(20, TOTAL // 2) for _ in range(2)]
        yield [number for number in range(TOTAL) if number // 2 < held[number % 2]]


def test_answer_of_any_state_of_partitions_is_right(nexmark, tmp_path: Path) -> None:
    judge = nexmark.judge.Judge(SEED, TOTAL)
    for numbers in states():
        for answer in published(nexmark, numbers, tmp_path / "answers"):
            assert judge.is_right(answer), answer.view


def test_answer_that_misses_one_earlier_bid_is_wrong(nexmark, tmp_path: Path) -> None:
    judge = nexmark.judge.Judge(SEED, TOTAL)
    prices = nexmark.events.Events(SEED).columns(TOTAL)[1]
    for numbers in states():
        # The best bid: every view shows it.
        numbers.remove(max(numbers[: len(numbers) // 2], key=lambda at: prices[at]))
        sellers, categories, _ = published(nexmark, numbers, tmp_path / "answers")
        assert not judge.is_right(sellers)
        assert not judge.is_right(categories)


def test_top_that_misses_its_best_bid_is_wrong(nexmark, tmp_path: Path) -> None:
    judge = nexmark.judge.Judge(SEED, TOTAL)
    prices = nexmark.events.Events(SEED).columns(TOTAL)[1]
    numbers = list(range(TOTAL))
    numbers.remove(int(np.argmax(prices[: TOTAL // 4])))
    assert not judge.is_right(published(nexmark, numbers, tmp_path / "answers")[2])


def test_a_bid_is_as_old_as_the_first_answer_that_counts_it(nexmark) -> None:
    answer = nexmark.judge.Answer
    answers = [answer("sellers", 10.5, n=2), answer("sellers", 12.0, n=4)]
    sent = np.array([(10.0, 1), (10.25, 2), (11.0, 3), (11.5, 4), (11.75, 5)])
    ages = nexmark.judge.latencies(answers, sent, 0.0)
    assert ages.tolist() == [0.25, 1.0, 0.5, float("inf")]


@pytest.mark.usefixtures("nexmark")
def test_a_page_has_the_table_of_the_last_run_alone(tmp_path: Path) -> None:
    from bench import f11_nexmark as figure
    from bench.nexmark import report

    page = tmp_path / "page.md"
    page.write_text((ROOT / "docs" / "nexmark.md").read_text())
    first = figure.Outcome("noonmark", ("sellers",), catch_up=1234.0, rates={2_000: (0.1, 0.2, 1)})
    for engine in (first, figure.Outcome("flink", (), left_out="no Maven")):
        report.publish([engine], page, {"events": 7, "seconds": 1})
    text = page.read_text()
    assert "| left out |" in text
    assert "flink is left out: no Maven" in text
    assert "1,234" not in text
    assert text.count("<!-- measured -->") == 1
    assert (tmp_path / "page-ages.svg").exists()
