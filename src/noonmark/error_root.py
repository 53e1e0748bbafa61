"""The root of the error tree, which `noonmark.errors` draws."""

from __future__ import annotations

from typing import Any, ClassVar


class NoonmarkError(Exception):
    """The root. ``str(error)`` is the message, then detail and hint on lines of their own."""

    id: ClassVar[str] = "noonmark"
    sqlstate: ClassVar[str] = "XX000"

    def __init_subclass__(cls, *, id: str | None = None, sqlstate: str | None = None) -> None:
        super().__init_subclass__()
        cls.id = id or cls.id
        cls.sqlstate = sqlstate or cls.sqlstate

    def __init__(
        self,
        message: str,
        *,
        detail: str | None = None,
        hint: str | None = None,
        position: int | None = None,
        **fields: Any,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.detail = detail
        self.hint = hint
        self.position = position
        self.fields = fields

    def __str__(self) -> str:
        lines = [self.message]
        if self.detail:
            lines.append(f"DETAIL: {self.detail}")
        if self.hint:
            lines.append(f"HINT: {self.hint}")
        return "\n".join(lines)

    def __reduce__(self) -> tuple[Any, ...]:
        state = {"detail": self.detail, "hint": self.hint, "position": self.position}
        return (_rebuild, (type(self), self.message, state, self.fields))


def _rebuild(
    kind: type[NoonmarkError], message: str, state: dict[str, Any], fields: dict[str, Any]
) -> NoonmarkError:
    """Unpickle an error: errors cross from executors to the driver whole."""
    return kind(message, **state, **fields)
