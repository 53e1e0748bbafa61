# ruff: noqa: E501 - tables of texts are read by line
"""Aggregates and windows over columns of a kind: each has one answer, whatever order rows come in.

An aggregate that depends on an order has one; floats are summed only where the sum is exact.
"""

from __future__ import annotations

SUMMED = ("int4", "int8", "int2", "num", "numeric", "interval", "float8", "float4")
SPANS = ("int4range", "numrange", "daterange", "tstzrange", "multirange", "int8range", "tsrange",
         "nummultirange", "datemultirange")  # fmt: skip
#: PostgreSQL has no min and max of these.
WITHOUT_EXTREMES = ("bool", "uuid", "cidr", "macaddr", "macaddr8", "bit", "varbit", *SPANS)
WHOLE = ("int4", "int2", "int8")
_FRAME_ENDS = (
    "", " rows between unbounded preceding and current row", " rows between 1 preceding and 1 following",
    " rows between current row and unbounded following exclude current row",
    " range between unbounded preceding and current row",
    " range between current row and unbounded following exclude group",
    " groups between 1 preceding and current row",
    " groups between 1 preceding and 1 following exclude ties",
    " rows between 2 following and 3 following", " rows 1 preceding",
    " rows between unbounded preceding and unbounded following",
    " rows between 3 preceding and 2 preceding",
)  # fmt: skip
FRAMES = _FRAME_ENDS
#: Frames by the value of the one column of the order, by its kind.
RANGES = {
    "int4": ("range between 1 preceding and 1 following", "range between 2 preceding and current row"),
    "int8": ("range between 1 preceding and 3 following",),
    "int2": ("range between current row and 1 following",),
    "num": ("range between 1.5 preceding and 0.25 following",),
    "numeric": ("range between 2 preceding and 1 following exclude ties",),
    "float8": ("range between 0.5 preceding and 1 following",),
    "date": ("range between '1 mon' preceding and '1 year' following",),
    "timestamp": ("range between interval '30 days' preceding and current row",),
    "timestamptz": ("range between interval '1 day' preceding and interval '1 day' following",),
    "interval": ("range between interval '1 day' preceding and interval '1 mon' following",),
    "time": ("range between interval '1 hour' preceding and interval '10 hours' following",),
}  # fmt: skip

Call = tuple[str, str]


def calls(name: str, kind: str, condition: str, by: str) -> list[Call]:
    """Aggregates of a column, some in the order of another, and the kinds of what they give."""
    # Rows that are equal in both orders are equal in what is gathered.
    order = f"{by} desc nulls last, {name}::text, {by}::text"
    found = [
        ("count(*)", "int8"), (f"count({name})", "int8"), (f"count(distinct {name})", "int8"),
        (f"string_agg({name}::text, ',' order by {name}::text)", "text"),
        (f"string_agg(distinct {name}::text, '/' order by {name}::text)", "text"),
        (f"array_agg({name} order by {name} desc, {name}::text)::text", "text"),
        (f"array_agg(distinct {name} order by {name})::text", "text"),
        (f"array_agg({name}::text order by {name}::text nulls first)", "texts"),
        (f"jsonb_agg({name} order by {name}, {name}::text)", "jsonb"),
        (f"jsonb_agg({name} order by {name}::text desc nulls last)", "jsonb"),
        (f"jsonb_object_agg(coalesce({name}::text, ''), {name} order by {name}::text)", "jsonb"),
        (f"bool_and({condition})", "bool"), (f"bool_or({condition})", "bool"),
        (f"string_agg({name}::text, '-' order by {by}, {name}::text nulls first)", "text"),
        (f"array_agg({name} order by {order})::text", "text"),
        (f"(array_agg({name} order by {order}))[1]::text", "text"),
        (f"json_agg({name} order by {order})", "json"),
        (f"jsonb_agg({by} order by {condition} nulls first, {by}::text)", "jsonb"),
        (f"json_object_agg(coalesce({name}::text, ''), {name} order by {name}::text)", "json"),
        (f"percentile_disc(0.5) within group (order by {name})", kind),
        (f"percentile_disc(array[0.1, 1]) within group (order by {name} desc)::text", "text"),
        (f"mode() within group (order by {name})", kind),
        (f"min({name}::text)", "text"),
        (f"every({condition})", "bool"), (f"count(distinct ({name}, {condition}))", "int8"),
    ]  # fmt: skip
    if kind not in WITHOUT_EXTREMES:
        found += [(f"min({name})", kind), (f"max({name})", kind), (f"max(distinct {name})", kind)]
    if kind in SUMMED:
        # Of fractions the sum depends on the order in PostgreSQL: whole floats have one sum.
        summed = f"trunc({name})" if kind in ("float8", "float4") else name
        found += [(f"sum({summed})::text", "text"), (f"avg({summed})::text", "text"),
                  (f"sum(distinct {summed})::text", "text")]  # fmt: skip
    if kind in ("float8", "interval", "int4"):
        found.append((f"(percentile_cont(0.25) within group (order by {name} desc))::text", "text"))
    if kind in (*WHOLE, "num", "numeric"):
        found += [(f"{f}({name})::text", "text")
                  for f in ("stddev", "var_pop", "variance", "stddev_pop", "var_samp")]  # fmt: skip
        found.append((f"regr_count({name}, {name})", "int8"))
    if kind == "int4":
        found += [(f"rank(1) within group (order by {name})", "int8"),
                  (f"dense_rank(2) within group (order by {name} desc)", "int8")]  # fmt: skip
    if kind in SPANS:
        found += [(f"range_agg({name})::text", "text"), (f"range_intersect_agg({name})", kind)]
    if kind == "enum":
        found += [(f"max(enum_range({name}))", "enums"), (f"min(array[{name}])", "enums")]
    if kind in (*WHOLE, "bit"):
        found += [(f"{f}({name})", kind) for f in ("bit_or", "bit_xor", "bit_and")]
    return found


def windows(a: str, kind: str, b: str, other: str, condition: str) -> list[Call]:
    """Window functions over two columns, and the kinds of what they give."""
    found = [
        ("row_number()", "int8"), ("rank()", "int8"), ("dense_rank()", "int8"),
        ("ntile(3)", "int4"), (f"lag({a})", kind), (f"lead({b}, 2)", other), (f"lag({a}, 1, {a})", kind),
        (f"first_value({b})", other), (f"last_value({a})", kind), (f"nth_value({b}, 2)", other),
        ("percent_rank()", "float8"), ("cume_dist()", "float8"), (f"count({b})", "int8"),
        (f"count(*) filter (where {condition})", "int8"), (f"bool_or({condition})", "bool"),
        (f"string_agg({b}::text, ',')", "text"), (f"array_agg({b}::text)", "texts"),
    ]  # fmt: skip
    if kind not in WITHOUT_EXTREMES:
        found += [(f"max({a})", kind), (f"min({a})", kind)]
    if kind in SUMMED and kind not in ("float8", "float4"):
        found += [(f"sum({a})", "text"), (f"avg({a})", "text")]
    return found
