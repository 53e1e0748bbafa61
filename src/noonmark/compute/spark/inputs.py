"""The inputs of views: collections at one time, and what goes with them.

A view that reads a view also reads its errors: a relation over something that has no answer has no
answer either.

Where it runs: driver.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from noonmark.compute.kernel.layout import ERROR
from noonmark.compute.plan.definition import VIEW, errors_name
from noonmark.compute.spark.column import null, quoted
from noonmark.compute.spark.frame import no_error, one, union
from noonmark.persist.client import Client
from noonmark.persist.part.part import Part
from noonmark.persist.read.handle import plan_at
from noonmark.persist.read.plan import Query
from noonmark.persist.spark import snapshot_frame
from noonmark.persist.spark.read import frame_of
from noonmark.sql.ir import relation as r
from noonmark.storage.description import description_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def is_view(client: Client, name: str) -> bool:
    """Whether a collection is maintained by a view."""
    found = client.state.collection(name)
    return bool(found.annotation) and description_of(found).kind == VIEW


def inputs_with_errors(client: Client, names: Iterable[str]) -> tuple[str, ...]:
    """The collections, and for views among them the collections of their errors."""
    made: list[str] = []
    for name in names:
        made += [name, errors_name(name)] if is_view(client, name) else [name]
    return tuple(made)


def frame_at(
    spark: SparkSession,
    client: Client,
    as_of: int,
    scan: r.Scan,
    checks: list[Part] | None = None,
    *,
    despite_error: bool = False,
) -> DataFrame:
    """A collection at a time, in the layout; with the errors of a view.

    What of it is not compared with its checksum goes to `checks`, if that is given. Maintenance
    reads it `despite_error`; an answer does not.
    """
    query = Query(as_of, columns=scan.columns.names, despite_error=despite_error)
    plan = plan_at(client, scan.collection, query)
    rows = frame_of(spark, client, plan, checks)
    values = [quoted(name, f"c{at}") for at, name in enumerate(scan.columns.names)]
    frame = rows.select(*values, no_error(), one())
    if is_view(client, scan.collection):
        failed = snapshot_frame(spark, client, errors_name(scan.collection), as_of)
        empty = [null(each.type, f"c{at}") for at, each in enumerate(scan.columns)]
        text = f.concat_ws(" ", "sqlstate", "message").alias(ERROR)
        frame = union([frame, failed.select(*empty, text, one())])
    vars(frame)["_noonmark_source"] = rows  # its parts are kept as long as the frame lives
    return frame
