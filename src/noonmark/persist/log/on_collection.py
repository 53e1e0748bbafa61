"""What commands do to collections: their names, schemas, batches and frontiers."""

from __future__ import annotations

from noonmark.errors import (
    CapabilityInvalid,
    FrontierRegression,
    NameTaken,
    SchemaMismatch,
    UsageError,
)
from noonmark.persist.log import command as c
from noonmark.persist.log.definite import changed
from noonmark.persist.log.draft import Draft, Handlers
from noonmark.persist.log.refusals import before_since, below_upper, format_frontier
from noonmark.persist.log.state import Batch, Collection, Frontier, schema_from_wire
from noonmark.tvc import EMPTY


def _create(draft: Draft, command: c.Create) -> None:
    names = draft.own("names")
    if command.name in names:
        raise NameTaken(f'collection "{command.name}" already exists', collection=command.name)
    schema = schema_from_wire(command.schema)
    unknown = [name for name in command.key if name not in schema.names]
    if unknown:
        raise SchemaMismatch(
            f'key column "{unknown[0]}" is not a column of "{command.name}"',
            detail=f"Its columns are {', '.join(schema.names)}.",
            hint="Make the key of some of those.",
            column=unknown[0],
        )
    ref = draft.get("next_collection")
    if command.expected_id not in (0, ref):
        raise UsageError(
            f"the next collection is {ref}, not {command.expected_id}",
            hint="Another one was created meanwhile; try again.",
        )
    draft.changes["next_collection"] = ref + 1
    names[command.name] = ref
    draft.changed[ref] = Collection(
        id=ref,
        name=command.name,
        key=command.key,
        schemas=(command.schema,),
        since=command.frontier,
        upper=command.frontier,
        allowed=command.frontier,
        annotation=command.annotation,
    )


def _evolve(draft: Draft, command: c.Evolve) -> None:
    collection = draft.collection(command.collection)
    old, new = collection.schema, schema_from_wire(command.schema)
    if new.columns[: len(old.columns)] != old.columns:
        raise SchemaMismatch(
            f'the new schema of "{collection.name}" does not begin with the old one',
            detail=f"Old: {', '.join(old.names)}. New: {', '.join(new.names)}.",
            hint="A schema evolves by nullable columns added at its end.",
            collection=collection.name,
        )
    old.extend(new.columns[len(old.columns) :])
    draft.update(collection, schemas=(*collection.schemas, command.schema))


def _annotate(draft: Draft, command: c.Annotate) -> None:
    draft.update(draft.collection(command.collection), annotation=command.annotation)


def _rename(draft: Draft, command: c.Rename) -> None:
    collection = draft.collection(command.collection)
    names = draft.own("names")
    if command.name in names:
        raise NameTaken(f'collection "{command.name}" already exists', collection=command.name)
    del names[collection.name]
    names[command.name] = collection.id
    draft.update(collection, name=command.name)


def _drop(draft: Draft, command: c.Drop) -> None:
    collection = draft.collection(command.collection)
    del draft.own("names")[collection.name]
    _void_holds(draft, collection.id)
    draft.discard(collection.id, collection.batches)
    draft.changed[collection.id] = None


def _close(draft: Draft, command: c.Close) -> None:
    collection = draft.collection(command.collection)
    _void_holds(draft, collection.id)
    draft.update(collection, upper=EMPTY, allowed=EMPTY)


def _void_holds(draft: Draft, ref: int) -> None:
    holds = draft.own("holds")
    for hold in [h for h in holds.values() if h.collection == ref]:
        del holds[hold.id]


def _append(draft: Draft, command: c.Append) -> None:
    collection = draft.collection(command.collection)
    if not collection.upper.less_equal(command.time_min):
        raise below_upper(collection, command.time_min)
    batch = Batch(
        id=collection.next_batch,
        rows=command.rows,
        bytes=command.bytes,
        time_min=command.time_min,
        time_max=command.time_max,
        diff_sum=command.diff_sum,
        parts=command.parts,
        inline=command.inline,
    )
    draft.update(
        collection, batches=(*collection.batches, batch), next_batch=collection.next_batch + 1
    )


