"""What can be said of a location and its shards, as plain data for tables and for JSON."""

from __future__ import annotations

from typing import Any

from noonmark.persist.log.state import Batch, Collection, Frontier, State


def list_shards(state: State) -> list[dict[str, Any]]:
    """One line per shard."""
    return [_summary(state, state.collections[id_]) for id_ in sorted(state.collections)]


def _summary(state: State, shard: Collection) -> dict[str, Any]:
    return {
        "id": shard.id,
        "name": shard.name,
        "since": time_of(shard.since),
        "upper": time_of(shard.upper),
        "updates": sum(batch.rows for batch in shard.batches),
        "batches": len(shard.batches),
        "parts": sum(len(batch.parts) for batch in shard.batches),
        "bytes": sum(batch.bytes for batch in shard.batches),
        "holds": sum(hold.collection == shard.id for hold in state.holds.values()),
    }


def show_shard(state: State, name: str) -> dict[str, Any]:
    """All that the state knows of one shard."""
    shard = state.collection(name)
    holds = [hold for hold in state.holds.values() if hold.collection == shard.id]
    return {
        **_summary(state, shard),
        "key": list(shard.key),
        "schema": [str(column) for column in shard.schema.columns],
        "schema_versions": len(shard.schemas),
        "allowed": time_of(shard.allowed),
        "errors": [
            f"{each.time}: {'none' if each.error is None else each.error.message}"
            for each in shard.errors
        ],
        "held": [
            {"id": h.id, "owner": h.owner, "at": time_of(h.frontier), "expires_ms": h.expires_ms}
            for h in holds
        ],
        "contents": [_batch(batch) for batch in shard.batches],
    }


def _batch(batch: Batch) -> dict[str, Any]:
    return {
        "batch": batch.id,
        "kind": "inline" if batch.inline is not None else "parts",
        "updates": batch.rows,
        "bytes": batch.bytes,
        "times": [batch.time_min, batch.time_max],
        "parts": [part.key for part in batch.parts],
    }


def describe_location(state: State) -> dict[str, Any]:
    """The log's head, who writes, and what waits to be deleted."""
    lock = state.lock
    return {
        "seqno": state.seqno,
        "epoch": state.epoch,
        "writer": lock.holder if lock is not None and not lock.released else None,
        "shards": len(state.collections),
        "garbage_parts": len(state.garbage),
        "garbage_bytes": sum(garbage.bytes for garbage in state.garbage),
    }


def time_of(frontier: Frontier) -> int | None:
    """The time of a frontier; None for the empty one."""
    return frontier.only()
