"""Network addresses: operators and functions."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator

from noonmark.errors import InvalidArgument, OutOfRange
from noonmark.rows import types as t
from noonmark.rows.coded.network import Address, Cidr, Inet, Macaddr, Macaddr8
from noonmark.rows.value import INT64_MAX, INT64_MIN
from noonmark.sql.functions.function import Function


def _of(act: Callable[..., object]) -> Callable[..., object]:
    """The function of addresses as one of values; an address that it gives is a value again."""

    def values(first: bytes, *more: object) -> object:
        made = act(Address.of(first), *more)
        return made.value if isinstance(made, Address) else made

    return values


def _both(act: Callable[[Address, Address], object]) -> Callable[..., object]:
    def values(a: bytes, b: bytes) -> object:
        made = act(Address.of(a), Address.of(b))
        return made.value if isinstance(made, Address) else made

    return values


def _short(address: Address) -> str:
    """A net without the parts of it that the mask does not reach."""
    if len(address.raw) == 16:
        return f"{_short_six(address.net.raw, address.bits)}/{address.bits}"
    shown = ".".join(str(each) for each in address.net.raw[: (address.bits + 7) // 8])
    return f"{shown or '0'}/{address.bits}"


def _short_six(raw: bytes, bits: int) -> str:
    """As PostgreSQL's inet_cidr_ntop has it: only the words that the mask reaches."""
    if bits == 0:
        return "::"
    count = max((bits + 15) // 16, 2)
    words = [int.from_bytes(raw[at * 2 : at * 2 + 2], "big") for at in range(count)]
    first, length = _zeros(words)
    embedded = (
        length != count
        and first == 0
        and (
            length == 6
            or (length == 5 and raw[10:12] == b"\xff\xff")
            or (length == 7 and raw[14] != 0 and raw[15] != 1)
        )
    )
    made = ""
    for at, word in enumerate(words):
        if first <= at < first + length:
            made += ":" * ((at == first) + (at == count - 1))
        elif embedded and at > 5:
            made += f"{':' if at == 6 else '.'}{raw[at * 2]}"
            if at != 7 or bits > 120:
                made += f".{raw[at * 2 + 1]}"
        else:
            made += f"{':' if made else ''}{word:x}"
    return made


def _zeros(words: list[int]) -> tuple[int, int]:
    """The first of the longest runs of zeros, counted as PostgreSQL counts them."""
    best, start, run = (0, 0), 0, 0
    for at, word in enumerate(words):
        if word == 0:
            start = start if run else at
            run += 1
        elif run and best[1] < run:
            best, run = (start, run), 0
    return (start, run) if run and best[1] < run else best


def _broadcast(address: Address) -> Address:
    return address.at(address.number | (1 << address.width - address.bits) - 1)


def _with_mask(address: Address, bits: int) -> Address:
    if not -1 <= bits <= address.width:
        raise InvalidArgument(f"invalid mask length: {bits}")
    return address.at(address.number, address.width if bits == -1 else bits)


def _merged(a: Address, b: Address) -> Address:
    if len(a.raw) != len(b.raw):
        raise InvalidArgument("cannot merge addresses from different families")
    common = a.width - (a.number ^ b.number).bit_length()
    return a.at(a.number, min(common, a.bits, b.bits)).net


def _bitwise(word: str, act: Callable[[int, int], int]) -> Callable[[Address, Address], Address]:
    def both(a: Address, b: Address) -> Address:
        if len(a.raw) != len(b.raw):
            raise InvalidArgument(f"cannot {word} inet values of different sizes")
        return a.at(act(a.number, b.number), max(a.bits, b.bits))

    return both


def _moved(address: Address, by: int) -> Address:
    number = address.number + by
    if not 0 <= number < 1 << address.width:
        raise OutOfRange("result is out of range")
    return address.at(number)


def _distance(a: Address, b: Address) -> int:
    if len(a.raw) != len(b.raw):
        raise InvalidArgument("cannot subtract inet values of different sizes")
    by = a.number - b.number
    if not INT64_MIN <= by <= INT64_MAX:
        raise OutOfRange("result is out of range")
    return by


def _cards() -> Iterator[Function]:
    for kind in (Macaddr, Macaddr8):
        for sign, act in (("&", operator.and_), ("|", operator.or_)):
            yield Function(sign, (kind, kind), kind(), _each_byte(act))
        yield Function("~", (kind,), kind(), lambda value: bytes(255 - each for each in value))
        yield Function("trunc", (kind,), kind(), lambda value: value[:3].ljust(len(value), b"\0"))
    seventh = lambda value: bytes([value[0] | 2]) + value[1:]  # noqa: E731 - two words
    yield Function("macaddr8_set7bit", (Macaddr8,), Macaddr8(), seventh)


def _each_byte(act: Callable[[int, int], int]) -> Callable[[bytes, bytes], bytes]:
    return lambda a, b: bytes(act(x, y) for x, y in zip(a, b, strict=True))


_INET, _TEXT, _BOOLEAN, _ONE, _TWO = Inet(), t.Text(), t.Boolean(), (Inet,), (Inet, Inet)
_TESTS: dict[str, Callable[[Address, Address], bool]] = {
    "<<": lambda a, b: a.bits > b.bits and b.holds(a),
    "<<=": lambda a, b: b.holds(a),
    ">>": lambda a, b: b.bits > a.bits and a.holds(b),
    ">>=": lambda a, b: a.holds(b),
    "&&": lambda a, b: a.holds(b) or b.holds(a),
}

TABLE = (
    *(Function(sign, _TWO, _BOOLEAN, _both(act)) for sign, act in _TESTS.items()),
    Function("&", _TWO, _INET, _both(_bitwise("AND", operator.and_)), fallible=True),
    Function("|", _TWO, _INET, _both(_bitwise("OR", operator.or_)), fallible=True),
    Function("~", _ONE, _INET, _of(lambda a: a.at(a.number ^ (1 << a.width) - 1))),
    Function("+", (Inet, t.BigInt), _INET, _of(_moved), fallible=True),
    Function(
        "+",
        (t.BigInt, Inet),
        _INET,
        lambda by, value: _moved(Address.of(value), by).value,
        fallible=True,
    ),
    Function("-", (Inet, t.BigInt), _INET, _of(lambda a, by: _moved(a, -by)), fallible=True),
    Function("-", _TWO, t.BigInt(), _both(_distance), fallible=True),
    Function("abbrev", _ONE, _TEXT, _INET.show),
    Function("abbrev", (Cidr,), _TEXT, _of(_short)),
    Function("broadcast", _ONE, _INET, _of(_broadcast)),
    Function("family", _ONE, t.Integer(), _of(lambda a: 4 if len(a.raw) == 4 else 6)),
    Function("host", _ONE, _TEXT, _of(lambda a: a.host)),
    Function("hostmask", _ONE, _INET, _of(lambda a: a.at(a.mask ^ (1 << a.width) - 1, a.width))),
    Function("netmask", _ONE, _INET, _of(lambda a: a.at(a.mask, a.width))),
    Function("network", _ONE, Cidr(), _of(lambda a: a.net)),
    Function("masklen", _ONE, t.Integer(), _of(lambda a: a.bits)),
    Function("inet_merge", _TWO, Cidr(), _both(_merged), fallible=True),
    Function("inet_same_family", _TWO, _BOOLEAN, _both(lambda a, b: a.width == b.width)),
    Function("set_masklen", (Inet, t.Integer), _INET, _of(_with_mask), fallible=True),
    Function(
        "set_masklen",
        (Cidr, t.Integer),
        Cidr(),
        _of(lambda a, bits: _with_mask(a, bits).net),
        fallible=True,
    ),
    *_cards(),
)
