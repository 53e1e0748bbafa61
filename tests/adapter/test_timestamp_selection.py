"""Timestamp selection: text cases, and the laws of `noonmark.adapter.timestamp.choice`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noonmark.adapter.timestamp.choice import (
    SERIALIZABLE,
    STRICT,
    Input,
    Question,
    explain,
    select_timestamp,
)
from noonmark.errors import BeforeSince, NoonmarkError
from support.sql.cases import differing

FOLDER = Path(__file__).resolve().parents[1] / "cases" / "timestamp"


def parse_question(text: str) -> Question:
    """`oracle 7`, `serializable`, `as of [at least] 5`, `now 8`, `recency 9`, `t [3, 8)`."""
    question = Question((), 0)
    for line in text.splitlines():
        match line.split():
            case ["oracle", time]:
                question = replace(question, oracle=int(time))
            case ["serializable"]:
                question = replace(question, isolation=SERIALIZABLE)
            case ["as", "of", "at", "least", time]:
                question = replace(question, as_of=int(time), at_least=True)
            case ["as", "of", time]:
                question = replace(question, as_of=int(time))
            case ["now", time]:
                question = replace(question, now=int(time))
            case ["recency", time]:
                question = replace(question, recency=int(time))
            case [name, since, upper]:
                ends = [None if end == "-" else int(end) for end in (since[1:-1], upper[:-1])]
                question = replace(question, inputs=(*question.inputs, Input(name, *ends)))
            case _:
                raise AssertionError(f"unknown line {line!r}")
    return question


def outcome(text: str) -> str:
    question = parse_question(text)
    try:
        return "\n".join(line or "." for line in explain(question, select_timestamp(question)))
    except NoonmarkError as error:
        return f"error {error.sqlstate}: {error}"


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.txt")), ids=lambda path: path.stem)
def test_cases(path: Path) -> None:
    wrong = differing(path, outcome)
    assert wrong == [], "\n\n".join(wrong)


times = st.integers(0, 20)
inputs = st.lists(
    st.builds(
        lambda name, since, ahead: Input(name, since, None if ahead is None else since + ahead),
        st.sampled_from("abc"),
        times,
        st.none() | times,
    ),
    max_size=3,
).map(tuple)
questions = st.builds(
    Question,
    inputs=inputs,
    oracle=times,
    isolation=st.sampled_from([STRICT, SERIALIZABLE]),
    as_of=st.none() | times,
    at_least=st.booleans(),
    recency=st.none() | times,
    now=st.none() | times,
)


def allowed(question: Question, time: int) -> bool:
    """The definition: whether a time may be chosen at all."""
    if any(each.since is None or time < each.since for each in question.inputs):
        return False
    if question.as_of is not None and not question.at_least:
        return time == question.as_of
    lower = [0 if question.as_of is None else question.as_of, question.recency or 0]
    if question.isolation == STRICT:
        lower += [question.oracle, question.now or 0]
    return time >= max(lower)


@settings(deadline=None)
@given(questions)
def test_the_choice_is_the_one_that_the_laws_define(question: Question) -> None:
    candidates = [time for time in range(60) if allowed(question, time)]
    if not candidates:
        with pytest.raises(BeforeSince) as caught:
            select_timestamp(question)
        assert caught.value.fields["earliest"] == max(each.since or 0 for each in question.inputs)
        return
    choice = select_timestamp(question)
    assert choice.time in candidates
    complete = [t for t in candidates if all(each.complete_at(t) for each in question.inputs)]
    assert set(choice.waits) == {e.name for e in question.inputs if not e.complete_at(choice.time)}
    if question.isolation == STRICT:
        assert choice.time == candidates[0]
    elif complete and any(each.upper is not None for each in question.inputs):
        assert choice.time == complete[-1]


@settings(deadline=None)
@given(questions, times)
def test_a_later_oracle_never_makes_a_strict_read_earlier(question: Question, later: int) -> None:
    before = replace(question, isolation=STRICT, as_of=None)
    after = replace(before, oracle=before.oracle + later)
    assert select_timestamp(before).time <= select_timestamp(after).time
