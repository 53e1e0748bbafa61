# ruff: noqa: E501 - tables of texts are read by line
"""Types, their literals, and tables with rows of every type.

Ordinary values are small, so that queries over tables of them have answers; extreme and hostile
ones (quotes, our own syntax, the ends of ranges, letters of two to four bytes) stand in a table of
their own and in expressions of one row, where an error must be the same error.
"""

from __future__ import annotations

from support.sql.any.choices import Choices

#: Every type, as it is written.
TYPES = {
    "int4": "int", "text": "text", "bool": "boolean", "int8": "bigint", "int2": "smallint",
    "numeric": "numeric", "num": "numeric(10,2)", "float8": "double precision", "float4": "real",
    "varchar": "varchar(6)", "bpchar": "char(4)", "date": "date", "time": "time",
    "timestamp": "timestamp", "timestamptz": "timestamptz", "interval": "interval",
    "uuid": "uuid", "bytea": "bytea", "jsonb": "jsonb", "int4s": "int[]", "texts": "text[]",
    "inet": "inet", "cidr": "cidr", "macaddr": "macaddr", "bit": "bit(3)", "varbit": "bit varying(6)",
    "int4range": "int4range", "numrange": "numrange", "daterange": "daterange",
    "tstzrange": "tstzrange", "multirange": "int4multirange",
    "json": "json", "enum": "mood", "enums": "mood[]", "inets": "inet[]", "ranges": "int4range[]",
    "lsn": "pg_lsn", "xid8": "xid8", "macaddr8": "macaddr8", "int8range": "int8range", "tsrange": "tsrange",
    "nummultirange": "nummultirange", "datemultirange": "datemultirange",
}  # fmt: skip
#: The type that somebody made, in an order that is not that of its texts.
LABELS = ("sad", "ok", "", "it's", "Angry", "NULL", "a,b")

#: What can be grouped, ordered and compared in the same way by everybody.
KEYS = ["int4", "text", "date", "int8", "bool", "num", "numeric", "timestamp", "interval", "uuid",
        "varchar", "bpchar", "float8", "time", "bytea", "timestamptz", "int2", "int4s",
        "inet", "cidr", "macaddr", "bit", "varbit", "int4range", "numrange", "daterange", "multirange", "enum", "enums", "inets",
        "ranges", "lsn", "xid8", "macaddr8", "int8range", "tsrange", "nummultirange", "datemultirange"]  # fmt: skip
#: What has no equality.
UNEQUAL = ("json",)

