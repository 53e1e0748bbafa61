"""Statements about the session: variables, transactions, cursors, prepared statements."""

from __future__ import annotations

from noonmark.errors import Unsupported
from noonmark.rows.types import SqlType
from noonmark.sql.statement import statement as s
from noonmark.sql.statement.options import with_options
from noonmark.sql.statement.reader import Reader


def set_variable(reader: Reader) -> s.Statement:
    """What follows SET."""
    if reader.accept("transaction"):
        return s.SetTransaction(*_modes(reader))
    if reader.accept("session", "characteristics", "as", "transaction"):
        return s.SetTransaction(*_modes(reader), session=True)
    if reader.accept("constraints"):
        return _set_constraints(reader)
    if reader.accept("session", "authorization"):
        return s.SetSessionAuthorization(_role(reader, "default"))
    local = reader.accept("local")
    if not local:
        reader.accept("session")
    if reader.is_next("role") and local:
        raise reader.unsupported("SET LOCAL ROLE", "SET ROLE, then RESET ROLE.")
    if reader.accept("role"):
        reader.accept("=") or reader.accept("to")
        return s.SetRole(_role(reader, "none"))
    position = reader.position
    if reader.accept("time", "zone"):
        return s.SetVariable("timezone", _zone(reader), local, position)
    if reader.accept("names"):
        return s.SetVariable("client_encoding", _one_value(reader), local, position)
    name = ".".join(reader.name().parts)
    if not reader.accept("=") and not reader.accept("to"):
        raise reader.invalid("expected = or TO")
    if reader.accept("default"):
        return s.SetVariable(name, None, local, position)
    values = reader.list_of(lambda: _one_value(reader) or "")
    return s.SetVariable(name, values[0] if len(values) == 1 else values, local, position)


def _zone(reader: Reader) -> str | None:
    """A zone; ``INTERVAL '-08:00' HOUR TO MINUTE`` is how far it is east of UTC."""
    if not reader.accept("interval"):
        return _one_value(reader)
    east = reader.string()
    reader.accept("hour", "to", "minute")
    return "UTC" if east in ("0", "00:00", "+00:00", "-00:00") else east


def _set_constraints(reader: Reader) -> s.Statement:
    names = () if reader.accept("all") else reader.list_of(reader.name)
    when = reader.accept_any("deferred", "immediate")
    if when is None:
        raise reader.invalid()
    return s.SetConstraints(names, when == "deferred")


def _role(reader: Reader, nobody: str) -> str | None:
    """A role, quoted or not; None for the word that stands for none."""
    if reader.accept(nobody):
        return None
    return reader.string() if reader.token.kind == "string" else reader.identifier()


def _one_value(reader: Reader) -> str | None:
    """A string, a number, or words: ``strict serializable`` needs no quotes."""
    token = reader.token
    if token.kind == "string":
        return reader.take().value
    if token.kind == "number" or reader.is_next("-"):
        sign = "-" if reader.accept("-") else ""
        return sign + reader.take().value
    if reader.accept("default"):
        return None
    words = [reader.identifier()]
    while reader.token.kind in ("word", "quoted"):
        words.append(reader.identifier())
    return " ".join(words)


def reset(reader: Reader) -> s.Statement:
    """What follows RESET."""
    if reader.accept("time", "zone"):
        return s.ResetVariable("timezone")
    if reader.accept("role"):
        return s.SetRole(None, "RESET")
    if reader.accept("session", "authorization"):
        return s.SetSessionAuthorization(None, "RESET")
    return s.ResetVariable(".".join(reader.name().parts))


def _modes(reader: Reader) -> tuple[str | None, bool | None]:
    isolation: str | None = None
    read_only: bool | None = None
    while not reader.ended:
        if reader.accept("isolation", "level"):
            isolation = reader.accept_any(*_LEVELS)
            if isolation is None:
                raise reader.invalid("expected an isolation level")
        elif reader.accept("read", "only"):
            read_only = True
        elif reader.accept("read", "write"):
            read_only = False
        elif reader.accept("not", "deferrable") or reader.accept("deferrable"):
            pass  # a read never waits for others to end: either is what it does
        else:
            raise reader.invalid()
        reader.accept(",")
    return isolation, read_only


_LEVELS = (
    "strict serializable",
    "serializable",
    "repeatable read",
    "read committed",
    "read uncommitted",
)


def begin(reader: Reader) -> s.Statement:
    """What follows BEGIN."""
    reader.accept_any("transaction", "work")
    return s.Begin(*_modes(reader))


def start(reader: Reader) -> s.Statement:
    """What follows START."""
    reader.expect("transaction")
    return s.Begin(*_modes(reader), start=True)


def commit(reader: Reader) -> s.Statement:
    """What follows COMMIT or END."""
    reader.accept_any("transaction", "work")
    if reader.is_next("prepared"):
        raise reader.unsupported("COMMIT PREPARED")
    _no_chain(reader)
    return s.Commit()


def rollback(reader: Reader) -> s.Statement:
    """What follows ROLLBACK or ABORT."""
    reader.accept_any("transaction", "work")
    if reader.accept("to"):
        reader.accept("savepoint")
        return s.RollbackTo(reader.identifier())
    if reader.is_next("prepared"):
        raise reader.unsupported("ROLLBACK PREPARED")
    _no_chain(reader)
    return s.Rollback()


