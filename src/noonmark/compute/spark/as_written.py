"""A query as it is written, at one time, by Spark's own operators: the judge of large views.

Law: ``Naive.frame(plan)`` is what the plan means, errors beside rows
(`noonmark.compute.spark.frame`). The plan is the query's own text with its names resolved. How it
is made fast is Spark's business: its optimizer finds the keys of joins and what can be filtered
early. Nothing of the rules and rewrites that maintenance relies on has been there before, with one
exception: Spark has no correlated subqueries as we mean them, so each goes through the domain of
its outer values (`noonmark.sql.rules.domain`), which maintenance takes only where nothing simpler
will do.

    filters, projections      Spark's expressions where there is one, else the meaning row by row
    joins of every kind       Spark's, by the whole condition
    count, sum, min, max      of exact numbers: Spark's
    everything else           the meaning, key by key, of the columns that count

Shared with hydration, and not with ticks: the translation of scalars to Spark's expressions.

Where it runs: the driver plans; rows stay with the executors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as f

from noonmark.compute.kernel.layout import ERROR
from noonmark.compute.plan.infallible import may_have_errors
from noonmark.compute.plan.keys import is_keyed, keyed_inputs
from noonmark.compute.spark import keyed
from noonmark.compute.spark.column import col, constant, named
from noonmark.compute.spark.expression import compile_scalar, is_native
from noonmark.compute.spark.flatmap import flat_mapped
from noonmark.compute.spark.frame import (
    columns,
    empty_frame,
    errors_of,
    local_frame,
    names,
    no_error,
    one,
    renamed,
    rows_of,
    union,
)
from noonmark.compute.spark.linear import filtered, projected
from noonmark.errors import Unsupported
from noonmark.persist.part.run import DIFF
from noonmark.rows import types as t
from noonmark.rows.arrow import to_table
from noonmark.rows.exact import is_exact
from noonmark.rows.spark import spark_name
from noonmark.sql.ir import relation as r
from noonmark.sql.ir.call import AggregateCall
from noonmark.sql.ir.node import Node, rebuild
from noonmark.sql.ir.scalar import (
    TRUE,
    Compare,
    IsDistinct,
    Not,
    Scalar,
    column,
    columns_of,
    conjunction,
    conjuncts,
    map_columns,
    may_fail,
    shift,
)
from noonmark.sql.meaning.relation import evaluate
from noonmark.sql.rules.domain import by_domain
from noonmark.sql.rules.outer import free

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_WHOLE = (t.SmallInt, t.Integer, t.BigInt)
_JOINS = {
    r.JoinKind.INNER: "inner",
    r.JoinKind.LEFT: "left_outer",
    r.JoinKind.RIGHT: "right_outer",
    r.JoinKind.FULL: "full_outer",
    r.JoinKind.SEMI: "left_semi",
    r.JoinKind.ANTI: "left_anti",
}
_EARLY = (r.JoinKind.SEMI, r.JoinKind.ANTI)


def uncorrelated(node: r.Relation) -> r.Relation:
    """The plan without lateral joins, each through the domain of its outer values."""

    def act(child: Any) -> Any:
        if isinstance(child, Scalar):
            return child
        return uncorrelated(child) if isinstance(child, r.Relation) else rebuild(child, act)

    made: r.Relation = rebuild(node, act)
    if not isinstance(made, r.Apply):
        return made
    if free(made.right, made.scope):
        return r.Join(made.kind, made.left, made.right, on=made.on)
    return by_domain(made)


class AsWritten:
    """Compiles relations over the inputs that `read` gives."""

    def __init__(
        self, spark: SparkSession, read: Callable[[r.Scan], DataFrame], *, inputs_fail: bool
    ) -> None:
        self.spark = spark
        self.read = read
        self.inputs_fail = inputs_fail
        self._names: dict[str, DataFrame] = {}

    def fails(self, *nodes: Node) -> bool:
        """Whether there may be errors in the frames of these relations, or of these scalars."""
        return self.inputs_fail or any(map(may_have_errors, nodes))

    def frame(self, node: r.Relation) -> DataFrame:
        """The rows and errors of a relation, in the layout, without times."""
        match node:
            case r.Scan():
                return self.read(node)
            case r.Constant():
                return self._constant(node)
            case r.Get():
                return self._names[node.name]
            case r.Let():
                return self._let(node)
            case r.Filter():
                return self._filter(node)
            case r.Project():
                return projected(node, self.frame(node.input))
            case r.FlatMap():
                return flat_mapped(node, self.frame(node.input))
            case r.Union():
                return union([self.frame(each) for each in node.inputs])
            case r.Join() if self._is_spark(node):
                return self._join(node)
            case r.Aggregate() if _adds_up(node):
                return self._sums(node)
            case r.Recursive() if not r.scans(node) and not _reads_names(node):
                rows = evaluate(node, {})  # it follows from nothing, and so is the same everywhere
                listed = tuple(row for row, count in rows.items() for _ in range(count))
                return self._constant(r.Constant(node.schema, listed))
        return self._by_meaning(node)

    def _let(self, node: r.Let) -> DataFrame:
        before = dict(self._names)
        self._names[node.name] = self.frame(node.value)
        made = self.frame(node.body)
        self._names = before
        return made

    def _constant(self, node: r.Constant) -> DataFrame:
        if not node.rows:
            return empty_frame(self.spark, node.schema)
        table = to_table(list(node.rows), node.columns).rename_columns(names(len(node.schema)))
        rows = keyed.as_updates(table, len(node.rows))
        return local_frame(self.spark, rows, node.schema)

    def _filter(self, node: r.Filter) -> DataFrame:
        frame = self.frame(node.input)
        if self.fails(node.input) or not _is_infallible(node.predicate):
            return filtered(node, frame)
        return frame.where(compile_scalar(node.predicate, columns(len(node.schema))).value)

    # -- joins ------------------------------------------------------------------------------

    def _is_spark(self, node: r.Join) -> bool:
        infallible = all(map(_is_infallible, _parts(node)))
        return node.kind is r.JoinKind.INNER or infallible

    def _join(self, node: r.Join) -> DataFrame:
        left, right = self.frame(node.left), self.frame(node.right)
        fails = self.fails(node.left), self.fails(node.right)
        widths = len(node.left.schema), len(node.right.schema)
        sides = [
            rows_of(frame, may).select(*renamed(width, "c", letter), named(DIFF, f"{letter}diff"))
            for frame, may, width, letter in zip((left, right), fails, widths, "lr", strict=True)
        ]
        row = [*names(widths[0], "l"), *names(widths[1], "r")]
        parts = list(_parts(node))
        infallible = [part for part in parts if _is_infallible(part)]
        condition = compile_scalar(conjunction(infallible), [col(name) for name in row]).value
        both = sides[0].join(sides[1], condition, _JOINS[node.kind])
        early = node.kind in _EARLY
        often = f.coalesce(col("ldiff"), constant(1))
        if not early:
            often = often * f.coalesce(col("rdiff"), constant(1))
        shown = row[: widths[0]] if early else row
        values = (named(name, f"c{at}") for at, name in enumerate(shown))
        made = both.select(*values, no_error(), often.alias(DIFF))
        rest = [part for part in parts if part not in infallible]
        if rest:
            made = filtered(r.Filter(replace(node, keys=(), on=TRUE), conjunction(rest)), made)
        failed = [
            errors_of(frame, node.schema)
            for frame, may in zip((left, right), fails, strict=True)
            if may
        ]
        return union([made, *failed])

    # -- groups -----------------------------------------------------------------------------

    def _sums(self, node: r.Aggregate) -> DataFrame:
        """Counts, sums and ends of exact numbers, which Spark adds up as they are."""
        row = columns(len(node.input.schema))
        frame = self.frame(node.input)
        keys = [compile_scalar(key, row).value.alias(f"k{at}") for at, key in enumerate(node.keys)]
        given = [
            (compile_scalar(call.arguments[0], row).value if call.arguments else f.lit(1)).alias(
                f"a{at}"
            )
            for at, call in enumerate(node.aggregates)
        ]
        source = rows_of(frame, self.fails(node.input)).select(*keys, *given, DIFF)
        folds = [_fold(call, col(f"a{at}")) for at, call in enumerate(node.aggregates)]
        width = len(node.keys)
        grouped = source.groupBy(*(f"k{at}" for at in range(width))).agg(
            *(fold.alias(f"f{at}") for at, fold in enumerate(folds)), f.count(f.lit(1)).alias("n")
        )
        made = grouped.select(
            *renamed(width, "k"),
            *(
                col(f"f{at}").cast(spark_name(call.type)).alias(f"c{width + at}")
                for at, call in enumerate(node.aggregates)
            ),
            no_error(),
            one(),
        )
        if not self.fails(node.input):
            return made
        return union([made, errors_of(frame, node.schema)])

    def _by_meaning(self, node: r.Relation) -> DataFrame:
        """The operator by its definition, key by key."""
        if not is_keyed(node):
            raise Unsupported(f"{type(node).__name__} cannot be judged on Spark")
        if isinstance(node, r.Aggregate):
            node = _narrowed(node)
        parts = keyed_inputs(node)
        if isinstance(node, r.Recursive) and _reads_names(node):
            raise Unsupported("a recursion inside of WITH cannot be judged on Spark")
        frames = [_consolidated(self.frame(part.relation), part.relation) for part in parts]
        fails = self.fails(*(part.relation for part in parts), *(k for p in parts for k in p.key))
        return keyed.recomputed(node, parts, frames, fails=fails)


def _consolidated(frame: DataFrame, relation: r.Relation) -> DataFrame:
    """Equal rows once, with their number, where Spark's equality is that of what is stored."""
    if not all(is_exact(each.type) for each in relation.schema):
        return frame
    row = [*columns(len(relation.schema)), col(ERROR)]
    return frame.groupBy(*row).agg(f.sum(DIFF).alias(DIFF))


