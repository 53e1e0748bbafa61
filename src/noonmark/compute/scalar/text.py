"""Texts by kernels and on Spark."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from noonmark.compute.scalar.forms import Forms, Kernel, Made
from noonmark.compute.scalar.number import NoKernel
from noonmark.sql.functions.text.pattern import like
from noonmark.sql.ir.scalar import Call, Literal, Scalar

# -- kernels --------------------------------------------------------------------------------------


def _like(call: Call, column: Any, _: Any) -> Any:
    pattern = call.arguments[1]
    if not isinstance(pattern, Literal) or pattern.value is None:
        raise NoKernel
    text = pattern.value
    inner = text.strip("%")
    if not _is_plain(text) or isinstance(column, pa.Scalar):
        matcher = like(text)
        listed = [column.as_py()] if isinstance(column, pa.Scalar) else column.to_pylist()
        found = [None if x is None else matcher.matches(x) for x in listed]
        return pa.array(found, pa.bool_())
    if text == inner:
        return pc.equal(column, text)
    if text.startswith("%") and text.endswith("%"):
        return pc.match_substring(column, inner)
    return (pc.ends_with if text.startswith("%") else pc.starts_with)(column, inner)


def _substring(call: Call, text: Any, *_: Any) -> Any:
    if not _is_inside(call):
        raise NoKernel
    first, count = (each.value for each in call.arguments[1:] if isinstance(each, Literal))
    return pc.utf8_slice_codeunits(text, first - 1, first - 1 + count)


def _ascii(act: Callable[[pa.Array], pa.Array]) -> Kernel:
    """For texts of ASCII alone: of others the meaning knows more."""

    def kernel(_: Call, value: Any) -> Any:
        if isinstance(value, pa.Scalar) or pc.all(pc.string_is_ascii(value)).as_py() is False:
            raise NoKernel
        return act(value)

    return kernel


# -- for which calls ------------------------------------------------------------------------------


def _is_plain(pattern: str) -> bool:
    """Whether LIKE looks for the beginning, the end or a part of a text."""
    inner = pattern.strip("%")
    return "\\" not in pattern and "_" not in pattern and "%" not in inner


def _is_quick(call: Call) -> bool:
    """Spark makes a regular expression of any other pattern, and Java's may take for ever."""
    pattern = call.arguments[1]
    if not isinstance(pattern, Literal):
        return False
    text = pattern.value or ""
    return _is_plain(text) and "%" not in text.removeprefix("%").removesuffix("%")


def _is_inside(call: Call) -> bool:
    """Whether a substring begins in the text and ends after its beginning, as constants say."""
    start, length = call.arguments[1:]
    return _is_at_least(start, 1) and _is_at_least(length, 0)


def _is_at_least(node: Scalar, least: int) -> bool:
    return isinstance(node, Literal) and node.value is not None and node.value >= least


_LENGTH = Forms(lambda _, a: pc.utf8_length(a), lambda f, a: Made(f.length(a)))

TABLE: dict[str, Forms] = {
    "||(text, text)": Forms(
        lambda _, a, b: pc.binary_join_element_wise(a, b, ""), lambda f, a, b: Made(f.concat(a, b))
    ),
    **{f"{name}(text)": _LENGTH for name in ("length", "char_length", "character_length")},
    "lower(text)": Forms(_ascii(pc.ascii_lower)),
    "upper(text)": Forms(_ascii(pc.ascii_upper)),
    "like(text, text)": Forms(_like, lambda f, a, b: Made(f.like(a, b)), _is_quick),
    "substring(text, integer, integer)": Forms(
        _substring, lambda f, a, b, c: Made(f.substring(a, b, c)), _is_inside
    ),
}
