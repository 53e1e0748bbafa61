"""Judging what Storage answers, by the ledger: the log is the truth, whoever is told what.

Law (durable): what an answer says is in the log by then.
Law (validity): a call that succeeds had its capability, as stated, at some instant between the call
and its answer; a call that is refused for its capability lacked it at some such instant.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from noonmark.errors import (
    BeforeSince,
    BelowUpper,
    CapabilityInvalid,
    FrontierRegression,
    Indeterminate,
    NameTaken,
    NoonmarkError,
    NotBelowFrontier,
    ReadOnly,
    Stopped,
    StorageError,
    WriterError,
)
from noonmark.persist.client import Client
from noonmark.storage import Capability

from .model import NEVER, Operation, Violation, time_of
from .process import Process
from .world import World


@dataclass
class Call:
    """A call of Storage, and what was so when it was made."""

    what: str
    capabilities: tuple[Capability, ...]
    id: str
    began: int
    known_ms: int
    targets: dict[str, int] = field(default_factory=dict)
    #: Whether what is asked for makes sense, given that the capabilities are valid.
    sense: bool = True
    operation: Operation | None = None


def begin(
    world: World,
    client: Client,
    what: str,
    *capabilities: Capability,
    id: str = "",
    to: int | None = None,
    **details: Any,
) -> Call:
    """A call is about to be made."""
    call = Call(what, capabilities, id, world.ledger.seqno, client.state.now_ms, **details)
    if to is not None:
        (capability,) = capabilities
        call.targets[capability.id] = to
        call.sense = to >= time_of(capability.frontier)
    return call


async def conclude(
    world: World, process: Process, call: Call, answer: Callable[[], Coroutine[Any, Any, Any]]
) -> tuple[bool, Any]:
    """Whether the call was answered with success, and with what; after the judgement."""
    model, operation = world.model, call.operation
    try:
        given = await answer()
    except Indeterminate:
        if operation is not None:
            model.doubt(operation)
        return False, None
    except NoonmarkError as error:
        world.counts[f"refused: {error.id}"] += 1
        world.trace.note("refused", call.what, call.id, error.id)
        world.observe()  # who refused has a state whose time nobody may have seen yet
        if operation is not None:
            model.refuse(operation, error)
        _check_refusal(world, process, call, error)
        return False, None
    except asyncio.CancelledError:
        if operation is not None:
            model.doubt(operation)
        raise
    world.trace.note("answered", call.what, call.id)
    world.observe()
    if operation is not None:
        assert process.client is not None
        model.acknowledge(operation, process.client.state)
    _check_success(world, call, given)
    return True, given


# -- success --------------------------------------------------------------------------------


def _check_success(world: World, call: Call, given: Any) -> None:
    if not call.sense:
        raise Violation(f"{call} makes no sense and was done")
    if call.what != "drop":
        for capability in call.capabilities:
            if not _was_valid(world, call, capability):
                raise Violation(f"{call} was done with a capability that was void")
    match call.what:
        case "create":
            _check_given(world, call, *given)
        case "acquire":
            _check_given(world, call, *given)
            _check_acquired(world, call, *given)
        case "clone":
            _check_given(world, call, given)
        case "renew" | "downgrade":
            _check_moved(world, call, given)
        case "update":
            for capability in given:
                _check_moved(world, call, capability)
        case "drop":
            _check_dropped(world, call)
        case "close":
            bound = world.ledger.find(call.id)
            if bound is None or (bound.since, bound.upper) != (NEVER, NEVER):
                raise Violation(f"{call} was answered, but {bound}")


def _was_valid(world: World, call: Call, capability: Capability) -> bool:
    """Whether there was an instant of the call at which it was valid as stated."""
    at = time_of(capability.frontier)
    return any(
        right.at == at and right.expires_ms > call.known_ms
        for right in world.ledger.during(capability.token, call.began)
    )


def _check_given(world: World, call: Call, *given: Capability) -> None:
    """A new capability is in the log, where it is said to be."""
    for capability in given:
        past = world.ledger.past.get(capability.token)
        if not past or past[0].at != time_of(capability.frontier):
            raise Violation(f"{call} gave {capability}, but the log has {past}")
        if past[0].writes != capability.writes:
            raise Violation(f"{call} gave another kind of capability than the log has")


def _check_acquired(world: World, call: Call, read: Capability, write: Capability) -> None:
    """Where the frontiers were, at that instant; a close in the same entry ends both at once."""
    page = world.ledger.pages[world.ledger.past[read.token][0].seqno]
    since, upper = page.frontiers[call.id]
    if since not in (time_of(read.frontier), NEVER) or upper not in (
        time_of(write.frontier),
        NEVER,
    ):
        raise Violation(f"{call} gave {read} and {write} at {page.frontiers[call.id]}")


def _check_moved(world: World, call: Call, given: Capability) -> None:
    to = call.targets[given.id]
    past = world.ledger.past[given.token]
    is_there = any(right.at == to and right.seqno > call.began for right in past)
    if time_of(given.frontier) != to or not is_there:
        raise Violation(f"{call} gave {given}, but the log has {past}")


def _check_dropped(world: World, call: Call) -> None:
    for capability in call.capabilities:
        right = world.ledger.rights.get(capability.token)
        if right is not None and right.expires_ms > world.model.latest_ms:
            raise Violation(f"{call} was answered, but the log has {right}")


# -- refusal --------------------------------------------------------------------------------


def _check_refusal(world: World, process: Process, call: Call, error: NoonmarkError) -> None:
    match error:
        case CapabilityInvalid():
            may = any(_was_void(world, call, each) for each in call.capabilities)
        case FrontierRegression() | NotBelowFrontier():
            may = not call.sense
        case BelowUpper():  # or the id is being closed, and what it gave last is void next
            may = not call.sense or any(_is_ending(world, each.id) for each in call.capabilities)
        case BeforeSince():
            may = call.what == "subscribe" and all(
                world.model.since_may_exceed(each.id, time_of(each.frontier))
                for each in call.capabilities
            )
        case NameTaken():
            may = call.what == "create" and world.ledger.is_bound(call.id)
        case ReadOnly():
            may = process.mode != "write"
        case WriterError() | StorageError() | Stopped():
            may = "internal" not in error.message
        case _:
            may = False
    if not may:
        raise Violation(f"{call} was refused without a reason: {error}") from error


def _is_ending(world: World, id: str) -> bool:
    bound = world.ledger.find(id)
    return bound is not None and bound.upper == NEVER


def _was_void(world: World, call: Call, capability: Capability) -> bool:
    """Whether there was an instant of the call at which it was not valid as stated."""
    past = world.ledger.during(capability.token, call.began)
    at = time_of(capability.frontier)
    return not past or any(
        right.at != at or right.expires_ms <= world.model.latest_ms for right in past
    )
