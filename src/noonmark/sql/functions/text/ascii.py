"""to_ascii: letters without their marks, byte by byte, of an encoding with one byte a letter.

The bytes are those of the text as it is stored, in UTF-8: PostgreSQL does not convert them first.
So it is of use for what came in as such bytes; elsewhere `normalize` and `translate` serve.
"""

from __future__ import annotations

from collections.abc import Callable

from noonmark.errors import UndefinedObject
from noonmark.rows import types as t
from noonmark.sql.functions.errors import NotHeldHere
from noonmark.sql.functions.function import Function

#: PostgreSQL's encodings by their numbers.
_ENCODINGS = (
    *("SQL_ASCII", "EUC_JP", "EUC_CN", "EUC_KR", "EUC_TW", "EUC_JIS_2004", "UTF8"),
    *("MULE_INTERNAL", "LATIN1", "LATIN2", "LATIN3", "LATIN4", "LATIN5", "LATIN6", "LATIN7"),
    *("LATIN8", "LATIN9", "LATIN10", "WIN1256", "WIN1258", "WIN866", "WIN874", "KOI8R", "WIN1251"),
    *("WIN1252", "ISO_8859_5", "ISO_8859_6", "ISO_8859_7", "ISO_8859_8", "WIN1250", "WIN1253"),
    *("WIN1254", "WIN1255", "WIN1257", "KOI8U", "SJIS", "BIG5", "GBK", "UHC", "GB18030", "JOHAB"),
    "SHIFT_JIS_2004",
)
_OTHER_NAMES = {
    "unicode": "UTF8", "mskanji": "SJIS", "shiftjis": "SJIS", "koi8": "KOI8R", "win": "WIN1251",
    "alt": "WIN866", "abc": "WIN1258", "tcvn": "WIN1258", "tcvn5712": "WIN1258",
    "vscii": "WIN1258", "win932": "SJIS", "windows932": "SJIS", "win936": "GBK",
    "windows936": "GBK", "win949": "UHC", "windows949": "UHC", "win950": "BIG5",
    "windows950": "BIG5", "iso88591": "LATIN1", "iso88592": "LATIN2", "iso88593": "LATIN3",
    "iso88594": "LATIN4", "iso88599": "LATIN5", "iso885910": "LATIN6", "iso885913": "LATIN7",
    "iso885914": "LATIN8", "iso885915": "LATIN9", "iso885916": "LATIN10",
}  # fmt: skip
_NAMES = {
    **{name.replace("_", "").lower(): name for name in _ENCODINGS},
    **{f"windows{name[3:]}": name for name in _ENCODINGS if name.startswith("WIN")},
    **_OTHER_NAMES,
}
#: What the bytes from 160 on become; of WIN1250, from 128 on.
_LETTERS = "AAAAAAACEEEEIIII NOOOOOxOUUUUYTBaaaaaaaceeeeiiii nooooo/ouuuuyty"
_EASTERN = "RAAAALCCCEEEEIIDDNNOOOOxRUUUUYTBraaaalccceeeeiiddnnoooo/ruuuuyt"
_TABLES = {
    "LATIN1": "  cL Y  \"Ca  -R     'u .,      ?" + _LETTERS,
    "LATIN2": " A L LS \"SSTZ-ZZ a,l'ls ,sstz\"zz" + _EASTERN + ".",
    "LATIN9": "  cL YS sCa  -R     Zu .z   EeY?" + _LETTERS,
    "WIN1250": "  ' \"    %S<STZZ `'\"\".--  s>stzz   L A  \"CS  -RZ  ,l'u .,as L\"lz"
               + _EASTERN + " ",
}  # fmt: skip
_SIGNS = {
    name: bytes(range(128)) + letters.rjust(128).encode() for name, letters in _TABLES.items()
}


def _plain(text: str, encoding: str) -> str:
    if encoding not in _SIGNS:
        raise NotHeldHere(f"encoding conversion from {encoding} to ASCII not supported")
    return text.encode().translate(_SIGNS[encoding]).decode()


def _of_name(text: str, name: str) -> str:
    known = _NAMES.get("".join(each for each in name.lower() if each.isalnum()))
    if known is None:
        raise UndefinedObject(f"{name} is not a valid encoding name")
    return _plain(text, known)


def _of_number(text: str, number: int) -> str:
    if not 0 <= number < len(_ENCODINGS):
        raise UndefinedObject(f"{number} is not a valid encoding code")
    return _plain(text, _ENCODINGS[number])


def _of(meaning: Callable[..., str], *more: type[t.SqlType]) -> Function:
    return Function("to_ascii", (t.Text, *more), t.Text(), meaning, fallible=True, linear=True)


TABLE = (
    _of(lambda text: _plain(text, "UTF8")),
    _of(_of_name, t.Text),
    _of(_of_number, t.Integer),
)
