"""A Spark session that is lost: its JVM died, or a cluster's master ended its application.

PySpark keeps the one context and the one JVM of a process in attributes of its classes and does not
notice when they are gone: every later call fails with "Connection refused". `why_lost` notices;
`let_go` and `forget_dead_jvm` clear those attributes, so that another session can be started in the
same process. Spark is imported where it is used: a server starts without it.

Where it runs: driver; both block.
"""

from __future__ import annotations

import subprocess
import warnings
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def why_lost(session: SparkSession) -> str | None:
    """Why a session can run nothing any more; None while it can. Takes less than a millisecond."""
    from py4j.protocol import Py4JError

    context = session.sparkContext
    process = jvm_process(session)
    if process is not None and process.poll() is not None:
        return f"Spark's JVM has ended with status {process.returncode}"
    if context._jsc is None:
        return "the Spark session was stopped"
    try:
        stopped = context._jsc.sc().isStopped()
    except (Py4JError, OSError) as error:
        return f"Spark's JVM does not answer: {error}"
    return "the Spark session was stopped" if stopped else None


def jvm_process(session: SparkSession) -> subprocess.Popen[bytes] | None:
    """The JVM of a session, if this process started it."""
    gateway = getattr(session.sparkContext, "_gateway", None)
    process: subprocess.Popen[bytes] | None = getattr(gateway, "proc", None)
    return process


def jvm_of(session: SparkSession) -> int | None:
    """The number of that process."""
    process = jvm_process(session)
    return None if process is None else process.pid


def let_go(session: SparkSession) -> None:
    """Forget a session that is lost, and end what is left of its JVM."""
    from py4j.protocol import Py4JError
    from pyspark import SparkContext

    context = session.sparkContext
    gateway, process = context._gateway, jvm_process(session)
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
        _forget_jvm()
    if SparkContext._active_spark_context in (context, None):
        _forget_context()


def forget_dead_jvm() -> None:
    """Forget a JVM that has ended, also one that died while it started: nobody let go of that."""
    from pyspark import SparkContext

    process = getattr(SparkContext._gateway, "proc", None)
    if process is not None and process.poll() is not None:
        _forget_jvm()
        _forget_context()


def _forget_jvm() -> None:
    from pyspark import SparkContext

    SparkContext._gateway = SparkContext._jvm = None


def _forget_context() -> None:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = None
    SparkSession._activeSession = None
