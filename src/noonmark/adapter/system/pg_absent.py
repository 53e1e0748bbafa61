"""pg_catalog's relations for what Noonmark does not have: they are there, and empty.

`pg_absent.txt` has the rest of PostgreSQL 15's catalog: a relation in each line, its number and its
columns. Types that only PostgreSQL has are those that are read instead (`facts`).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from noonmark.adapter.system.facts import SystemRelation, nothing, relation
from noonmark.adapter.system.pg_roles import default_acls


def _absent() -> Iterator[SystemRelation]:
    for line in Path(__file__).with_suffix(".txt").read_text().splitlines():
        head, _, rest = line.partition(": ")
        name, number = head.split(" ")
        columns = dict(each.split(" ", 1) for each in rest.split(", "))
        yield relation(f"pg_catalog.{name}", nothing, int(number), **columns)


RELATIONS = (
    *_absent(),
    relation(
        "pg_catalog.pg_default_acl", default_acls, 826,
        oid="oid", defaclrole="oid", defaclnamespace="oid", defaclobjtype="char",
        defaclacl="aclitem[]",
    ),
)  # fmt: skip
