"""Statements as they may be recorded: without secrets, passwords and keys.

Text is redacted where it is recorded: what a session is doing, what made an object, the log. It is
cut by the parser's own tokens, so what is shown is the text with some tokens replaced.

Law (kept): a literal of CREATE or ALTER SECRET, of CREATE or ALTER ROLE with a PASSWORD, or behind
a word such as PASSWORD is not in the redacted text, however it is quoted; a URL in a literal has
neither password nor key. Law (conservative): in a text that is not understood, everything from the
first thing on that could be a secret is left out, if it speaks of secrets at all. Law (others): a
text that does not speak of secrets, and has no URL, is recorded as it is.

An error about such a statement must not repeat it either: `scrubbed` takes out of an error whatever
`redacted` takes out of the text.
"""

from __future__ import annotations

import re

from noonmark.errors import InvalidSyntax, NoonmarkError
from noonmark.persist.impl.redact import redact as redacted_url
from noonmark.sql.lexer import Token, tokens_of

HIDDEN = "<redacted>"
#: What may announce a secret; as a cheap first look at any text.
_SPEAKS = re.compile(r"secret|passw|token|credential|private|://|\bssl|\bsasl|key\b|pwd", re.I)
#: Words whose next literal is a secret.
_WORDS = re.compile(r"^(password|passwd|pwd|passphrase|secret|token|credentials?|.*_password|"
                    r".*_secret|.*_token|.*secret_access_key|.*_key)$")  # fmt: skip
_URL = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://[^\s'\"<>\\]+")
_BETWEEN = frozenset(("=", ":", "=>", ",", "(", "encrypted", "to", "as"))
_MAKES = ("create", "alter")


def speaks_of_secrets(text: str) -> bool:
    """Whether a text has to be looked at closely; most have not."""
    return _SPEAKS.search(text) is not None


def redacted(text: str) -> str:
    """The text without what must not be recorded.

    >>> redacted("CREATE SECRET s AS 'hunter2'")
    'CREATE SECRET s AS <redacted>'
    >>> redacted("create role ann login password 'hunter2' superuser")
    "create role ann login password '<redacted>' superuser"
    >>> redacted("select 1")
    'select 1'
    """
    if not speaks_of_secrets(text):
        return text
    try:
        tokens = tokens_of(text)
    except InvalidSyntax as error:
        return _beginning(text, error)
    pieces: list[str] = []
    at = 0
    for token, shown in _shown(text, tokens):
        pieces += [text[at : token.start], shown]
        at = token.end
    return "".join([*pieces, text[at:]])


def _beginning(text: str, error: InvalidSyntax) -> str:
    """As much of a text that cannot be cut into tokens as certainly holds no secret."""
    stop = re.search(r"['\"$]|/\*|--|\bas\b|=|passw", text, re.I)
    end = min((error.position or 1) - 1, stop.start() if stop else len(text))
    return f"{text[:end]}{HIDDEN}"


def _shown(text: str, tokens: list[Token]) -> list[tuple[Token, str]]:
    """The tokens that are replaced, and by what."""
    found: list[tuple[Token, str]] = []
    for start, end in _statements(tokens):
        found += _of_statement(text, tokens[start:end])
    return found


def _statements(tokens: list[Token]) -> list[tuple[int, int]]:
    cuts = [at for at, each in enumerate(tokens) if each.kind == "sign" and each.value == ";"]
    starts = [0, *(at + 1 for at in cuts)]
    return list(zip(starts, [*cuts, len(tokens) - 1], strict=True))


def _of_statement(text: str, tokens: list[Token]) -> list[tuple[Token, str]]:
    words = [each.value for each in tokens if each.kind == "word"]
    if words[:1] == ["do"]:
        bodies = [each for each in tokens if each.kind == "string"]
        return [(each, f"'{HIDDEN}'") for each in bodies if redacted(each.value) != each.value]
    if "secret" in words[:3] and (words[0] in _MAKES or words[0] not in _KNOWN):
        return _after_as(tokens)
    whole = "password" in words and "role" not in words[1:2] and "user" not in words[1:2]
    whole = whole and words[0] not in _KNOWN
    found = []
    for at, token in enumerate(tokens):
        if token.kind in ("string", "number", "quoted") and (whole or _announced(tokens, at)):
            found.append((token, f"'{HIDDEN}'"))
        elif token.kind in ("string", "quoted") and "://" in token.value:
            raw = text[token.start : token.end]
            found.append((token, _URL.sub(_one_url, raw)))
        elif token.kind == "string" and "-----BEGIN" in token.value:
            found.append((token, f"'{HIDDEN}'"))
    return found


