"""Keys of sinks are equal as SQL has it (`noonmark.rows.canonical`, `noonmark.sink.envelope`)."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noonmark.errors import UniqueViolation
from noonmark.rows import types as t
from noonmark.rows.canonical import canonical
from noonmark.rows.identity import NEGATIVE_ZERO, hashable
from noonmark.rows.numeral import Numeral
from noonmark.rows.order import key_bytes
from noonmark.rows.pg.text import parse_value
from noonmark.rows.schema import Column, Schema
from noonmark.sink.avro import AvroEncoding
from noonmark.sink.encode import JsonEncoding
from noonmark.sink.envelope import Envelope
from noonmark.sink.keys import Keys
from support.store.rows import SCALARS, values

#: Values that are equal in SQL and not the same, by type.
EQUAL = {
    "double precision": ("0", "-0"),
    "real": ("-0", "0"),
    "numeric": ("1.0", "1.00"),
    "interval": ("1 mon 24:00:00", "31 days"),
    "jsonb": ('{"a": [1.0, 1e2]}', '{"a": [1, 100.0]}'),
    "double precision[]": ("{0,1}", "{-0,1}"),
    "numeric[]": ("{1.50,NULL}", "{1.5,NULL}"),
}
PAIRS = st.sampled_from(SCALARS).flatmap(
    lambda kind: st.tuples(st.just(kind), values(kind), values(kind))
)


@given(PAIRS)
def test_the_canonical_value_is_equal_and_the_same_for_all_that_are(drawn: Any) -> None:
    kind, a, b = drawn
    form, one = key_bytes(kind), canonical(kind)
    assert form(one(a)) == form(a)
    assert ((hashable(one(a)),) == (hashable(one(b)),)) == (form(a) == form(b))


@pytest.mark.parametrize("spelled", EQUAL)
@pytest.mark.parametrize("encoding", ["json", "avro"])
def test_equal_keys_are_one_key_of_the_topic(spelled: str, encoding: str) -> None:
    kind = t.parse_type(spelled)
    schema = Schema((Column("k", kind, nullable=False), Column("v", t.Integer())))
    made = (
        JsonEncoding(schema, ("k",)) if encoding == "json" else AvroEncoding(schema, ("k",), False)
    )
    envelope = Envelope("UPSERT", schema, ("k",), made)
    first, second = (hashable(parse_value(text, kind)) for text in EQUAL[spelled])
    assert first != second, "they are not the same"
    keys = Keys()
    (added,) = envelope.messages([((first, 1), 1, 1)], keys)
    (changed,) = envelope.messages([((first, 1), 2, -1), ((second, 2), 2, 1)], keys)
    assert changed.key == added.key
    assert changed.value is not None, "it is replaced, and not ended"
    with pytest.raises(UniqueViolation, match="several rows"):
        list(envelope.messages([((first, 3), 3, 1)], keys))
    (gone,) = envelope.messages([((second, 2), 4, -1)], keys)
    assert (gone.key, gone.value, len(keys)) == (added.key, None, 0)


def test_a_key_is_shown_in_its_shortest_form_and_a_value_as_it_is() -> None:
    schema = Schema.of(x="double precision", n="numeric", d="numeric(6,2)", j="jsonb")
    encoding = JsonEncoding(schema, schema.names)
    envelope = Envelope("UPSERT", schema, schema.names, encoding)
    row = (NEGATIVE_ZERO, Numeral("10.00"), Decimal("1.50"), '{"a": 1.10}')
    (message,) = envelope.messages([(row, 1, 1)], Keys())
    assert message.key == b'{"x":0.0,"n":"10","d":"1.50","j":{"a": 1.1}}'
    assert message.value == b'{"x":-0.0,"n":"10.00","d":"1.50","j":{"a": 1.10}}'


def test_a_document_keeps_its_digits() -> None:
    text = '{"n": 12345678901234567890.123456789012345678901}'
    schema = Schema.of(j="jsonb")
    found = JsonEncoding(schema).value((text,))
    assert json.loads(found, parse_float=str) == {"j": json.loads(text, parse_float=str)}
