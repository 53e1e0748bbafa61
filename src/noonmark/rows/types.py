"""The SQL types.

A `SqlType` is an immutable value; two types are equal when they hold the same values. Its text is
PostgreSQL's canonical spelling (what ``format_type`` prints).

Law (spelling): ``parse_type(str(t)) == t`` for every type t but `OLD_NUMERIC`, and
``parse_stored(stored_spelling(t)) == t`` for every type. ``parse_type`` also takes PostgreSQL's
aliases (``int8``, ``decimal(10,2)``, ``timestamptz``), in any case and spacing.

Where PostgreSQL is wider, the constructor refuses instead of promising what storage cannot keep:

- ``numeric(p,s)`` has 1 <= p <= 38 and 0 <= s <= p, and no NaN. Plain ``numeric`` has every value
  that PostgreSQL's has, with its scale: 131,072 digits before the point, 16,383 after, NaN and the
  infinities (`noonmark.rows.numeral`).
- Times are always in microseconds; there is no ``timestamp(3)``.
- Arrays have one dimension and start at 1.
- A record has named, typed fields, ``record(a integer, b text)``; PostgreSQL says ``record``.

No third-party imports: the SQL layer and the control plane use these without Arrow.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from typing import Any, ClassVar

from noonmark.errors import InvalidValue, Unsupported
from noonmark.rows.label import Label

NUMERIC_PRECISION_MAX = 38
#: Of plain numeric: digits before and after the point.
NUMERIC_WHOLE_MAX, NUMERIC_SCALE_MAX = 131_072, 16_383
LENGTH_MAX = 10_485_760


@dataclass(frozen=True, slots=True)
class SqlType:
    """The base of all types; `spelling` is the canonical name without parameters."""

    spelling: ClassVar[str] = "unknown"

    def __str__(self) -> str:
        return self.spelling


@dataclass(frozen=True, slots=True)
class Boolean(SqlType):
    """True or false."""

    spelling: ClassVar[str] = "boolean"


@dataclass(frozen=True, slots=True)
class SmallInt(SqlType):
    """A 16-bit integer."""

    spelling: ClassVar[str] = "smallint"


@dataclass(frozen=True, slots=True)
class Integer(SqlType):
    """A 32-bit integer; `told` is the type of PostgreSQL's catalog that clients are told of."""

    spelling: ClassVar[str] = "integer"
    told: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class BigInt(SqlType):
    """A 64-bit integer; see `Integer` for `told`."""

    spelling: ClassVar[str] = "bigint"
    told: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Real(SqlType):
    """A 32-bit float."""

    spelling: ClassVar[str] = "real"


@dataclass(frozen=True, slots=True)
class Double(SqlType):
    """A 64-bit float."""

    spelling: ClassVar[str] = "double precision"


@dataclass(frozen=True, slots=True)
class Numeric(SqlType):
    """An exact decimal: `precision` digits, `scale` of them after the point; both None = plain.

    `trimmed` is of columns that were made before plain numeric had values of any size: they are
    stored as numeric(38,18), and shown as plain numeric without trailing zeros (`OLD_NUMERIC`).
    """

    spelling: ClassVar[str] = "numeric"
    precision: int | None = None
    scale: int | None = None
    trimmed: bool = False

    def __post_init__(self) -> None:
        if self.precision is None:
            if self.scale is not None:
                raise InvalidValue("numeric has a scale but no precision")
            return
        if self.scale is None:
            object.__setattr__(self, "scale", 0)
        if self.precision < 1:
            raise InvalidValue(f"numeric precision {self.precision} must be at least 1")
        if self.precision > NUMERIC_PRECISION_MAX:
            raise Unsupported(
                f"numeric precision {self.precision} is above {NUMERIC_PRECISION_MAX}",
                hint=f"Use a precision of at most {NUMERIC_PRECISION_MAX}, or text.",
            )
        if not 0 <= (self.scale or 0) <= self.precision:
            raise Unsupported(
                f"numeric scale {self.scale} must be between 0 and precision {self.precision}"
            )

    @property
    def is_plain(self) -> bool:
        """Whether every value has a scale of its own."""
        return self.precision is None

    @property
    def stored_precision(self) -> int:
        """Digits in storage; not of plain numeric."""
        assert self.precision is not None, "plain numeric has no precision"
        return self.precision

    @property
    def stored_scale(self) -> int:
        """Digits after the point in storage; not of plain numeric."""
        assert self.scale is not None, "plain numeric has no scale"
        return self.scale

    def __str__(self) -> str:
        if self.precision is None or self.trimmed:
            return self.spelling
        return f"{self.spelling}({self.precision},{self.scale})"


def is_plain(sql_type: SqlType) -> bool:
    """Whether the type is plain numeric, whose values have scales of their own."""
    return isinstance(sql_type, Numeric) and sql_type.precision is None


OLD_NUMERIC = Numeric(38, 18, trimmed=True)


@dataclass(frozen=True, slots=True)
class Text(SqlType):
    """A string of any length; see `Integer` for `told`."""

    spelling: ClassVar[str] = "text"
    told: str = field(default="", compare=False)


