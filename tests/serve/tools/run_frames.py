"""Data frames over the PostgreSQL protocol: polars and connectorx (binary COPY), ADBC."""

import json
import sys

import adbc_driver_postgresql.dbapi as adbc
import connectorx
import polars as pl
import pyarrow as pa

url, told = sys.argv[1], {}
goods = "select * from goods order by id"
told["polars, connectorx"] = pl.read_database_uri(goods, url, engine="connectorx").shape
told["polars, adbc"] = pl.read_database_uri(goods, url, engine="adbc")["name"].to_list()
for protocol in ("binary", "csv", "cursor"):
    found = connectorx.read_sql(url, "select id, name from goods", protocol=protocol)
    told[f"connectorx, {protocol}"] = sorted(found["id"].tolist())
parts = connectorx.read_sql(
    url, "select id, name from goods", partition_on="id", partition_num=2, return_type="arrow"
)
told["connectorx, partitions"] = parts.num_rows
empty = pl.read_database_uri("select * from goods where false", url, engine="connectorx")
told["connectorx, no rows"] = empty.shape
with adbc.connect(url) as connection:
    with connection.cursor() as cursor:
        cursor.execute("select id, price from goods where id = $1", (1,))
        told["adbc, parameter"] = cursor.fetch_arrow_table().num_rows
        table = pa.table({"a": [1, 2], "b": ["x", None]})
        cursor.adbc_ingest("ingested", table, mode="create")
        cursor.adbc_ingest("ingested", table, mode="append")
    connection.commit()
    told["adbc, schema"] = connection.adbc_get_table_schema("goods").names
pl.DataFrame({"a": [1, 2], "b": ["x", "y"]}).write_database(
    "written", url, engine="adbc", if_table_exists="replace"
)
for name in ("ingested", "written"):
    told[name] = pl.read_database_uri(f"select * from {name}", url, engine="connectorx").height
print(json.dumps(told))