def _one_url(match: re.Match[str]) -> str:
    shown = redacted_url(match[0])
    return match[0] if shown.replace("%20", " ") == match[0] else shown


#: What statements begin with that parse, or nearly do.
_KNOWN = frozenset(
    (
        *("create", "alter", "drop", "grant", "revoke", "comment", "validate", "reassign"),
        *("select", "with", "values", "table", "show", "explain", "subscribe", "audit", "copy"),
        *("insert", "update", "delete", "truncate", "set", "reset", "begin", "commit", "rollback"),
        *("declare", "fetch", "prepare", "execute"),
    )
)


def _after_as(tokens: list[Token]) -> list[tuple[Token, str]]:
    """All that follows AS; without one, all that is no plain word."""
    cut = next((at for at, each in enumerate(tokens) if each.value == "as"), None)
    if cut is not None:
        rest = tokens[cut + 1 :]
        return [(each, HIDDEN if not at else "") for at, each in enumerate(rest)]
    names = 0
    found = []
    for each in tokens:
        names += each.kind in ("word", "quoted")
        # CREATE SECRET [IF NOT EXISTS] name: what comes behind that many words is not a name.
        if each.kind not in ("word", "quoted", "sign", "end") or names > _NAMES_MAX:
            found.append((each, HIDDEN))
    return found


_NAMES_MAX = 6


def _announced(tokens: list[Token], at: int) -> bool:
    """Whether a word before a literal says that it is a secret."""
    before = at - 1
    while before >= 0 and tokens[before].value in _BETWEEN and tokens[before].kind != "string":
        before -= 1
    if before < 0 or tokens[before].kind not in ("word", "quoted", "string"):
        return False
    word = tokens[before].value.lower()
    if tokens[before].kind == "string":  # set_config('my.password', '...', false)
        return "." in word and _WORDS.match(word.rpartition(".")[2]) is not None
    if word == "secret":  # PASSWORD SECRET s: a name; SECRET 'text': not one
        return tokens[at].kind != "quoted"
    if word == "key":
        return before > 0 and tokens[before - 1].value in ("ssl", "access", "api", "account")
    return _WORDS.match(word) is not None


def scrubbed(error: NoonmarkError, text: str, *, parsed: bool) -> NoonmarkError:
    """The error of a statement without what `redacted` takes out of its text.

    Args:
        error: changed in place.
        text: the statement.
        parsed: whether it was understood; if not, no piece of it is repeated.
    """
    if not speaks_of_secrets(text) or redacted(text) == text:
        return error
    hidden = _hidden_texts(text)
    if hidden is None or (not parsed and isinstance(error, InvalidSyntax)):
        error.message, error.detail, error.hint = "syntax error", None, None
        error.args = (error.message,)
        return error
    for name in ("message", "detail", "hint"):
        value = getattr(error, name)
        for each in hidden if value else ():
            value = value.replace(each, HIDDEN)
        setattr(error, name, value)
    error.args = (error.message,)
    return error


def _hidden_texts(text: str) -> list[str] | None:
    """What was taken out of a text, as it may turn up elsewhere, the longest first; None: any."""
    try:
        tokens = tokens_of(text)
    except InvalidSyntax:
        return None
    values = {token.value for token, _ in _shown(text, tokens)}
    values |= {text[token.start : token.end] for token, _ in _shown(text, tokens)}
    for token, _ in _shown(text, tokens):
        if token.value != text and speaks_of_secrets(token.value):  # the body of a DO
            values |= set(_hidden_texts(token.value) or ())
    return sorted((each for each in values if len(each) > 2), key=len, reverse=True)
