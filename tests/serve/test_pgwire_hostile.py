"""Frames that no honest client sends (C11): 20,000 here, a million in `tests/prove`."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noonmark.errors import ProtocolViolation
from noonmark.serve.pgwire.frames import LOGIN_BYTES_MAX, START_BYTES_MAX, Frames
from noonmark.serve.pgwire.message import parse, parse_start
from support.serve import link as wire
from support.serve.hostile import Hostile

KINDS = b"QPBDECHSXFdcf"
INSIDE = {"flip inside", "cut inside", "put in inside", "number inside"}
BENT = INSIDE | {"flip", "cut", "put in", "length", "kind", "noise"}


@pytest.mark.parametrize("seed", range(4))
def test_hostile_streams_end_well(seed: int) -> None:
    hostile = Hostile(seed)
    hostile.run(5_000)
    assert hostile.frames >= 5_000
    # A run that bent nothing, or in which nothing was understood, proves nothing.
    assert set(hostile.bent) == BENT
    assert set("12DTCEZ") <= set(hostile.replies)


@given(st.integers(0, 255), st.binary(max_size=200))
def test_any_bytes_are_a_message_or_a_violation(kind: int, body: bytes) -> None:
    try:
        message = parse(kind, body)
    except ProtocolViolation:
        return
    assert kind in KINDS
    assert message is not None


@given(st.integers(0, 2**32 - 1), st.binary(max_size=200))
def test_any_start_is_a_request_or_a_violation(code: int, body: bytes) -> None:
    try:
        parse_start(code, body)
    except ProtocolViolation:
        return
    assert code == 80877102 or code >> 16 == 3


@given(
    st.lists(st.tuples(st.sampled_from(sorted(KINDS)), st.binary(max_size=50)), max_size=8),
    st.lists(st.integers(1, 40), min_size=1),
)
def test_frames_do_not_depend_on_the_pieces(
    sent: list[tuple[int, bytes]], sizes: list[int]
) -> None:
    stream = b"".join(wire.frame(chr(kind), body) for kind, body in sent)
    frames, found = Frames(), []
    frames.login()
    turn = 0
    while stream:
        size = sizes[turn % len(sizes)]
        frames.feed(stream[:size])
        stream, turn = stream[size:], turn + 1
        while (frame := frames.next()) is not None:
            found.append(frame)
    assert found == sent
    assert frames.waiting_bytes == 0


@pytest.mark.parametrize("length", [-(2**31), -1, 0, 7, START_BYTES_MAX + 1, 2**31 - 1])
def test_a_start_packet_of_a_wrong_length_is_refused_at_its_fourth_byte(length: int) -> None:
    frames = Frames()
    frames.feed(struct.pack(">i", length))
    with pytest.raises(ProtocolViolation, match="length of startup packet"):
        frames.start()


def test_before_login_only_short_answers_pass() -> None:
    for kind, length in ((b"Q", 100), (b"p", LOGIN_BYTES_MAX + 1), (b"d", 2**30)):
        frames = Frames()
        frames.feed(kind + struct.pack(">i", length))
        with pytest.raises(ProtocolViolation):
            frames.next()
    frames = Frames()
    frames.feed(wire.frame("p", b"x" * (LOGIN_BYTES_MAX - 4)))
    assert frames.next() is not None


def test_after_login_each_kind_has_its_limit() -> None:
    for kind, length, fits in ((b"Q", 1000, True), (b"Q", 1001, False), (b"S", 10_001, False)):
        frames = Frames(1000)
        frames.login()
        frames.feed(kind + struct.pack(">i", length))
        if fits:
            assert frames.next() is None
        else:
            with pytest.raises(ProtocolViolation, match="length"):
                frames.next()
