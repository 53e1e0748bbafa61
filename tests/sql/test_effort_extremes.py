"""What effort calls little is little: every function, with the longest and the worst arguments.

The server asks for what is little in its own process, beside everybody. So the law is: a call of
literals whose effort is at most `LITTLE`, or that folding would ask for, takes milliseconds.
"""

from __future__ import annotations

import gc
import itertools
import random
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from noonmark.error_root import NoonmarkError
from noonmark.rows import types as t
from noonmark.sql.evaluate import evaluate
from noonmark.sql.functions import FUNCTIONS
from noonmark.sql.functions.cast import cast
from noonmark.sql.functions.function import Any_, Function
from noonmark.sql.ir import scalar as s
from noonmark.sql.ir.effort import LITTLE, call_effort, scalar_effort
from noonmark.sql.rules.fold import STEPS_MAX

#: Thirty times what is little, of processor time: the machine's noise is below.
TOO_LONG_S = 0.1
CALLS_EACH = 12
ENDLESS = "^((ab|a|b)+)+\\1$"
LONG = ("9" * 60_000, "ab" * 30_000, "." * 60_000, "[" + "1," * 20_000 + "1]", "%a" * 1_000)
SHORT = ("9" * 240, "ab" * 120, "[" * 120 + "]" * 120, "FM9" * 80, "YYYY" * 60, "1 day " * 40,
         "%1$s" * 60, "&#" * 120, "<a>" * 80, "é" * 240, "x", ENDLESS, "$.**.**.**.** ? (@ == 5)",
         "$[*] ? (@ == $[*]) ? (@ == $[*])",
         f'$.** ? (@ like_regex "{ENDLESS}")')  # fmt: skip
DOCUMENTS = ("[" * 900 + "]" * 900, "[" + "1," * 8_000 + "1]", '"' + "ab" * 20_000 + '"',
             "[" * 120 + "]" * 120, "[" + "1," * 90 + "1]", '"' + "ab" * 40 + 'c"')  # fmt: skip
WORST: dict[type[t.SqlType], tuple[str, ...]] = {
    t.Text: LONG + SHORT,
    t.Bytea: ("a" * 60_000, "\\\\" * 200),
    t.Jsonb: DOCUMENTS,
    t.Json: DOCUMENTS,
    t.SmallInt: ("32767", "-32767", "3"),
    t.Integer: ("2147483647", "-2147483647", "30000", "3"),
    t.BigInt: ("9223372036854775807", "1000000", "30000", "3"),
    t.Numeric: ("9" * 60_000, "1e-16383", "0." + "7" * 16_000, "9" * 240, "0." + "7" * 240,
                "9" * 120 + "." + "7" * 120, "99999.5", "3"),
    t.Interval: ("1 microsecond", "99999 years", "3 days"),
    t.Boolean: ("true",),
    t.Uuid: ("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",),
    t.Date: ("9999-12-31", "0001-01-01"),
}  # fmt: skip


def _literals(parameter: Any) -> list[s.Literal]:
    if parameter in (Any_.ANY, Any_.ELEMENT):
        return [*_literals(t.Integer), *_literals(t.Text)[:3]]
    if parameter in (Any_.ARRAY, t.Array):
        numbers, texts = tuple(range(8_000)), ("ab" * 50,) * 1_000
        return [
            *(s.Literal(t.Array(t.Integer()), each) for each in (numbers, numbers[:150])),
            *(s.Literal(t.Array(t.Text()), each) for each in (texts, texts[:4])),
        ]
    if parameter in (t.Enum, t.Record):
        return []  # an enum's functions are of its own labels
    kind, found = parameter(), []
    for text in WORST.get(parameter, ("1e300", "3.3", "9999-12-30 23:59:59", "10:00")):
        try:
            found.append(s.Literal(kind, cast(text, t.Text(), kind)))
        except NoonmarkError:
            continue  # no value of this type
    return found


def _calls(entry: Function, seed: int) -> list[s.Call]:
    parameters = entry.parameters + entry.parameters[-1:] * entry.variadic
    arguments = list(itertools.islice(itertools.product(*map(_literals, parameters)), 20_000))
    picked = random.Random(f"{seed} {entry.id}").sample(arguments, min(len(arguments), CALLS_EACH))
    calls = []
    for each in picked:
        elements = [a.type for a, p in zip(each, parameters, strict=True) if p is t.Array]
        if all(kind == t.Array(entry.element()) for kind in elements) and entry.takes(
            tuple(a.type for a in each)
        ):
            calls.append(s.Call(entry.id, each))
    return calls


def took_s(call: s.Call) -> float:
    """The processor time of a call."""
    begun = time.process_time()
    with suppress(NoonmarkError):  # that is an answer, too
        evaluate(call)
    return time.process_time() - begun


@pytest.fixture
def _uncollected() -> Iterator[None]:
    """No collection of garbage: in the process of all tests one takes a third of a second."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("_uncollected")
@pytest.mark.parametrize("seed", [1])
def test_what_is_little_takes_little(seed: int) -> None:
    asked, late = 0, []
    for entry in FUNCTIONS.by_id.values():
        for call in _calls(entry, seed):
            if scalar_effort(call) <= LITTLE or call_effort(call) <= STEPS_MAX:
                asked += 1
                shown = [f"{str(each.value)[:40]}" for each in call.arguments]  # type: ignore[attr-defined]
                if (took := took_s(call)) > TOO_LONG_S:
                    late.append((entry.id, shown, took))
    assert late == []
    assert asked > 1_000
