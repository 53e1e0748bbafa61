"""Text that is recorded has no secrets in it (`sql.redact`), however it is written."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noonmark.adapter.session.recorded import RECORDED_MAX, recorded
from noonmark.errors import NoonmarkError
from noonmark.sql.lexer import tokens_of
from noonmark.sql.redact import HIDDEN, redacted, scrubbed
from noonmark.sql.statement import parse_statements

MARK = "pl4nted"
#: Everything that a secret stands in, its place marked.
STATEMENTS = (
    "CREATE SECRET s AS {}",
    "create secret if not exists x.s as {}",
    "CREATE SECRET s AS decode({}, 'base64')",
    "create secret s as ({} || 'x')",
    "ALTER SECRET s AS {}",
    "alter secret if exists a.s as {}",
    "CREATE ROLE ann PASSWORD {}",
    "create user ann with login password {} superuser",
    "create role ann encrypted password {}",
    "ALTER ROLE ann PASSWORD {}",
    "alter user ann with password {}",
    "CREATE CONNECTION c TO POSTGRES (HOST 'h', PASSWORD {})",
    "CREATE CONNECTION c TO POSTGRES (HOST 'h', PASSWORD = {})",
    "create connection c to kafka (broker 'h:1', sasl password = {}, ssl key {})",
    "alter connection c set (password = {})",
    "set my.password = {}",
    "set my.api_token to {}",
    "select set_config('my.password', {}, false)",
    # What does not parse.
    "CREAT SECRET s AS {}",
    "create secrte s; alter secret s to {}",
    "alter secret s {}",
    "alter secret s set value {}",
    "create secret {}",
    "alter role ann passwrod x password {}",
    "alter role ann password = {}",
    "give ann the password {}",
    "create secret s as {} 'and",
    "create role ann password {} /* and",
)
URLS = (
    "create source f from files 's3://b/x?aws_secret_access_key={}&region=a' format text",
    "create connection c to confluent schema registry (url 'http://me:{}@h:1')",
    "select 'postgres://me:{}@h/db'",
    "copy t to 's3://b/x?token={}'",
)


def quotings(secret: str) -> list[str]:
    """A text in every way that SQL writes one."""
    doubled = secret.replace("'", "''")
    escaped = secret.replace("\\", "\\\\").replace("'", "\\'")
    return [f"'{doubled}'", f"E'{escaped}'", f"$${secret}$$", f"$q${secret}$q$"]


@pytest.mark.parametrize("shape", STATEMENTS)
@given(more=st.text(alphabet="ab'\\ 0-;", max_size=8), which=st.integers(0, 3))
def test_no_secret_is_recorded(shape: str, more: str, which: int) -> None:
    secret = f"{MARK}{more}{MARK}"
    text = shape.replace("{}", quotings(secret)[which])
    assert MARK not in redacted(text), text
    assert MARK not in redacted(text.upper().replace(MARK.upper(), MARK)), text
    assert MARK not in redacted(f"select 1; {text}"), text


@pytest.mark.parametrize("shape", STATEMENTS)
@pytest.mark.parametrize("which", range(4))
def test_no_error_repeats_one(shape: str, which: int) -> None:
    text = shape.replace("{}", quotings(f"{MARK}'s")[which])
    try:
        parse_statements(text)
    except NoonmarkError as error:
        told = scrubbed(error, text, parsed=False)
        assert MARK not in f"{told} {told.args} {told!r}"
    made = NoonmarkError(f'invalid input: "{MARK}\'s"', detail=text, hint=text)
    assert MARK not in str(scrubbed(made, text, parsed=True)) or HIDDEN not in redacted(text)


@pytest.mark.parametrize("shape", STATEMENTS[:18])
def test_words_without_quotes(shape: str) -> None:
    """Somebody who forgets the quotes has written a secret all the same."""
    if " AS " in shape.upper() and "SECRET" in shape.upper():
        assert MARK not in redacted(shape.replace("{}", MARK))


@pytest.mark.parametrize("shape", URLS)
def test_urls_have_no_credentials(shape: str) -> None:
    assert MARK not in redacted(shape.replace("{}", MARK))


@pytest.mark.parametrize(
    "text",
    [
        "select * from t where a = 'x'",
        "insert into keys values ('a', 'b')",
        "create connection c to postgres (host 'db', password secret p)",
        "create source s from webhook body format json check (with (headers, secret k) true)",
        "select key, 'value' from pairs",
        "show secrets",
        "drop secret s",
        "grant usage on secret s to ann",
        "create table secrets (a text default 'x')",
        "create source f from files 's3://bucket/x*.json' format json",
        "create connection c to confluent schema registry (url 'http://h.example:8081')",
    ],
)
def test_the_rest_is_recorded_as_it_is(text: str) -> None:
    assert redacted(text) == text


def test_what_is_left_is_cut_at_tokens() -> None:
    generator = random.Random(1)
    words = ["create", "secret", "as", "password", "'x'", "role", "(", ")", "=", "s", ",", "1", ";"]
    for _ in range(2_000):
        text = " ".join(generator.choices(words, k=8))
        tokens_of(redacted(text))


def test_of_a_long_text_the_beginning_is_recorded() -> None:
    long = "x" * 50_000
    assert recorded(f"select '{long}'") == f"select '{long}'"[:RECORDED_MAX]
    for text in (
        f"create secret s as '{long}'",
        f"select 1 /*{'-' * (RECORDED_MAX - 40)}*/; create secret s as '{long}'",
    ):
        assert "xxx" not in recorded(text)
        assert len(recorded(text)) <= RECORDED_MAX + len(HIDDEN)
