"""PostgreSQL's numbers for types: oid, size and typmod, as RowDescription and pgoutput carry them.

Law: ``type_of(oid(t), typmod(t)) == t`` for every type that is PostgreSQL's own, without records in
it. A record's oid says nothing of its fields, so it cannot be turned back. The oid of a type that
somebody made is known to the catalog.

Types of PostgreSQL's catalog are told of, and no more (`types.Integer.told`): an ``oid`` is an
integer and a ``name`` a text to whatever computes, and clients are told what PostgreSQL tells.
"""

from __future__ import annotations

from noonmark.errors import Unsupported
from noonmark.rows import types as t
from noonmark.rows.coded import CODED
from noonmark.rows.domain import Domain

# type: (oid, oid of its array, size in bytes or -1)
_NUMBERS: dict[type[t.SqlType], tuple[int, int, int]] = {
    t.Boolean: (16, 1000, 1),
    t.Bytea: (17, 1001, -1),
    t.BigInt: (20, 1016, 8),
    t.SmallInt: (21, 1005, 2),
    t.Integer: (23, 1007, 4),
    t.Text: (25, 1009, -1),
    t.Real: (700, 1021, 4),
    t.Double: (701, 1022, 8),
    t.Char: (1042, 1014, -1),
    t.Varchar: (1043, 1015, -1),
    t.Date: (1082, 1182, 4),
    t.Time: (1083, 1183, 8),
    t.Timestamp: (1114, 1115, 8),
    t.TimestampTz: (1184, 1185, 8),
    t.Interval: (1186, 1187, 16),
    t.Numeric: (1700, 1231, -1),
    t.Record: (2249, 2287, -1),
    t.Uuid: (2950, 2951, 16),
    t.Jsonb: (3802, 3807, -1),
    t.Json: (114, 199, -1),
}
#: Types of PostgreSQL's catalog that are only told of: the same of each.
TOLD: dict[str, tuple[int, int, int]] = {
    "char": (18, 1002, 1), "name": (19, 1003, 64), "regproc": (24, 1008, 4), "oid": (26, 1028, 4),
    "xid": (28, 1011, 4), "pg_node_tree": (194, 0, -1), "aclitem": (1033, 1034, 16),
    "regprocedure": (2202, 2207, 4), "regoper": (2203, 2208, 4), "regoperator": (2204, 2209, 4),
    "regclass": (2205, 2210, 4), "regtype": (2206, 2211, 4), "cstring": (2275, 1263, -2),
    "anyarray": (2277, 0, -1), "void": (2278, 0, 4), "regnamespace": (4089, 4090, 4),
    "regrole": (4096, 4097, 4), "regcollation": (4191, 4192, 4),
}  # fmt: skip
_NUMBERS |= {kind: (kind.oid, kind.array_oid, kind.size) for kind in CODED}
_BY_OID = {row[0]: kind for kind, row in _NUMBERS.items()}
_BY_ARRAY_OID = {row[1]: kind for kind, row in _NUMBERS.items()}
_TEXT_LIKE = frozenset({25, 705, 1042, 1043})
#: Numbers below are PostgreSQL's own: an item of the catalog is this much above its number, and the
#: array of a type that is an item one more.
FIRST_OID = 16_384
_HEADER = 4  # a typmod counts the four bytes of a length word


def oid(sql_type: t.SqlType) -> int:
    """The oid of the type in every PostgreSQL."""
    if isinstance(sql_type, t.Vector):
        return 22 if isinstance(sql_type.element, t.SmallInt) else 30
    if isinstance(sql_type, t.Array):
        if isinstance(sql_type.element, t.Enum):
            return oid(sql_type.element) + 1
        return _numbers(sql_type.element)[1]
    if isinstance(sql_type, t.Enum | Domain):
        return FIRST_OID + sql_type.number
    return _numbers(sql_type)[0]


def _numbers(sql_type: t.SqlType) -> tuple[int, int, int]:
    told: str = getattr(sql_type, "told", "")
    return TOLD[told] if told else _NUMBERS[type(sql_type)]


def type_size(sql_type: t.SqlType) -> int:
    """The size in bytes, or -1 when it varies."""
    if isinstance(sql_type, t.Enum):
        return 4
    return -1 if isinstance(sql_type, t.Array) else _numbers(sql_type)[2]


def typmod(sql_type: t.SqlType) -> int:
    """The type's parameters as one number, or -1 when it has none."""
    match sql_type:
        case t.Array(element):
            return typmod(element)
        case t.Varchar(int(length)) | t.Char(int(length)):
            return length + _HEADER
        case t.Coded():
            return sql_type.modifier
        case t.Numeric(int(precision), int(scale)):
            return (precision << 16 | scale) + _HEADER
    return -1


def type_of(type_oid: int, modifier: int = -1) -> t.SqlType:
    """The type of an oid and a typmod.

    A precision of seconds, as in ``timestamp(3)``, is dropped: microseconds hold all its values.
    """
    kind = _BY_ARRAY_OID.get(type_oid)
    if kind is not None and kind is not t.Record:
        return t.Array(_scalar(kind, modifier))
    kind = _BY_OID.get(type_oid)
    if kind is None or kind is t.Record:
        raise Unsupported(f"type with oid {type_oid} is not supported", oid=type_oid)
    return _scalar(kind, modifier)


def _scalar(kind: type[t.SqlType], modifier: int) -> t.SqlType:
    if kind is t.Char and modifier < 0:
        return t.Char(None)
    if issubclass(kind, t.Coded):
        return kind.of_modifier(modifier)
    if modifier < 0:
        return kind()
    if kind in (t.Varchar, t.Char):
        return kind(modifier - _HEADER)
    if kind is t.Numeric:
        packed = modifier - _HEADER
        # The scale is a signed number of 11 bits.
        precision, scale = packed >> 16, ((packed & 0x7FF) ^ 0x400) - 0x400
        fits = precision <= t.NUMERIC_PRECISION_MAX and 0 <= scale <= precision
        return t.Numeric(precision, scale) if fits else t.Numeric()
    return kind()


def same_wire(found_oid: int, sql_type: t.SqlType) -> bool:
    """Whether bytes of the found type are bytes of the expected one."""
    expected = oid(sql_type)
    return found_oid == expected or {found_oid, expected} <= _TEXT_LIKE
