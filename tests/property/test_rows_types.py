"""The laws of noonmark.rows.types and noonmark.rows.schema."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noonmark.errors import InvalidValue, SchemaMismatch, UndefinedObject, Unsupported, UsageError
from noonmark.rows import types as t
from noonmark.rows.schema import RESERVED_NAMES, Column, Schema
from noonmark.rows.types import parse_type
from support.store.rows import ALL_TYPES, SCALARS, is_own

_NAMES = st.one_of(
    st.sampled_from(["a", "A", "a b", 'q"uote', "integer", "é", "1"]),
    st.text(min_size=1, max_size=5).filter(
        lambda name: "\0" not in name and name not in RESERVED_NAMES
    ),
)
_PARAMETRIC = st.one_of(
    st.sampled_from([kind for kind in SCALARS if is_own(kind)]),
    st.integers(1, 38).flatmap(lambda p: st.builds(t.Numeric, st.just(p), st.integers(0, p))),
    st.builds(t.Varchar, st.integers(1, t.LENGTH_MAX)),
    st.builds(t.Char, st.none() | st.integers(1, t.LENGTH_MAX)),
)


def _records(inner: st.SearchStrategy[t.SqlType]) -> st.SearchStrategy[t.SqlType]:
    fields = st.lists(
        st.builds(t.Field, _NAMES, inner), min_size=1, max_size=3, unique_by=lambda f: f.name
    )
    arrays = inner.filter(lambda kind: not isinstance(kind, t.Array)).map(t.Array)
    return st.one_of(fields.map(lambda f: t.Record(tuple(f))), arrays)


TYPES = st.recursive(_PARAMETRIC, _records, max_leaves=5)
SCHEMAS = st.lists(
    st.builds(Column, _NAMES, TYPES, st.booleans()), max_size=4, unique_by=lambda c: c.name
).map(lambda columns: Schema(tuple(columns)))


@settings(max_examples=50)
@given(sql_type=TYPES)
def test_a_type_is_what_its_spelling_says(sql_type: t.SqlType) -> None:
    assert parse_type(str(sql_type)) == sql_type
    assert pickle.loads(pickle.dumps(sql_type)) == sql_type


@pytest.mark.parametrize("sql_type", ALL_TYPES, ids=str)
def test_a_type_is_what_its_stored_spelling_says(sql_type: t.SqlType) -> None:
    assert t.parse_stored(t.stored_spelling(sql_type)) == sql_type
    assert repr(pickle.loads(pickle.dumps(sql_type))) == repr(sql_type)


@pytest.mark.parametrize(
    ("alias", "canonical"),
    [
        ("INT", "integer"),
        ("int8[]", "bigint[]"),
        ("decimal(10, 2) [3]", "numeric(10,2)[]"),
        ("numeric(5)", "numeric(5,0)"),
        ("float(24)", "real"),
        ("float", "double precision"),
        ("Timestamp With Time Zone", "timestamp with time zone"),
        ("timestamp(6)", "timestamp without time zone"),
        ("timestamptz", "timestamp with time zone"),
        ("char", "character(1)"),
        ("bpchar(4)", "character(4)"),
        ("text ARRAY", "text[]"),
        ('record(A int, "B" text[])', 'record(a integer, "B" text[])'),
    ],
)
def test_aliases(alias: str, canonical: str) -> None:
    assert str(parse_type(alias)) == canonical


@pytest.mark.parametrize(
    "text",
    ["", "(", "integer(3)", "integer[", "varchar(0)", "numeric(0)", "record()", "a'b", "int x"],
)
def test_what_is_no_type_is_refused(text: str) -> None:
    with pytest.raises((InvalidValue, Unsupported)):
        parse_type(text)


@pytest.mark.parametrize(
    "text",
    ["xml", "numeric(39,0)", "numeric(5,-1)", "numeric(2,3)", "int[][]", "timestamp(3)"],
)
def test_what_storage_cannot_keep_is_refused_by_name(text: str) -> None:
    with pytest.raises(Unsupported):
        parse_type(text)


@given(text=st.text(max_size=12))
def test_the_parser_fails_only_with_its_own_errors(text: str) -> None:
    try:
        parse_type(text)
    except (InvalidValue, UndefinedObject, Unsupported):
        return
    assert str(parse_type(str(parse_type(text)))) == str(parse_type(text))


@settings(max_examples=40)
@given(schema=SCHEMAS)
def test_a_schema_survives_the_wire(schema: Schema) -> None:
    wire = schema.to_wire()
    assert Schema.from_wire(wire) == schema
    assert Schema.from_wire([list(entry) for entry in wire]) == schema
    copy = pickle.loads(pickle.dumps(schema))
    assert copy == schema
    assert hash(copy) == hash(schema)
    assert copy.names == schema.names


@settings(max_examples=40)
@given(schema=SCHEMAS, more=SCHEMAS)
def test_a_schema_grows_by_new_nullable_columns_only(schema: Schema, more: Schema) -> None:
    allowed = all(c.nullable and c.name not in schema for c in more)
    if not allowed:
        with pytest.raises(SchemaMismatch) as caught:
            schema.extend(more)
        assert caught.value.detail
        assert caught.value.hint
        return
    grown = schema.extend(more)
    assert grown.columns == schema.columns + more.columns
    assert grown.extends(schema)
    assert schema.extends(grown) == (len(more) == 0)


@pytest.mark.parametrize("name", ["_time", "_diff", "", "a\0b"])
def test_names_that_no_column_may_have(name: str) -> None:
    with pytest.raises(UsageError):
        Column(name, t.Text())


def test_a_name_occurs_once() -> None:
    with pytest.raises(SchemaMismatch, match="more than once"):
        Schema((Column("a", t.Text()), Column("a", t.Integer())))


def test_look_up_by_name() -> None:
    schema = Schema.of(id="bigint NOT NULL", name="text")
    assert schema["id"] == Column("id", t.BigInt(), nullable=False)
    assert schema.index("name") == 1
    assert "name" in schema
    assert "nome" not in schema
    with pytest.raises(SchemaMismatch, match="nome"):
        schema["nome"]
