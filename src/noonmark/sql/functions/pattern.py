"""LIKE, SIMILAR TO and POSIX regular expressions as Python's.

Law: a translated pattern matches exactly the strings that PostgreSQL's matches, for patterns of
literals, sets, classes, groups, repetition, anchors and alternation. What is not the same in Python
(look-behind, PostgreSQL's embedded options) is refused with `InvalidArgument`. One difference is
left: of several alternatives Python takes the first that matches, PostgreSQL the longest; it shows
only where the matched text is cut out or replaced.
"""

from __future__ import annotations

import re
from functools import lru_cache

from noonmark.errors import InvalidArgument

_CLASSES = {
    "alpha": "^\\W\\d_",
    "digit": "\\d",
    "alnum": "^\\W_",
    "space": "\\s",
    "upper": "A-Z",
    "lower": "a-z",
    "punct": "!-/:-@\\[-`{-~",
    "xdigit": "0-9A-Fa-f",
    "blank": " \\t",
    "cntrl": "\\x00-\\x1f\\x7f",
}
_ESCAPES = {"y": "\\b", "Y": "\\B", "m": "\\b(?=\\w)", "M": "\\b(?<=\\w)", "Z": "\\Z", "A": "\\A"}


@lru_cache(maxsize=1000)
def like(pattern: str, escape: str = "\\", ignore_case: bool = False) -> re.Pattern[str]:
    """The LIKE pattern; matches whole strings."""
    parts, at = [], 0
    while at < len(pattern):
        character = pattern[at]
        if escape and character == escape:
            at += 1
            if at == len(pattern):
                raise InvalidArgument("LIKE pattern must not end with escape character")
            parts.append(re.escape(pattern[at]))
        elif character == "%":
            parts.append(".*")
        elif character == "_":
            parts.append(".")
        else:
            parts.append(re.escape(character))
        at += 1
    flags = re.DOTALL | (re.IGNORECASE if ignore_case else 0)
    return re.compile("".join(parts) + r"\Z", flags)


@lru_cache(maxsize=1000)
def regex(pattern: str, flags: str = "") -> re.Pattern[str]:
    """The POSIX pattern, to be searched for."""
    options = re.DOTALL
    for flag in flags:
        if flag not in "gics":
            raise InvalidArgument(f'invalid regular expression option: "{flag}"')
        if flag in "ic":
            options = options | re.IGNORECASE if flag == "i" else options & ~re.IGNORECASE
    try:
        return re.compile(_translate(pattern), options)
    except re.error as error:
        raise InvalidArgument(f"invalid regular expression: {error}") from None


def _translate(pattern: str) -> str:
    if pattern.startswith("***") or re.match(r"\(\?[a-z]*\)", pattern) or "(?<" in pattern:
        raise InvalidArgument("embedded options and look-behind are not supported")
    parts, at = [], 0
    while at < len(pattern):
        character = pattern[at]
        if character == "\\":
            following = pattern[at + 1 : at + 2]
            if not following:
                raise InvalidArgument("invalid regular expression: invalid escape \\ sequence")
            parts.append(_ESCAPES.get(following) or "\\" + following)
            at += 2
        elif character == "[":
            text, at = _bracket(pattern, at)
            parts.append(text)
        else:
            parts.append({"$": "\\Z", "^": "\\A"}.get(character, character))
            at += 1
    return "".join(parts)


def _bracket(pattern: str, start: int) -> tuple[str, int]:
    """A bracket expression from its opening to behind its end, and where that is."""
    at = start + 1
    negated = pattern[at : at + 1] == "^"
    at += negated
    inside, alternatives = "", []
    first = True
    while at < len(pattern) and (first or pattern[at] != "]"):
        first = False
        named = re.match(r"\[:(\w+):\]", pattern[at:])
        if named:
            if named[1] not in _CLASSES:
                raise InvalidArgument("invalid regular expression: invalid character class")
            body = _CLASSES[named[1]]
            if body.startswith("^"):
                alternatives.append(f"[{body}]")
            else:
                inside += body
            at += named.end()
        elif pattern[at] == "\\" and at + 1 < len(pattern):
            inside += pattern[at : at + 2]
            at += 2
        else:
            inside += "\\" + pattern[at] if pattern[at] in "[]&~|^" else pattern[at]
            at += 1
    if at >= len(pattern):
        raise InvalidArgument("invalid regular expression: brackets [] not balanced")
    options = ([f"[{inside}]"] if inside else []) + alternatives
    either = options[0] if len(options) == 1 else f"(?:{'|'.join(options)})"
    return (f"(?:(?!{either}).)" if negated else either), at + 1


@lru_cache(maxsize=1000)
def similar(pattern: str) -> re.Pattern[str]:
    """The SIMILAR TO pattern; matches whole strings."""
    parts, at = [], 0
    while at < len(pattern):
        character = pattern[at]
        if character == "\\":
            parts.append(re.escape(pattern[at + 1 : at + 2]))
            at += 1
        elif character == "[":
            text, end = _bracket(pattern, at)
            parts.append(text)
            at = end - 1
        elif character in "%_":
            parts.append({"%": ".*", "_": "."}[character])
        elif character in "|*+?{}()":
            parts.append("(?:" if character == "(" else character)
        else:
            parts.append(re.escape(character))
        at += 1
    try:
        return re.compile(f"(?:{''.join(parts)})\\Z", re.DOTALL)
    except re.error as error:
        raise InvalidArgument(f"invalid regular expression: {error}") from None