def _check_length(type_name: str, length: int) -> None:
    if not 1 <= length <= LENGTH_MAX:
        raise InvalidValue(f"length of {type_name} must be 1 to {LENGTH_MAX}, not {length}")


@dataclass(frozen=True, slots=True)
class Varchar(SqlType):
    """A string of at most `length` characters; None = any length."""

    spelling: ClassVar[str] = "character varying"
    length: int | None = None

    def __post_init__(self) -> None:
        if self.length is not None:
            _check_length(self.spelling, self.length)

    def __str__(self) -> str:
        return self.spelling if self.length is None else f"{self.spelling}({self.length})"


@dataclass(frozen=True, slots=True)
class Char(SqlType):
    """A string of exactly `length` characters, padded with blanks; None = any length, as it is.

    Blanks at its end never count when it is compared.
    """

    spelling: ClassVar[str] = "character"
    length: int | None = 1

    def __post_init__(self) -> None:
        if self.length is not None:
            _check_length(self.spelling, self.length)

    def __str__(self) -> str:
        return "bpchar" if self.length is None else f"{self.spelling}({self.length})"


@dataclass(frozen=True, slots=True)
class Bytea(SqlType):
    """Bytes."""

    spelling: ClassVar[str] = "bytea"


@dataclass(frozen=True, slots=True)
class Date(SqlType):
    """A day, or -infinity or infinity."""

    spelling: ClassVar[str] = "date"


@dataclass(frozen=True, slots=True)
class Time(SqlType):
    """A time of day from 00:00:00 to 24:00:00, both possible."""

    spelling: ClassVar[str] = "time without time zone"


@dataclass(frozen=True, slots=True)
class Timestamp(SqlType):
    """A date and time of day without a zone, or -infinity or infinity."""

    spelling: ClassVar[str] = "timestamp without time zone"


@dataclass(frozen=True, slots=True)
class TimestampTz(SqlType):
    """An instant, or -infinity or infinity."""

    spelling: ClassVar[str] = "timestamp with time zone"


@dataclass(frozen=True, slots=True)
class Interval(SqlType):
    """Months, days and microseconds, kept apart."""

    spelling: ClassVar[str] = "interval"


@dataclass(frozen=True, slots=True)
class Uuid(SqlType):
    """16 bytes, written as a UUID."""

    spelling: ClassVar[str] = "uuid"


@dataclass(frozen=True, slots=True)
class Jsonb(SqlType):
    """A JSON document in PostgreSQL's canonical form."""

    spelling: ClassVar[str] = "jsonb"


@dataclass(frozen=True, slots=True)
class Json(SqlType):
    """A JSON document as the text that was written; it has no equality and no order."""

    spelling: ClassVar[str] = "json"


@dataclass(frozen=True, slots=True)
class Enum(SqlType):
    """A type of labels that somebody made: the type is its `uid`.

    Its number in the catalog, its name and its labels may change, so they are no part of what it
    is, nor stored with it: where they are not known, values are still read, shown and compared
    (`rows.label`), and no text is taken for one.
    """

    spelling: ClassVar[str] = "anyenum"
    uid: str
    number: int = field(default=0, compare=False)
    name: str = field(default="", compare=False)
    labels: tuple[Label, ...] = field(default=(), compare=False)

    def label(self, text: str) -> Label:
        """The label that is written so."""
        if isinstance(text, Label):
            return text
        found = next((each for each in self.labels if each == text), None)
        if found is None:
            raise InvalidValue(f'invalid input value for enum {self}: "{text}"')
        return found

    def __str__(self) -> str:
        return self.name or self.spelling


