# ruff: noqa: E501 - tables of texts are read by line
"""Expressions of a type: literals, columns, calls of every function, casts, forms of syntax.

Which functions there are is read from the product's table, by name and types alone: what they mean
is PostgreSQL's business. A function that PostgreSQL does not have is not called. `Scalars.met`
counts every feature that a text has; one that is never met proves nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from noonmark.rows import types as t
from noonmark.rows.coded.bits import Bit, Varbit
from noonmark.rows.coded.lsn import Lsn, Xid8
from noonmark.rows.coded.network import Cidr, Inet, Macaddr, Macaddr8
from noonmark.rows.coded.ranges import (
    DateMultirange,
    DateRange,
    Int4Multirange,
    Int4Range,
    Int8Range,
    NumMultirange,
    NumRange,
    TsRange,
    TstzRange,
)
from noonmark.sql.functions import FUNCTIONS
from noonmark.sql.functions.function import Any_, Function
from support.sql.any.choices import Choices
from support.sql.any.values import TYPES, UNEQUAL, literal, untyped

Scope = Sequence[tuple[str, str]]  # (name as it is written, kind)

_KINDS: dict[type[t.SqlType], str] = {
    t.Boolean: "bool",
    t.SmallInt: "int2",
    t.Integer: "int4",
    t.BigInt: "int8",
    t.Numeric: "numeric",
    t.Real: "float4",
    t.Double: "float8",
    t.Text: "text",
    t.Varchar: "varchar",
    t.Char: "bpchar",
    t.Date: "date",
    t.Time: "time",
    t.Timestamp: "timestamp",
    t.TimestampTz: "timestamptz",
    t.Interval: "interval",
    t.Uuid: "uuid",
    t.Bytea: "bytea",
    t.Jsonb: "jsonb",
    Inet: "inet",
    Cidr: "cidr",
    Macaddr: "macaddr",
    Bit: "bit",
    Varbit: "varbit",
    Int4Range: "int4range",
    NumRange: "numrange",
    DateRange: "daterange",
    TstzRange: "tstzrange",
    Int4Multirange: "multirange",
    t.Json: "json",
    t.Enum: "enum",
    Lsn: "lsn",
    Xid8: "xid8",
    Macaddr8: "macaddr8",
    Int8Range: "int8range",
    TsRange: "tsrange",
    NumMultirange: "nummultirange",
    DateMultirange: "datemultirange",
}
#: Arrays, by the kinds of their elements.
_ARRAYS = {"int4": "int4s", "text": "texts", "enum": "enums", "inet": "inets", "int4range": "ranges"}  # fmt: skip
#: What is not compared with another value of its kind where nothing may fail.
_UNCOMPARED = ("jsonb", *UNEQUAL)
#: Not PostgreSQL's, not of the same answer twice, or written otherwise (below).
_APART = frozenset(
    ("mz_timestamp", "constant_time_eq", "digest", "hmac", "subscript", "slice", "like", "ilike",
     "similar to", "~", "~*", "greatest", "least", "timezone", "age", "format", "power", "pg_column_size")
)  # fmt: skip
#: Their results may be very long, or take very long.
_LARGE = frozenset(("repeat", "lpad", "rpad", "^", "power", "exp"))

#: Forms of syntax: the kind of the result, the text with {kind} for an operand.
FORMS: tuple[tuple[str, str], ...] = (
    ("bool", "({any} = {same})"), ("bool", "({any} <> {same})"), ("bool", "({any} < {same})"),
    ("bool", "({any} >= {same})"), ("bool", "({any} is null)"), ("bool", "({any} is not null)"),
    ("bool", "({any} is distinct from {same})"), ("bool", "({any} is not distinct from {same})"),
    ("bool", "({any} in ({same}, {same}))"), ("bool", "({any} not in ({same}, {same}))"),
    ("bool", "({any} between {same} and {same})"), ("bool", "({any} not between {same} and {same})"),
    ("bool", "({any} between symmetric {same} and {same})"),
    ("bool", "({bool} and {bool})"), ("bool", "({bool} or {bool})"), ("bool", "(not {bool})"),
    ("bool", "({bool} is true)"), ("bool", "({bool} is not false)"), ("bool", "({bool} is unknown)"),
    ("bool", "({text} like {pattern})"), ("bool", "({text} not like {pattern})"),
    ("bool", "({text} ilike {pattern})"), ("bool", "({text} similar to {pattern})"),
    ("bool", "({text} ~ {regex})"), ("bool", "({text} ~* {regex})"), ("bool", "({text} !~ {regex})"),
    ("bool", "({int4} = any({int4s}))"), ("bool", "({int4} <> all({int4s}))"),
    ("bool", "({text} = any({texts}))"), ("bool", "({int4} > all({int4s}))"),
    ("bool", "(({int4}, {text}) = ({int4}, {text}))"), ("bool", "(({int4}, {text}) < ({int4}, {text}))"),
    ("bool", "(row({int4}, {text}) is null)"), ("bool", "({jsonb} ? {text})"),
    ("bool", "({jsonb} @> {jsonb})"), ("bool", "({int4s} @> {int4s})"), ("bool", "({texts} && {texts})"),
    ("text", "substring({text} from {small} for {size})"), ("text", "substring({text} from {regex})"),
    ("text", "trim(both {text} from {text})"), ("text", "trim(leading from {text})"),
    ("text", "overlay({text} placing {text} from {size} for {size})"), ("text", "({text} || {any})"),
    ("text", "({text} collate \"C\")"), ("text", "({jsonb} ->> {text})"), ("text", "({jsonb} ->> {small})"),
    ("text", "({jsonb} #>> {texts})"), ("text", "({texts})[{small}]"), ("text", "({any})::text"),
    ("text", "pg_typeof({any})::text"), ("text", "({any} || {text})"), ("text", "concat_ws({text}, {any}, {any})"),
    ("bool", "({num} in ({int4}, {float8}))"), ("bool", "({int4} < {numeric})"),
    ("bool", "({date} < {timestamptz})"), ("bool", "({bpchar} = {text})"), ("bool", "({varchar} like {bpchar})"),
    ("bool", "({timestamp} between {date} and {timestamptz})"), ("bool", "({int8} = {float4})"),
    ("bool", "(({date}, {date}) overlaps ({date}, {date}))"), ("bool", "({text} is normalized)"),
    ("bool", "({text} is nfc normalized)"),
    ("text", "to_char({timestamp}, {template})"), ("text", "to_char({timestamptz}, {template})"),
    ("text", "to_char({date}, {template})"), ("text", "format('%s|%L', {text}, {text})"),
    ("text", "format('%I.%2$I', {text}, {text})"), ("text", "format('%*s|%-5s', {size}, {text}, {any})"),
    ("int4", "width_bucket({int4}, {int4s})"), ("int4", "width_bucket({numeric}, {numeric}, {numeric}, {int4})"),
    ("bool", "({interval} = {interval})"), ("bool", "(({numeric})::text = ({numeric})::text)"),
    ("int4", "position({text} in {text})"), ("int4", "({int4s})[{small}]"), ("int4", "({date} - {date})"),
    ("int4s", "({int4s})[{small}:{small}]"), ("int4s", "array[{int4}, {int4}]"), ("texts", "array[{text}]"),
    ("int4s", "({int4s} || {int4})"), ("texts", "({texts} || {texts})"),
    ("jsonb", "({jsonb})[{small}]"), ("jsonb", "({jsonb})[{text}]"), ("jsonb", "({jsonb} - {text})"),
    ("numeric", "extract({field} from {timestamp})"), ("numeric", "extract({field} from {interval})"),
    ("numeric", "extract({field} from {timestamptz})"), ("numeric", "extract({dayfield} from {date})"),
    ("float8", "date_part({fieldtext}, {timestamp})"), ("timestamp", "date_trunc({unit}, {timestamp})"),
    ("interval", "date_trunc({unit}, {interval})"), ("interval", "({timestamp} - {timestamp})"),
    ("timestamptz", "({timestamp} at time zone {zone})"), ("timestamp", "({timestamptz} at time zone {zone})"),
    ("interval", "age({timestamp}, {timestamp})"), ("interval", "(- {interval})"),
    ("date", "({date} + {size})"), ("timestamp", "({date} + {interval})"), ("time", "({time} + {interval})"),
    ("float8", "power({float8}, {size})"), ("numeric", "round({numeric}, {size})"),
    ("numeric", "trunc({numeric}, {size})"), ("text", "repeat({text}, {size})"),
    ("text", "lpad({text}, {size}, {text})"), ("text", "rpad({text}, {size})"), ("float8", "exp({float8} / 1e3)"),
    ("bool", "({enum} >= {enum})"), ("bool", "({enum} = any({enums}))"), ("bool", "({enum} in ('ok', {enum}))"),
    ("enums", "enum_range({enum})"), ("enums", "enum_range({enum}, {enum})"), ("enums", "array[{enum}, {enum}]"),
    ("enums", "({enums} || {enum})"), ("enum", "({enums})[{small}]"), ("enums", "array_remove({enums}, {enum})"),
    ("enum", "enum_first({enum})"), ("bool", "({enums} @> {enums})"), ("text", "({enum} || {text})"),
    ("inets", "array[{inet}, {inet}]"), ("inet", "({inets})[{small}]"), ("inets", "({inets} || {inet})"),
    ("bool", "({inet} << any({inets}))"), ("bool", "({inet} <<= {cidr})"), ("inet", "({inet} + {int4})"),
    ("int8", "({inet} - {inet})"), ("inet", "({inet} & {inet})"), ("inet", "(~ {inet})"),
    ("bool", "({int4range} = any({ranges}))"), ("ranges", "array[{int4range}, {int4range}]"),
    ("int4range", "({ranges})[{small}]"), ("ranges", "({ranges} || {int4range})"),
    ("bool", "({int4range} @> {int4})"), ("bool", "({int4} <@ {multirange})"), ("bool", "({int4range} && {int4range})"),
    ("bool", "({numrange} @> {numeric})"), ("bool", "({daterange} -|- {daterange})"), ("bool", "({tsrange} << {tsrange})"),
    ("bool", "({tstzrange} @> {timestamptz})"), ("bool", "({multirange} &> {int4range})"),
    ("bool", "({datemultirange} @> {date})"), ("bool", "({nummultirange} && {numrange})"),
    ("int4range", "({int4range} * {int4range})"), ("int4range", "({int4range} + {int4range})"),
    ("int4range", "({int4range} - {int4range})"), ("int4range", "int4range({int4}, {int4}, '[]')"),
    ("numrange", "numrange({numeric}, {numeric})"), ("daterange", "daterange({date}, {date}, '(]')"),
    ("tsrange", "tsrange({timestamp}, {timestamp})"), ("int4range", "range_merge({int4range}, {int4range})"),
    ("multirange", "({multirange} + {multirange})"), ("multirange", "({multirange} - {multirange})"),
    ("nummultirange", "({nummultirange} * {nummultirange})"), ("multirange", "int4multirange({int4range}, {int4range})"),
    ("bool", "(({int4range}, {inet}) < ({int4range}, {inet}))"), ("bool", "({multirange} -|- {multirange})"),
    ("varbit", "({varbit} || {bit})"), ("varbit", "({varbit} || {varbit})"), ("bit", "({bit} & {bit})"),
    ("varbit", "({varbit} << {size})"), ("varbit", "(~ {varbit})"), ("varbit", "substring({varbit} from {small} for {size})"),
    ("int4", "get_bit({bit}, {small})"), ("bit", "set_bit({bit}, {small}, {int4})"), ("int4", "position({varbit} in {varbit})"),
    ("varbit", "overlay({varbit} placing {varbit} from {small})"), ("int4", "bit_count({varbit})::int"),
    ("bool", "({varbit} < {varbit})"), ("bool", "({bit} = {varbit})"), ("bit", "({bit} # {bit})"),
    ("numeric", "({lsn} - {lsn})"), ("lsn", "({lsn} + {numeric})"), ("bool", "({xid8} < {xid8})"),
    ("macaddr", "({macaddr} & {macaddr})"), ("macaddr8", "macaddr8_set7bit({macaddr8})"),
    ("macaddr8", "({macaddr} :: macaddr8)"), ("bool", "({macaddr8} > {macaddr8})"),
    ("json", "({json} -> {text})"), ("json", "({json} -> {small})"), ("text", "({json} ->> {text})"),
    ("text", "({json} #>> {texts})"), ("json", "json_build_array({any}, {any})"), ("json", "to_json({any})"),
    ("json", "json_build_object({text}, {any})"), ("json", "json_strip_nulls({json})"), ("text", "json_typeof({json})"),
    ("jsonb", "({json} :: jsonb)"), ("json", "({jsonb} :: json)"), ("jsonb", "to_jsonb({any})"),
    ("text", "({any} :: varchar(3))"), ("texts", "({enums} :: text[])"), ("bool", "({any} = any(array[{same}, {same}]))"),
    ("text", "array[{any}, {same}]::text"), ("text", "row({any}, {any})::text"), ("text", "concat({any}, {any})"),
    ("text", "quote_literal({any})"), ("text", "format('%s %L', {any}, {any})"),
)  # fmt: skip

_WORDS: dict[str, tuple[str, ...]] = {
    "pattern": ("'a%'", "'_'", "'%b%'", "'\\%'", "'A_'", "''", "'%é'", "'a\\'"),
    "regex": ("'a'", "'^a.*b$'", "'[[:alpha:]]+'", "'(a|b)+'", "'\\d'", "'^$'", "'.'", "'('"),
    "template": ("'YYYY-MM-DD'", "'HH24:MI:SS.US'", "'Day, DD Mon'", "'Q IW IYYY'", "'J'", "'BC'"),
    "field": ("year", "month", "day", "hour", "minute", "second", "epoch", "quarter", "decade",
              "century", "millennium", "milliseconds", "microseconds"),
    "dayfield": ("year", "dow", "isodow", "doy", "week", "isoyear", "epoch", "month"),
    "fieldtext": ("'year'", "'second'", "'dow'", "'epoch'", "'nothing'"),
    "unit": ("'day'", "'month'", "'hour'", "'week'", "'year'", "'century'", "'nothing'"),
    "zone": ("'UTC'", "'Europe/Berlin'", "'America/New_York'", "'nowhere'"),
    "small": ("1", "0", "2", "-1", "3"),
    "size": ("1", "0", "2", "3", "-1", "5"),
}  # fmt: skip
#: Those words among these that make a call fail.
_FAILING = frozenset(("'a\\'", "'('", "'nothing'", "'nowhere'"))


class Scalars:
    """One stream of expressions; `hostile` ones may fail."""

    def __init__(
        self, choices: Choices, known: Callable[[str], bool], *, hostile: bool, met: Counter[str]
    ) -> None:
        self.choices = choices
        self.hostile = hostile
        self.met = met
        #: Whether calls may fail on ordinary values, too.
        self.bold = hostile
        self._functions = {bold: _functions(known, bold) for bold in (hostile, True)}

    def scalar(self, kind: str, scope: Scope, depth: int) -> str:
        """An expression of a kind, over the columns of a scope."""
        choices = self.choices
        columns = [name for name, each in scope if each == kind]
        if depth <= 0 or choices.often(1, 3):
            if columns and choices.below(4):
                return choices.pick(columns)
            self.met[f"literal {kind}"] += 1
            return literal(choices, kind, self.hostile)
        form = choices.below(10)
        if form < 5:
            return self._called(kind, scope, depth - 1)
        if form < 8:
            return self._formed(kind, scope, depth - 1)
        return self._chosen(kind, scope, depth - 1)

    def boolean(self, scope: Scope, depth: int = 1) -> str:
        """A condition."""
        return self._formed("bool", scope, depth)

    def _called(self, kind: str, scope: Scope, depth: int) -> str:
        functions = self._functions[self.bold].get(kind)
        if not functions:
            return self._cast(kind, scope, depth)
        function = self.choices.pick(functions)
        self.met[f"function {function.id}"] += 1
        element = self.choices.pick(("int4", "text", *_ARRAYS))
        arguments = [self._argument(p, element, scope, depth) for p in function.parameters]
        if function.variadic:
            arguments += [self._argument(function.parameters[-1], element, scope, 0)
                          for _ in range(self.choices.below(3))]  # fmt: skip
        return _written(function.name, arguments)

    def _argument(self, parameter: object, element: str, scope: Scope, depth: int) -> str:
        if parameter is Any_.ARRAY or parameter is t.Array:
            kind = _ARRAYS["text" if parameter is t.Array else element]
        elif parameter is Any_.ELEMENT:
            kind = element
        elif self.hostile and self.choices.often(1, 10):
            # An argument that is not of the type: another function, an implicit cast, or none.
            kind = self.choices.pick(list(TYPES))
            self.met[f"argument of another type: {kind}"] += 1
        elif parameter is Any_.ANY:
            kind = self.choices.pick(list(TYPES))
        else:
            kind = _KINDS[parameter]  # type: ignore[index]
        if self.hostile and self.choices.often(1, 12):
            self.met[f"untyped literal for {kind}"] += 1
            return untyped(self.choices, kind)
        return self.scalar(kind, scope, depth)

    def _formed(self, kind: str, scope: Scope, depth: int) -> str:
        if self.hostile and kind in CHAINS and self.choices.often(1, 5):
            return self._chain(kind, scope)
        forms = [text for own, text in FORMS if own == kind]
        if not forms:
            return self._cast(kind, scope, depth)
        form = self.choices.pick(forms)
        self.met[f"form {form}"] += 1
        return self.filled(form, scope, depth)

    def _chain(self, kind: str, scope: Scope) -> str:
        """Operators without parentheses: what binds first is the parser's business."""
        self.met[f"chain {kind}"] += 1
        operand, operators, prefixes = CHAINS[kind]
        text = ""
        for at in range(2 + self.choices.below(3)):
            operator = self.choices.pick(operators) if at else ""
            mark = self.choices.pick(prefixes)
            right = "" if operator in POSTFIX else mark + self.scalar(operand, scope, 0)
            text += f" {operator} {right}" if at else right
        return f"({text})"

    def filled(self, form: str, scope: Scope, depth: int) -> str:
        """A form, with its operands."""
        same = self.choices.pick([each for each in TYPES if each not in _UNCOMPARED])
        made, rest = "", form
        while "{" in rest:
            before, _, rest = rest.partition("{")
            word, _, rest = rest.partition("}")
            made += before + self._word(word, same, scope, depth)
        return made + rest

    def _word(self, word: str, same: str, scope: Scope, depth: int) -> str:
        if word in _WORDS:
            allowed = [w for w in _WORDS[word] if self.hostile or w not in _FAILING]
            return self.choices.pick(allowed)
        return self.scalar(same if word in ("any", "same") else word, scope, depth)

    def _chosen(self, kind: str, scope: Scope, depth: int) -> str:
        choices = self.choices
        a, b = (self.scalar(kind, scope, depth) for _ in range(2))
        form = choices.below(6)
        if form == 5:
            return self._cast(kind, scope, depth)
        self.met[("coalesce", "case", "nullif", "greatest", "case operand")[form]] += 1
        if form == 0 or (kind in _UNCOMPARED and form in (2, 3)):
            return f"coalesce({a}, {b})"
        if form == 1:
            return f"(case when {self.boolean(scope, depth)} then {a} else {b} end)"
        if form == 2:
            return f"nullif({a}, {b})"
        if form == 3:
            return f"{choices.pick(('greatest', 'least'))}({a}, {b})"
        key = self.scalar("int4", scope, 0)
        return f"(case {key} when 1 then {a} when 2 then {b} end)"

    def _cast(self, kind: str, scope: Scope, depth: int) -> str:
        sources = CASTS[kind] if self.hostile else SURE_CASTS.get(kind, (kind,))
        if self.hostile and self.choices.often(1, 6):
            sources = tuple(TYPES)
        source = self.choices.pick(sources)
        self.met[f"cast {source} to {kind}"] += 1
        return f"({self.scalar(source, scope, depth)})::{TYPES[kind]}"


