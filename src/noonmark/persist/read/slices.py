"""A plan, cut by key: what tasks read side by side.

Law: the rows of all slices of a plan are the rows of the plan. What one slice reads has nothing to
do with the others, so that a task can be done again anywhere.

Where it runs: driver; pure. No pyspark here.
"""

from __future__ import annotations

from dataclasses import replace

import msgspec

from noonmark.persist.log.state import Collection
from noonmark.persist.part.ranges import KeyRange, cut
from noonmark.persist.read.plan import Plan


def slices(plan: Plan, rows_min: int) -> list[Plan]:
    """The plan, cut by key: what each slice reads has nothing to do with the others."""
    collection = plan.collection
    first = (collection.key or collection.schema.names)[0]
    place = collection.schema.index(first)
    bare = bare_collection(collection)
    cuts = cut(plan.runs, first, place, rows_min) if plan.probes is None else (None,)
    return [_confined(replace(plan, collection=bare), within) for within in cuts]


def bare_collection(collection: Collection) -> Collection:
    """A collection as tasks need it: schemas and key, without the batches."""
    return msgspec.structs.replace(collection, batches=(), annotation=b"")


def _confined(plan: Plan, within: KeyRange | None) -> Plan:
    if within is None:
        return plan
    runs = (tuple(part for part in parts if within.may_hold(part)) for parts in plan.runs)
    return replace(
        plan,
        query=replace(plan.query, within=within),
        runs=tuple(parts for parts in runs if parts),
    )