def _reads_names(node: r.Recursive) -> bool:
    return any(get.name not in node.names for get in r.gets(node))


def _is_infallible(scalar: Scalar) -> bool:
    """Whether Spark computes a scalar as it is meant, and it has a value on every row."""
    return is_native(scalar) and not may_fail(scalar)


def _parts(node: r.Join) -> Iterator[Scalar]:
    """The conditions of a join, over the columns of both sides."""
    width = len(node.left.schema)
    for key in node.keys:
        right = shift(key.right, width)
        if key.null_equal:
            yield Not(IsDistinct(key.left, right))
        else:
            yield Compare("=", key.left, right)
    yield from conjuncts(node.on)


def _adds_up(node: r.Aggregate) -> bool:
    """Whether Spark's own sums are those of SQL: exact numbers, of which any sum has room."""
    if not all(_is_infallible(key) and is_exact(key.type) for key in node.keys):
        return False
    return all(map(_is_plain, node.aggregates)) and not any(map(may_have_errors, node.aggregates))


def _is_plain(call: AggregateCall) -> bool:
    if call.distinct or call.filter is not None or call.order:
        return False
    name, given = call.entry.name, call.arguments
    if name == "count":
        return all(map(_is_infallible, given)) and len(given) <= 1
    kind = given[0].type if len(given) == 1 else None
    fixed = isinstance(kind, t.Numeric) and not kind.is_plain and not kind.trimmed
    exact = isinstance(kind, _WHOLE) or fixed
    return name in ("sum", "min", "max") and exact and _is_infallible(given[0])


