"""A small part of the proof of what SQL means: scalars and queries, asked once and maintained."""

from __future__ import annotations

import pytest

from prove.c13_semantics import main

pytestmark = pytest.mark.server


@pytest.mark.timeout(300)
def test_answers_and_views_are_what_postgresql_answers() -> None:
    figure = main(["--seed", "11", "--count", "72"])
    assert figure["met"], figure["note"]
    assert figure["measures"]["query"] == 12