@dataclass(frozen=True, slots=True)
class Coded(SqlType):
    """A type whose values are bytes in the order of the type: a file of `noonmark.rows.coded`.

    Law (order): for values a, b, ``key(a) < key(b)`` iff a < b in SQL, and ``a < b`` as bytes then,
    too. Law (text): ``parse(show(a)) == a``; law (binary): ``receive(send(a)) == a``.
    """

    #: PostgreSQL's numbers of it and of its array, and its size.
    oid: ClassVar[int]
    array_oid: ClassVar[int]
    size: ClassVar[int] = -1
    #: The number by which plans that are stored call it (`sql.ir.tags`), and its fields there.
    tag: ClassVar[int]
    fields: ClassVar[tuple[tuple[str, Any], ...]] = ()
    #: Its category, if it is preferred there, what it becomes untold, and in columns besides.
    category: ClassVar[str] = "U"
    preferred: ClassVar[bool] = False
    wider: ClassVar[tuple[type[SqlType], ...]] = ()
    assignable: ClassVar[tuple[type[SqlType], ...]] = ()
    #: Further names of it in SQL: the first is that in pg_type.
    names: ClassVar[tuple[str, ...]] = ()
    #: Whether equal values are the same bytes, how many it has at least, if there is min and max.
    one_form: ClassVar[bool] = True
    bytes_min: ClassVar[int] = 0
    extremes: ClassVar[bool] = False
    #: Whether there is = (for DISTINCT, GROUP BY and keys), and an order other than of the bytes.
    equality: ClassVar[bool] = True
    ordered: ClassVar[bool] = True
    #: The letter in pg_type, what its functions begin with, what stands between items of an array.
    catalog_kind: ClassVar[str] = "b"
    stem: ClassVar[str] = ""
    delimiter: ClassVar[str] = ","

    @classmethod
    def of(cls, parameters: tuple[int, ...]) -> Coded:
        """The type with what stands in brackets behind its name."""
        if parameters:
            raise InvalidValue(f'type modifier is not allowed for type "{cls.spelling}"')
        return cls()

    @classmethod
    def of_modifier(cls, modifier: int) -> Coded:  # noqa: ARG003 - of those that have one
        """The type with a typmod."""
        return cls()

    @property
    def modifier(self) -> int:
        """Its typmod."""
        return -1

    @property
    def unsized(self) -> Coded:
        """The type without a length."""
        return self

    def fitted(self, value: bytes) -> bytes:
        """The value, refused where the type has no room for it."""
        return value

    @property
    def stored(self) -> str:
        """How schemas spell it."""
        return str(self)

    def parse(self, text: str, zone: dt.tzinfo = dt.UTC) -> bytes:
        """The value that a text stands for."""
        raise NotImplementedError

    def show(self, value: bytes, zone: dt.tzinfo = dt.UTC) -> str:
        """PostgreSQL's text of a value."""
        raise NotImplementedError

    def send(self, value: bytes) -> bytes:
        """PostgreSQL's binary form of a value."""
        raise NotImplementedError

    def receive(self, raw: bytes) -> bytes:
        """The value of its binary form."""
        raise NotImplementedError

    def key(self, value: bytes) -> bytes:
        """What equal values have in common."""
        return value

    def plainest(self, value: bytes) -> bytes:
        """The one of all values that are equal to a value that shows the least."""
        return value

    def invalid(self, text: str) -> InvalidValue:
        """A text that is no value."""
        return InvalidValue(f'invalid input syntax for type {self.spelling}: "{text}"')


@dataclass(frozen=True, slots=True)
class Array(SqlType):
    """A list of values of one type, each of which may be NULL."""

    element: SqlType

    def __post_init__(self) -> None:
        if isinstance(self.element, Array):
            raise Unsupported(
                f"{self.element}[] has more than one dimension",
                hint="Use jsonb, or an array of records that hold an array.",
            )

    def __str__(self) -> str:
        return f"{self.element}[]"


@dataclass(frozen=True, slots=True)
class Vector(Array):
    """An array of the catalog that prints without braces: an int2vector or an oidvector."""

    def __str__(self) -> str:
        return "int2vector" if isinstance(self.element, SmallInt) else "oidvector"


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a record."""

    name: str
    type: SqlType

    def __str__(self) -> str:
        return f"{quote_name(self.name)} {self.type}"


@dataclass(frozen=True, slots=True)
class Record(SqlType):
    """A row as a value; every field may be NULL."""

    spelling: ClassVar[str] = "record"
    fields: tuple[Field, ...]

    def __post_init__(self) -> None:
        names = [field.name for field in self.fields]
        if not names:
            raise Unsupported("a record needs at least one field")
        if len(set(names)) != len(names) or "" in names:
            what = "is empty" if "" in names else "occurs twice"
            raise InvalidValue(f"a field name {what} in record({', '.join(names)})")

    def __str__(self) -> str:
        return f"{self.spelling}({', '.join(map(str, self.fields))})"


def quote_name(name: str) -> str:
    """The name as a SQL identifier, quoted unless it is plain lower case.

    >>> quote_name("a"), quote_name('Odd"name')
    ('a', '"Odd""name"')
    """
    plain = name.isascii() and name.isidentifier() and name == name.lower()
    return name if plain else '"' + name.replace('"', '""') + '"'


def stored_spelling(sql_type: SqlType) -> str:
    """The type as schemas are stored with it; `parse_stored` is the inverse.

    It is the canonical spelling, but ``numeric`` is `OLD_NUMERIC`; plain numeric: ``numeric(any)``.
    """
    match sql_type:
        case Numeric(precision=None):
            return f"{sql_type.spelling}(any)"
        case Enum(uid):
            return f"enum({quote_name(uid)})"
        case Coded():
            return sql_type.stored
        case Array(element):
            return f"{stored_spelling(element)}[]"
        case Record(fields):
            inner = (f"{quote_name(field.name)} {stored_spelling(field.type)}" for field in fields)
            return f"{sql_type.spelling}({', '.join(inner)})"
    return str(sql_type)


def parse_stored(text: str) -> SqlType:
    """The type of a stored schema."""
    from noonmark.rows.spelling import parse  # door: it uses this module

    return parse(text, stored=True)


def parse_type(text: str) -> SqlType:
    """The type that `text` spells.

    >>> str(parse_type("DECIMAL(10, 2) []"))
    'numeric(10,2)[]'

    Raises:
        Unsupported: a type that is not known here.
        InvalidValue: text that is no type, or a parameter out of range.
    """
    from noonmark.rows.spelling import parse  # door: it uses this module

    return parse(text)
