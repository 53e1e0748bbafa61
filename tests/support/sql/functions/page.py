"""`docs/sql/functions.md`: a line for every function, operator and type of PostgreSQL's manual.

Law (by trial): what a line says follows from calls that a real PostgreSQL and Noonmark answered;
nothing of it is written by hand but why a family is refused.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from support.sql.functions.trials import Named, Trial

_HEAD = """# PostgreSQL's functions, operators and types

<!-- Made by tests/sql/test_functions_table.py with NOONMARK_REWRITE=1: change the code instead. -->

What becomes of every function of the manual of PostgreSQL 15, found out by calling it: each is
called with values of the types that PostgreSQL's catalog gives for it, on a real PostgreSQL and on
Noonmark. **same**: names, types and text of every answer are equal (of functions of the moment or
of the server, the types). **in part**: some types or forms of it are refused, and the line says
which. **different**: an answer is another one, or the type of it. **refused**: the error says that
it is not there. Functions of Noonmark's own are not listed.

| | same | in part | different | refused | of |
|---|---|---|---|---|---|"""
STATES = ("same", "in part", "different", "refused")


@dataclass
class Tried:
    """Everything that was tried."""

    functions: dict[tuple[str, str], tuple[Named, list[Trial]]] = field(default_factory=dict)
    operators: dict[str, list[Trial]] = field(default_factory=dict)
    types: dict[str, list[Trial]] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)


def state(trials: Iterable[Trial]) -> str:
    """What the trials of one thing come to; without any, PostgreSQL has it not in this build."""
    outcomes = {trial.outcome for trial in trials}
    if outcomes <= {"refused"}:
        return "refused"
    if "different" in outcomes:
        return "different"
    return "same" if outcomes == {"same"} else "in part"


def share_refused(tried: Tried) -> float:
    """How many of the functions are refused, as a share."""
    states = [state(trials) for _, trials in tried.functions.values()]
    return states.count("refused") / len(states)


def page(tried: Tried) -> str:
    """The whole page."""
    named = [trials for _, trials in tried.functions.values()]
    lines = [
        _HEAD,
        _counts("functions", named),
        _counts("operators", list(tried.operators.values())),
        _counts("types", list(tried.types.values())),
    ]
    families: dict[str, list[str]] = {}
    for (family, name), (_, trials) in tried.functions.items():
        families.setdefault(family, []).append(_line(name, trials, tried.reasons.get(family, "")))
    for family, rows in families.items():
        lines += ["", f"## {family}", "", "| function | | why |", "|---|---|---|", *rows]
    lines += ["", "## Operators", "", "| operator | | why |", "|---|---|---|"]
    lines += [_line(sign, trials, "") for sign, trials in tried.operators.items()]
    lines += ["", "## Types", "", "| type | | why |", "|---|---|---|"]
    lines += [_line(kind, trials, "") for kind, trials in tried.types.items()]
    return "\n".join(lines) + "\n"


def read(text: str) -> dict[tuple[str, str], str]:
    """What a page says of every line of it, by heading and name."""
    found: dict[tuple[str, str], str] = {}
    heading = ""
    for line in text.splitlines():
        if line.startswith("## "):
            heading = line[3:]
        elif line.startswith("| `"):
            name, said = re.findall(r"^\| `(.+?)` \| ([a-z ]+) \|", line)[0]
            found[heading, name.replace("\\|", "|")] = said
    return found


def _counts(what: str, several: Sequence[Sequence[Trial]]) -> str:
    counted = Counter(state(trials) for trials in several)
    cells = [
        f"{counted[each]} ({counted[each] / len(several):.0%})"
        if each == "refused"
        else str(counted[each])
        for each in STATES
    ]
    return f"| {what} | {' | '.join(cells)} | {len(several)} |"


def _line(name: str, trials: Sequence[Trial], reason: str) -> str:
    said = state(trials)
    told = {"refused": reason or _reasons(trials), "same": ""}.get(said) or _partial(trials, said)
    if not trials:
        told = reason or "PostgreSQL as it is built for the tests has it not"
    return f"| `{_cell(name)}` | {said} | {_cell(told)} |"


def _partial(trials: Sequence[Trial], said: str) -> str:
    if said == "same":
        return ""
    parts = []
    other = [trial for trial in trials if trial.outcome == "different"]
    if other:
        parts.append(f"`{other[0].sql}`: {other[0].why}")
    if any(trial.outcome == "refused" for trial in trials):
        parts.append(_reasons([trial for trial in trials if trial.outcome == "refused"]))
    return "; ".join(parts)


def _reasons(trials: Sequence[Trial]) -> str:
    """What Noonmark says; of types that are not there, all in one."""
    said = dict.fromkeys(trial.why for trial in trials)
    kinds = [
        match[1] for why in said if (match := re.fullmatch(r"type (.+) is not supported", why))
    ]
    rest = [why for why in said if not re.fullmatch(r"type (.+) is not supported", why)]
    told = [f"no type {', '.join(sorted(set(kinds)))}"] if kinds else []
    return "; ".join([*told, *rest[:2]])


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