#: What rows of ordinary tables have, the simplest first.
PLAIN: dict[str, list[str]] = {
    "int4": ["0", "1", "2", "3", "-1", "7", "10"],
    "text": [
        "a",
        "",
        "b",
        "ab",
        "one",
        "A",
        "%",
        "é",
        "a b",
        "it's",
        "a, returns=False",
        "RECOMPUTED AS A WHOLE",
    ],
    "bool": ["false", "true"],
    "int8": ["0", "1", "5", "-3", "10000000000"],
    "int2": ["0", "1", "2", "-2"],
    "numeric": ["0", "1", "2.5", "-1.25", "10"],
    "num": ["0.00", "1.50", "-2.25", "10.00"],
    "float8": ["0", "1", "0.5", "-2.25", "1024"],
    "float4": ["0", "1", "0.25", "-8"],
    "varchar": ["a", "", "abc", "b"],
    "bpchar": ["a", "ab", "abcd", ""],
    "date": ["2020-01-01", "2020-02-29", "1999-12-31", "2021-06-30"],
    "time": ["00:00:00", "10:30:00", "23:59:59.5"],
    "timestamp": ["2020-01-01 00:00:00", "2020-02-29 12:34:56.789", "1969-12-31 23:59:59"],
    "timestamptz": ["2020-01-01 00:00:00+00", "2020-07-01 12:00:00+02", "1970-01-01 00:00:00+00"],
    "interval": [
        "0",
        "1 day",
        "1 mon",
        "24:00:00",
        "30 days",
        "-01:30:00",
        "1 year 2 mons 3 days 04:05:06",
    ],
    "uuid": ["00000000-0000-0000-0000-000000000000", "b4b5d0d2-5a1c-4b51-9f0b-6f0d7c2b1a11"],
    "bytea": ["\\x", "\\x00", "\\x6162", "\\xff"],
    "jsonb": ["1", "null", '"a"', "[]", "{}", '{"n": 1, "s": "x"}', "[1, 2.50, null]", "true"],
    "int4s": ["{}", "{1,2}", "{3,NULL}", "{0}", "{2,2,1}"],
    "texts": ["{}", "{a,b}", '{"",NULL}', "{one}"],
    "inet": ["10.0.0.1", "10.0.0.1/8", "192.168.1.0/24", "::1", "10.0.0.2"],
    "cidr": ["10.0.0.0/8", "192.168.1.0/24", "::/64", "10.0.0.1"],
    "macaddr": ["08:00:2b:01:02:03", "08:00:2b:01:02:04"],
    "bit": ["101", "000", "011"],
    "varbit": ["", "1", "10", "0101"],
    "int4range": ["[1,5)", "empty", "[3,9)", "(,3)", "[2,2]"],
    "numrange": ["[1.5,3)", "[1.50,3.0)", "empty", "(0,10]", "(,)"],
    "daterange": ["[2020-01-01,2020-02-01)", "empty", "[2020-01-15,)", "[2020-01-01,2020-01-31]"],
    "tstzrange": [
        "[2020-01-01 00:00:00+00,2020-02-01 00:00:00+00)",
        "empty",
        "(,2020-01-01 00:00:00+02]",
    ],
    "multirange": ["{}", "{[1,3),[5,7)}", "{[2,6)}", "{(,2)}"],
    "json": ["1", '{"n": 1,  "s":"x"}', "[1, 2.50,null]", '"a"', "null", '{"n": 1, "n": 2}'],
    "enum": ["sad", "ok", "", "it's", "Angry"],
    "enums": ["{}", "{ok,sad}", '{"",NULL}', "{sad}"],
    "inets": ["{}", "{10.0.0.1,::1}", "{NULL,10.0.0.1/8}"],
    "ranges": ["{}", '{"[1,5)",empty}', '{NULL,"(,3)"}'],
    "lsn": ["0/0", "16/B374D848", "0/1"],
    "xid8": ["0", "1", "42"],
    "macaddr8": ["08:00:2b:01:02:03:04:05", "08:00:2b:ff:fe:01:02:03"],
    "int8range": ["[1,5)", "empty", "[10000000000,)", "(2,3]"],
    "tsrange": [
        "[2020-01-01 00:00:00,2020-02-01 00:00:00)",
        "empty",
        "(,2020-01-15 12:00:00.5]",
    ],
    "nummultirange": ["{}", "{[1.5,3),(3,4]}", "{[1.50,3.0)}", "{(,0)}"],
    "datemultirange": ["{}", "{[2020-01-01,2020-02-01)}", "{(,2020-01-01),[2020-03-01,)}"],
}
#: What a few rows of tables have: extreme, but no sum of them is inexact or fails.
STRANGE: dict[str, list[str]] = {
    "int4": ["2147483647", "-2147483648", "99", "1000000"],
    "text": ["it's", '"', "\\", "--", "/*", ";", "$1", "$$", "NULL", "\t", "日本語", "𝔸", "Scan t", " x ",
             "e\u0301", "ß", "ALL OF IT", "{", "_", "\\%", "\u00a0", "a\nb", "{a,b}", "(1,2)", "x" * 70,
             "AS OF 5", "mz_now()", "'; drop table t0", "\\x", "U&'\\0061'", '{"a": 1}', "\u202e", "#0:a"],
    "bool": ["true"],
    "int8": ["4611686018427387904", "-4611686018427387904", "1000000000000"],
    "int2": ["32767", "-32768"],
    "numeric": ["NaN", "Infinity", "-Infinity", "1e-10", "12345678901234567890.5", "1.10", "0.00", "1e30"],
    "num": ["99999999.99", "-99999999.99", "0.01"],
    "float8": ["NaN", "Infinity", "-Infinity", "-0", "1048576.5"],
    "float4": ["NaN", "Infinity", "-0", "0.125"],
    "varchar": ["it's", "日本", "a b", "'"],
    "bpchar": [" a", "é", "'", "AB"],
    "date": ["infinity", "-infinity", "0001-01-01", "0044-03-15 BC", "9999-12-31", "10000-01-01"],
    "time": ["24:00:00", "00:00:00.000001"],
    "timestamp": ["infinity", "-infinity", "0001-01-01", "9999-12-31 23:59:59.999999", "0044-03-15 12:00:00 BC"],
    "timestamptz": ["infinity", "-infinity", "0044-03-15 00:00:00+01 BC", "10000-01-01 00:00:00-08"],
    "interval": ["1000 years", "-1 mon +30 days", "00:00:00.000001", "1 mon -30 days", "720:00"],
    "uuid": ["ffffffff-ffff-ffff-ffff-ffffffffffff"],
    "bytea": ["\\xdeadbeef", "\\x5c", "\\x27"],
    "jsonb": ['{"a": {"b": [1, {"c": null}]}}', '"it\'s"', "1.10", "1e2", "-0", '[1, "a", {"b": 1.0}]', '""', "false"],
    "int4s": ["{2147483647,NULL,-1}", "{1,1,1,1,1}"],
    "texts": ['{"a,b","c\\"d"}', '{"{}",NULL,"NULL"}', "{it's}", '{" "}'],
    "inet": ["255.255.255.255", "0.0.0.0/0", "::ffff:1.2.3.4", "2001:db8::1/64", "::/0"],
    "cidr": ["0.0.0.0/0", "2001:db8::/32", "255.255.255.255"],
    "macaddr": ["ff:ff:ff:ff:ff:ff", "00:00:00:00:00:00"],
    "bit": ["111"],
    "varbit": ["111111"],
    "int4range": ["(,)", "[-2147483648,2147483647)", "[2147483646,2147483647)"],
    "numrange": ["[NaN,NaN]", "[-Infinity,Infinity]", "[1e-10,12345678901234567890.5)", "[1.0,1.00]"],
    "daterange": ["(-infinity,infinity)", "[0044-03-15 BC,9999-12-31)", "[infinity,infinity]"],
    "tstzrange": ["[-infinity,infinity]", "(,)"],
    "multirange": ["{(,)}", "{[-2147483648,2147483647)}", "{[1,2),[3,4),[5,6)}"],
    "json": ['{"a" : {"b": [1, {"c": null}]}}', '"it\'s"', "1.10", "1e2", " [ ] ", '"\\u00e9"'],
    "enum": ["NULL", "a,b"],
    "enums": ['{"a,b","NULL",NULL}', '{"it\'s"}'],
    "inets": ["{0.0.0.0/0,255.255.255.255,::/0}"],
    "ranges": ['{"(,)","[-2147483648,2147483647)"}'],
    "lsn": ["FFFFFFFF/FFFFFFFF"],
    "xid8": ["18446744073709551615"],
    "macaddr8": ["ff:ff:ff:ff:ff:ff:ff:ff", "00:00:00:00:00:00:00:00"],
    "int8range": ["(,)", "[-9223372036854775808,9223372036854775807)"],
    "tsrange": ["[-infinity,infinity]", "(,)"],
    "nummultirange": ["{[NaN,NaN]}", "{(,)}", "{[1,1],[1.0,1.00]}"],
    "datemultirange": ["{(,)}", "{[-infinity,infinity]}"],
}  # fmt: skip
#: What only expressions of one row have.
HOSTILE: dict[str, list[str]] = {
    "int4": ["2147483647", "-2147483648", " 12 ", "0x1F", "1_000", "1.0", "", "99999999999", "+5"],
    "text": ["it's", '"', "\\", "--", "/*", ";", "$1", "$$", "a, returns=False", "NULL", "\t",
             "日本語", "𝔸", "select 1", "repr('x')", "Scan t", "e\u0301", "ß", "İ", " x ",
             "RECOMPUTED AS A WHOLE", "ALL OF IT", "{", "a" * 300, "_", "\\%", "(", "\u00a0"],
    "bool": ["t", "yes", "off", "1", "maybe", "TRUE", " f "],
    "int8": ["9223372036854775807", "-9223372036854775808", "9223372036854775808", "1e3"],
    "int2": ["32767", "-32768", "32768"],
    "numeric": ["1e-10", "12345678901234567890", ".5", "5.", "1.10", "0.00", "-0", "99999999999999999999.99",
                "NaN", "Infinity", "-Infinity", "1e400", "1e-400", "1e131072", "-1.50e3", "1_000.5", "0x1F"],
    "num": ["99999999.99", "0.005", "-0.005", "100000000", "1e3", "NaN", "Infinity"],
    "float8": ["NaN", "Infinity", "-Infinity", "-0", "1e308", "1e-308", "4.9e-324", "1e400",
               "0.1", "123456789.123456789", "1e15", "1e16", "1e-5", "0.0001"],
    "float4": ["NaN", "3.4e38", "1e-45", "0.1", "16777217", "1e39", "1e6", "1e7"],
    "varchar": ["abcdef", "abcdefg", "it's", "日本"],
    "bpchar": ["abcd  ", "abcde", " a", "é"],
    "date": ["0001-01-01", "4713-01-01 BC", "5874897-12-31", "5874898-01-01", "infinity",
             "-infinity", "2020-02-30", "20200229", "2020-1-2", "epoch", "x"],
    "time": ["24:00:00", "24:00:01", "10:00:60", "00:00:00.0000005", "25:00", "10:30 PM", "13:00 PM",
             "12:00 am", "2020-01-01 10:30", "1030"],
    "timestamp": ["infinity", "-infinity", "epoch", "2020-01-01T00:00:00", "2020-01-01 24:00:00", "2020-13-01",
                  "0001-01-01", "9999-12-31 23:59:59.999999", "0044-03-15 12:00:00 BC", "4713-01-01 BC",
                  "4714-11-24 BC", "294247-01-10", "294276-12-31", "294277-01-01", "2020-01-01 10:30 PM"],
    "timestamptz": ["2020-01-01 00:00:00+05:30", "2020-01-01 00:00:00-15:59", "infinity",
                    "2020-01-01 00:00:00Z", "2020-01-01 00:00:00+16", "epoch", "0044-03-15 00:00:00+01 BC",
                    "10000-01-01 00:00:00-08", "294276-12-31 00:00:00Z", "2020-01-01 10:30 pm +02"],
    "interval": ["30 days", "1:02.5", "-1 day +02:03", "P1Y2M", "1.5 days", "infinity", "1-2", "1 month ago",
                 "178956970 years", "3 days 3 days", "1:60", "-infinity", "24:00", "1 mon -30 days", "720:00", "@ 1 hour", "2147483647 days"],
    "uuid": ["B4B5D0D2-5A1C-4B51-9F0B-6F0D7C2B1A11", "{b4b5d0d25a1c4b519f0b6f0d7c2b1a11}", "x"],
    "bytea": ["abc", "\\x0", "\\xZZ", "a\\000b", "\\\\", "é"],
    "jsonb": ['{"a": 1, "a": 2}', '{"b":1,"a":{"c":[1,2]}}', "1.0", "1e2", '"\\u00e9"', "{a}", "",
              '[1,[2,[3]]]', '"\\u0000"', '"\\ud800"', '"\\ud83d\\ude00"', '[1, "a", {"b": 1.0}]', "-0", '{"a": null}', "1.10", "100000000000000000000"],
    "int4s": ["{1,x}", "{ 1 , 2 }", "1", "{NULL,null}", "{{1,2},{3,4}}", "[2:3]={1,2}", "{1,2"],
    "inet": ["10.0.0.1/33", "10.1", "10.1/16", "10.1/24", "::5", "::1.2.3.4", "1.2.3.4/", "", " 1.2.3.4", "fe80::1/10"],
    "cidr": ["10", "224", "10.0.0.1/8", "192.168.1", "x", "::1/64"],
    "macaddr": ["8:0:2b:1:2:3", "08002b010203", "0800.2b01.0203", "08002b:010203", "x", "08:00:2b:01:02"],
    "bit": ["1", "1111", "x5", "2", "b101", ""],
    "varbit": ["1111111", "xff", "b1", "12"],
    "int4range": ["[5,1]", "[1,2147483647]", "[1,2", "(1,2)", " [ 1 , 2 ) ", "[a,2)", "[1,1)", "", "Empty"],
    "numrange": ["[3,1]", '["1",2)', "[1,2] x", "(1,1]", "[,]", "[1,2,3]"],
    "daterange": ["[2020-01-01,5874897-12-31]", "[2020-13-01,)", "[2021-01-01,2020-01-01]", "[2020-01-01,infinity]"],
    "tstzrange": ["[2020-01-01,x)", '["2020-01-01 10:00","2020-01-02 10:00+02"]', "[2021-01-01,2020-01-01]"],
    "multirange": ["{[1,3),[2,5)}", "{empty,[1,2)}", "{[1,2),}", "[1,2)", "{[5,1]}", "{[1,2)} x", " { [1,2) , [4,5) } "],
    "json": ['{"a": 1, "a" :2}', "{a}", "", "[1,]", '"\\u0000"', '"\\ud800"', "1 2", " 1 ", "[[[]]]", '{"a":1}x', "01", "-"],
    "enum": ["OK", "nothing", " ok", "ok "],
    "enums": ["{nothing}", "{ok", "ok", "{{ok},{sad}}", "{ ok , null}"],
    "inets": ["{10.0.0.1/33}", "{10.0.0.1", "{ 10.0.0.1 }"],
    "ranges": ['{"[5,1]"}', "{[1,2)}", '{"[1,2) "}', '{"[ 1,2]"}'],
    "lsn": ["0", "1/", "G/0", "000000001/0", "0/123456789", " 0/1", "ffffffff/0"],
    "xid8": ["18446744073709551616", "-1", " 7 ", "0x10", "010", "x", "", "1.0"],
    "macaddr8": ["08:00:2b:01:02:03", "08002b0102030405", "0800.2b01.0203.0405", "x", "08:00:2b:01:02:03:04"],
    "int8range": ["[1,9223372036854775807]", "[2,1]", "[1, 2)", "(5,6)"],
    "tsrange": ["[2020-01-01,x)", '["2020-01-01 10:00","2020-01-02")', "[infinity,infinity)", "[2020-01-01 10:00+02,)"],
    "nummultirange": ["{[3,1]}", "{[1,2),[2,3)}", "{(1,1)}", "{[1,2]", "{[a,b]}"],
    "datemultirange": ["{[2020-01-01,2020-01-31],[2020-02-01,2020-02-02)}", "{[2020-13-01,)}", "{(,),[2020-01-01,)}"],
    "texts": ['{"a,b","c\\"d"}', "{a b, c}", '{"{}"}', "{NULL,\"NULL\"}", "{it's}", "{"],
}  # fmt: skip

