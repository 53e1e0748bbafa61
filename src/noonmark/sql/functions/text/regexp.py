"""Functions of regular expressions, with the places, numbers and options that PostgreSQL's take."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from noonmark.errors import InvalidArgument
from noonmark.rows import types as t
from noonmark.sql.functions.function import Function
from noonmark.sql.functions.text import pattern
from noonmark.sql.pattern.matcher import Matcher, Spans, Subject

_BOOL, _INT, _TEXT = t.Boolean(), t.Integer(), t.Text()
Found = tuple[Subject, tuple[int, int] | None]


def _at_least(least: int, **given: int) -> None:
    for name, value in given.items():
        if value < least:
            raise InvalidArgument(f'invalid value for parameter "{name}": {value}')


def _options(name: str, flags: str) -> str:
    """The options, among which is not that of all matches."""
    if "g" in flags:
        hint = "Use the regexp_matches function instead." if name == "regexp_match" else None
        raise InvalidArgument(f'{name}() does not support the "global" option', hint=hint)
    return flags


def _matches(text: str, regex: str, flags: str, start: int) -> tuple[Subject, Iterator[Spans]]:
    subject = pattern.regex(regex, flags).on(text)
    return subject, pattern.every(subject, start - 1)


def _nth(text: str, found: Matcher, start: int, number: int, capture: int) -> Found | None:
    """The place of a match, or of one of its captures; None where there is no such match."""
    subject = found.on(text)
    matches = pattern.every(subject, start - 1)
    spans = next(islice(matches, number - 1, None), None)
    if spans is None or capture > max(found.captures, 1):
        return None
    return subject, spans[capture if found.captures else 0]


def _substring(text: str, regex: str) -> str | None:
    found = pattern.first(text, pattern.regex(regex))
    if found is None:
        return None
    subject, spans = found
    span = spans[1] if len(spans) > 1 else spans[0]
    return None if span is None else subject.cut(*span)


def _like(text: str, regex: str, flags: str = "") -> bool:
    return pattern.regex(regex, _options("regexp_like", flags)).test(text)


def _count(text: str, regex: str, start: int = 1, flags: str = "") -> int:
    _at_least(1, start=start)
    _, matches = _matches(text, regex, _options("regexp_count", flags), start)
    return sum(1 for _ in matches)


def _instr(  # noqa: PLR0917 - the parameters that PostgreSQL has
    text: str,
    regex: str,
    start: int = 1,
    number: int = 1,
    end: int = 0,
    flags: str = "",
    capture: int = 0,
) -> int:
    _at_least(1, start=start)
    _at_least(1, n=number)
    if end not in (0, 1):
        raise InvalidArgument(f'invalid value for parameter "endoption": {end}')
    _at_least(0, subexpr=capture)
    matcher = pattern.regex(regex, _options("regexp_instr", flags))
    found = _nth(text, matcher, start, number, capture)
    if found is None or found[1] is None:
        return 0
    return len(found[0].cut(0, found[1][end])) + 1


def _substr(  # noqa: PLR0917
    text: str, regex: str, start: int = 1, number: int = 1, flags: str = "", capture: int = 0
) -> str | None:
    _at_least(1, start=start)
    _at_least(1, n=number)
    _at_least(0, subexpr=capture)
    matcher = pattern.regex(regex, _options("regexp_substr", flags))
    found = _nth(text, matcher, start, number, capture)
    return None if found is None or found[1] is None else found[0].cut(*found[1])


def _replace(text: str, regex: str, new: str, flags: str = "") -> str:
    if flags[:1].isdigit():
        raise InvalidArgument(
            f'invalid regular expression option: "{flags[0]}"',
            hint="If you meant to use regexp_replace() with a start parameter, cast the fourth "
            "argument to integer explicitly.",
        )
    return pattern.replace(text, pattern.regex(regex, flags), new, 0 if "g" in flags else 1)


def _replace_from(  # noqa: PLR0917
    text: str, regex: str, new: str, start: int, number: int = 1, flags: str = ""
) -> str:
    """Of the matches from a place on the one of a number; all of them for 0."""
    _at_least(1, start=start)
    _at_least(0, n=number)
    return pattern.replace(text, pattern.regex(regex, flags), new, number, start - 1)


def _groups(subject: Subject, spans: Spans) -> tuple[str | None, ...]:
    kept = spans[1:] or spans
    return tuple([None if span is None else subject.cut(*span) for span in kept])


def _match(text: str, regex: str, flags: str = "") -> tuple[str | None, ...] | None:
    found = pattern.first(text, pattern.regex(regex, _options("regexp_match", flags)))
    return None if found is None else _groups(*found)


def every_match(text: str, regex: str, flags: str = "") -> Iterator[tuple[Any]]:
    """regexp_matches: a row for each match, or for the first."""
    subject, matches = _matches(text, regex, flags, 1)
    for spans in matches if "g" in flags else islice(matches, 1):
        yield (_groups(subject, spans),)


def split_rows(text: str, regex: str, flags: str = "") -> Iterator[tuple[str]]:
    """regexp_split_to_table."""
    found = pattern.regex(regex, _options("regexp_split_to_table", flags))
    return ((part,) for part in pattern.split(text, found))


def _split(text: str, regex: str, flags: str = "") -> tuple[str, ...]:
    found = pattern.regex(regex, _options("regexp_split_to_array", flags))
    return tuple(pattern.split(text, found))


def _similar_part(text: str, similar: str, escape: str) -> str | None:
    return _substring(text, pattern.similar_text(similar, escape))


def steps(regex: str, length: int) -> float:
    """What it takes to look for it in a text of a length."""
    return pattern.regex(regex).steps(length)


def replaced_size(text: str, _: str, new: str, *__: Any) -> int:
    """How long a text can be after every match is `new`; a match may be empty."""
    return len(text) + (len(text) + 1) * len(new)


def _search(flags: str) -> Callable[[str, str], bool]:
    return lambda text, regex: pattern.regex(regex, flags).test(text)


def _each(
    name: str, gives: t.SqlType, act: Any, *more: tuple[type[t.SqlType], ...], **options: Any
) -> list[Function]:
    """A function of a text, a pattern, and one of several lists of more."""
    return [
        Function(name, (t.Text, t.Text, *last), gives, act, fallible=True, steps=steps, **options)
        for last in more
    ]


_I, _X = t.Integer, t.Text
_TEXTS = t.Array(_TEXT)
_SIZED = {"size": replaced_size}
_NULL = {"gives_null": True}
_PLACED = ((), (_I,), (_I, _I))
_ENDED = (_I, _I, _I)

TABLE = (
    *_each("~", _BOOL, _search(""), (), decided_by=(1,)),
    *_each("~*", _BOOL, _search("i"), (), decided_by=(1,)),
    Function(
        "similar to",
        (t.Text, t.Text),
        _BOOL,
        lambda text, similar: pattern.similar(similar).test(text),
        fallible=True,
        steps=lambda similar, length: pattern.similar(similar).steps(length),
    ),
    Function(
        "similar to",
        (t.Text,) * 3,
        _BOOL,
        lambda text, similar, escape: pattern.similar(similar, escape).test(text),
        fallible=True,
        steps=lambda similar, length: pattern.similar(similar).steps(length),
    ),
    *_each("regexp_like", _BOOL, _like, (), (_X,)),
    *_each("regexp_count", _INT, _count, (), (_I,), (_I, _X)),
    *_each("regexp_instr", _INT, _instr, *_PLACED, _ENDED, (*_ENDED, _X), (*_ENDED, _X, _I)),
    *_each("regexp_substr", _TEXT, _substr, *_PLACED, (_I, _I, _X), (_I, _I, _X, _I), **_NULL),
    *_each("substring", _TEXT, _substring, (), **_NULL),
    *_each("substring", _TEXT, _similar_part, (_X,), **_NULL),
    *_each("regexp_replace", _TEXT, _replace, (_X,), (_X, _X), **_SIZED),
    *_each("regexp_replace", _TEXT, _replace_from, *((_X, *p) for p in _PLACED[1:]), **_SIZED),
    *_each("regexp_replace", _TEXT, _replace_from, (_X, _I, _I, _X), **_SIZED),
    *_each("regexp_split_to_array", _TEXTS, _split, (), (_X,)),
    *_each("regexp_match", _TEXTS, _match, (), (_X,), **_NULL),
)
