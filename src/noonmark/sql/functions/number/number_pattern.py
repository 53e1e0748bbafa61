"""Templates of to_char for numbers: the nodes of one, and what it asks of a number.

A template is a sequence of nodes: patterns, or text that stands for itself. What it asks is digits
before and behind the point, where zeros begin and end, and where the sign goes. Patterns that do
not go together are refused, as PostgreSQL refuses them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from noonmark.errors import InvalidText
from noonmark.sql.functions.errors import InvalidTemplate

_PATTERNS = (
    *("EEEE", "FM", "MI", "PL", "PR", "RN", "SG", "SP", "TH"),
    *(",", ".", "0", "9", "B", "C", "D", "G", "L", "S", "V"),
)
_ALL = sorted({*_PATTERNS, *map(str.lower, _PATTERNS)}, key=len, reverse=True)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a template asks of a number."""

    before: int = 0  # digits before the point
    behind: int = 0
    shift: int = 0  # digits behind V
    zero_start: int = 0
    zero_end: int = 0
    sign_at: str = ""  # of S: "before", "behind", or nowhere
    sign_digits: int = 0  # digits before S
    flags: frozenset[str] = frozenset()

    def has(self, flag: str) -> bool:
        """Whether a pattern was seen."""
        return flag in self.flags


def _asked(asked: Asked, pattern: str) -> Asked:
    """What is asked after one more pattern."""
    has = asked.has
    if has("EEEE") and pattern != "EEEE":
        raise InvalidTemplate('"EEEE" must be the last pattern used')
    if pattern in ("9", "0"):
        return _with_digit(asked, pattern)
    if pattern == "B" and not asked.before and not asked.behind and not has("0"):
        return replace(asked, flags=asked.flags | {"B"})
    if pattern in ("D", "."):
        if has("."):
            raise InvalidTemplate("multiple decimal points")
        if has("V"):
            raise InvalidTemplate('cannot use "V" and decimal point together')
        return replace(asked, flags=asked.flags | {"."})
    if pattern in ("S", "MI", "PL", "SG", "PR"):
        return _with_sign(asked, pattern)
    if pattern == "V" and has("."):
        raise InvalidTemplate('cannot use "V" and decimal point together')
    if pattern == "RN" and has("RN"):
        raise InvalidTemplate('cannot use "RN" twice')
    if pattern == "EEEE":
        if has("EEEE"):
            raise InvalidTemplate('cannot use "EEEE" twice')
        if asked.flags & {"B", "FM", "S", "PR", "MI", "PL", "RN", "V"}:
            raise InvalidTemplate('"EEEE" is incompatible with other formats')
    if pattern in ("V", "RN", "EEEE", "FM"):
        return replace(asked, flags=asked.flags | {pattern})
    return asked


def _with_digit(asked: Asked, pattern: str) -> Asked:
    if asked.has("PR"):
        raise InvalidTemplate(f'"{pattern}" must be ahead of "PR"')
    if pattern == "9" and asked.has("V"):
        return replace(asked, shift=asked.shift + 1)
    behind = asked.has(".")
    flags, start = asked.flags, asked.zero_start
    if pattern == "0" and not asked.has("0") and not behind:
        flags, start = flags | {"0"}, asked.before + 1
    before = asked.before + (not behind)
    post = asked.behind + behind
    end = before + post if pattern == "0" else asked.zero_end
    return replace(asked, before=before, behind=post, zero_start=start, zero_end=end, flags=flags)


def _with_sign(asked: Asked, pattern: str) -> Asked:
    has = asked.has
    if pattern == "S":
        if has("S"):
            raise InvalidTemplate('cannot use "S" twice')
        if asked.flags & {"PL", "MI", "PR"}:
            raise InvalidTemplate('cannot use "S" and "PL"/"MI"/"SG"/"PR" together')
        flags = asked.flags | {"S"}
        if not has("."):
            return replace(asked, sign_at="before", sign_digits=asked.before, flags=flags)
        return replace(asked, sign_at="behind", flags=flags)
    if pattern == "PR":
        if asked.flags & {"S", "PL", "MI"}:
            raise InvalidTemplate('cannot use "PR" and "S"/"PL"/"MI"/"SG" together')
        return replace(asked, flags=asked.flags | {"PR"})
    if has("S"):
        raise InvalidTemplate(f'cannot use "S" and "{pattern}" together')
    return replace(asked, flags=asked.flags | ({"PL", "MI"} if pattern == "SG" else {pattern}))


@lru_cache(maxsize=256)
def read(template: str) -> tuple[tuple[tuple[str, str], ...], Asked]:
    """The nodes of a template, each a pattern or a text, and what it asks."""
    nodes: list[tuple[str, str]] = []
    asked, at = Asked(), 0
    while at < len(template):
        pattern = next((p for p in _ALL if template.startswith(p, at)), None)
        if pattern is not None:
            at += len(pattern)
            nodes.append((pattern, ""))
            asked = _asked(asked, pattern.upper())
        elif template[at] == '"':
            at += 1
            while at < len(template) and template[at] != '"':
                at += template[at] == "\\" and at + 1 < len(template)
                nodes.append(("", template[at]))
                at += 1
            at += 1
        else:
            at += template.startswith('\\"', at)
            nodes.append(("", template[at]))
            at += 1
    if asked.has("RN") and asked.flags - {"RN", "FM"}:
        raise InvalidTemplate('"RN" is incompatible with other formats')
    return tuple(nodes), asked


def ordinal(number: str, case: str) -> str:
    """st, nd, rd or th, in the case of TH."""
    if not number or not number[-1].isdigit() or not number[-1].isascii():
        raise InvalidText(f'"{number}" is not a number')
    teen = len(number) > 1 and number[-2] == "1"
    ending = "th" if teen else {"1": "st", "2": "nd", "3": "rd"}.get(number[-1], "th")
    return ending if case == "th" else ending.upper()
