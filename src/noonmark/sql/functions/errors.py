"""Errors of functions that have a SQLSTATE of their own: what `noonmark.errors` draws, goes on."""

from __future__ import annotations

from noonmark.errors import EvaluationError, InvalidArgument


class InvalidBuckets(InvalidArgument, id="invalid_buckets", sqlstate="2201G"):
    """Bounds, or a number of buckets, that width_bucket cannot take."""


class NullRefused(InvalidArgument, id="null_refused", sqlstate="22004"):
    """NULL, where a value must be."""


class UntranslatableText(EvaluationError, id="untranslatable_text", sqlstate="22P05"):
    """A character that text cannot hold: NUL."""


class NoSuchCharacter(InvalidArgument, id="no_such_character", sqlstate="54000"):
    """A number that no character of the encoding has."""


class NotHeldHere(EvaluationError, id="not_held_here", sqlstate="0A000"):
    """A value that PostgreSQL's type holds, and that of Noonmark does not."""


class InvalidPower(InvalidArgument, id="invalid_power", sqlstate="2201F"):
    """A power or a root that is no number."""
