"""From the text of an advanced regular expression to its tree.

What PostgreSQL refuses is refused here, in its words; what only this system refuses (basic
regular expressions) says so. Options come with the function call and at the start of the text:

    i, c        without, with regard to case             q    the text is literal
    n, m        newlines end lines: p and w together     x    white space and comments are left out
    p           . and [^...] do not match newlines       s, t, e    what is so anyway
    w           ^ and $ match at every line
"""

from __future__ import annotations

from dataclasses import dataclass

from noonmark.errors import EvaluationError, InvalidArgument, InvalidPattern
from noonmark.sql.pattern import characters as ch
from noonmark.sql.pattern.bracket import bracket
from noonmark.sql.pattern.characters import Characters
from noonmark.sql.pattern.syntax import (
    EMPTY,
    LINE_END,
    LINE_START,
    NO_WORD_EDGE,
    TEXT_END,
    TEXT_START,
    WORD_EDGE,
    WORD_END,
    WORD_START,
    At,
    Back,
    Capture,
    Either,
    Look,
    Pattern,
    Repeat,
    Sequence,
    Tree,
)

COUNT_MAX = 255
#: Groups inside of groups.
DEPTH_MAX = 100
LENGTH_MAX = 100_000

_PLACES = {
    "A": TEXT_START, "Z": TEXT_END, "m": WORD_START, "M": WORD_END, "y": WORD_EDGE,
    "Y": NO_WORD_EDGE,
}  # fmt: skip
_SETS = {
    "d": Characters(classes=("digit",)), "D": Characters(classes=("digit",), negated=True),
    "s": Characters(classes=("space",)), "S": Characters(classes=("space",), negated=True),
    "w": Characters(classes=("word",)), "W": Characters(classes=("word",), negated=True),
}  # fmt: skip
_CONTROLS = {
    "a": "\a", "b": "\b", "B": "\\", "e": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t",
    "v": "\v", "0": "\0",
}  # fmt: skip
_HEX_DIGITS = {"x": (1, 255), "u": (4, 4), "U": (8, 8)}


def refused(why: str) -> InvalidPattern:
    """The error for a pattern that cannot be."""
    return InvalidPattern(f"invalid regular expression: {why}")


class OptionNotSupported(EvaluationError, id="option_not_supported", sqlstate="0A000"):
    """An option of a pattern that PostgreSQL has: basic regular expressions."""


@dataclass
class Options:
    """See the module."""

    ignore_case: bool = False
    literal: bool = False
    expanded: bool = False
    newline_stops: bool = False
    line_anchors: bool = False

    def take(self, flags: str) -> None:
        """Set what the letters say; the last one wins."""
        for flag in flags:
            match flag:
                case "i" | "c":
                    self.ignore_case = flag == "i"
                case "q":
                    self.literal = True
                case "x" | "t":
                    self.expanded = flag == "x"
                case "n" | "m" | "s" | "p" | "w":
                    self.newline_stops = flag in "nmp"
                    self.line_anchors = flag in "nmw"
                case "e":
                    self.literal = False
                case "b":
                    raise OptionNotSupported('the regular expression option "b" is not supported')
                case _:
                    raise InvalidArgument(f'invalid regular expression option: "{flag}"')


def parse(text: str, flags: str = "") -> Pattern:
    """The pattern of a text.

    Raises:
        InvalidArgument: the text or an option is not one; says why.
    """
    if len(text) > LENGTH_MAX:
        raise refused(f"it is longer than {LENGTH_MAX} characters")
    options = Options()
    options.take(flags)
    text = _directed(text, options)
    if options.literal:
        parts = [_own(Characters.of(c), options) for c in text]
        return Pattern(Sequence(tuple(parts)), 0)
    return _Parser(text, options).whole()


def _directed(text: str, options: Options) -> str:
    """The text behind its directors (***: and ***=) and embedded options."""
    if text.startswith("***="):
        options.literal = True
        return text[4:]
    if text.startswith("***:"):
        text = text[4:]
    elif text.startswith("***"):
        raise refused("quantifier operand invalid")
    letters = text[2 : text.find(")")] if text.startswith("(?") and ")" in text else ""
    if letters and letters.isalpha():
        options.take(letters)
        return text[len(letters) + 3 :]
    return text


def _own(found: Characters, options: Options) -> Characters:
    return found.folded() if options.ignore_case else found


