"""Errors of functions that have a SQLSTATE of their own: what `noonmark.errors` draws, goes on."""

from __future__ import annotations

from noonmark.errors import EvaluationError, InvalidArgument, SqlError, UndefinedFunction


class InvalidBuckets(InvalidArgument, id="invalid_buckets", sqlstate="2201G"):
    """Bounds, or a number of buckets, that width_bucket cannot take."""


class InvalidNtile(InvalidArgument, id="invalid_ntile", sqlstate="22014"):
    """A number of parts that ntile cannot make."""


class InvalidNth(InvalidArgument, id="invalid_nth", sqlstate="22016"):
    """A number of a row that no frame has."""


class NullRefused(InvalidArgument, id="null_refused", sqlstate="22004"):
    """NULL, where a value must be."""


class InvalidFrameSize(InvalidArgument, id="invalid_frame_size", sqlstate="22013"):
    """A bound of a window's frame that is a negative distance away."""


class NegativeLimit(InvalidArgument, id="negative_limit", sqlstate="2201W"):
    """A negative number of rows for LIMIT."""


class NegativeOffset(InvalidArgument, id="negative_offset", sqlstate="2201X"):
    """A negative number of rows for OFFSET."""


class UntranslatableText(EvaluationError, id="untranslatable_text", sqlstate="22P05"):
    """A character that a text, or an encoding, cannot hold."""


class BytesNotInEncoding(EvaluationError, id="bytes_not_in_encoding", sqlstate="22021"):
    """Bytes that are no text of the encoding that they are said to be of."""


class NoSuchCharacter(InvalidArgument, id="no_such_character", sqlstate="54000"):
    """A number that no character of the encoding has."""


class NotHeldHere(EvaluationError, id="not_held_here", sqlstate="0A000"):
    """A value that PostgreSQL's type holds, and that of Noonmark does not."""


class InvalidPower(InvalidArgument, id="invalid_power", sqlstate="2201F"):
    """A power or a root that is no number."""


class NoSuchSubscript(InvalidArgument, id="no_such_subscript", sqlstate="2202E"):
    """A number of a part that is not there."""


class EscapeMisused(InvalidArgument, id="escape_misused", sqlstate="2200C"):
    """An escape character where none may be."""


class TooManyItems(InvalidArgument, id="too_many_items", sqlstate="54000"):
    """An array of more items than one can have."""


class InvalidUnicode(EvaluationError, id="invalid_unicode", sqlstate="42601"):
    """An escape that stands for no character."""


class AmbiguousFunction(UndefinedFunction, id="ambiguous_function", sqlstate="42725"):
    """Several functions of a name take the arguments, and none of them better than another."""


class IndeterminateType(SqlError, id="indeterminate_type", sqlstate="42P18"):
    """Nothing says of what type something is."""


class InvalidTemplate(EvaluationError, id="invalid_template", sqlstate="42601"):
    """A template of to_char has patterns that do not go together."""


class UnlikeBits(InvalidArgument, id="unlike_bits", sqlstate="22026"):
    """Strings of bits that are not of one length."""


class RangeRefused(EvaluationError, id="range_refused", sqlstate="22000"):
    """Edges between which there is no range, or parts that are no one range."""


class BadFlags(EvaluationError, id="bad_range_flags", sqlstate="42601"):
    """Signs that say nothing about the edges of a range."""
