"""A user of Spark with a session of their own: no setting but where it runs.

    python plain_session.py {before|after} LOCATION SERVER

Noonmark is imported before the session is made, or after. With a server, it is the one that writes
to the location. Prints one line of JSON: what was read.
"""

from __future__ import annotations

import datetime as dt
import json
import sys
from typing import Any

from pyspark.sql import SparkSession


def session() -> SparkSession:
    return SparkSession.builder.master("local[1]").getOrCreate()


def main(when: str, location: str, server: str) -> None:
    if when == "before":
        import noonmark
    spark = session()
    spark.sparkContext.setLogLevel("OFF")
    if when == "after":
        import noonmark  # noqa: F401 - what a user writes

    def read(name: str, **options: Any) -> list[list[Any]]:
        reader = spark.read.format("noonmark").option("location", location).options(**options)
        return sorted([str(each) for each in row] for row in reader.load(name).collect())

    def write(frame: Any, name: str, mode: str = "append", **options: Any) -> None:
        if server:
            options["server"] = server
        writer = frame.write.format("noonmark").option("location", location).options(**options)
        writer.mode(mode).save(name)

    def refused(frame: Any, name: str, mode: str = "append", **options: Any) -> str:
        try:
            write(frame, name, mode, **options)
        except Exception as error:
            return str(error)
        return "written"

    rows = spark.createDataFrame([(1, "one", 1.5), (2, "two", None)], "a int, b string, c double")
    day = spark.sql("select 3 as a, date'2026-01-02' as d, cast(2.50 as decimal(9, 2)) as n")
    write(rows.repartition(2), "s.keyed")
    write(day, "public.plain")
    answer: dict[str, Any] = {"first": read("s.keyed"), "plain": read("plain")}
    then = int(read("s.keyed", changes=True)[0][-2])
    more = spark.createDataFrame([(2, "zwei"), (3, "drei")], "a int, b string")
    answer["duplicate"] = refused(more, "s.keyed")
    write(more, "s.keyed", upsert=True)
    answer["upserted"] = read("s.keyed")
    answer["filtered"] = read_some(spark, location)
    write(more, "s.keyed", mode="overwrite")
    answer["replaced"] = read("s.keyed", columns="b")
    answer["before"] = read("s.keyed", as_of=then)
    moment = dt.datetime.fromtimestamp(then / 1000, dt.UTC)
    answer["moment"] = read("s.keyed", as_of=moment.isoformat())
    answer["times"] = [row[:-2] for row in read("s.keyed", lower=then + 1)]
    print(json.dumps(answer))
    spark.stop()


def read_some(spark: SparkSession, location: str) -> list[str]:
    frame = spark.read.format("noonmark").option("location", location).load("s.keyed")
    return [row.b for row in frame.where("a = 2").select("b").collect()]


if __name__ == "__main__":
    main(*sys.argv[1:])
