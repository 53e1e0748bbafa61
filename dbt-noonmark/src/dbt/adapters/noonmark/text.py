"""Texts of statements, compared as the server would read them.

Law: two texts with the same normal form have the same tokens. Comments and the amount of space
between tokens do not count; what is inside of quotes does.
"""

from __future__ import annotations

import re

_TOKEN = re.compile(
    r"""
      (?P<quoted> [eE]'(?:[^'\\]|\\.|'')*' | '(?:[^']|'')*' | "(?:[^"]|"")*" )
    | (?P<dollar> \$(?P<tag>[A-Za-z_]\w*)?\$ )
    | (?P<line> --[^\n]* )
    | (?P<open> /\* )
    | (?P<space> \s+ )
    | (?P<word> [\w$]+ )
    | (?P<other> . )
    """,
    re.VERBOSE | re.DOTALL,
)
_MARK = re.compile(r"/\*|\*/")
_PART = r'(?:"(?:[^"]|"")*"|[^\s".(]+)'
_HEAD = re.compile(
    rf"create (?:source|sink) (?:if not exists )?{_PART}(?: ?\. ?{_PART})* ?", re.IGNORECASE
)


def normal(text: str) -> str:
    """A text without comments, with one space where there was any, without a last semicolon."""
    found: list[str] = []
    at = 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        assert token is not None, "every character is a token"
        at = token.end()
        if token["dollar"]:
            close = text.find(token["dollar"], at)
            at = len(text) if close < 0 else close + len(token["dollar"])
            found.append(text[token.start() : at])
        elif token["open"]:
            at = _comment_end(text, at)
            found.append(" ")
        elif token["line"] or token["space"]:
            found.append(" ")
        else:
            found.append(token[0])
    joined = _squeezed(found)
    return joined.removesuffix(";").strip()


def body(create: str) -> str:
    """The normal form of what CREATE SOURCE or CREATE SINK says after the name."""
    said = normal(create)
    head = _HEAD.match(said)
    return said[head.end() :] if head else said


def _comment_end(text: str, at: int) -> int:
    """Where a comment ends that was opened before `at`; comments may be inside of it."""
    depth = 1
    for mark in _MARK.finditer(text, at):
        depth += 1 if mark[0] == "/*" else -1
        if depth == 0:
            return mark.end()
    return len(text)


def _squeezed(tokens: list[str]) -> str:
    kept: list[str] = []
    for each in tokens:
        if each != " " or (kept and kept[-1] != " "):
            kept.append(each)
    return "".join(kept).strip()
