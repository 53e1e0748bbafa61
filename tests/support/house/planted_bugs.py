"""Figure C10: bugs planted in the product, and the tests of `make test` that find each.

A bug is a change of a few words in one file of a copy of the source; the tree that is worked on is
never touched. It is caught if one of its tests fails. A bug whose words are not found exactly once
is an error: the code has moved on, and the bug has to.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
SOURCE = ROOT / "src" / "noonmark"
#: A test that hangs on a bug has found it.
TIMEOUT_S = 400

_JUDGE = ("tests/property/test_judge.py",)
_TEMPORAL = ("tests/property/test_views_walk.py", "-k", "temporal")


@dataclass(frozen=True)
class Bug:
    """One planted bug.

    Attributes:
        name: what is wrong, in a few words.
        file: under src/noonmark.
        old: what stands there, once.
        new: what is planted.
        tests: those that must find it.
    """

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...] = _JUDGE

    def text(self) -> str:
        """The file with the bug in it.

        Raises:
            ValueError: its words are not there, or not once.
        """
        before = (SOURCE / self.file).read_text()
        found = before.count(self.old)
        if found != 1:
            raise ValueError(f"{self.name}: {self.old!r} is {found} times in {self.file}")
        return before.replace(self.old, self.new)


def plant(bug: Bug, folder: Path) -> Path:
    """A copy of the source with a bug in it; what goes into PYTHONPATH."""
    copy = folder / "src"
    shutil.copytree(SOURCE, copy / "noonmark", ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "noonmark" / bug.file).write_text(bug.text())
    return copy


def passes(tests: Iterable[str], source: Path | None = None) -> bool:
    """Whether the tests pass, with the source as it is or another one.

    Raises:
        RuntimeError: pytest did not run them.
    """
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    environment = dict(os.environ)
    if source is not None:
        environment["PYTHONPATH"] = str(source)
        environment["PYTHONDONTWRITEBYTECODE"] = "1"
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
            timeout=TIMEOUT_S,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return False
    if done.returncode not in (0, 1):
        raise RuntimeError(f"pytest did not run: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.returncode == 0


# --- the rules of sql/rules: one in each

_RULES = (
    Bug(
        "decorrelate: a count over no rows is NULL",
        "sql/rules/decorrelate.py",
        "made.append(value if empty is None else s.Coalesce((value, s.Literal(call.type, empty))))",
        "made.append(value)",
    ),
    Bug(
        "domain: rows whose outer value is NULL are lost",
        "sql/rules/domain.py",
        "keys = tuple(r.JoinKey(left[at], right[n], left[at].nullable) for n, at in",
        "keys = tuple(r.JoinKey(left[at], right[n], False) for n, at in",
    ),
    Bug(
        "fold: NOT a < b is a > b",
        "sql/rules/fold.py",
        '_OPPOSITE = {"=": "<>", "<>": "=", "<": ">=",',
        '_OPPOSITE = {"=": "<>", "<>": "=", "<": ">",',
    ),
    Bug(
        "stable: what is read by the session's rules is known while planning",
        "sql/rules/stable.py",
        "        return isinstance(target, _READ) or _is_range(target)\n",
        "        return False\n",
        ("tests/sql/test_postgres_cases.py",),
    ),
    Bug(
        "imply: an alternative that says nothing of a side is left out",
        "sql/rules/imply.py",
        "        if not own:\n            return None\n",
        "        if not own:\n            continue\n",
    ),
    Bug(
        "inline: a value stands for every name",
        "sql/rules/inline.py",
        "return value if isinstance(node, Get) and node.name == name else",
        "return value if isinstance(node, Get) else",
    ),
    Bug(
        "join_keys: IS NOT DISTINCT FROM is =",
        "sql/rules/join_keys.py",
        "return JoinKey(left, right, null_equal and (left.nullable or right.nullable))",
        "return JoinKey(left, right, False)",
    ),
    Bug(
        "merge: of two filters the second remains",
        "sql/rules/merge.py",
        "And((*conjuncts(first), *conjuncts(second)))",
        "And((*conjuncts(second),))",
    ),
    Bug(
        "order_joins: conditions that are ready later are lost",
        "sql/rules/order_joins.py",
        "early = [c for c in early if c not in ready]",
        "early = []",
    ),
    Bug(
        "outer: a row further out is taken for the next one",
        "sql/rules/outer.py",
        "if isinstance(node, OuterRef) and node.scope == scope:\n            return",
        "if isinstance(node, OuterRef):\n            return",
    ),
    Bug(
        "prune: DISTINCT without the columns that nobody shows",
        "sql/rules/prune.py",
        "    r.Filter: _filter,\n",
        "    r.Filter: _filter,\n"
        "    r.Distinct: lambda each, needed, run: (\n"
        "        lambda made: (r.Distinct(made[0]), made[1])\n"
        "    )(run.narrow(each.input, needed)),\n",
    ),
    Bug(
        "pull: the conditions of the subquery itself are lost",
        "sql/rules/pull.py",
        "return Pulled(filtered(below.relation, own), below.conditions + handed, below.places)",
        "return Pulled(below.relation, below.conditions + handed, below.places)",
    ),
    Bug(
        "push_filter: below the left side of a left join",
        "sql/rules/push_filter.py",
        "if join.kind in (r.JoinKind.INNER, r.JoinKind.RIGHT, r.JoinKind.SEMI):",
        "if join.kind in (r.JoinKind.INNER, r.JoinKind.RIGHT, r.JoinKind.LEFT, r.JoinKind.SEMI):",
    ),
    Bug(
        "push_filter: below a top-k by any column",
        "sql/rules/push_filter.py",
        "_split(parts, _partition_columns(inner.partition))\n    moving, rest = (",
        "_split(parts, set(range(len(inner.schema))))\n    moving, rest = (",
    ),
    Bug(
        "rewrite: of several conditions the first remains",
        "sql/rules/rewrite.py",
        "return Filter(relation, conjunction(list(parts))) if parts else relation",
        "return Filter(relation, conjunction(list(parts)[:1])) if parts else relation",
    ),
    Bug(
        "temporal: mz_now() = e is mz_now() >= e",
        "sql/rules/temporal.py",
        'for each in (">=", "<=") if op == "=" else (op,):',
        'for each in (">=",) if op == "=" else (op,):',
    ),
)

# --- the rewrites of compute, and what is named after plans

_REWRITES = (
    Bug(
        "apart: the group of NULL is lost between sums and ends",
        "compute/plan/reductions.py",
        "keys = [r.JoinKey(column(at, a), column(at, b), True)",
        "keys = [r.JoinKey(column(at, a), column(at, b), False)",
    ),
    Bug(
        "inlined: names inside of what a name stands for stay",
        "compute/plan/definition.py",
        "return inlined(node.body, {**bound, node.name: inlined(node.value, bound)})",
        "return inlined(node.body, {**bound, node.name: node.value})",
    ),
    Bug(
        "known: a row of a recursion that is there twice is there once",
        "compute/plan/definition.py",
        "tuple(row for row, n in rows.items() for _ in range(n))",
        "tuple(row for row, n in rows.items())",
    ),
    Bug(
        "switch: what switches is sought in the wrong order",
        "compute/plan/range_delta.py",
        'descending=op in (">", ">="))',
        "descending=False)",
        ("tests/property/test_range_delta.py",),
    ),
    Bug(
        "digest of an arrangement: of a part of the plan",
        "compute/plan/arrangement.py",
        "bytes([STORED_VERSION, kind]) + encode(self.relation)",
        "bytes([STORED_VERSION, kind]) + encode(self.relation)[:64]",
        ("tests/property/test_views_shared.py",),
    ),
    Bug(
        "digest of an arrangement: of whatever kind it is",
        "compute/plan/arrangement.py",
        "bytes([STORED_VERSION, kind]) + encode(self.relation)",
        "bytes([STORED_VERSION]) + encode(self.relation)",
        ("tests/sql/test_plan_encoding.py",),
    ),
    Bug(
        "encoding: -0 is 0",
        "sql/ir/encoding.py",
        'struct.pack(">d", math.nan if math.isnan(number) else number)',
        'struct.pack(">d", math.nan if math.isnan(number) else number + 0.0)',
        ("tests/sql/test_plan_encoding.py",),
    ),
    Bug(
        "literals are equal as Python says",
        "sql/ir/scalar.py",
        "identity(self.value) == identity(other.value)",
        "self.value == other.value",
        ("tests/sql/test_plan_encoding.py",),
    ),
    Bug(
        "adoption: what a view lacks begins one time too late",
        "compute/view/adoption.py",
        "as_of = upper if upper == owned.first_time else upper - 1",
        "as_of = upper",
        ("tests/location/test_views_taken_up.py", "-m", "not spark"),
    ),
    Bug(
        "maintenance: no step reads all",
        "compute/plan/maintenance.py",
        "return not self.step.key and self.switch is None and not is_one_row(self.leaf)",
        "return False",
        ("tests/property/test_maintenance.py",),
    ),
    Bug(
        "judge: what is missing is no difference",
        "sql/meaning/judge.py",
        "for row in {**stored, **wanted}:",
        "for row in stored:",
    ),
)

# --- kernels

_KERNELS = (
    Bug(
        "accumulate: a group without rows stays",
        "compute/incremental/accumulate.py",
        "groups.there[which] = True if always else groups.values[0][which] != 0",
        "groups.there[which] = True",
    ),
    Bug(
        "finish: the sum of no values is 0",
        "compute/kernel/finish.py",
        "there = counts.to_numpy() != 0",
        "there = counts.to_numpy() >= 0",
    ),
    Bug(
        "first: OFFSET does not count",
        "compute/plan/first.py",
        "return node.offset + node.limit if",
        "return node.limit if",
        ("tests/property/test_delta_first.py", *_JUDGE),
    ),
    Bug(
        "index: NULL does not find NULL",
        "compute/kernel/index.py",
        "            equal = equal | nulls\n",
        "            equal = equal & ~nulls\n",
    ),
    Bug(
        "switched: rows that are in all but one range are left out",
        "compute/incremental/range_delta.py",
        "if 0 < among < len(ranges):",
        "if 0 < among < len(ranges) - 1:",
        ("tests/property/test_range_delta.py",),
    ),
    Bug(
        "temporal kernel: a row that comes after its end is there until it",
        "compute/incremental/temporal.py",
        "there = np.flatnonzero(rows.time < turns)",
        "there = np.arange(len(turns))",
        _TEMPORAL,
    ),
    Bug(
        "temporal kernel: a row goes one time too late",
        "compute/incremental/temporal.py",
        "made += [rows, _before(Rows(rows.columns, turns, -rows.diff), upper)]",
        "made += [rows, _before(Rows(rows.columns, turns + 1, -rows.diff), upper)]",
        _TEMPORAL,
    ),
    Bug(
        "large numbers: the middle term of a square counts half",
        "compute/kernel/large_number.py",
        "(high * low, 2 * shift + _HALF + 1),",
        "(high * low, 2 * shift + _HALF),",
        ("tests/property/test_accumulators.py",),
    ),
    Bug(
        "average: is cut off, not rounded",
        "compute/kernel/average.py",
        "quotients = (2 * above + sizes[at]) // (2 * sizes[at].astype(object))",
        "quotients = above // sizes[at].astype(object)",
        ("tests/property/test_delta_average.py",),
    ),
)

# --- bindings, holds, sinks, reads

_BORDERS = (
    Bug(
        "hold: an input is let go up to the end of the tick",
        "compute/view/owned.py",
        "frontier = Antichain.of(max(last, self.first_time))",
        "frontier = Antichain.of(upper - 1)",
        ("tests/property/test_views_shared.py", "-m", "not spark"),
    ),
    Bug(
        "hold: since does not wait for readers",
        "persist/log/on_hold.py",
        "since = functools.reduce(Antichain.meet, readers, collection.allowed.meet(upper))",
        "since = collection.allowed.meet(upper)",
        ("tests/property/test_views_shared.py", "-m", "not spark"),
    ),
    Bug(
        "holds of two views have one name",
        "compute/plan/naming.py",
        "{view.replace('%', '%25').replace('/', '%2F')}",
        "{view}",
        ("tests/test_doctests.py",),
    ),
    Bug(
        "binding: a position inside of a commit record",
        "source/impl/postgres/position.py",
        "    if flushed >= end:\n        return Position(end)\n    try:",
        "    if flushed >= 0:\n        return Position(flushed)\n    try:",
        ("tests/integration/test_source_postgres_positions.py",),
    ),
    Bug(
        "binding: an offset at the end of a step belongs to it",
        "remap/lookup.py",
        'np.searchsorted(self.uppers, offsets, side="right")',
        'np.searchsorted(self.uppers, offsets, side="left")',
        ("tests/property/test_reclock_lookup.py",),
    ),
    Bug(
        "binding: the source may go back",
        "remap/mint.py",
        "if not probe.at_or_beyond(remap.latest):",
        "if probe.is_empty() and not probe.at_or_beyond(remap.latest):",
        ("tests/property/test_reclock_laws.py",),
    ),
    Bug(
        "resumption of a source: one time too far",
        "remap/resume.py",
        "max(since, end - 1)",
        "max(since, end)",
        ("tests/property/test_reclock_laws.py",),
    ),
    Bug(
        "resumption of a sink: after the first time that is not sent",
        "sink/run.py",
        "read.open_listen(self.frontier - 1, ",
        "read.open_listen(self.frontier, ",
        ("tests/property/test_sink_resumes.py",),
    ),
    Bug(
        "a strict read is not registered",
        "adapter/peek/reads.py",
        "            await self._register(question, choice.time)\n",
        "            pass\n",
        ("tests/adapter/test_strict.py", "-k", "not_before_one_that_ended"),
    ),
    Bug(
        "oracle: an applied write is not read",
        "oracle/memory.py",
        "self._read = max(self._read, time)",
        "self._read = max(self._read, time - 1)",
        ("tests/conformance/test_oracle.py", "-k", "laws or applied"),
    ),
)

_READS = ("tests/property/test_kernels.py",)
_COLUMNS = (
    Bug(
        "kernels, join: NULL equals NULL",
        "compute/contents/join.py",
        "if not key.null_equal and array.null_count:",
        "if key.null_equal and array.null_count:",
        _READS,
    ),
    Bug(
        "kernels, group: DISTINCT counts every row",
        "compute/contents/group.py",
        "_, firsts = group_ids([pa.array(given.ids), values], len(values))",
        "firsts = np.arange(len(values))",
        _READS,
    ),
    Bug(
        "kernels, order: NULLS FIRST is forgotten where most rows are left out",
        "compute/contents/order.py",
        "near = pc.fill_null(near, first.nulls_first)",
        "near = pc.fill_null(near, False)",
        _READS,
    ),
    Bug(
        "kernels, contents: a filter keeps what is not TRUE",
        "compute/operator/filter.py",
        "return rows.take(kept(node.predicate, rows, asked.errors))",
        "kept(node.predicate, rows, asked.errors)\n        return rows",
        _READS,
    ),
    Bug(
        "kernels, moments: weeks begin on Sunday",
        "compute/scalar/moments.py",
        "days = (micros // _DAY + 3) // 7 * 7 - 3",
        "days = (micros // _DAY + 4) // 7 * 7 - 4",
        ("tests/conformance/test_scalars.py",),
    ),
    Bug(
        "kernels, floats: NaN is below every number",
        "compute/scalar/floats.py",
        "made = np.where(np.isnan(values), _ALL_BUT_SIGN, made)",
        "made = np.where(np.isnan(values), -_ALL_BUT_SIGN, made)",
        ("tests/conformance/test_scalars.py",),
    ),
)

BUGS = (*_RULES, *_REWRITES, *_KERNELS, *_COLUMNS, *_BORDERS)
#: Whose tests take a second or two: those are planted in every run of the tests.
QUICK = (
    "maintenance: no step reads all",
    "binding: an offset at the end of a step belongs to it",
)
