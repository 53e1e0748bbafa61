"""The conversation, message by message, without a socket: what follows what."""

from __future__ import annotations

import asyncio
import struct

import pytest

from noonmark.clock import SYSTEM
from noonmark.errors import ProtocolViolation
from noonmark.serve.metrics import Figures
from noonmark.serve.pgwire.link import Lost
from noonmark.serve.pgwire.protocol import Conversation
from support.serve.link import (
    FLUSH,
    SYNC,
    TERMINATE,
    MemoryLink,
    bind,
    close,
    describe,
    execute,
    frame,
    parse,
    query,
)
from support.serve.sessions import Scripted, ScriptedSession


def talk(*sent: bytes, goodbye: bool = True) -> tuple[MemoryLink, ScriptedSession]:
    """What comes of these messages after login."""

    async def run() -> tuple[MemoryLink, ScriptedSession]:
        sessions = Scripted()
        session = await sessions.connect("bob", "d", {}, "memory")
        link = MemoryLink([b"".join((*sent, TERMINATE if goodbye else b""))])
        link.frames.login()
        try:
            await Conversation(link, session, Figures(), SYSTEM).run()
        except Lost:
            assert not goodbye
        assert session.closed
        return link, session

    return asyncio.run(run())


def kinds(*sent: bytes) -> str:
    """The kinds of the answers, without those of the greeting."""
    greeting, _, rest = talk(*sent)[0].kinds().partition("Z")
    assert greeting.startswith("RS")
    return rest


STATEMENT = (parse("rows 5 by 2"), bind(), describe("P"), execute())


def test_every_query_and_every_sync_has_one_answer() -> None:
    assert kinds(query("rows 2"), query("notice x"), query("")) == "TDDCZNCZIZ"
    assert kinds(*STATEMENT, SYNC) == "12TDDDDDCZ"
    assert kinds(SYNC, SYNC) == "ZZ"


def test_an_error_skips_to_sync_and_stops_a_query() -> None:
    assert kinds(parse("fail"), bind(), execute(), execute(), *STATEMENT, SYNC) == "12EZ"
    assert kinds(query("rows 1; fail; rows 1")) == "TDCEZ"
    assert kinds(bind(statement="none"), query("rows 1"), SYNC, query("rows 1")) == "EZTDCZ"


def test_portals_are_taken_in_parts() -> None:
    twice = (parse("rows 5 by 2"), bind(portal="p"))
    parts = (execute("p", 2), execute("p", 3), execute("p", 1), SYNC)
    assert kinds(*twice, *parts) == "12DDsDDDsCZ"
    link, _ = talk(*twice, *parts)
    tags = [body for kind, body in link.replies() if kind == "C"]
    assert tags == [b"SELECT 0\0"]


def test_what_is_known_at_once_goes_the_same_way() -> None:
    quick = (parse("quick 5"), bind(portal="p"))
    assert kinds(*quick, execute("p"), SYNC) == "12DDDDDCZ"
    assert kinds(*quick, execute("p"), execute("p"), SYNC) == "12DDDDDCCZ"
    assert kinds(*quick, execute("p", 5), SYNC) == "12DDDDDsZ", (
        "whether there are more is not asked"
    )
    assert kinds(*quick, execute("p", 2), execute("p", 2), execute("p", 2), SYNC) == "12DDsDDsDCZ"
    large = (parse("quick 2500"), bind(), execute(), SYNC)
    assert kinds(*large) == "12" + "D" * 2500 + "CZ"


def test_answers_do_not_depend_on_the_pieces_in_which_bytes_come() -> None:
    sent = b"".join((*STATEMENT, SYNC, parse("quick 3"), bind(), execute(), SYNC, parse("fail"),
                     bind(), execute(), SYNC, query("rows 1"), TERMINATE))  # fmt: skip

    async def run(pieces: list[bytes]) -> str:
        session = await Scripted().connect("bob", "d", {}, "memory")
        link = MemoryLink(pieces)
        link.frames.login()
        await Conversation(link, session, Figures(), SYSTEM).run()
        return link.kinds()

    whole = asyncio.run(run([sent]))
    assert whole.endswith("12TDDDDDCZ12DDDCZ12EZTDCZ")
    for size in (1, 3, 7, 50):
        pieces = [sent[at : at + size] for at in range(0, len(sent), size)]
        assert asyncio.run(run(pieces)) == whole


