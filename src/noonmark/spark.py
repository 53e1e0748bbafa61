"""The data source "noonmark" of Spark, whole: it reads, it streams, it writes.

    import noonmark                                       # before or after the session is made

    spark.read.format("noonmark").option("location", url).load("v")
    df.write.format("noonmark").option("location", url).mode("append").save("t")

Where Noonmark is installed for Spark's workers, Spark finds the source by itself, and nothing has
to be imported. Workers are another Python than this one where a virtual environment is used without
being activated; so an import of `noonmark` says which Python it is: to a session that is there, and
to one that is made later, unless `PYSPARK_PYTHON` says otherwise.

`noonmark.persist.spark.source` reads, `noonmark.spark_write` writes.

Where it runs: driver, and Python processes beside it.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from noonmark.persist.client import Client
from noonmark.persist.spark.source import BatchReader, NoonmarkSource
from noonmark.persist.spark.target import Target
from noonmark.spark_write import Destination, TableWriter

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


class Source(NoonmarkSource):
    """See the module."""

    def reader(self, schema: StructType) -> BatchReader:
        """A reader that knows of the errors of views."""
        return Reader(Target.of(dict(self.options)), tuple(schema.names))

    def writer(self, schema: StructType, overwrite: bool) -> TableWriter:
        """A writer of one commit."""
        destination = Destination.of(dict(self.options), overwrite=overwrite)
        return TableWriter(destination, tuple(schema.names))


class Reader(BatchReader):
    """Refuses a time at which a view has an error instead of rows, with that error."""

    def check(self, client: Client, at: int) -> None:
        """See `BatchReader.check`."""
        from noonmark.contents import check_errors  # door: half of the start of a worker

        check_errors(client, self._target.name, at)


def register_active() -> None:
    """Make the source known to the session of this thread, if there is one."""
    session = SparkSession.getActiveSession()
    if session is not None:
        register(session)


def register(spark: SparkSession) -> None:
    """Make the source known to a session: with this Python, and with filters pushed down."""
    context = spark.sparkContext
    before, context.pythonExec = context.pythonExec, sys.executable
    try:
        spark.dataSource.register(Source)
    finally:
        context.pythonExec = before
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
