"""What of sqlglot's words and trees is PostgreSQL's, and read by the planner.

sqlglot reads the SQL of thirty databases at once. Words of the others are names here. What is no
SQL in PostgreSQL is refused before (`sql/gate.py`); what is, and sqlglot reads, need not be read by
the planner: TABLESAMPLE, SEARCH, CYCLE. A part of a tree that nobody reads is worse than an error:
the statement is answered as if the part were not there. So:

Law: every part of every node of a statement that a client sends is in `PARTS`; a tree with another
one is refused where it is read, before anybody can overlook it. A node that is not in `PARTS` is
nobody's, and the planner refuses it by its name.
"""

from __future__ import annotations

from sqlglot import exp

from noonmark.errors import InvalidSyntax, Unsupported

_WORDS = """
    ANTI APPLY ASOF AUTOINCREMENT AUTO_INCREMENT BIGDECIMAL BIGNUM BIGNUMERIC BLOB BYTE CLOB
    DATETIME DECFLOAT DECIMAL128 DECIMAL256 DECIMAL32 DECIMAL64 DIV FILE FIXED GEOGRAPHY GEOMETRY
    GLOB HSTORE HUGEINT INT1 INT128 INT16 INT256 INT32 INT64 KILL LIST LONG LONGBLOB LONGTEXT
    LONGVARCHAR MAP MEDIUMBLOB MEDIUMINT MEDIUMTEXT NAMESPACE NULLABLE NUMBER NVARCHAR NVARCHAR2
    OPTIMIZE OVERWRITE PARTITIONED_BY PERCENT PIVOT PRAGMA QUALIFY REGEXP RLIKE SEMI SETTINGS SHORT
    STR STRAIGHT_JOIN STRUCT TIMESTAMPLTZ TIMESTAMPNTZ TIMESTAMP_LTZ TIMESTAMP_NTZ TIME_NS TINYBLOB
    TINYINT TINYTEXT UHUGEINT UINT UINT128 UINT256 UNCACHE UNPIVOT USE VARBINARY VARCHAR2 VARIANT
    VECTOR XOR
"""
_PHRASES = ("CONNECT BY", "DISTRIBUTE BY", "PARTITIONED BY", "SORT BY", "CLUSTER BY")
#: Words that begin, join or name something in other dialects; here they are names like any other.
FOREIGN_WORDS = frozenset((*_WORDS.split(), *_PHRASES))
_TEMPLATES = ("%}", "+%}", "+}}", "-%}", "-}}", "{%", "{%+", "{%-", "{{+", "{{-")
#: Signs that are no operators in PostgreSQL, or other ones.
FOREIGN_SIGNS = frozenset(("==", "<=>", "?::", "??", "|>", *_TEMPLATES))
#: What no text of PostgreSQL has outside of strings and names.
STRANGE = frozenset("{}`\\")

_OF_QUERY = ("with_", "order", "limit", "offset", "locks")
_TWO = ("this", "expression")
PARTS: dict[type[exp.Expr], frozenset[str]] = {
    kind: frozenset(parts)
    for kind, parts in (
        (exp.Alias, ("this", "alias")),
        (exp.Anonymous, ("this", "expressions")),
        (exp.Array, ("expressions", "value_constructor")),
        (exp.ArrayOverlaps, _TWO),
        (exp.BitwiseAnd, _TWO),
        (exp.BitwiseOr, _TWO),
        (exp.BitwiseXor, _TWO),
        (exp.Bracket, ("this", "expressions")),
        (exp.CTE, ("this", "alias", "materialized")),
        (exp.Case, ("this", "ifs", "default")),
        (exp.Cast, ("this", "to")),
        (exp.Column, ("this", "table", "db", "catalog")),
        (exp.Cube, ("expressions",)),
        (exp.DPipe, _TWO),
        (exp.DataTypeParam, ("this",)),
        (exp.Delete, ("this", "using", "where", "returning", "with_")),
        (exp.Distinct, ("expressions", "on")),
        (exp.Except, ("this", "expression", "distinct", *_OF_QUERY)),
        (exp.Exists, ("this",)),
        (exp.Extract, _TWO),
        (exp.Fetch, ("direction", "count", "limit_options")),
        (exp.Filter, _TWO),
        (exp.From, ("this",)),
        (exp.Group, ("expressions", "all")),
        (exp.GroupingSets, ("expressions",)),
        (exp.Having, ("this",)),
        (exp.Identifier, ("this", "quoted")),
        (exp.If, ("this", "true", "false")),
        (exp.In, ("this", "expressions", "query")),
        (exp.Intersect, ("this", "expression", "distinct", *_OF_QUERY)),
        (exp.Join, ("this", "kind", "side", "method", "on", "using")),
        (exp.Lateral, ("this", "alias", "ordinality")),
        (exp.Limit, ("expression",)),
        (exp.LimitOptions, ("rows", "with_ties")),
        (exp.Offset, ("expression",)),
        (exp.Order, ("this", "expressions")),
        (exp.Ordered, ("this", "desc", "nulls_first")),
        (exp.Returning, ("expressions",)),
        (exp.Rollup, ("expressions",)),
        (exp.Slice, _TWO),
        (exp.Star, ()),
        (exp.Subquery, ("this", "alias", "joins", *_OF_QUERY)),
        (exp.Substring, ("this", "start", "length")),
        (exp.TableAlias, ("this", "columns")),
        (exp.Trim, ("this", "expression", "position")),
        (exp.Union, ("this", "expression", "distinct", *_OF_QUERY)),
        (exp.Values, ("expressions", "alias", "joins", *_OF_QUERY)),
        (exp.Window, ("this", "partition_by", "order", "spec", "alias", "over")),
        (exp.With, ("expressions", "recursive")),
        (exp.WithinGroup, _TWO),
    )
}


#: Parts that PostgreSQL has, and nobody here reads.
_LACKING = frozenset(("search", "cycle", "sample"))


def fault(node: exp.Expr) -> InvalidSyntax | Unsupported | None:
    """What is wrong with a node: a part that nobody reads."""
    known = PARTS.get(type(node))
    if known is None:
        return None
    for name, part in node.args.items():
        if not part or name in known:
            continue
        what, where = name.strip("_").upper().replace("_", " "), type(node).__name__.upper()
        if name in _LACKING:
            return Unsupported(f"{what} behind {where} is not supported")
        return InvalidSyntax(f"syntax error: {where} has no {what}")
    return None