def savepoint(reader: Reader) -> s.Statement:
    """What follows SAVEPOINT."""
    return s.Savepoint(reader.identifier())


def release(reader: Reader) -> s.Statement:
    """What follows RELEASE."""
    reader.accept("savepoint")
    return s.Release(reader.identifier())


def _no_chain(reader: Reader) -> None:
    if reader.accept("and") and not reader.accept("no", "chain"):
        raise reader.unsupported("AND CHAIN")


# --- cursors


def declare(reader: Reader) -> s.Statement:
    """What follows DECLARE."""
    from noonmark.sql.statement.parser import statement_of  # door: it uses this module
    from noonmark.sql.statement.within import WithWrites  # door: its parts are read as others are

    name = reader.identifier()
    if reader.accept_any("binary", "scroll") is not None:
        raise reader.unsupported("BINARY or SCROLL of a cursor")
    reader.accept_any("insensitive", "asensitive")
    reader.accept("no", "scroll")
    reader.expect("cursor")
    hold = reader.accept("with", "hold")
    reader.accept("without", "hold")
    reader.expect("for")
    position = reader.position
    statement = statement_of(reader)
    if isinstance(statement, WithWrites) and isinstance(statement.main, s.Select):
        raise Unsupported("DECLARE CURSOR must not contain data-modifying statements in WITH")
    if not isinstance(statement, s.Select | s.Subscribe):
        raise reader.unsupported("a cursor over this", position=position)
    return s.Declare(name, statement, hold)


def fetch(reader: Reader) -> s.Statement:
    """What follows FETCH."""
    count: int | None = 1
    for refused in ("prior", "first", "last", "absolute", "relative", "backward"):
        if reader.is_next(refused):
            raise reader.unsupported(f"FETCH {refused.upper()}", "A cursor goes forward.")
    reader.accept_any("next", "forward")
    if reader.accept("all"):
        count = None
    elif reader.token.kind == "number":
        count = reader.integer()
    reader.accept_any("from", "in")
    name = reader.identifier()
    timeout = with_options(reader).get("timeout")
    return s.Fetch(name, count, timeout)


def close(reader: Reader) -> s.Statement:
    """What follows CLOSE."""
    return s.CloseCursor(None if reader.accept("all") else reader.identifier())


# --- prepared statements


def prepare(reader: Reader) -> s.Statement:
    """What follows PREPARE."""
    if reader.is_next("transaction"):
        raise reader.unsupported("PREPARE TRANSACTION")
    name = reader.identifier()
    types: tuple[SqlType, ...] = ()
    if reader.accept("("):
        types = reader.list_of(lambda: reader.type_to(","))
        reader.expect(")")
    reader.expect("as")
    start, end = reader.at, len(reader.tokens) - 1
    text, offset = reader.slice(start, end)
    reader.at = end
    return s.PrepareStatement(name, types, text, offset + 1)


def execute(reader: Reader) -> s.Statement:
    """What follows EXECUTE."""
    name = reader.identifier()
    values: tuple[s.ScalarText, ...] = ()
    if reader.accept("(") and not reader.accept(")"):
        values = reader.list_of(lambda: reader.scalar_to(","))
        reader.expect(")")
    return s.ExecutePrepared(name, values)


def deallocate(reader: Reader) -> s.Statement:
    """What follows DEALLOCATE."""
    reader.accept("prepare")
    return s.Deallocate(None if reader.accept("all") else reader.identifier())


def listen(reader: Reader) -> s.Statement:
    """What follows LISTEN."""
    return s.Notify("listen", reader.identifier())


def unlisten(reader: Reader) -> s.Statement:
    """What follows UNLISTEN."""
    return s.Notify("unlisten", None if reader.accept("*") else reader.identifier())


def notify(reader: Reader) -> s.Statement:
    """What follows NOTIFY."""
    channel = reader.identifier()
    return s.Notify("notify", channel, reader.string() if reader.accept(",") else "")


def discard(reader: Reader) -> s.Statement:
    """What follows DISCARD."""
    what = reader.accept_any("all", "plans", "sequences", "temporary", "temp")
    if what is None:
        raise reader.invalid()
    return s.Discard(what)


def vacuum(reader: Reader) -> s.Statement:
    """What follows VACUUM."""
    if not _in_brackets(reader):
        while reader.accept_any("full", "freeze", "verbose", "analyze", "analyse"):
            pass
    return s.Maintain("VACUUM", _maintained(reader))


def analyze(reader: Reader) -> s.Statement:
    """What follows ANALYZE."""
    if not _in_brackets(reader):
        reader.accept("verbose")
    return s.Maintain("ANALYZE", _maintained(reader))


def checkpoint(_: Reader) -> s.Statement:
    """What follows CHECKPOINT."""
    return s.Maintain("CHECKPOINT")


def _in_brackets(reader: Reader) -> bool:
    if not reader.accept("("):
        return False
    reader.skip_to()
    reader.expect(")")
    return True


def _maintained(reader: Reader) -> tuple[s.Name, ...]:
    """Tables, each perhaps with columns."""

    def table() -> s.Name:
        name = reader.name()
        if reader.is_next("("):
            reader.names_in_parens()
        return name

    return () if reader.ended else tuple(reader.list_of(table))