#: What columns are called, some of them: words of both syntaxes, quotes, signs, letters.
NAMES = ("of", '"AS OF"', '"a""b"', '"a.b"', '"select"', "a$b", '"Ü x"', '"$1"', "\"it's\"", '"(c)"',
         "subscribe", '"Scan t"', "now", '"A"', "date", '"returns=False"', '"--"')  # fmt: skip

_ARRAYS = tuple(kind for kind, written in TYPES.items() if written.endswith("[]"))


def quoted(text: str) -> str:
    """A string literal."""
    return "'" + text.replace("'", "''") + "'"


CREATE_TYPE = f"create type mood as enum ({', '.join(map(quoted, LABELS))})"


def literal(choices: Choices, kind: str, hostile: bool) -> str:
    """A literal of a type, in one of the ways to write it."""
    texts = HOSTILE[kind] if hostile and choices.often(1, 2) else PLAIN[kind]
    text, written = choices.pick(texts), TYPES[kind]
    form = choices.below(6)
    if form == 5:
        return f"null::{written}"
    if kind == "int4" and form < 3 and text.lstrip("-").isdigit():
        return text if text[0] != "-" else f"({text})"
    if kind == "text" and form < 3:
        return quoted(text)
    if form == 3 and kind not in _ARRAYS:
        return f"{written} {quoted(text)}"
    if form == 4:
        return f"cast({quoted(text)} as {written})"
    return f"{quoted(text)}::{written}"


