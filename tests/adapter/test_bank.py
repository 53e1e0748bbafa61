"""C6 in small: transfers, views over them, kills; `tests/prove/c6_bank.py` has the full number."""

from __future__ import annotations

import pytest

from prove.c6_bank import main

pytestmark = pytest.mark.server


@pytest.mark.timeout(280)
def test_every_published_answer_is_of_one_time() -> None:
    figure = main(["--seed", "5", "--count", "150"], kills=2, peer=False)
    assert figure["met"], figure["note"]
