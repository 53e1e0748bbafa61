"""Long queries are read and planned by a statement worker, not by a thread of the server.

Planning is Python. A thread that plans has the interpreter's lock while the loop wants it, and the
loop waits for the processor that the thread has lost; a process has a lock of its own, a lower
priority, a limit of memory, and can be killed. What comes back is small: a plan is loaded in two
hundredths of the time that it takes to make.

    Reading    the text of a statement -> the statement, the query in it without its tree
    Planning   such a query, a catalog -> its plan (`peek.planning.PlannedQuery`)

Law (same): a plan that is made here is the one that `plan_query` makes in the session.
Law (no secrets): what is sent of the catalog is what names, types and rights need (`_SENT`); no
verifier of a password, no secret, no connection.
Law (bounded): planning takes `PROCESSOR_S` of processor time at most; then it is `TooComplex`.

Functions of the session are known by their ids on both sides: a worker that evaluates one asks.

Where it runs: `Reading.rows` and `Planning.rows` in a worker; the rest on the adapter's loop.
"""

from __future__ import annotations

import ctypes
import io
import pickle
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from noonmark.adapter.catalog import Catalog, Item
from noonmark.adapter.catalog.item import BUILT_IN, Kind
from noonmark.adapter.catalog.rights import Access
from noonmark.adapter.peek.indexes import Filled, Indexes
from noonmark.adapter.peek.planning import PlannedQuery, plan_query, planned_over
from noonmark.adapter.planner import (
    PLANNER,
    SHORT_MAX,
    TIMEOUT_S,
    too_long,
)
from noonmark.adapter.system.functions import session_functions
from noonmark.adapter.system.settings import path_of
from noonmark.adapter.weight import weight_of
from noonmark.adapter.worker.pool import Result
from noonmark.clock import SYSTEM
from noonmark.rows.types import SqlType
from noonmark.sql.dialect import parse
from noonmark.sql.functions.function import Function, Table
from noonmark.sql.ir.node import Node
from noonmark.sql.statement import parse_statements
from noonmark.sql.statement import statement as st

if TYPE_CHECKING:
    from noonmark.adapter.session.session import AdapterSession

PROCESSOR_S = TIMEOUT_S
_LOOK_S = 0.25
VERIFIER = "verifier"
#: How a query begins.
_BEFORE, _HEADS = " \t\n\r(", ("select", "with", "values")
_WATCH_STACK_BYTES = 1 << 20
#: What is sent of the definition of an item: what views stand for, indexes are on, roles may. Of a
#: type that somebody made all is.
_SENT = frozenset(
    [
        "query",
        "names",
        "columns",
        "follows_time",
        "upstream",
        "on",
        "superuser",
        "inherit",
        "member_of",
        "types",
    ]
)
#: What no query can name. All else is sent: a name means the same wherever it is looked up.
_UNSENT: frozenset[Kind] = frozenset(["connection", "secret", "sink"])


class UnreadQuery(st.QueryText):
    """A query that a worker has read; here its tree is made when somebody asks for it."""

    def __init__(self, text: str, position: int) -> None:
        object.__setattr__(self, "text", text)
        object.__setattr__(self, "position", position)

    def __getattr__(self, name: str) -> Any:
        if name != "tree":
            raise AttributeError(name)
        tree = parse(self.text, self.position - 1)
        object.__setattr__(self, "tree", tree)
        return tree

    def __reduce__(self) -> Any:
        return UnreadQuery, (self.text, self.position)


class _TooLong(BaseException):
    """Raised in the thread that plans."""


@contextmanager
def _bounded() -> Iterator[None]:
    """Have what is done inside end after `PROCESSOR_S` of this thread's processor time."""
    thread, over = threading.get_ident(), threading.Event()
    clock = time.pthread_getcpuclockid(thread)
    begun = time.clock_gettime(clock)

    def watch() -> None:
        while not over.wait(_LOOK_S):
            if time.clock_gettime(clock) - begun > PROCESSOR_S:
                number, error = ctypes.c_ulong(thread), ctypes.py_object(_TooLong)
                ctypes.pythonapi.PyThreadState_SetAsyncExc(number, error)

    before = threading.stack_size(_WATCH_STACK_BYTES)
    watching = threading.Thread(target=watch, daemon=True)
    watching.start()
    threading.stack_size(before)

    def end() -> bool:
        """Have nobody watch any more; whether the end came meanwhile."""
        try:
            over.set()
            watching.join()
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), None)
        except _TooLong:
            return end() or True
        return False

    try:
        yield
    except _TooLong:
        end()
        raise too_long() from None
    except BaseException:
        end()
        raise
    if end():
        raise too_long()


@dataclass(frozen=True)
class Reading:
    """A text to be read; gives a tuple of statements, or None where the server has to read it."""

    text: str

    def rows(self, _: Any) -> list[Any]:
        """The one answer."""
        with _bounded():
            parsed = parse_statements(self.text)
        if all(type(each.statement) is st.Select for each in parsed):
            return [tuple(replace(each, statement=_unread(each.statement)) for each in parsed)]
        return [None]

    def parts(self) -> Iterator[Node]:
        """None of it is a plan."""
        return iter(())


def _unread(statement: st.Statement) -> st.Select:
    assert isinstance(statement, st.Select)
    query = statement.query
    return replace(statement, query=UnreadQuery(query.text, query.position))


