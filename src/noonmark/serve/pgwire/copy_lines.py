r"""Lines of COPY's text and CSV formats, and their cells.

Text: ``\b \f \n \r \t \v``, octal and hex escapes; any other character after a backslash is itself;
``\.`` alone on a line ends the data. CSV: a quoted cell may hold delimiters, quotes (escaped) and
line ends. A line ends with ``\n``, ``\r\n`` or, in text, never inside a cell.
"""

from __future__ import annotations

import re

from noonmark.adapter.contract import CopyFormat
from noonmark.errors import BadCopyData

Cells = list[str | None]

_LETTERS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_ESCAPES = {value: "\\" + letter for letter, value in _LETTERS.items()} | {"\\": "\\\\"}
_ESCAPED = re.compile(r"\\(x[0-9a-fA-F]{1,2}|[0-7]{1,3}|.)", re.DOTALL)
_SPECIAL = re.compile(r"[\\\b\f\n\r\t\v]")
_END = "\\."


def escape_text(text: str, form: CopyFormat, alone: bool) -> str:  # noqa: ARG001 - as for CSV
    """A cell of the text format."""
    escaped = _SPECIAL.sub(lambda match: _ESCAPES[match[0]], text)
    if form.delimiter != "\t":
        escaped = escaped.replace(form.delimiter, "\\" + form.delimiter)
    return escaped


def quote_csv(text: str, form: CopyFormat, alone: bool) -> str:
    """A cell of the CSV format, quoted where it could be taken for something else."""
    special = (form.delimiter, form.quote, "\n", "\r")
    plain = text != form.null and not any(mark in text for mark in special)
    if plain and not (alone and text == _END):
        return text
    escaped = text
    if form.escape != form.quote:
        escaped = escaped.replace(form.escape, form.escape * 2)
    return form.quote + escaped.replace(form.quote, form.escape + form.quote) + form.quote


def _decode(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise BadCopyData("invalid byte sequence for encoding UTF8") from None


class TextLines:
    """Lines of the text format as they become whole."""

    def __init__(self, form: CopyFormat, line_bytes_max: int) -> None:
        self._form, self._max = form, line_bytes_max
        self._rest = b""
        self._ended = False

    def feed(self, data: bytes) -> list[Cells]:
        """The cells of the lines that are whole now."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > self._max:
            raise BadCopyData(f"a line is longer than {self._max} bytes")
        return self._cells(lines)

    def end(self) -> list[Cells]:
        """The last line, if nothing ended it."""
        rest, self._rest = self._rest, b""
        return self._cells([rest] if rest else [])

    @property
    def is_between_lines(self) -> bool:
        """Whether a line begins with the next byte."""
        return not self._rest and not self._ended

    def _cells(self, lines: list[bytes]) -> list[Cells]:
        found: list[Cells] = []
        for raw in lines:
            line = _decode(raw.removesuffix(b"\r"))
            if line == _END:
                self._ended = True
            elif self._ended:
                raise BadCopyData("received copy data after EOF marker")
            else:
                found.append(self._split(line))
        return found

    def _split(self, line: str) -> Cells:
        form = self._form
        if "\\" not in line:
            return [None if cell == form.null else cell for cell in line.split(form.delimiter)]
        cells: list[str] = []
        begin = at = 0
        while at < len(line):
            if line[at] == "\\":
                at += 2
                continue
            if line[at] == form.delimiter:
                cells.append(line[begin:at])
                begin = at + 1
            at += 1
        cells.append(line[begin:])
        return [None if cell == form.null else unescape(cell) for cell in cells]


def unescape(cell: str) -> str:
    """The text that a cell of the text format stands for."""
    raw = bytearray()
    at = 0
    for match in _ESCAPED.finditer(cell):
        raw += cell[at : match.start()].encode()
        code = match[1]
        if code[0] == "x" and len(code) > 1:
            raw.append(int(code[1:], 16))
        elif code[0] in "01234567":
            raw.append(int(code, 8) & 0xFF)
        else:
            raw += _LETTERS.get(code, code).encode()
        at = match.end()
    raw += cell[at:].encode()
    return _decode(bytes(raw))


class CsvLines:
    """Lines of the CSV format as they become whole."""

    def __init__(self, form: CopyFormat, line_bytes_max: int) -> None:
        self._form, self._max = form, line_bytes_max
        self._parts: list[bytes] = []  # of a row that a quote keeps open
        self._rest = b""
        self._open_bytes = 0
        self._quoted = False
        self._ended = False
        marks = re.escape(form.quote)
        if form.escape != form.quote:
            marks = f"{re.escape(form.escape)}{marks}|{re.escape(form.escape) * 2}|{marks}"
        self._marks = re.compile(marks.encode())

    def feed(self, data: bytes) -> list[Cells]:
        """The cells of the rows that are whole now."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        found: list[Cells] = []
        for line in lines:
            self._take(line, found)
        if len(self._rest) + self._open_bytes > self._max:
            raise BadCopyData(f"a row is longer than {self._max} bytes")
        return found

    def end(self) -> list[Cells]:
        """The last row, if nothing ended it."""
        found: list[Cells] = []
        if self._rest:
            self._take(self._rest, found)
        if self._parts:
            raise BadCopyData("unterminated CSV quoted field")
        return found

    @property
    def is_between_lines(self) -> bool:
        """Whether a row begins with the next byte."""
        return not self._rest and not self._parts and not self._ended

    def _take(self, line: bytes, found: list[Cells]) -> None:
        """A physical line ends a row unless a quote is open at its end."""
        quote = self._form.quote.encode()
        if sum(1 for mark in self._marks.findall(line) if mark == quote) % 2:
            self._quoted = not self._quoted
        self._parts.append(line)
        self._open_bytes += len(line)
        if self._quoted:
            return
        row = _decode(b"\n".join(self._parts).removesuffix(b"\r"))
        self._parts, self._open_bytes = [], 0
        if row == _END:
            self._ended = True
        elif self._ended:
            raise BadCopyData("received copy data after EOF marker")
        else:
            found.append(self._split(row))

    def _split(self, row: str) -> Cells:
        form = self._form
        if form.quote not in row:
            return [None if cell == form.null else cell for cell in row.split(form.delimiter)]
        cells: Cells = []
        at = 0
        while True:
            cell, at = self._cell(row, at)
            cells.append(cell)
            if at >= len(row):
                return cells
            at += 1
            if at == len(row):
                cells.append(None if form.null == "" else "")
                return cells

    def _cell(self, row: str, at: int) -> tuple[str | None, int]:
        """A cell that begins at `at`, and where it ends: at a delimiter or the row's end."""
        form = self._form
        pieces: list[str] = []
        quoted = inside = False
        while at < len(row):
            character = row[at]
            if inside:
                following = row[at + 1 : at + 2]
                if (
                    character == form.escape
                    and following in (form.quote, form.escape)
                    and following
                ):
                    pieces.append(following)
                    at += 2
                    continue
                if character == form.quote:
                    inside = False
                else:
                    pieces.append(character)
            elif character == form.quote:
                quoted = inside = True
            elif character == form.delimiter:
                break
            else:
                pieces.append(character)
            at += 1
        text = "".join(pieces)
        return (None if not quoted and text == form.null else text), at
