"""The names of errors that WHEN takes are PostgreSQL's: libpq's own table of them is the judge."""

from __future__ import annotations

import re

import psycopg.errors

from noonmark.errors import InvalidValue
from noonmark.sql.redact import redacted, scrubbed
from noonmark.sql.statement.conditions import STATES, is_of


def test_names_are_those_of_postgresql() -> None:
    for name, state in STATES.items():
        shown = psycopg.errors.lookup(state).__name__
        assert re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", shown).lower() == name


def test_a_class_stands_for_its_errors() -> None:
    assert is_of("23505", STATES["unique_violation"])
    assert is_of("23505", STATES["integrity_constraint_violation"])
    assert not is_of("23505", STATES["foreign_key_violation"])
    assert not is_of("22012", STATES["integrity_constraint_violation"])


def test_a_body_that_speaks_of_a_password_is_not_recorded() -> None:
    text = "DO $$ BEGIN CREATE ROLE ann LOGIN PASSWORD 'hunter22'; END $$"
    assert "hunter22" not in redacted(text)
    assert redacted("DO $$ BEGIN NULL; END $$") == "DO $$ BEGIN NULL; END $$"
    told = scrubbed(InvalidValue("no hunter22 here"), text, parsed=True)
    assert "hunter22" not in told.message
