"""Statements that are nearly right: those of the documents and of the cases, with parts changed.

Whoever types makes such statements: a word is missing, twice, or at another place, a value is of
another type, half of one statement is in another. What a server must say to any of them is an
answer, or an error that is the client's; an internal error (XX000) is a defect.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from random import Random

_ROOT = Path(__file__).resolve().parents[3]
_TOKEN = re.compile(r"\s+|'(?:[^']|'')*'|\"[^\"]*\"|\w+|::|<=|>=|<>|->>?|[^\w\s]")
_ODD = (
    "NULL", "''", "0", "-1", "1.5", "1e400", "99999999999999999999", "'x'", "'{}'", "'[1,2]'",
    "true", "DEFAULT", "*", "now()", "mz_now()", "(SELECT 1)", "(SELECT 1, 2)", "ARRAY[1,NULL]",
    "ROW(1,'a')", "'NaN'::numeric", "'infinity'::timestamptz", "'1 month'::interval",
    "E'\\\\x00'", "$1", '""', "count(*)", "generate_series(1,3)", "'2024-02-30'",
    '1::"char"', "b'101'", "x", "a.b.c.d",
)  # fmt: skip


def corpus() -> list[str]:
    """Statements of the documents (```sql blocks) and of the cases (what stands before ----)."""
    found: list[str] = []
    for page in sorted((_ROOT / "docs").rglob("*.md")):
        for block in re.findall(r"```sql\n(.*?)```", page.read_text(), re.DOTALL):
            found += block.split(";\n")
    for case in sorted((_ROOT / "tests" / "cases").rglob("*.txt")):
        for block in re.split(r"\n\n+", case.read_text()):
            asked, line, _ = block.partition("\n----")
            if line:
                found += asked.split(";\n")
    texts = ("\n".join(x for x in each.splitlines() if not x.startswith("#")) for each in found)
    return sorted({text.strip().rstrip(";") for text in texts if 3 < len(text.strip()) < 2_000})


#: A word that is in so many statements is taken for a keyword.
OFTEN = 25


class Mutations:
    """Endlessly many statements, the same ones for the same seed."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self.texts = corpus()
        self._tokens = [_TOKEN.findall(text) for text in self.texts]
        often = Counter(word.lower() for tokens in self._tokens for word in {*tokens})
        self._keywords = {word for word, count in often.items() if count > OFTEN}

    def next(self) -> str:
        """A statement with a change or a few; most of them keep the kinds of its parts."""
        tokens = list(self._random.choice(self._tokens))
        gentle = self._random.random() < 0.6
        for _ in range(self._random.choice((1, 1, 2, 3, 4))):
            there = [at for at, token in enumerate(tokens) if not token.isspace()]
            if there:
                (self._exchange if gentle else self._disorder)(tokens, there)
        return "".join(tokens)

    def _exchange(self, tokens: list[str], there: list[int]) -> None:
        """A word for a word, a value for a value."""
        choose = self._random
        at = choose.choice(there)
        kind = self._kind(tokens[at])
        others = [token for token in choose.choice(self._tokens) if self._kind(token) == kind]
        if kind == "value" and choose.random() < 0.6:
            tokens[at] = choose.choice(_ODD)
        elif others:
            tokens[at] = choose.choice(others)

    def _disorder(self, tokens: list[str], there: list[int]) -> None:
        """Parts go, come twice, change places, or come from another statement."""
        choose = self._random
        one, two = choose.choice(there), choose.choice(there)
        other = choose.choice(self._tokens)
        start = choose.randrange(len(other))
        match choose.randrange(5):
            case 0:
                del tokens[one : one + choose.choice((1, 1, 2, 4))]
            case 1:
                tokens[two:two] = [" ", *tokens[one : one + choose.choice((1, 3, 7))], " "]
            case 2:
                tokens[one], tokens[two] = tokens[two], tokens[one]
            case 3:
                tokens[one] = f" {choose.choice(_ODD)} "
            case _:
                tokens[one:one] = [" ", *other[start : start + choose.choice((1, 2, 5, 12))], " "]

    def _kind(self, token: str) -> str:
        if token[0] in "'0123456789":
            return "value"
        if not (token[0].isalpha() or token[0] in '_"'):
            return "sign"
        return "keyword" if token.lower() in self._keywords else "word"
