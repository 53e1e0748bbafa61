"""A Spark session that is lost: its JVM died, or a cluster's master ended its application.

PySpark keeps the one context and the one JVM of a process in attributes of its classes and does not
notice when they are gone: every later call fails with "Connection refused". `why_lost` notices, and
`let_go` clears those attributes so that another session can be started in the same process.

Where it runs: driver; both block.
"""

from __future__ import annotations

import warnings
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def why_lost(session: SparkSession) -> str | None:
    """Why a session can run nothing any more; None while it can. Takes less than a millisecond."""
    from py4j.protocol import Py4JError

    context = session.sparkContext
    process = getattr(context._gateway, "proc", None)
    if process is not None and process.poll() is not None:
        return f"Spark's JVM has ended with status {process.returncode}"
    if context._jsc is None:
        return "the Spark session was stopped"
    try:
        stopped = context._jsc.sc().isStopped()
    except (Py4JError, OSError) as error:
        return f"Spark's JVM does not answer: {error}"
    return "the Spark session was stopped" if stopped else None


def jvm_of(session: SparkSession) -> int | None:
    """The process of a session's JVM, if this process started it."""
    process = getattr(getattr(session.sparkContext, "_gateway", None), "proc", None)
    return None if process is None else int(process.pid)


def let_go(session: SparkSession) -> None:
    """Forget a session that is lost, and end what is left of its JVM."""
    from py4j.protocol import Py4JError
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    context = session.sparkContext
    gateway = context._gateway
    process = getattr(gateway, "proc", None)
    with warnings.catch_warnings(), suppress(Py4JError, OSError, AttributeError):
        warnings.simplefilter("ignore")  # that it cannot be stopped cleanly is known
        session.stop()
    if process is not None and process.poll() is None:
        process.kill()
        process.wait()
    with suppress(Py4JError, OSError):
        if gateway is not None:
            gateway.shutdown()
    if SparkContext._gateway is gateway:
        SparkContext._gateway = None
        SparkContext._jvm = None
    if SparkContext._active_spark_context in (context, None):
        SparkContext._active_spark_context = None
        SparkSession._instantiatedSession = None
        SparkSession._activeSession = None