class _Parser:
    def __init__(self, text: str, options: Options) -> None:
        self._text = text
        self._options = options
        self._at = 0
        self._captures = 0
        self._closed: set[int] = set()
        self._depth = 0

    def whole(self) -> Pattern:
        tree = self._either()
        if self._at < len(self._text):
            raise refused("parentheses () not balanced")
        return Pattern(tree, self._captures)

    def _next(self, length: int = 1) -> str:
        return self._text[self._at : self._at + length]

    def _take(self, word: str) -> bool:
        if self._text.startswith(word, self._at):
            self._at += len(word)
            return True
        return False

    def _skip(self) -> None:
        """Leave comments out, and white space where that is asked for."""
        while True:
            if self._take("(?#"):
                end = self._text.find(")", self._at)
                if end < 0:
                    raise refused("parentheses () not balanced")
                self._at = end + 1
            elif self._options.expanded and self._next().isspace():
                self._at += 1
            elif self._options.expanded and self._next() == "#":
                end = self._text.find("\n", self._at)
                self._at = len(self._text) if end < 0 else end + 1
            else:
                return

    def _either(self) -> Tree:
        branches = [self._branch()]
        while self._take("|"):
            branches.append(self._branch())
        return branches[0] if len(branches) == 1 else Either(tuple(branches))

    def _branch(self) -> Tree:
        parts: list[Tree] = []
        while True:
            self._skip()
            if self._at == len(self._text) or self._next() in "|)":
                break
            parts.append(self._quantified())
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts)) if parts else EMPTY

    def _quantified(self) -> Tree:
        if self._is_quantifier():
            raise refused("quantifier operand invalid")
        grouped = self._next(3) == "(?:" or (self._next() == "(" and self._next(2) != "(?")
        atom = self._atom()
        self._skip()
        if not self._is_quantifier():
            return atom
        if isinstance(atom, At | Look) and not grouped:
            raise refused("quantifier operand invalid")
        least, most = self._counts()
        greedy = not self._take("?")
        self._skip()
        if self._is_quantifier():
            raise refused("quantifier operand invalid")
        if most == 0:
            return EMPTY
        return atom if least == most == 1 else Repeat(atom, least, most, greedy)

    def _is_quantifier(self) -> bool:
        character = self._next()
        if character and character in "*+?":
            return True
        return character == "{" and self._next(2)[1:].isdigit()

    def _counts(self) -> tuple[int, int | None]:
        character = self._next()
        self._at += 1
        if character != "{":
            return {"*": (0, None), "+": (1, None), "?": (0, 1)}[character]
        least = self._number()
        most: int | None = least
        if self._take(","):
            most = self._number() if self._next().isdigit() else None
        if not self._take("}"):
            raise refused("invalid repetition count(s)")
        if least > COUNT_MAX or (most is not None and not least <= most <= COUNT_MAX):
            raise refused("invalid repetition count(s)")
        return least, most

    def _number(self) -> int:
        start = self._at
        while self._next().isdigit():
            self._at += 1
        return int(self._text[start : self._at][:10])

    def _atom(self) -> Tree:
        character = self._next()
        if character == "(":
            return self._group()
        if character == "[":
            for word, place in (("[[:<:]]", WORD_START), ("[[:>:]]", WORD_END)):
                if self._take(word):
                    return At(place)
            found, self._at = bracket(self._text, self._at + 1, refused)
            return self._set(found)
        if character == "\\":
            return self._escape()
        self._at += 1
        match character:
            case ".":
                return ch.NOT_NEWLINE if self._options.newline_stops else ch.ANY
            case "^":
                return At(LINE_START if self._options.line_anchors else TEXT_START)
            case "$":
                return At(LINE_END if self._options.line_anchors else TEXT_END)
        return self._set(Characters.of(character))

    def _set(self, found: Characters) -> Characters:
        if found.negated and self._options.newline_stops:
            found = Characters((*found.ranges, *ch.NEWLINE.ranges), found.classes, True)
        return _own(found, self._options)

    def _group(self) -> Tree:
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise refused(f"its parentheses are nested more than {DEPTH_MAX} deep")
        number = 0
        look: tuple[bool, bool] | None = None
        looks = {"(?=": (True, False), "(?!": (True, True), "(?<=": (False, False),
                 "(?<!": (False, True)}  # fmt: skip
        if self._take("(?:"):
            pass
        elif (word := next((w for w in looks if self._text.startswith(w, self._at)), None)) or (
            self._text.startswith("(?", self._at)
        ):
            if word is None:
                raise refused("quantifier operand invalid")
            look = looks[word]
            self._at += len(word)
        else:
            self._at += 1
            if not self._depth_in_look:
                self._captures += 1
                number = self._captures
        if look:
            self._depth_in_look += 1
        inside = self._either()
        if look:
            self._depth_in_look -= 1
        if not self._take(")"):
            raise refused("parentheses () not balanced")
        self._depth -= 1
        self._closed.add(number)
        if look:
            return Look(inside, *look)
        return Capture(number, inside) if number else inside

    #: Inside of look-around, parentheses do not capture.
    _depth_in_look = 0

    def _escape(self) -> Tree:
        letter = self._next(2)[1:]
        if not letter:
            raise refused("invalid escape \\ sequence")
        self._at += 2
        if letter in _PLACES:
            return At(_PLACES[letter])
        if letter in _SETS:
            return self._set(_SETS[letter])
        if letter in "123456789":
            return self._back_or_octal()
        return self._set(Characters.of(self._character(letter)))

    def _character(self, letter: str) -> str:
        """The one character of an escape whose letter is read."""
        if not (letter.isascii() and letter.isalnum()):
            return letter
        if letter in _HEX_DIGITS:
            code, self._at = hexadecimal(self._text, self._at, *_HEX_DIGITS[letter])
            return chr(code)
        if letter == "c" and self._next():
            self._at += 1
            return chr(ord(self._text[self._at - 1]) & 0x1F)
        if letter == "0":
            return self._octal("0")
        if letter not in _CONTROLS:
            raise refused("invalid escape \\ sequence")
        return _CONTROLS[letter]

    def _octal(self, first: str) -> str:
        digits = first
        while len(digits) < 3 and self._next() and self._next() in "01234567":
            digits += self._next()
            self._at += 1
        return chr(int(digits, 8))

    def _back_or_octal(self) -> Tree:
        self._at -= 1
        start = self._at
        number = self._number()
        if self._at - start > 1 and number not in self._closed:
            self._at = start + 1  # two digits or more that are no capture are a character's number
            if self._text[start] in "89":
                raise refused("invalid backreference number")
            return self._set(Characters.of(self._octal(self._text[start])))
        if number not in self._closed or not number:
            raise refused("invalid backreference number")
        return Back(number)


def hexadecimal(text: str, at: int, least: int, most: int) -> tuple[int, int]:
    """The number that stands there in hexadecimal digits, and where it ends."""
    end = at
    while end < len(text) and end - at < most and text[end] in "0123456789abcdefABCDEF":
        end += 1
    if end - at < least or int(text[at:end], 16) > 0x10FFFF:
        raise refused("invalid escape \\ sequence")
    return int(text[at:end], 16), end
