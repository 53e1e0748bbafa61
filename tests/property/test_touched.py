"""A change looks at as many rows over a larger state: generated views over joins."""

from __future__ import annotations

from pathlib import Path

from support.view.growth import growth, is_incremental, views


def test_a_change_touches_as_many_rows_in_a_larger_state(tmp_path: Path) -> None:
    over = {name: view for name, view in views(7, 12).items() if is_incremental(view)}
    found = growth(tmp_path, 7, over, size=40, factor=10, rounds=1)
    assert len(found) >= 8
    assert all(small > 0 for small, _ in found.values())
    wrong = {over[name].sql: pair for name, pair in found.items() if pair[1] > 1.3 * pair[0]}
    assert wrong == {}
