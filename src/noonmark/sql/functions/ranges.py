"""Ranges and multiranges: operators and functions, for each of the six kinds.

Each is defined on lists of ranges that lie apart: a range is one of at most one range.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from noonmark.errors import DatetimeOutOfRange, InvalidValue, OutOfRange
from noonmark.rows import types as t
from noonmark.rows.coded.ranges import PAIRS, Multirange, Range
from noonmark.rows.coded.spans import Span
from noonmark.sql.functions.errors import BadFlags, NullRefused, RangeRefused
from noonmark.sql.functions.function import Function

_FLAGS = ("[]", "[)", "(]", "()")
Kind = type[Range] | type[Multirange]


def span(kind: Kind, low: Any, high: Any, flags: str = "[)") -> Span:
    """The range between two values, as functions refuse what is none."""
    try:
        return kind.span(low, high, flags[0] == "[", flags[1] == "]")
    except InvalidValue as error:
        raise refusal(error, kind) from None


def refusal(error: InvalidValue, kind: Kind) -> Exception:
    """What an error of a value is when a query is evaluated."""
    if "out of range" not in error.message:
        return RangeRefused(error.message)
    is_time = isinstance(kind.element, t.Date)
    return DatetimeOutOfRange(error.message) if is_time else OutOfRange(error.message)


# --- made


def _between(kind: type[Range], low: Any, high: Any, flags: str | None = "[)") -> bytes:
    if flags is None:
        raise RangeRefused("range constructor flags argument must not be null")
    if flags not in _FLAGS:
        raise BadFlags(
            "invalid range bound flags", hint='Valid values are "[]", "[)", "(]", and "()".'
        )
    return kind.value(span(kind, low, high, flags))


def _gathered(one: type[Range], values: Iterable[bytes | None]) -> bytes:
    spans: list[Span] = []
    for each in values:
        if each is None:
            raise NullRefused("multirange values cannot contain null members")
        spans += one.spans(each)
    return one.of_several.value(spans)


def _makers(one: type[Range], several: type[Multirange]) -> Iterator[Function]:
    ends, make = (type(one.element),) * 2, partial(_between, one)
    for parameters in (ends, (*ends, t.Text)):
        yield Function(one.spelling, parameters, one(), make, strict=False, fallible=True)
    yield Function(several.spelling, (), several(), lambda: several.value(()))
    for name in (several.spelling, "multirange"):
        yield Function(name, (one,), several(), lambda x: several.value(one.spans(x)))
    gather = partial(_gathered, one)
    yield Function(
        several.spelling,
        (one, one),
        several(),
        lambda *all_: gather(all_),
        strict=False,
        fallible=True,
        variadic=True,
        edition=2,
    )


# --- asked


def _asked(one: type[Range], several: type[Multirange]) -> Iterator[Function]:
    boolean = t.Boolean()
    for kind in (one, several):
        first: Callable[[bytes], Span] = partial(_end, kind, 0)
        last: Callable[[bytes], Span] = partial(_end, kind, -1)
        questions: tuple[tuple[str, Callable[..., bool]], ...] = (
            ("isempty", lambda value, of=first: of(value).empty),
            ("lower_inc", lambda value, of=first: of(value).low_in),
            ("upper_inc", lambda value, of=last: of(value).high_in),
            ("lower_inf", lambda v, of=first: not of(v).empty and of(v).low is None),
            ("upper_inf", lambda v, of=last: not of(v).empty and of(v).high is None),
        )
        for name, act in questions:
            yield Function(name, (kind,), boolean, act)
        element = one.element
        yield Function("lower", (kind,), element, lambda v, of=first: of(v).low, gives_null=True)
        yield Function("upper", (kind,), element, lambda v, of=last: of(v).high, gives_null=True)


def _end(kind: Kind, at: int, value: bytes) -> Span:
    spans = [each for each in kind.spans(value) if not each.empty]
    return spans[at] if spans else Span.none()


Spans = list[Span]


def _holds(a: Spans, b: Spans) -> bool:
    return all(any(one.holds(other) for one in a) for other in b)


def _overlap(a: Spans, b: Spans) -> bool:
    return any(one.overlaps(other) for one in a for other in b)


def _before(a: Spans, b: Spans) -> bool:
    return bool(a and b) and a[-1].before(b[0])


def _ends_within(a: Spans, b: Spans) -> bool:
    return bool(a and b) and a[-1].end <= b[-1].end


def _starts_within(a: Spans, b: Spans) -> bool:
    return bool(a and b) and a[0].start >= b[0].start


def _adjacent(a: Spans, b: Spans) -> bool:
    return bool(a and b) and (a[-1].touches(b[0]) or b[-1].touches(a[0]))


_TESTS: dict[str, Callable[[Spans, Spans], bool]] = {
    "@>": _holds,
    "<@": lambda a, b: _holds(b, a),
    "&&": _overlap,
    "<<": _before,
    ">>": lambda a, b: _before(b, a),
    "&<": _ends_within,
    "&>": _starts_within,
    "-|-": _adjacent,
}


def _tests(one: type[Range], several: type[Multirange]) -> Iterator[Function]:
    boolean = t.Boolean()
    for sign, test in _TESTS.items():
        for a in (one, several):
            for b in (one, several):
                yield Function(sign, (a, b), boolean, partial(_tested, test, a, b))
    element = type(one.element)
    for kind in (one, several):
        inside = partial(_inside, kind)
        turned = partial(_turned, inside)
        yield Function("@>", (kind, element), boolean, inside, exact=True)
        yield Function("<@", (element, kind), boolean, turned, exact=True)


def _tested(
    test: Callable[[Spans, Spans], bool], one: Kind, other: Kind, a: bytes, b: bytes
) -> bool:
    return test(_spans(one, a), _spans(other, b))


def _spans(kind: Kind, value: bytes) -> Spans:
    return [each for each in kind.spans(value) if not each.empty]


def _turned(act: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    return act(b, a)


def _inside(kind: Kind, value: bytes, item: Any) -> bool:
    at = (0, kind.sort(item), 0)
    return any(each.start <= at <= each.end for each in _spans(kind, value))


# --- computed


def _union(one: type[Range], a: bytes, b: bytes) -> bytes:
    left, right = one.one(a), one.one(b)
    if len(Span.apart((left, right))) > 1:
        raise RangeRefused("result of range union would not be contiguous")
    return one.value(left.around(right))


def _without(a: Spans, b: Spans) -> Spans:
    for cut in b:
        a = [part for each in a for part in each.without(cut)]
    return a


def _difference(one: type[Range], a: bytes, b: bytes) -> bytes:
    spans = _without(_spans(one, a), _spans(one, b))
    if len(spans) > 1:
        raise RangeRefused("result of range difference would not be contiguous")
    return one.value_of(spans)


def common(kind: Kind, a: bytes, b: bytes) -> bytes:
    """What lies in both."""
    made = (x.common(y) for x in _spans(kind, a) for y in _spans(kind, b))
    return kind.value_of([each for each in made if not each.empty])


def _around(one: type[Range], spans: Spans) -> bytes:
    return one.value(spans[0].around(spans[-1]) if spans else Span.none())


def _computed(one: type[Range], several: type[Multirange]) -> Iterator[Function]:
    pair, pairs = (one, one), (several, several)
    # Of ends that are equal and not the same (1.5, 1.50), other ones were kept once.
    made = Function if one.one_form else partial(Function, edition=2)
    yield made("+", pair, one(), partial(_union, one), fallible=True)
    yield Function("-", pair, one(), partial(_difference, one), fallible=True)
    yield Function("*", pair, one(), partial(common, one))
    yield made(
        "+", pairs, several(), lambda a, b: several.value([*several.spans(a), *several.spans(b)])
    )
    yield made(
        "-",
        pairs,
        several(),
        lambda a, b: several.value(_without(several.spans(a), several.spans(b))),
    )
    yield made("*", pairs, several(), partial(common, several))
    yield made("range_merge", pair, one(), lambda a, b: one.value(one.one(a).around(one.one(b))))
    yield Function("range_merge", (several,), one(), lambda v: _around(one, several.spans(v)))


TABLE = tuple(
    function
    for one, several in PAIRS
    for part in (_makers, _asked, _tests, _computed)
    for function in part(one, several)
)


def _rows(several: type[Multirange], value: bytes) -> Iterator[tuple[bytes]]:
    return ((several.of_range.value(each),) for each in several.spans(value))


ROWS = tuple(
    Function("unnest", (several,), one(), partial(_rows, several)) for one, several in PAIRS
)
