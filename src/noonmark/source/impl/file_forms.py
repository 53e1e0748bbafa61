"""What is in a file: lines of bytes, or the rows of a Parquet file.

A *form* says how far a file is complete, fingerprints what lies before a position, and reads the
records of a piece. Lines: a position is a byte, and only a line that ends is complete. Parquet: a
position is a row; a file is complete, all at once, when its footer can be read.

Where it runs: `extent` on the driver, in a thread; `records` on executors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from noonmark.errors import NoonmarkError
from noonmark.rows.arrow import conform
from noonmark.rows.schema import Schema
from noonmark.source.impl.file_store import FileReader
from noonmark.source.impl.fingerprint import fingerprint, pack

Longs = npt.NDArray[np.int64]

Span = tuple[int, int]

SAMPLE_BYTES = 4096
_CHUNK_BYTES = 1 << 16
_BATCH_ROWS = 65_536
_NEWLINE, _RETURN = 10, 13
_BLANKS = np.frombuffer(b" \t\r\n\f\v", np.uint8)


class Piece(NamedTuple):
    """Records: where each begins, and its columns by name; or why there are none from there on."""

    positions: Longs
    columns: dict[str, Any]
    reason: str | None = None


class Form(Protocol):
    """See the module. It pickles."""

    def piece_size(self) -> int:
        """How much of a file one task should read."""

    def extent(self, file: FileReader, known: int) -> int | None:
        """The offset up to which the file is complete; None when it cannot be read (yet).

        `known` is a position up to which it was complete before.
        """

    def evidence(self, file: FileReader, position: int) -> int:
        """The offset of that position in the file as it is now."""

    def records(self, file: FileReader, span: Span, whole: Span) -> Iterator[Piece]:
        """The records that begin in `span`, which is a piece of what is new in the file."""


@dataclass(frozen=True)
class Lines:
    r"""Records that end in ``\n`` or ``\r\n``.

    `unterminated`: the end of the file ends the last line, too. `skip_blank`: a line with nothing
    but blanks is no record.
    """

    unterminated: bool = False
    skip_blank: bool = True

    def piece_size(self) -> int:
        """See `Form.piece_size`."""
        return 32 << 20

    def extent(self, file: FileReader, known: int) -> int | None:
        """See `Form.extent`: behind the last line break, looked for from the end."""
        stop = file.size()
        if self.unterminated:
            return self.evidence(file, stop)
        while stop > known:
            start = max(known, stop - _CHUNK_BYTES)
            found = file.read(start, stop).rfind(b"\n")
            if found >= 0:
                return self.evidence(file, start + found + 1)
            stop = start
        return self.evidence(file, known)

    def evidence(self, file: FileReader, position: int) -> int:
        """See `Form.evidence`: of the first and the last bytes before the position."""
        head = file.read(0, min(SAMPLE_BYTES, position))
        tail = file.read(max(0, position - SAMPLE_BYTES), position)
        return pack(position, fingerprint(head, tail))

    def records(self, file: FileReader, span: Span, whole: Span) -> Iterator[Piece]:
        """See `Form.records`. A line belongs to the span in which it begins."""
        (start, stop), end = span, whole[1]
        # One byte earlier: if it ends a line, one begins at `start`.
        data = file.read(max(0, start - 1), stop)
        at = stop
        while at < end and not data.endswith(b"\n"):
            more = file.read(at, min(end, at + _CHUNK_BYTES))
            cut = more.find(b"\n") + 1
            data += more[:cut] if cut else more
            at += cut or len(more)
            if not more:
                break
        if start > 0:
            if start == whole[0] and data[:1] != b"\n":
                yield Piece(np.array([start]), {}, "a line went on after its file had ended")
            skipped = data.find(b"\n") + 1
            if skipped == 0:
                return
            data, start = data[skipped:], start - 1 + skipped
        yield from self._cut(data, start)

    def _cut(self, data: bytes, start: int) -> Iterator[Piece]:
        """The lines of `data`, which ends with the last line that begins in the span."""
        text = np.frombuffer(data, np.uint8)
        ends = np.flatnonzero(text == _NEWLINE)
        begins = np.concatenate([[0], ends + 1])
        if len(data) and data[-1] != _NEWLINE:
            ends = np.append(ends, len(data))
        begins = begins[: len(ends)]
        for at in range(0, len(begins), _BATCH_ROWS):
            some = slice(at, at + _BATCH_ROWS)
            values, kept = self._values(text, begins[some], ends[some])
            yield Piece(begins[some][kept] + start, {"value": values})

    def _values(
        self, text: npt.NDArray[np.uint8], begins: Longs, ends: Longs
    ) -> tuple[pa.Array, Any]:
        """The lines without their breaks, and which of them are records."""
        first, last = begins[0], ends[-1]
        piece = text[first:last]
        keep = np.ones(len(piece), np.bool_)
        keep[ends[:-1] - first] = False
        full = ends > begins
        returns = ends[full][text[ends[full] - 1] == _RETURN] - 1
        keep[returns - first] = False
        lengths = ends - begins
        lengths[np.searchsorted(ends, returns + 1)] -= 1
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        data = piece if keep.all() else piece[keep]
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
        values = pa.Array.from_buffers(pa.binary(), len(lengths), buffers)
        # A line that begins with something else than a blank has something in it.
        suspects = np.flatnonzero((lengths == 0) | np.isin(text[begins], _BLANKS))
        blank = [at for at in suspects.tolist() if not values[at].as_py().strip()]
        if not self.skip_blank or not blank:
            return values, slice(None)
        kept = np.ones(len(lengths), np.bool_)
        kept[blank] = False
        return values.filter(pa.array(kept)), kept


@dataclass(frozen=True)
class Parquet:
    """Rows with the columns of `schema`, by name; other columns are not read."""

    schema: Schema

    def piece_size(self) -> int:
        """See `Form.piece_size`."""
        return 1 << 20

    def extent(self, file: FileReader, known: int) -> int | None:  # noqa: ARG002
        """See `Form.extent`: all rows, and the footer is the evidence."""
        footer = _footer(file)
        if footer is None:
            return None
        try:
            rows = pq.read_metadata(pa.BufferReader(b"PAR1" + footer)).num_rows
        except (pa.ArrowException, OSError):
            return None
        return pack(rows, fingerprint(footer))

    def evidence(self, file: FileReader, position: int) -> int:
        """See `Form.evidence`. There is only one position: another file has another footer."""
        return pack(position, fingerprint(_footer(file) or b""))

    def records(self, file: FileReader, span: Span, whole: Span) -> Iterator[Piece]:  # noqa: ARG002
        """See `Form.records`. A row group belongs to the span in which it begins."""
        table = pq.ParquetFile(pa.PythonFile(_Seekable(file), "r"))
        names = [name for name in self.schema.names if name in table.schema_arrow.names]
        position = 0
        for group in range(table.num_row_groups):
            rows = table.metadata.row_group(group).num_rows
            if span[0] <= position < span[1]:
                yield from self._group(table, group, names, position)
            position += rows

    def _group(
        self, table: pq.ParquetFile, group: int, names: list[str], position: int
    ) -> Iterator[Piece]:
        try:
            for batch in table.iter_batches(_BATCH_ROWS, row_groups=[group], columns=names):
                rows = conform(pa.Table.from_batches([batch]), self.schema).combine_chunks()
                columns = dict(zip(rows.column_names, rows.columns, strict=True))
                yield Piece(np.arange(position, position + rows.num_rows), columns)
                position += rows.num_rows
        except (NoonmarkError, pa.ArrowException, OSError) as error:
            reason = error.message if isinstance(error, NoonmarkError) else str(error)
            yield Piece(np.array([position]), {}, f"row group {group}: {reason}")


def _footer(file: FileReader) -> bytes | None:
    """The footer with its length and magic, if there is a whole one."""
    size = file.size()
    tail = file.read(max(0, size - 8), size)
    if len(tail) < 8 or tail[4:] != b"PAR1":
        return None
    start = size - 8 - int.from_bytes(tail[:4], "little")
    return file.read(start, size) if start >= 4 else None


class _Seekable:
    """A `FileReader` as the file object that Arrow wants."""

    closed = False

    def __init__(self, file: FileReader) -> None:
        self._file, self._place = file, 0

    def read(self, count: int | None = -1) -> bytes:
        stop = self._file.size() if count is None or count < 0 else self._place + count
        data = self._file.read(self._place, stop)
        self._place += len(data)
        return data

    def seek(self, place: int, whence: int = 0) -> int:
        base = {0: 0, 1: self._place, 2: self._file.size()}[whence]
        self._place = base + place
        return self._place

    def tell(self) -> int:
        return self._place

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    def close(self) -> None:
        self.closed = True