#: What is written without parentheses: the kind of the operands, operators, what stands before one.
CHAINS: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "int4": ("int4", ("+", "-", "*", "/", "%", "&", "|", "#", "<<", ">>"), ("", "", "- ", "~ ", "+ ")),
    "numeric": ("numeric", ("+", "-", "*", "/", "%", "^"), ("", "", "- ", "+ ")),
    "float8": ("float8", ("+", "-", "*", "/"), ("", "", "- ", "@ ")),
    "text": ("text", ("||",), ("",)),
    "bool": ("bool", ("and", "or", "=", "<>", "<", ">=", "is true", "is not null", "is distinct from", "isnull"),
             ("", "", "not ")),
    "interval": ("interval", ("+", "-"), ("", "- ")),
}  # fmt: skip
POSTFIX = ("is true", "is not null", "isnull")
_NUMBERS = ("int4", "int8", "int2", "numeric", "num", "float8", "float4")
CASTS: dict[str, tuple[str, ...]] = {kind: (kind, "text") for kind in TYPES}
for _kind in _NUMBERS:
    CASTS[_kind] = (*_NUMBERS, "text", "jsonb", "bool") if _kind == "int4" else (*_NUMBERS, "text")
CASTS["text"] = tuple(TYPES)
CASTS["varchar"] = CASTS["bpchar"] = ("text", "int4", "bool", "date", "bpchar", "varchar")
CASTS["bool"] = ("int4", "text", "jsonb")
CASTS["date"] = CASTS["timestamp"] = CASTS["timestamptz"] = (
    "date",
    "timestamp",
    "timestamptz",
    "text",
)
CASTS["time"] = ("timestamp", "interval", "timestamptz", "text")
CASTS["interval"] = ("time", "text")
CASTS["jsonb"] = ("text", "jsonb")
CASTS["int4s"], CASTS["texts"] = ("texts", "text"), ("int4s", "text", "enums", "inets", "ranges")
CASTS["json"], CASTS["enum"], CASTS["enums"] = (
    ("jsonb", "text"),
    ("text", "varchar"),
    ("texts", "text"),
)
CASTS["inet"], CASTS["cidr"] = ("cidr", "text"), ("inet", "text")
CASTS["macaddr"], CASTS["macaddr8"] = ("macaddr8", "text"), ("macaddr", "text")
CASTS["bit"], CASTS["varbit"] = ("varbit", "int4", "int8", "text"), ("bit", "text", "int4")
CASTS["multirange"], CASTS["xid8"] = ("int4range", "text"), ("text", "int8")
CASTS["nummultirange"], CASTS["datemultirange"] = ("numrange", "text"), ("daterange", "text")
#: Casts that have a value for every ordinary value.
SURE_CASTS: dict[str, tuple[str, ...]] = {
    "int4": ("int2", "bool"), "int8": ("int4", "int2"), "numeric": ("int4", "int8", "num"),
    "float8": ("int4", "float4", "numeric"), "float4": ("int2",), "num": ("int2", "int4"),
    "text": ("int4", "int8", "bool", "date", "uuid", "jsonb", "bpchar", "interval", "timestamp",
             "bytea", "int4s", "time", "numeric", "num", "json", "enum", "enums", "inet", "int4range",
             "multirange", "varbit", "xid8", "ranges", "nummultirange"),
    "varchar": ("text",), "bpchar": ("text",), "date": ("timestamp",), "timestamp": ("date",),
    "timestamptz": ("timestamp",), "time": ("timestamp",), "interval": ("time",),
    "texts": ("int4s", "enums"), "bool": ("int4",), "json": ("jsonb",), "inet": ("cidr",), "varbit": ("bit",),
    "multirange": ("int4range",), "nummultirange": ("numrange",), "macaddr8": ("macaddr",),
}  # fmt: skip


