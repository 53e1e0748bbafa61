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
import typing as _typing

if _typing.TYPE_CHECKING:
    from noonmark.embedded import Embedded as _Embedded

__all__ = ["open"]


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
    from noonmark.embedded import Embedded

    return Embedded(_os.fspath(url), consensus, spark_master)
