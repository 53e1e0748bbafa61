"""Generated regular expressions, SIMILAR TO and LIKE patterns, and texts that they are near to."""

from __future__ import annotations

import random

_ATOMS = (
    *("a", "b", "c", "ab", ".", "[ab]", "[^a]", "[a-c]", "[[:alpha:]]", "[^[:space:]]", "\\d"),
    *("\\w", "\\s", "\\S", "é", "É", "\\.", "[]a]", "[b\\d]", "\\u0061", "0", "_", "\n", "[-a]"),
)
_PLACES = ("^", "$", "\\y", "\\m", "\\M", "\\A", "\\Z", "\\Y", "[[:<:]]", "[[:>:]]")
_COUNTS = ("*", "+", "?", "{2}", "{1,2}", "{0,3}", "{2,}", "*?", "+?", "??", "{1,2}?", "{2}?")
_LOOKS = ("(?={})", "(?!{})", "(?<={})", "(?<!{})")
_TEXT = ("a", "b", "c", "a", "b", "ab", "é", "É", " ", "\n", "0", "_", ".", "A", "]", "-")


class Patterns:
    """Patterns of one seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def text(self, length: int = 12) -> str:
        """A text of the characters that patterns are of."""
        return "".join(self._random.choices(_TEXT, k=self._random.randrange(length)))

    def flags(self) -> str:
        """Options of a call."""
        return self._random.choice(("", "", "", "i", "n", "w", "p", "x", "ni", "g", "q"))

    def regex(self, depth: int = 3, looks: bool = True) -> str:
        """A regular expression without back references."""
        pick = self._random
        if depth == 0:
            return pick.choice(_ATOMS)
        kind = pick.random()
        if kind < 0.30:
            return "".join(self.regex(depth - 1, looks) for _ in range(pick.randrange(1, 4)))
        if kind < 0.45:
            branches = [self.regex(depth - 1, looks) for _ in range(pick.randrange(2, 4))]
            return f"({'|'.join(branches)})" if pick.random() < 0.7 else f"(?:{'|'.join(branches)})"
        if kind < 0.55:
            return f"({self.regex(depth - 1, looks)})"
        if kind < 0.75:
            inner = self.regex(depth - 1, looks)
            form = "({})" if pick.random() < 0.6 else "(?:{})"
            return form.format(inner) + pick.choice(_COUNTS)
        if kind < 0.82:
            return pick.choice(_PLACES) + self.regex(depth - 1, looks)
        if kind < 0.86:
            return self.regex(depth - 1, looks) + pick.choice(_PLACES)
        if kind < 0.90 and looks:
            return pick.choice(_LOOKS).format(self.regex(depth - 1, looks=False))
        return pick.choice(_ATOMS)

    def noise(self) -> str:
        """Characters that mean something in patterns, in any order: often not a pattern."""
        signs = "ab(|)*+?{1,}[]^-\\.$d:"
        return "".join(self._random.choices(signs, k=self._random.randrange(1, 10)))

    def similar(self) -> str:
        """A SIMILAR TO pattern."""
        parts = (
            "a",
            "b",
            "%",
            "_",
            "(a|b)",
            "[ab]",
            "[^a]",
            "a+",
            "b*",
            "(ab){2}",
            ".",
            "\\%",
            "|",
        )
        return "".join(self._random.choices(parts, k=self._random.randrange(1, 6)))

    def like(self) -> str:
        """A LIKE pattern."""
        parts = ("a", "b", "%", "%", "%", "_", "_", "\\%", "é", "A", ".", "[", "\n")
        return "".join(self._random.choices(parts, k=self._random.randrange(1, 7)))
