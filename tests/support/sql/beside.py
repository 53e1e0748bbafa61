"""Scripts of statements, said to PostgreSQL and to Noonmark, and what each answers.

A script is text: a statement a line, a line that begins with spaces goes on with the one before,
``2: statement`` is said by a second session, ``# title`` begins a part with sessions of its own. A
line ``!= reason`` says that the statement above it is answered otherwise, and why.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg


@dataclass
class Said:
    """One statement of a script."""

    text: str
    session: str = "1"
    different: str | None = None


@dataclass
class Part:
    """Statements that share their sessions."""

    title: str
    statements: list[Said] = field(default_factory=list)


def parts(path: Path) -> Iterator[Part]:
    """The parts of a script."""
    part: Part | None = None
    for line in path.read_text().splitlines():
        if line.startswith("# "):
            if part is not None:
                yield part
            part = Part(line[2:])
        elif not line.strip() or line.startswith("--"):
            continue
        elif line.startswith("!= "):
            assert part is not None
            part.statements[-1].different = line[3:]
        elif line.startswith(" "):
            assert part is not None
            part.statements[-1].text += "\n" + line
        else:
            assert part is not None, "a script begins with a title"
            match = re.match(r"(\d): (.*)", line)
            part.statements.append(Said(match[2], match[1]) if match else Said(line))
    if part is not None:
        yield part


def answers(part: Part, dsn: str) -> list[Any]:
    """What a server says to the statements of a part, each of them."""
    sessions: dict[str, psycopg.Connection[Any]] = {}
    found: list[Any] = []
    try:
        for said in part.statements:
            if said.session not in sessions:
                sessions[said.session] = psycopg.connect(dsn, autocommit=True)
            found.append(_answer(sessions[said.session], said.text))
    finally:
        for session in sessions.values():
            session.close()
    return found


def _answer(session: psycopg.Connection[Any], text: str) -> Any:
    notices: list[tuple[str | None, str | None]] = []

    def note(diagnostic: psycopg.errors.Diagnostic) -> None:
        notices.append((diagnostic.severity, diagnostic.message_primary))

    session.add_notice_handler(note)
    try:
        cursor = session.execute(text.encode())
        rows = cursor.fetchall() if cursor.description is not None else None
        names = [each.name for each in cursor.description] if cursor.description else None
        types = [_kind(each.type_code) for each in cursor.description or ()]
        return (cursor.statusmessage, names, types, rows, notices)
    except psycopg.Error as error:
        about = error.diag
        return (about.sqlstate, about.message_primary, about.message_detail,
                about.constraint_name, notices)  # fmt: skip
    finally:
        session.remove_notice_handler(note)


def _kind(number: int) -> int:
    """The type of a column; the catalog's own kinds of text are text, types of users are one."""
    if number >= 16_384:
        return -1
    return 25 if number in (18, 19, 1043, 2206, 2278) else number


def surprises(script: Path, theirs: str, ours: str) -> tuple[int, list[str]]:
    """How many statements were compared, and which answers differ without a reason."""
    count, found = 0, []
    for part in parts(script):
        wanted, given = answers(part, theirs), answers(part, ours)
        for said, one, other in zip(part.statements, wanted, given, strict=True):
            count += 1
            if (one != other) != (said.different is not None):
                equal = "  equal by now" if one == other else ""
                found.append(
                    f"{part.title}: {said.text}{equal}\n  PostgreSQL {one}\n  Noonmark   {other}"
                )
    return count, found
