"""Rows in Spark.

Law (unchanged): ``from_dataframe(to_dataframe(session, table, schema), schema)`` equals `table` up
to the order of rows, for every conforming table, given a session with `SESSION_OPTIONS`; and Spark
reads parts of the storage schema, and writes them, without a change.

Spark has one SQL type for each storage type, so a DataFrame of `spark_schema` goes through Arrow
without a cast. Its strings have no length and its columns may all be NULL: the schema's limits are
checked by `conform` where rows are stored, not by Spark.

The functions here run on the driver. On executors, a `mapInArrow` function gets and gives batches
of the storage types, and needs only `noonmark.rows.arrow`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import types as s

from noonmark.rows import types as t
from noonmark.rows.conform import conform
from noonmark.rows.schema import Schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Without these Spark shifts old dates to the Julian calendar, rounds instants to its INT96 form, or
# shows them in the machine's zone.
SESSION_OPTIONS: dict[str, str] = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
}

_SIMPLE: dict[type[t.SqlType], s.DataType] = {
    t.Boolean: s.BooleanType(),
    t.SmallInt: s.ShortType(),
    t.Integer: s.IntegerType(),
    t.BigInt: s.LongType(),
    t.Real: s.FloatType(),
    t.Double: s.DoubleType(),
    t.Text: s.StringType(),
    t.Varchar: s.StringType(),
    t.Char: s.StringType(),
    t.Bytea: s.BinaryType(),
    t.Date: s.DateType(),
    t.Time: s.LongType(),
    t.Timestamp: s.TimestampNTZType(),
    t.TimestampTz: s.TimestampType(),
    t.Uuid: s.BinaryType(),
    t.Enum: s.BinaryType(),
    t.Jsonb: s.StringType(),
    t.Json: s.StringType(),
}


def spark_type(sql_type: t.SqlType) -> s.DataType:
    """The Spark type of a SQL type's storage type."""
    match sql_type:
        case t.Numeric(precision=None) | t.Coded():
            return s.BinaryType()
        case t.Numeric():
            return s.DecimalType(sql_type.stored_precision, sql_type.stored_scale)
        case t.Interval():
            return s.StructType(
                [
                    s.StructField("months", s.IntegerType()),
                    s.StructField("days", s.IntegerType()),
                    s.StructField("micros", s.LongType()),
                ]
            )
        case t.Array(element):
            return s.ArrayType(spark_type(element))
        case t.Record(fields):
            return s.StructType([s.StructField(f.name, spark_type(f.type)) for f in fields])
    return _SIMPLE[type(sql_type)]


def spark_name(sql_type: t.SqlType) -> str:
    """How Spark spells that type, for a type without fields.

    A cast to a name is one call into the JVM; to ask for the type first takes five more.
    """
    return spark_type(sql_type).simpleString()


def spark_schema(schema: Schema) -> s.StructType:
    """The Spark schema of the storage schema."""
    return s.StructType([s.StructField(c.name, spark_type(c.type)) for c in schema.columns])


def to_dataframe(session: SparkSession, table: pa.Table, schema: Schema) -> DataFrame:
    """A conforming table as a DataFrame; its rows travel with the plan, so keep it small."""
    return session.createDataFrame(table, schema=spark_schema(schema))


def from_dataframe(frame: DataFrame, schema: Schema) -> pa.Table:
    """The rows of a DataFrame as a conforming table, in the driver's memory."""
    return conform(frame.toArrow(), schema)