def _fold(call: AggregateCall, value: Column) -> Column:
    name = call.entry.name
    if name == "count":
        return f.coalesce(f.sum(f.when(value.isNotNull(), col(DIFF))), constant(0))
    if name in ("min", "max"):
        return f.min(value) if name == "min" else f.max(value)
    kind = call.arguments[0].type
    scale = kind.stored_scale if isinstance(kind, t.Numeric) else 0
    return f.sum((value * col(DIFF).cast("decimal(18,0)")).cast(f"decimal(38,{scale})"))


def _narrowed(node: r.Aggregate) -> r.Aggregate:
    """The aggregation over the columns that it looks at alone."""
    schema = node.input.schema
    used = sorted({at for part in (*node.keys, *node.aggregates) for at in columns_of(part)})
    if len(used) == len(schema):
        return node
    kept = tuple(column(at, schema.columns[at]) for at in used)
    source = r.Project(node.input, kept, tuple(schema.names[at] for at in used))

    def move(part: Any) -> Any:
        if isinstance(part, Scalar):
            return map_columns(part, lambda ref: replace(ref, index=used.index(ref.index)))
        return rebuild(part, move)

    keys = tuple(move(key) for key in node.keys)
    calls = tuple(move(call) for call in node.aggregates)
    return replace(node, input=source, keys=keys, aggregates=calls)
