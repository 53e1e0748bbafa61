"""The operators: what is done with a relation because of its kind is asked of this table.

Law: every class of relations is here (`tests/test_tidy.py`), and no other place in compute tells
relations apart by their class, but Spark's own forms of the same operators and the judge of large
views, which shares nothing with what it judges.
"""

from __future__ import annotations

from typing import Any

from noonmark.compute.operator.aggregate import Aggregate
from noonmark.compute.operator.base import Operator
from noonmark.compute.operator.constant import Constant
from noonmark.compute.operator.distinct import Distinct
from noonmark.compute.operator.except_ import Except
from noonmark.compute.operator.filter import Filter
from noonmark.compute.operator.flat_map import FlatMap
from noonmark.compute.operator.intersect import Intersect
from noonmark.compute.operator.join import Join
from noonmark.compute.operator.let import Get, Let
from noonmark.compute.operator.project import Project
from noonmark.compute.operator.recursive import Recursive
from noonmark.compute.operator.scan import Scan
from noonmark.compute.operator.top_k import TopK
from noonmark.compute.operator.union import Union
from noonmark.compute.operator.window import Window
from noonmark.sql.ir import relation as r

OPERATORS: dict[type[r.Relation], Operator[Any]] = {
    r.Scan: Scan(),
    r.Constant: Constant(),
    r.Get: Get(),
    r.Let: Let(),
    r.Filter: Filter(),
    r.Project: Project(),
    r.FlatMap: FlatMap(),
    r.Union: Union(),
    r.Join: Join(),
    r.Aggregate: Aggregate(),
    r.Distinct: Distinct(),
    r.Intersect: Intersect(),
    r.Except: Except(),
    r.TopK: TopK(),
    r.Window: Window(),
    r.Recursive: Recursive(),
    r.Apply: Operator(),  # the rules leave none
}