@dataclass(frozen=True)
class Planning:
    """A query to be planned.

    Attributes:
        catalog: the items of the catalog, pickled (`sent_catalog`).
        user, path, use: whose rights and names count, and for which statement.
        query: the query.
        types, values: those of its parameters; see `plan_query`.
        functions: those of the session.
        filled: the indexes that have contents.
    """

    catalog: bytes
    user: str
    path: tuple[str, ...]
    use: str
    query: UnreadQuery
    types: tuple[SqlType | None, ...]
    values: tuple[Any, ...] | None
    functions: tuple[Any, ...]
    filled: Filled

    def rows(self, _: Any) -> list[bytes]:
        """The one plan, pickled: items and functions of the session by name."""
        items, number = pickle.loads(self.catalog)
        catalog = Catalog.of(items, number)
        functions = _functions(self.functions)
        with _bounded():
            access = Access(catalog, self.user, self.use, self.path)
            plan = planned_over(
                access,
                self.query.tree,
                functions=functions,
                indexes=Indexes(catalog, self.filled),
                types=self.types,
                values=self.values,
            )
            sink = io.BytesIO()
            _Pickler(sink, protocol=5).dump(plan)
        return [sink.getvalue()]

    def parts(self) -> Iterator[Node]:
        """None of it is a plan yet."""
        return iter(())


def _functions(known: Sequence[Any]) -> Table[Function]:
    """The session's functions, each of which asks the session."""
    own, table = session_functions(_NOBODY).by_id, Table[Function]()
    table.add(replace(own[each.id], meaning=each.meaning) for each in known)
    return table


#: Stands for a session whose functions are never evaluated: what they take from it when they are
#: made.
_NOBODY: Any = SimpleNamespace(database=SimpleNamespace(clock=SYSTEM))


class _Pickler(pickle.Pickler):
    def persistent_id(self, value: Any) -> Any:
        if isinstance(value, Item):
            return "item", value.number
        if isinstance(value, Catalog):
            return "catalog", None
        if isinstance(value, Function):
            return "function", value.id
        return None


class _Unpickler(pickle.Unpickler):
    def __init__(self, body: bytes, session: AdapterSession, catalog: Catalog) -> None:
        super().__init__(io.BytesIO(body))
        self._known: dict[str, Callable[[Any], Any]] = {
            "catalog": lambda _: catalog,
            "item": lambda number: catalog.by_number[number],
            "function": lambda id: session.functions.by_id[id],
        }

    def persistent_load(self, pid: Any) -> Any:
        kind, name = pid
        return self._known[kind](name)


_KNOWN: tuple[Catalog, bytes] | None = None


def sent_catalog(catalog: Catalog) -> bytes:
    """What a worker gets of a catalog; the newest one is made once."""
    global _KNOWN  # noqa: PLW0603 - of the newest catalog only
    if _KNOWN is None or _KNOWN[0] is not catalog:
        items = [_sent(item) for item in catalog.items() if item.kind not in _UNSENT]
        _KNOWN = catalog, pickle.dumps((items, catalog.next_number), protocol=5)
    return _KNOWN[1]


def _sent(item: Item) -> Item:
    definition = {
        key: value
        for key, value in item.definition.items()
        if key in _SENT or item.kind == "type"  # what a type is, a name of it means
    }
    if item.definition.get(VERIFIER) is not None:
        definition[VERIFIER] = ""  # that there is one decides about rights (`privilege.is_open`)
    return replace(item, definition=definition, comments={}, grants=dict(item.grants))


def warm() -> None:
    """Have everything read that planning needs."""
    (parsed,) = parse_statements("select a + 1 from (values (1)) v (a) where a = 1")
    assert isinstance(parsed.statement, st.Select)
    query = UnreadQuery(parsed.statement.query.text, 1)
    items = pickle.dumps(([], 1))
    Planning(items, BUILT_IN, (), "SELECT", query, (), None, (), Filled(frozenset(), True)).rows({})


async def read(
    session: AdapterSession, weight: int, text: str, here: Callable[[str], tuple[st.Parsed, ...]]
) -> tuple[st.Parsed, ...]:
    """The statements of a text: read by a worker if it is a long query, else here."""
    if weight > SHORT_MAX and text.lstrip(_BEFORE)[:6].lower().startswith(_HEADS):
        pool = session.database.planning_workers(weight)
        found: tuple[st.Parsed, ...] | None = _only(await pool.run(Reading(text)))
        if found is not None:
            return found
    return await PLANNER.run(weight, here, text)


def _only(result: Result) -> Any:
    result.discard()
    (found,) = result.rows
    return found


async def plan(
    session: AdapterSession,
    query: st.QueryText,
    types: Sequence[SqlType | None],
    values: Sequence[Any] | None,
    use: str,
) -> PlannedQuery:
    """The plan of a query: made by a worker if that is who read it, else here."""
    weight = weight_of(session.catalog, query.text)
    if not isinstance(query, UnreadQuery):
        return await PLANNER.run(weight, plan_query, session, query.tree, types, values, use)
    catalog = session.catalog
    state = session.database.client.state
    filled = Filled.of(catalog, state)
    job = Planning(
        sent_catalog(catalog),
        session.user,
        path_of(session),
        use,
        query,
        tuple(types),
        None if values is None else tuple(values),
        tuple(session.functions.by_id.values()),
        filled,
    )
    body = _only(await session.database.planning_workers(weight).run(job))
    made: PlannedQuery = await PLANNER.run(weight, _Unpickler(body, session, catalog).load)
    peek = Indexes(catalog, filled).used(made.peek, state)
    return replace(made, peek=peek, direct=made.peek)