def _set_error(draft: Draft, command: c.SetError) -> None:
    collection = draft.collection(command.collection)
    if not collection.upper.less_equal(command.time):
        raise below_upper(collection, command.time)
    if collection.errors and collection.errors[-1].time > command.time:
        raise FrontierRegression(
            f'"{collection.name}" has a later change of its error than {command.time}',
            detail=f"The last one is at {collection.errors[-1].time}.",
            hint="Changes of an error are written in the order of their times.",
            collection=collection.name,
        )
    draft.update(collection, errors=changed(collection.errors, command.time, command.error))


def _seal(draft: Draft, command: c.Seal) -> None:
    collection = draft.collection(command.collection)
    _require_forward("upper", collection, collection.upper, command.upper)
    for hold in () if draft.is_committed else draft.holds_on(command.collection):
        if hold.writes and not hold.frontier.at_or_beyond(command.upper):
            raise CapabilityInvalid(
                f'"{collection.name}" may still be written at {format_frontier(hold.frontier)}',
                detail=f'Capability "{hold.id}" of {hold.owner} allows that; a seal at '
                f"{format_frontier(command.upper)} was asked for.",
                hint="Write with update_and_downgrade, by the capability; or have it dropped.",
                collection=collection.name,
                hold=hold.id,
            )
    draft.update(collection, upper=command.upper)


def _expect(draft: Draft, command: c.Expect) -> None:
    collection = draft.collection(command.collection)
    if collection.upper != command.upper:
        raise FrontierRegression(
            f'"{collection.name}" is not at the expected upper',
            detail=f"Expected {format_frontier(command.upper)}, "
            f"found {format_frontier(collection.upper)}.",
            hint="Somebody else wrote; read the upper again and redo the work from there.",
            collection=collection.name,
            expected=command.upper,
            upper=collection.upper,
        )


def _allow(draft: Draft, command: c.AllowCompaction) -> None:
    collection = draft.collection(command.collection)
    _require_forward("since", collection, collection.allowed, command.since)
    draft.update(collection, allowed=command.since)


def _require_forward(axis: str, collection: Collection, old: Frontier, new: Frontier) -> None:
    if not new.at_or_beyond(old):
        raise FrontierRegression(
            f'cannot move the {axis} of "{collection.name}" back',
            detail=f"It is at {format_frontier(old)}, {format_frontier(new)} was asked for.",
            hint="Frontiers only advance: ask for one at or beyond where it is.",
            collection=collection.name,
            current=old,
            asked=new,
        )


def _swap(draft: Draft, command: c.Swap) -> None:
    collection = draft.collection(command.collection)
    removed = set(command.removed)
    gone = [batch for batch in collection.batches if batch.id in removed]
    if len(gone) != len(removed):
        raise UsageError(
            f'batches of "{collection.name}" were rewritten meanwhile',
            detail=f"{len(removed) - len(gone)} of {len(removed)} batches are no longer there.",
        )
    if not collection.since.at_or_beyond(command.since):
        raise before_since(collection, command.since)
    kept = [batch for batch in collection.batches if batch.id not in removed]
    if command.rows:
        kept.append(
            Batch(
                id=collection.next_batch,
                rows=command.rows,
                bytes=command.bytes,
                time_min=command.time_min,
                time_max=command.time_max,
                diff_sum=command.diff_sum,
                parts=command.parts,
            )
        )
    draft.discard(collection.id, gone)
    draft.update(collection, batches=tuple(kept), next_batch=collection.next_batch + 1)


HANDLERS: Handlers = {
    c.Create: _create,
    c.Evolve: _evolve,
    c.Annotate: _annotate,
    c.Rename: _rename,
    c.Drop: _drop,
    c.Close: _close,
    c.Append: _append,
    c.SetError: _set_error,
    c.Seal: _seal,
    c.Expect: _expect,
    c.AllowCompaction: _allow,
    c.Swap: _swap,
}