def test_a_client_that_takes_nothing_is_waited_for() -> None:
    class Slow(MemoryLink):
        @property
        def congested(self) -> bool:
            return self.drains < 3

    async def run() -> Slow:
        session = await Scripted().connect("bob", "d", {}, "memory")
        link = Slow([b"".join((parse("quick 1"), bind(), execute(), SYNC, TERMINATE))])
        link.frames.login()
        await Conversation(link, session, Figures(), SYSTEM).run()
        return link

    link = asyncio.run(run())
    assert link.drains == 3
    assert link.kinds().endswith("12DCZ")


def test_a_portal_ends_with_its_transaction() -> None:
    opened = (parse("rows 5 by 2"), bind(portal="p"), execute("p", 2), SYNC)
    assert kinds(*opened, execute("p", 2), SYNC) == "12DDsZEZ"
    assert kinds(query("begin"), *opened, execute("p", 2), SYNC) == "CZ12DDsZDDsZ"
    assert kinds(query("begin"), *opened, query("commit"), execute("p"), SYNC)[-3:] == "ZEZ"


def test_rows_that_are_left_are_let_go() -> None:
    for last in (close("P", "p"), SYNC, b""):
        opened = (parse("rows 5 by 2"), bind(portal="p"), execute("p", 2))
        _, session = talk(*opened, last)
        assert [stream.closed for stream in session.owner.streams] == [True]


def test_statements_and_portals_have_names() -> None:
    assert kinds(parse("rows 1", "a"), parse("rows 1", "a"), SYNC) == "1EZ"
    assert kinds(parse("rows 1"), parse("rows 1"), SYNC) == "11Z"
    assert kinds(parse("rows 1", "a"), close("S", "a"), parse("rows 1", "a"), SYNC) == "131Z"
    assert kinds(close("S", "none"), close("P", "none"), SYNC) == "33Z"
    assert kinds(parse("rows 1"), bind(portal="p"), bind(portal="p"), SYNC) == "12EZ"
    assert kinds(parse("rows 1"), bind(), bind(), execute(), SYNC) == "122DCZ"
    assert kinds(parse("rows 1", "a"), query("deallocate a"), describe("S", "a"), SYNC) == "1CZEZ"
    assert kinds(describe("S", "none"), SYNC) == "EZ"
    assert kinds(describe("P", "none"), SYNC) == "EZ"


def test_statements_are_described() -> None:
    link, _ = talk(parse("echo int, text", "a", (0, 1043)), describe("S", "a"), SYNC)
    found = dict(link.replies())
    assert found["t"] == struct.pack(">HII", 2, 23, 1043)
    first = b"c1\0" + struct.pack(">IhIhih", 0, 0, 23, 4, -1, 0)
    assert found["T"].startswith(struct.pack(">H", 2) + first)
    assert kinds(parse("notice x", "a"), describe("S", "a"), SYNC) == "1tnZ"
    assert kinds(describe("P", "declared"), SYNC) == "TZ"  # a cursor of DECLARE


def test_a_portal_that_did_something_does_not_do_it_twice() -> None:
    link, session = talk(parse("insert 1"), bind(), execute(), execute(), SYNC, query("table"))
    assert "12CEZ" in link.kinds()
    assert session.owner.values == []  # the error undid the first
    assert session.owner.executed.count("insert 1") == 1


def test_one_statement_before_sync_is_no_implicit_transaction() -> None:
    one = (parse("insert 1"), bind(), execute())
    _, session = talk(*one, SYNC)
    assert session.owner.values == [1]
    _, session = talk(*one, *one, SYNC)
    assert session.owner.values == [1, 1]
    _, session = talk(*one, *one, goodbye=False)
    assert session.owner.values == []  # no Sync, no commit


