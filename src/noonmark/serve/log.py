r"""The log of a server: one line an event, with its level; JSON on request.

Law (line): an event is one line, whatever its message or traceback holds: line ends in it are
written as ``\n``. So a line that somebody else wrote cannot look like one of ours.
Law (secrets): a URL in it has neither password nor key.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from typing import Literal, TextIO

from noonmark.persist.impl.redact import redact

Form = Literal["text", "json"]
_URL = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://[^\s'\"<>\\]+")
_ENDS = str.maketrans({"\n": "\\n", "\r": "\\r", "\x0b": "\\v", "\x0c": "\\f", "\x85": "\\n",
                       "\u2028": "\\n", "\u2029": "\\n", "\x1b": "\\e"})  # fmt: skip


class Lines(logging.Formatter):
    """See the module."""

    def __init__(self, form: Form) -> None:
        super().__init__()
        self._form = form

    def format(self, record: logging.LogRecord) -> str:
        """The line of an event."""
        message = record.getMessage()
        error = self.formatException(record.exc_info) if record.exc_info else ""
        time = self.formatTime(record, "%Y-%m-%dT%H:%M:%S") + f".{int(record.msecs):03d}"
        if self._form == "json":
            said = {"time": time, "level": record.levelname, "logger": record.name,
                    "message": _safe(message)}  # fmt: skip
            if error:
                said["error"] = _safe(error)
            return json.dumps(said, ensure_ascii=False).translate(_ENDS)
        line = f"{time} {record.levelname} {message}"
        return _safe(f"{line}\n{error}" if error else line).translate(_ENDS)


def _safe(text: str) -> str:
    return _URL.sub(lambda match: redact(match[0]), text) if "://" in text else text


def start_log(form: Form, stream: TextIO | None = None) -> None:
    """Write the log of this process to standard error."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(Lines(form))
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    logging.captureWarnings(True)
    logging.getLogger("py4j").setLevel(logging.WARNING)
