"""What each kind of statement does: one table, from the statement's class to its handler.

A module of this folder runs some kinds. It has `HANDLERS`, and where its statements take
parameters or give rows also `DESCRIBERS`; here they are put together.
"""

from __future__ import annotations

from noonmark.adapter.run import ddl, ddl_drop, source, view
from noonmark.adapter.run.handler import Describers, Handlers

_MODULES = (ddl, ddl_drop, source, view)

HANDLERS: Handlers = {
    kind: handler for module in _MODULES for kind, handler in module.HANDLERS.items()
}
DESCRIBERS: Describers = {
    kind: describer
    for module in _MODULES
    for kind, describer in getattr(module, "DESCRIBERS", {}).items()
}
