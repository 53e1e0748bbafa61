"""Noonmark: SQL views over changing data, exact at every time, maintained on Spark.

    import noonmark

    with noonmark.open("data") as db:
        db.execute("create materialized view v as select ...")
        db.sql("select * from v").to_arrow()

`noonmark.persist`, `noonmark.storage` and `noonmark.compute` are the layers below, with APIs of
their own.
"""

from __future__ import annotations

import os as _os
import sys as _sys
import typing as _typing

if _typing.TYPE_CHECKING:
    from noonmark.contents import Contents as _Contents
    from noonmark.embedded.database import Embedded as _Embedded
    from noonmark.rows.moment import Time as _Time

__all__ = ["open", "read"]


def open(
    url: str | _os.PathLike[str],
    *,
    consensus: str | None = None,
    spark_master: str | None = None,
) -> _Embedded:
    """A database in this process, on the location at `url`.

    Args:
        url: a folder, ``s3://bucket/prefix``, ``gs://...`` or ``az://...``.
        consensus: where the location's log is; beside the data by default.
        spark_master: where Spark is started, when this process has no session; ``local[*]``.

    Raises:
        LockHeld: another process writes to the location; says who.
    """
    from noonmark.embedded.database import Embedded  # door: what runs is imported when it runs

    return Embedded(_os.fspath(url), consensus, spark_master)


def read(
    location: str | _os.PathLike[str],
    name: str,
    *,
    as_of: _Time | None = None,
    consensus: str | None = None,
) -> _Contents:
    """The rows of a table, source or materialized view at one time: no server, no Java.

    Args:
        location: a folder, ``s3://bucket/prefix``, ``gs://...`` or ``az://...``.
        name: the relation, with its schema where that is not public.
        as_of: milliseconds since the epoch, a `datetime`, or a timestamp as text; the newest
            complete time by default.
        consensus: where the location's log is; beside the data by default.

    Raises:
        BeforeSince: the history of that time is gone.
        NotYetComplete: that time is still open.
    """
    from noonmark.contents import read as read_contents  # door: what only opens pays for no reader

    return read_contents(_os.fspath(location), name, as_of, consensus)


def _tell_spark() -> None:
    """Let Spark's Python workers be this Python, and know the data source (`noonmark.spark`)."""
    pyspark = _sys.modules.get("pyspark")
    context = getattr(pyspark, "SparkContext", None)
    if getattr(context, "_active_spark_context", None) is None:
        _os.environ.setdefault("PYSPARK_PYTHON", _sys.executable)
        return
    from noonmark.spark import register_active  # door: Spark's modules: there already

    register_active()


_tell_spark()
