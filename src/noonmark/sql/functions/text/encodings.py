"""Encodings: text is UTF-8 here; bytes of other encodings are made of it, and read, by name.

Law (round): what `convert_to` makes of a text, `convert_from` reads back, in every encoding. A
character that an encoding has not is refused, and so are bytes that are none of its characters.
"""

from __future__ import annotations

import re

from noonmark.errors import InvalidArgument
from noonmark.rows import types as t
from noonmark.sql.functions.errors import BytesNotInEncoding, UntranslatableText
from noonmark.sql.functions.function import Function

#: PostgreSQL's names and Python's.
_CODECS = {
    "UTF8": "utf-8",
    **{f"LATIN{n}": f"iso8859-{n}" for n in range(1, 5)},
    "LATIN5": "iso8859-9", "LATIN6": "iso8859-10", "LATIN7": "iso8859-13", "LATIN8": "iso8859-14",
    "LATIN9": "iso8859-15", "LATIN10": "iso8859-16",
    **{f"ISO_8859_{n}": f"iso8859-{n}" for n in range(5, 9)},
    **{f"WIN{n}": f"cp{n}" for n in (866, 874, *range(1250, 1259))},
    "KOI8R": "koi8-r", "KOI8U": "koi8-u", "EUC_JP": "euc_jp", "EUC_KR": "euc_kr",
    "EUC_CN": "gb2312", "SJIS": "cp932", "BIG5": "cp950", "GBK": "gbk", "GB18030": "gb18030",
    "UHC": "cp949", "JOHAB": "johab",
}  # fmt: skip
#: Encodings in which every byte is a character, or none.
_OF_BYTES = ("iso", "koi", "cp12", "cp8")
_OTHER_NAMES = {
    "unicode": "UTF8", "sqlascii": "UTF8", "koi8": "KOI8R", "shiftjis": "SJIS",
    "mskanji": "SJIS", "alt": "WIN866", "win": "WIN1251",
    "tcvn": "WIN1258", "vscii": "WIN1258", "abc": "WIN1258",
    "tcvn5712": "WIN1258", "windows949": "UHC", "windows932": "SJIS", "windows936": "GBK",
    "windows950": "BIG5", "win932": "SJIS", "win936": "GBK", "win949": "UHC", "win950": "BIG5",
    **{f"iso8859{n}": f"LATIN{n}" for n in range(1, 5)},
    "iso88599": "LATIN5", "iso885910": "LATIN6", "iso885913": "LATIN7", "iso885914": "LATIN8",
    "iso885915": "LATIN9", "iso885916": "LATIN10",
    **{f"windows{n}": f"WIN{n}" for n in (866, 874, *range(1250, 1259))},
}  # fmt: skip


def _plain(name: str) -> str:
    return re.sub("[^a-z0-9]", "", name.lower())


_BY_NAME = {**{_plain(name): name for name in _CODECS}, **_OTHER_NAMES}


def _known(name: str, what: str = "") -> str:
    found = _BY_NAME.get(_plain(name))
    if found is None:
        raise InvalidArgument(f'invalid {what}encoding name "{name}"')
    return found


def _read(data: bytes, encoding: str) -> str:
    try:
        text = data.decode(_CODECS[encoding])
    except UnicodeDecodeError as error:
        shown = " ".join(f"0x{each:02x}" for each in data[error.start : error.end])
        if _CODECS[encoding].startswith(_OF_BYTES):
            raise _no_equivalent(shown, encoding, "UTF8") from None
        raise BytesNotInEncoding(
            f'invalid byte sequence for encoding "{encoding}": {shown}'
        ) from None
    if "\0" in text:
        raise BytesNotInEncoding(f'invalid byte sequence for encoding "{encoding}": 0x00')
    return text


def _written(text: str, encoding: str) -> bytes:
    try:
        return text.encode(_CODECS[encoding])
    except UnicodeEncodeError as error:
        shown = " ".join(f"0x{each:02x}" for each in text[error.start].encode())
        raise _no_equivalent(shown, "UTF8", encoding) from None


def _no_equivalent(shown: str, source: str, target: str) -> UntranslatableText:
    return UntranslatableText(
        f'character with byte sequence {shown} in encoding "{source}" has no equivalent in '
        f'encoding "{target}"'
    )


def _convert(data: bytes, source: str, target: str) -> bytes:
    read, written = _known(source, "source "), _known(target, "destination ")
    return _written(_read(data, read), written)


TABLE = (
    Function("convert_from", (t.Bytea, t.Text), t.Text(),
             lambda data, name: _read(data, _known(name, "source ")), fallible=True,
             edition=2),
    Function("convert_to", (t.Text, t.Text), t.Bytea(),
             lambda text, name: _written(text, _known(name, "destination ")), fallible=True,
             edition=2),
    Function("convert", (t.Bytea, t.Text, t.Text), t.Bytea(), _convert, fallible=True),
    Function("length", (t.Bytea, t.Text), t.Integer(),
             lambda data, name: len(_read(data, _known(name))), fallible=True),
)  # fmt: skip
