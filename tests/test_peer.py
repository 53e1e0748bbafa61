"""The laws of `noonmark.peer`."""

from __future__ import annotations

import asyncio
import logging
import threading

import pytest

from noonmark import peer
from noonmark.clock import SYSTEM
from noonmark.errors import SourceStalled
from noonmark.peer import Peer


class Hanging:
    """A call that does not come back until it is let."""

    def __init__(self) -> None:
        self.began, self.let = threading.Event(), threading.Event()

    def __call__(self) -> str:
        self.began.set()
        assert self.let.wait(30)
        return "late"


def until(happened: threading.Event) -> None:
    assert happened.wait(10)


def test_calls_of_one_peer_run_one_after_another_in_a_thread_of_their_own() -> None:
    async def go() -> None:
        one = Peer("source", "a")
        names = [await one.call(lambda: threading.current_thread().name) for _ in range(3)]
        assert names == ["peer of source a"] * 3
        hanging = Hanging()
        first = asyncio.ensure_future(one.call(hanging))
        await asyncio.sleep(0.05)
        second = asyncio.ensure_future(one.call(lambda: "second"))
        # Another peer's calls do not wait.
        assert await Peer("source", "b").call(lambda: "b") == "b"
        assert not second.done()
        hanging.let.set()
        assert await asyncio.gather(first, second) == ["late", "second"]

    asyncio.run(go())


def test_who_waits_is_answered_at_the_deadline_and_the_call_is_seen(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def go() -> None:
        one, hanging, made = Peer("deadlines", "a"), Hanging(), []
        with pytest.raises(SourceStalled, match="no answer from outside"):
            await one.call(hanging, seconds=0.1, undo=made.append)
        assert one.is_silent
        assert (peer.silent()["deadlines"], peer.abandoned()["deadlines"]) == (1, 1)
        assert "deadlines a: a call to the outside is abandoned" in caplog.text
        # Those behind it have deadlines of their own, and what never began is no call.
        with pytest.raises(SourceStalled):
            await one.call(lambda: made.append("never"), seconds=0.1)
        hanging.let.set()
        assert await one.call(lambda: "next") == "next"
        assert made == ["late"], "what it made is taken away; what had not begun never does"
        assert (peer.silent()["deadlines"], peer.abandoned()["deadlines"]) == (0, 1)
        assert "came back after" in caplog.text

    with caplog.at_level(logging.INFO, "noonmark.work"):
        asyncio.run(go())


def test_a_cancelled_caller_abandons_its_call() -> None:
    async def go() -> None:
        one, hanging, made = Peer("cancels"), Hanging(), []
        asking = asyncio.ensure_future(one.call(hanging, undo=made.append))
        await asyncio.to_thread(until, hanging.began)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert peer.abandoned()["cancels"] == 1
        hanging.let.set()
        await one.call(lambda: None)
        assert made == ["late"]

    asyncio.run(go())


def test_leaving_lets_everybody_go_at_once_and_the_last_is_done_behind_what_hangs() -> None:
    one, hanging, ended, said = Peer("left"), Hanging(), threading.Event(), []

    def wait() -> None:
        try:
            one.wait(hanging, end=ended.set)
        except SourceStalled as error:
            said.append(error.message)

    waiting = threading.Thread(target=wait)
    waiting.start()
    until(hanging.began)
    last = one.leave(lambda: "closed")
    waiting.join(5)
    assert said == ["left was left"]
    assert ended.is_set(), "what can be ended is"
    assert not last.done()
    with pytest.raises(SourceStalled):
        one.wait(lambda: None)
    hanging.let.set()
    assert last.result(5) == "closed"


def test_an_outcome_is_the_callers_own() -> None:
    def fail() -> None:
        raise TimeoutError("of its own")

    async def go() -> None:
        one = Peer("outcomes")
        with pytest.raises(TimeoutError, match="of its own"):
            await one.call(fail, seconds=5)
        with pytest.raises(TimeoutError, match="of its own"):
            await asyncio.to_thread(lambda: one.wait(fail, seconds=5))
        assert await peer.ask("outcomes", "once", lambda: 1) == 1
        assert peer.abandoned()["outcomes"] == 0

    asyncio.run(go())


def test_a_peer_without_work_has_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer, "_IDLE_S", 0.05)
    one = Peer("idle")
    assert one.wait(lambda: 1) == 1
    deadline = SYSTEM.monotonic() + 5
    while any(each.name == "peer of idle" for each in threading.enumerate()):
        assert SYSTEM.monotonic() < deadline
        threading.Event().wait(0.02)
    assert one.wait(lambda: 2) == 2