def _functions(known: Callable[[str], bool], hostile: bool) -> dict[str, list[Function]]:
    """The functions that give each kind, of arguments that can be made."""
    found: dict[str, list[Function]] = {}
    for function in FUNCTIONS.by_id.values():
        if function.name in _APART or (function.name in _LARGE) or " " in function.name:
            continue
        made = all(p in _KINDS or isinstance(p, Any_) or p is t.Array for p in function.parameters)
        kind = _result(function)
        if not made or kind is None or not known(function.name):
            continue
        if not hostile and (function.fallible is not False or not function.name.isidentifier()):
            continue
        found.setdefault(kind, []).append(function)
    return found


def _result(function: Function) -> str | None:
    if isinstance(function.result, t.Array):
        return _ARRAYS.get(_KINDS.get(type(function.result.element), ""))
    if isinstance(function.result, t.SqlType):
        return _KINDS.get(type(function.result))
    # It depends on the arguments: of numbers, mostly their own kind; of others, try.
    first = function.parameters[0] if function.parameters else None
    if first is Any_.ARRAY or function.name == "enum_range":
        return None
    return _KINDS.get(first) if isinstance(first, type) else None


def _written(name: str, arguments: list[str]) -> str:
    if name == "char":  # without quotes it is another type, and no function
        return f'"char"({", ".join(arguments)})'
    if name.isidentifier():
        return f"{name}({', '.join(arguments)})"
    if len(arguments) == 1:
        return f"({name} {arguments[0]})"
    return f"({arguments[0]} {name} {arguments[1]})"