def untyped(choices: Choices, kind: str) -> str:
    """A literal that has the type that its place has."""
    texts = HOSTILE[kind] if choices.often(1, 3) else PLAIN[kind]
    return quoted(choices.pick(texts)) if choices.below(6) else "null"


def value(choices: Choices, kind: str) -> str:
    """A value for a table's column."""
    texts = STRANGE[kind] if choices.often(1, 8) else PLAIN[kind]
    return f"{quoted(choices.pick(texts))}::{TYPES[kind]}"


#: What follows a column of a kind, where it is GENERATED: the expression, and its kind.
GENERATED: dict[str, tuple[tuple[str, str], ...]] = {
    "int4": (("({c} % 7)", "int4"), ("int4range({c} % 9, null)", "int4range")),
    "text": (("upper({c})", "text"), ("length({c})", "int4"), ("coalesce({c}, 'none')", "text")),
    "bool": (("not {c}", "bool"),),
    "numeric": (("round({c}, 1)", "numeric"),),
    "num": (("{c} / 4", "num"),),
    "jsonb": (("{c} -> 'n'", "jsonb"), ("jsonb_typeof({c})", "text")),
    "json": (("{c} ->> 0", "text"), ("json_typeof({c})", "text")),
    "int4range": (("lower({c})", "int4"), ("isempty({c})", "bool"), ("{c} * int4range(0, 4)", "int4range")),
    "daterange": (("upper({c})", "date"),),
    "multirange": (("range_merge({c})", "int4range"),),
    "inet": (("host({c})", "text"), ("network({c})", "cidr"), ("{c} << inet '10.0.0.0/8'", "bool")),
    "varbit": (("length({c})", "int4"),),
    "bit": (("~ {c}", "bit"),),
    "int4s": (("cardinality({c})", "int4"), ("{c} || 1", "int4s")),
    "enum": (("{c} > 'ok'", "bool"), ("greatest({c}, 'ok')", "enum")),
    "xid8": (("{c} > '1'", "bool"),),
    "interval": (("{c} * 2", "interval"),),
}  # fmt: skip


