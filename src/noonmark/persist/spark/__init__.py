"""Collections in Spark: the front door.

    snapshot_frame   a collection at one time, as a DataFrame of plain rows
    changes_frame    its updates over [lower, upper), with `_time` and `_diff`
    write_frame      a DataFrame of updates, stored by executors and committed once by the driver
    stage_frame      the same without the commit, for a commit over many collections
    compact_on_spark a collection rewritten as one run by executors
    SparkCompactor   what `Upkeep` gives its big compactions to
    NoonmarkSource   the readers of ``format("noonmark")`` (`noonmark.spark` is all of it)
    typed_errors     errors of executors, as the errors that they were there

Law (exact): the rows of `snapshot_frame` at a time are those of `ReadHandle.snapshot`, those of
`changes_frame` the updates of `ReadHandle.listen`; every byte that they come from was compared
with its checksum in the job that read it.
Law (all or nothing): a `write_frame` whose future resolved is one commit of every row of its
DataFrame; one that failed, wherever, changed nothing.

Where it runs: driver. What executors do is in `noonmark.persist.task`.
"""

from noonmark.persist.spark.compact import SparkCompactor, compact_on_spark
from noonmark.persist.spark.errors import typed_errors
from noonmark.persist.spark.read import changes_frame, snapshot_frame
from noonmark.persist.spark.source import NoonmarkSource
from noonmark.persist.spark.write import Staged, stage_frame, write_frame

__all__ = [
    "NoonmarkSource",
    "SparkCompactor",
    "Staged",
    "changes_frame",
    "compact_on_spark",
    "snapshot_frame",
    "stage_frame",
    "typed_errors",
    "write_frame",
]
