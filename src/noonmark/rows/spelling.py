"""The grammar of type names: PostgreSQL's canonical spellings and their aliases.

    type   := base { "[" [ digits ] "]" | "array" }
    base   := words [ "(" digits { "," digits } ")" ] [ ( "with" | "without" ) "time" "zone" ]
            | "record" "(" name type { "," name type } ")"

Words are matched without case; a size inside ``[]`` means nothing, as in PostgreSQL.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from noonmark.errors import InvalidValue, UndefinedObject, Unsupported
from noonmark.rows import types as t
from noonmark.rows.coded import CODED
from noonmark.rows.coded.bits import Bit

_TOKEN = re.compile(
    r'\s*(?:(?P<quoted>"(?:[^"]|"")+")|(?P<word>[^\W\d]\w*)|(?P<other>-?\d+|[(),\[\]]))'
)

Build = Callable[[tuple[int, ...]], t.SqlType]


def _plain(kind: type[t.SqlType]) -> Build:
    def build(parameters: tuple[int, ...]) -> t.SqlType:
        if parameters:
            raise InvalidValue(f"type {kind.spelling} takes no parameters")
        return kind()

    return build


def _microseconds(kind: type[t.SqlType]) -> Build:
    def build(parameters: tuple[int, ...]) -> t.SqlType:
        if parameters not in ((), (6,)):
            raise Unsupported(
                f"{kind.spelling} with precision {parameters[0]} is not supported",
                hint=f"Use {kind.spelling}: it keeps microseconds.",
            )
        return kind()

    return build


def _numeric(parameters: tuple[int, ...]) -> t.SqlType:
    if len(parameters) > 2:
        raise InvalidValue("numeric takes a precision and a scale")
    precision, scale = (*parameters, None, None)[:2]
    return t.Numeric(precision, scale)


def _varchar(parameters: tuple[int, ...]) -> t.SqlType:
    if len(parameters) > 1:
        raise InvalidValue("character varying takes one length")
    return t.Varchar(*parameters)


def _char(parameters: tuple[int, ...]) -> t.SqlType:
    if len(parameters) > 1:
        raise InvalidValue("character takes one length")
    return t.Char(*parameters)


def _bpchar(parameters: tuple[int, ...]) -> t.SqlType:
    return _char(parameters) if parameters else t.Char(None)


def _float(parameters: tuple[int, ...]) -> t.SqlType:
    if not parameters:
        return t.Double()
    if len(parameters) > 1 or not 1 <= parameters[0] <= 53:
        raise InvalidValue("float takes one precision from 1 to 53")
    return t.Real() if parameters[0] <= 24 else t.Double()


_BUILD: dict[str, Build] = {
    **dict.fromkeys(("boolean", "bool"), _plain(t.Boolean)),
    **dict.fromkeys(("smallint", "int2"), _plain(t.SmallInt)),
    **dict.fromkeys(("integer", "int", "int4"), _plain(t.Integer)),
    **dict.fromkeys(("bigint", "int8"), _plain(t.BigInt)),
    **dict.fromkeys(("real", "float4"), _plain(t.Real)),
    **dict.fromkeys(("double precision", "float8"), _plain(t.Double)),
    "float": _float,
    **dict.fromkeys(("numeric", "decimal", "dec"), _numeric),
    "text": _plain(t.Text),
    **dict.fromkeys(("character varying", "varchar", "char varying"), _varchar),
    **dict.fromkeys(("character", "char"), _char),
    "bpchar": _bpchar,
    "bytea": _plain(t.Bytea),
    "date": _plain(t.Date),
    "time": _microseconds(t.Time),
    "timestamp": _microseconds(t.Timestamp),
    "timestamptz": _microseconds(t.TimestampTz),
    "interval": _microseconds(t.Interval),
    "uuid": _plain(t.Uuid),
    "jsonb": _plain(t.Jsonb),
    "json": _plain(t.Json),
    **{name: kind.of for kind in CODED for name in (kind.spelling, *kind.names)},
}


class _Parser:
    """One pass over the tokens; a token is (kind, text)."""

    def __init__(self, text: str, stored: bool) -> None:
        self.text = text
        self.stored = stored
        self.tokens = self._tokens()
        self.at = 0

    def _tokens(self) -> list[tuple[str, str]]:
        tokens: list[tuple[str, str]] = []
        at, end = 0, len(self.text.rstrip())
        while at < end:
            match = _TOKEN.match(self.text, at)
            if match is None:
                raise self.invalid()
            kind = str(match.lastgroup)
            raw = match[kind]
            value = raw[1:-1].replace('""', '"') if kind == "quoted" else raw.lower()
            tokens.append((kind, value))
            at = match.end()
        return tokens

    def invalid(self) -> InvalidValue:
        return InvalidValue(f"{self.text!r} is not the name of a type")

    def peek(self) -> tuple[str, str]:
        return self.tokens[self.at] if self.at < len(self.tokens) else ("end", "")

    def take(self) -> tuple[str, str]:
        token = self.peek()
        self.at += 1
        return token

    def accept(self, *texts: str) -> bool:
        """Take these tokens if they are next, else none."""
        ahead = self.tokens[self.at : self.at + len(texts)]
        if [text for kind, text in ahead if kind != "quoted"] != list(texts):
            return False
        self.at += len(texts)
        return True

    def expect(self, text: str) -> None:
        if not self.accept(text):
            raise self.invalid()

    def type(self) -> t.SqlType:
        base = self.record() if self.accept("record", "(") else self.base()
        while True:
            if self.accept("["):
                if self.peek()[1].isdigit():
                    self.take()
                self.expect("]")
            elif not self.accept("array"):
                return base
            base = t.Array(base)

    def record(self) -> t.SqlType:
        fields = []
        while True:
            kind, name = self.take()
            if kind not in ("word", "quoted"):
                raise self.invalid()
            fields.append(t.Field(name, self.type()))
            if not self.accept(","):
                self.expect(")")
                return t.Record(tuple(fields))

    def base(self) -> t.SqlType:
        kind, name = self.take()
        if kind not in ("word", "quoted"):
            raise self.invalid()
        for second in ("precision", "varying"):
            if self.accept(second):
                name = f"{name} {second}"
        if self.stored and name == "numeric":
            if self.accept("(", "any", ")"):
                return t.Numeric()
            return _numeric(parameters) if (parameters := self.parameters()) else t.OLD_NUMERIC
        if self.stored and name == Bit.spelling and self.accept("(", "any", ")"):
            return Bit()
        if self.stored and name == "enum" and self.accept("("):
            uid = self.take()[1]
            self.expect(")")
            return t.Enum(uid)
        parameters = self.parameters()
        if self.accept("with", "time", "zone"):
            name = f"{name}tz"
        elif name in ("time", "timestamp"):
            self.accept("without", "time", "zone")
        build = _BUILD.get(name)
        if build is None and name in _ELSEWHERE:
            raise Unsupported(f"type {name} is not supported", hint=_hint(name))
        if build is None:
            raise UndefinedObject(f'type "{name}" does not exist')
        return build(parameters)

    def parameters(self) -> tuple[int, ...]:
        if not self.accept("("):
            return ()
        numbers: list[int] = []
        while True:
            kind, number = self.take()
            if kind != "other" or not number.lstrip("-").isdigit():
                raise self.invalid()
            numbers.append(int(number))
            if not self.accept(","):
                self.expect(")")
                return tuple(numbers)


#: Types that PostgreSQL has and this package does not.
_ELSEWHERE = frozenset({
    "box", "cid", "circle", "cstring", "int2vector", "jsonpath", "line", "lseg", "money", "name",
    "oidvector", "path", "pg_snapshot", "point", "polygon", "refcursor", "regclass",
    "regcollation", "regconfig", "regdictionary", "regnamespace", "regoper", "regoperator",
    "regproc", "regprocedure", "regrole", "regtype", "tid", "timetz", "tsquery", "tsvector",
    "txid_snapshot", "unknown", "void", "xid", "xml", "bigserial", "serial", "smallserial",
})  # fmt: skip


def _hint(name: str) -> str | None:
    near = {"timetz": "time", "money": "numeric", "name": "text"}.get(name)
    return f"Use {near}." if near else None


def parse(text: str, *, stored: bool = False) -> t.SqlType:
    """See `noonmark.rows.types.parse_type` and, with `stored`, `parse_stored`."""
    parser = _Parser(text, stored)
    result = parser.type()
    if parser.at != len(parser.tokens):
        raise parser.invalid()
    return result
