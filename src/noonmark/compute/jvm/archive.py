"""An archive of Spark's classes, which a JVM maps into memory instead of reading them from jars.

A JVM that starts Spark reads and checks some fifteen thousand classes; with an archive of them
(class data sharing) a session takes 4.0 s of processor time to start, without 8.9 s. The archive
depends on the Java and the Spark that made it, and stands beside the former's launcher
(`noonmark.java`) under a name that says so. A JVM that cannot use it starts as if there were none.

`make` starts a Spark of its own, lets it do a little of everything, and ends it: the JVM writes the
archive then. That takes some 20 s of processor time, once for each version, and 150 MB of disk.

Where it runs: driver; `make` in a process of its own (``python -m noonmark.compute.jvm.archive``).
"""

from __future__ import annotations

import hashlib
import os
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from noonmark.compute.jvm.lost import jvm_process

#: A JVM says on its standard output why it does not use an archive: nobody is to read that.
_QUIET = "-Xlog:disable -Xlog:all=error:stderr"


def archive_file(java_home: str) -> Path:
    """Where the archive for a Java, and the Spark of this process, is or is to be."""
    spec = find_spec("pyspark")
    assert spec is not None, "asked by who has pyspark"
    depends = hashlib.sha256(f"{spec.origin}:{version('pyspark')}".encode()).hexdigest()[:16]
    home = Path(java_home)
    return home.with_name(f"{home.name}-spark-{depends}.jsa")


def use(java_home: str) -> str:
    """The options of a JVM that uses the archive, if there is one."""
    file = archive_file(java_home)
    return f'-XX:SharedArchiveFile="{file}" {_QUIET}' if file.is_file() else ""


def make() -> None:
    """Make the archive, unless there is one."""
    # `session` itself asks this module for options.
    # door: it uses this module
    from noonmark.compute.jvm.session import java_home_once, java_options, spark_session

    file = archive_file(java_home_once())
    if file.is_file():
        return
    made = file.with_name(f"{file.name}.{os.getpid()}")
    options = f'{java_options()} -XX:ArchiveClassesAtExit="{made}" {_QUIET}'
    asked = {"spark.driver.extraJavaOptions": options, "spark.driver.memory": "1g"}
    session = spark_session("local[1]", options=asked)
    numbers = session.range(100).selectExpr("id", "id % 7 as k", "cast(id as string) as t")
    sums = numbers.groupBy("k").agg({"id": "sum", "t": "max"})
    sums.join(numbers, "k").orderBy("id").toArrow()
    session.sparkContext.parallelize([b"a"], 1).mapPartitions(list).collect()
    process = jvm_process(session)
    assert process is not None, "this process starts the session"
    assert process.stdin is not None, "PySpark holds it open"
    session.stop()
    process.stdin.close()  # it ends then, and writes the archive
    process.wait()
    try:
        made.rename(file)
    finally:
        made.unlink(missing_ok=True)


if __name__ == "__main__":
    make()