def test_an_error_of_the_commit_is_the_last_statements() -> None:
    def insert(value: int) -> tuple[bytes, ...]:
        return parse(f"insert {value}"), bind(), execute()

    assert kinds(*insert(1), *insert(13), SYNC, query("table")) == "12C12EZTCZ"
    assert kinds(*insert(13), *insert(1), SYNC, query("table")) == "12C12EZTCZ"
    assert kinds(*insert(1), FLUSH, *insert(2), SYNC) == "12C12CZ"
    assert kinds(query("insert 1; insert 13"), query("table")) == "CEZTCZ"
    assert kinds(query("insert 1; insert 2"), query("table")) == "CCZTDDCZ"
    # What comes in pieces is no different.
    link, session = talk(*insert(13), *insert(13), FLUSH, goodbye=False)
    assert link.kinds().endswith("12C12C")
    assert session.owner.values == []


def test_flush_and_functions_of_old() -> None:
    assert kinds(parse("rows 1"), FLUSH, frame("F", b"\0\0\0\1"), SYNC) == "1EZ"


def test_copy_in_both_protocols() -> None:
    data = (frame("d", b"1\tone\n2\t"), frame("d", b"two\n"), frame("c"))
    assert kinds(query("copy in"), *data) == "GCZ"
    ext = (parse("copy in"), bind(), execute())
    assert kinds(*ext, SYNC, *data, SYNC) == "12GCZ"
    _, session = talk(*ext, SYNC, *data, SYNC)
    assert session.owner.copied == [(1, "one"), (2, "two")]
    assert kinds(query("copy in"), frame("f", b"no\0")) == "GEZ"
    assert kinds(query("copy in"), query("rows 1"), frame("c"), query("rows 1")) == "GEZTDCZ"
    bad = (frame("d", b"x\ty\n"), frame("d", b"1\ty\n"), frame("c"))
    assert kinds(query("copy in"), *bad, query("rows 1")) == "GEZTDCZ"


def test_a_client_gone_in_a_copy_leaves_nothing() -> None:
    for last in (b"", TERMINATE):
        _, session = talk(query("copy in"), frame("d", b"1\tone\n"), last, goodbye=False)
        assert session.owner.copied == []
        assert session.owner.failed_copies == 1


@pytest.mark.parametrize(
    "bad",
    [
        frame("P", b"no end"),
        frame("B", b"\0\0\0\1\0\7"),
        frame("D", b"Z\0"),
        frame("E", b"\0"),
        frame("S", b"more"),
        frame("P", b"\0\xff\xfe\0\0\0"),
    ],
)
def test_a_message_that_cannot_be_read_is_an_error(bad: bytes) -> None:
    assert kinds(bad, SYNC, query("rows 1")) == "EZTDCZ"


def test_a_query_that_cannot_be_read_is_answered() -> None:
    assert kinds(frame("Q", b"\xff\xfe\0"), query("rows 1")) == "EZTDCZ"


def test_formats_are_checked() -> None:
    echo = parse("echo int, text")
    for formats in ((2,), (0, 0, 0), (-1,)):
        assert kinds(echo, bind([b"1", b"x"], formats=formats), SYNC) == "1EZ"
        assert kinds(echo, bind([b"1", b"x"], results=formats), SYNC) == "1EZ"
    assert kinds(echo, bind([b"1"]), SYNC) == "1EZ"
    mixed = bind([b"1", b"x"], formats=(0, 1), results=(1, 0))
    link, _ = talk(echo, mixed, execute(), SYNC)
    (row,) = [body for kind, body in link.replies() if kind == "D"]
    assert row == struct.pack(">Hii", 2, 4, 1) + struct.pack(">i", 1) + b"x"


def test_a_frame_that_lies_about_its_length_ends_the_conversation() -> None:
    async def run() -> MemoryLink:
        session = await Scripted().connect("bob", "d", {}, "memory")
        link = MemoryLink([query("rows 1"), b"Q" + struct.pack(">i", 2**30)])
        link.frames.login()
        with pytest.raises(ProtocolViolation):
            await Conversation(link, session, Figures(), SYSTEM).run()
        assert session.closed
        return link

    assert asyncio.run(run()).kinds().endswith("TDCZ")


def test_settings_are_reported_when_they_change() -> None:
    link, _ = talk(query("set TimeZone Europe/Paris"), query("rows 1"))
    reported = [body for kind, body in link.replies() if kind == "S"]
    assert reported[-1] == b"TimeZone\0Europe/Paris\0"
    assert link.kinds().endswith("CSZTDCZ")


def test_slow_clients_are_waited_for() -> None:
    link, _ = talk(query("rows 5000 by 5000"))
    assert link.drains == 5