class Table:
    """A table: its columns, what follows from others of them, and whether it has a key."""

    def __init__(self, name: str, columns: list[tuple[str, str]], key: bool) -> None:
        self.name = name
        self.columns = columns
        self.key = key
        self.generated: dict[str, str] = {}

    @property
    def create(self) -> str:
        """CREATE TABLE."""
        parts = [f"{name} {TYPES[kind]}" for name, kind in self.columns]
        for at, (name, _) in enumerate(self.columns):
            if name in self.generated:
                parts[at] += f" generated always as ({self.generated[name]}) stored"
        if self.key:
            parts[0] += " primary key"
        return f"create table {self.name} ({', '.join(parts)})"

    @property
    def written(self) -> list[tuple[str, str]]:
        """The columns that take values, all but the key."""
        return [each for each in self.columns[1:] if each[0] not in self.generated]

    def follow(self, choices: Choices) -> None:
        """One more column, that follows from another one."""
        sources = [each for each in self.written if each[1] in GENERATED]
        if not sources:
            return
        name, kind = choices.pick(sources)
        form, own = choices.pick(GENERATED[kind])
        made = f"g{len(self.generated)}"
        self.columns.append((made, own))
        self.generated[made] = form.format(c=name)

    def row(self, choices: Choices, number: int) -> str:
        """The values of a row."""
        cells = []
        for at, (name, kind) in enumerate(self.columns):
            if self.key and at == 0:
                cells.append(str(number))
            elif name in self.generated:
                cells.append("default")
            elif choices.often(1, 5):
                cells.append("null")
            else:
                cells.append(value(choices, kind))
        return f"({', '.join(cells)})"


def schema(choices: Choices) -> list[Table]:
    """Tables that have every type between them; the first columns are often joined."""
    kinds = list(TYPES)
    tables = []
    for number in range(4):
        own = [("k", "int4")]
        width = 4 + choices.below(6)
        for at in range(width):
            name = NAMES[(number * 4 + at) % len(NAMES)] if choices.often(1, 4) else f"c{at}"
            own.append((name, choices.pick(kinds)))
        tables.append(Table(f"t{number}", own, key=number % 2 == 1))
        for _ in range(choices.below(3)):
            tables[-1].follow(choices)
    whole = [("k", "int4")] + [(f"a{at}", kind) for at, kind in enumerate(kinds)]
    return [*tables, Table("every", whole, key=True)]
