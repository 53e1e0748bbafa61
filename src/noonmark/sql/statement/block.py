"""DO: statements with conditions and errors that are let go, in the words of PL/pgSQL.

    block  := BEGIN { action } [ EXCEPTION { WHEN condition { OR condition } THEN { action } } ] END
    action := statement ; | PERFORM expression ; | NULL ; | block ;
            | IF expression THEN { action } { ELSIF expression THEN { action } }
              [ ELSE { action } ] END IF ;
            | RAISE [ level ] 'text with %' { , expression } ;

There are no variables, loops and functions: what migrations send has none. A body is parsed before
anything of it is run.
"""

from __future__ import annotations

from dataclasses import dataclass

from noonmark.errors import NoonmarkError, UndefinedObject
from noonmark.sql.lexer import Token, tokens_of
from noonmark.sql.statement.base import Statement
from noonmark.sql.statement.conditions import STATES
from noonmark.sql.statement.reader import Reader

#: How deep blocks and conditions may stand in each other.
DEPTH_MAX = 30
_LEVELS = ("exception", "warning", "notice", "info", "log", "debug")
#: What only procedures have.
_ELSEWHERE = ("declare", "loop", "while", "for", "foreach", "return", "open", "get", "case", "exit",
              "continue", "assert", "<", "execute")  # fmt: skip


@dataclass(frozen=True)
class Run:
    """A statement; of PERFORM, the rows of which nobody sees."""

    statement: Statement
    is_query: bool = False


@dataclass(frozen=True)
class If:
    """The actions of the first condition that is TRUE; None stands for one that always is."""

    branches: tuple[tuple[Statement | None, tuple[Action, ...]], ...]


@dataclass(frozen=True)
class Raise:
    """A text for the client, with values where it has %; without one: the error once more."""

    level: str
    text: str | None = None
    values: tuple[Statement, ...] = ()


@dataclass(frozen=True)
class OnError:
    """What happens on errors of some SQLSTATEs; None stands for all others."""

    states: tuple[str | None, ...]
    actions: tuple[Action, ...]


@dataclass(frozen=True)
class Block:
    """Actions, and what happens on their errors."""

    actions: tuple[Action, ...]
    handlers: tuple[OnError, ...] = ()


Action = Run | If | Raise | Block


@dataclass(frozen=True)
class Do(Statement):
    """DO [LANGUAGE plpgsql] 'body'."""

    block: Block


def do(reader: Reader) -> Do:
    """What follows DO."""
    language, body = "plpgsql", None
    while not reader.ended:
        if reader.accept("language"):
            is_text = reader.token.kind == "string"
            language = (reader.string() if is_text else reader.identifier()).lower()
        elif body is None:
            body = reader.string()
        else:
            raise reader.invalid()
    if body is None:
        raise reader.invalid("expected a quoted string")
    if language != "plpgsql":
        raise reader.unsupported(f"language {language}", "There is a part of plpgsql.")
    try:
        return Do(_Body(body).whole())
    except NoonmarkError as error:
        error.position = None  # it was one of the body
        raise


class _Body:
    """One pass over the tokens of a body."""

    def __init__(self, text: str) -> None:
        self.reader = Reader(text, tokens_of(text))
        self.depth = 0

    def whole(self) -> Block:
        self.refuse_elsewhere()
        self.reader.expect("begin")
        block = self.block()
        self.reader.accept(";")
        self.reader.finish()
        return block

    def refuse_elsewhere(self) -> None:
        for word in _ELSEWHERE:
            if self.reader.is_next(word):
                raise self.reader.unsupported(
                    f"{word.upper()} in DO",
                    "There are statements, IF, RAISE and EXCEPTION; send the rest from a client.",
                )

    def block(self) -> Block:
        """What follows BEGIN."""
        actions = self.actions("exception", "end")
        handlers: list[OnError] = []
        if self.reader.accept("exception"):
            while self.reader.accept("when"):
                states = [self.condition()]
                while self.reader.accept("or"):
                    states.append(self.condition())
                self.reader.expect("then")
                handlers.append(OnError(tuple(states), self.actions("when", "end")))
            if not handlers:
                raise self.reader.invalid("expected WHEN")
        self.reader.expect("end")
        return Block(actions, tuple(handlers))

    def condition(self) -> str | None:
        """The SQLSTATE of a condition's name."""
        if self.reader.accept("others"):
            return None
        if self.reader.accept("sqlstate"):
            return self.reader.string()
        position, name = self.reader.position, self.reader.identifier()
        if name not in STATES:
            message = f'unrecognized exception condition "{name}"'
            raise UndefinedObject(message, position=position)
        return STATES[name]

    def actions(self, *stops: str) -> tuple[Action, ...]:
        """The actions up to a word."""
        if self.depth >= DEPTH_MAX:
            raise self.reader.unsupported(f"more than {DEPTH_MAX} blocks inside each other")
        self.depth += 1
        found: list[Action] = []
        while not self.reader.ended and not any(self.reader.is_next(stop) for stop in stops):
            self.refuse_elsewhere()
            if not self.reader.accept("null"):
                found.append(self.action())
            self.reader.expect(";")
        self.depth -= 1
        return tuple(found)

    def action(self) -> Action:
        if self.reader.accept("begin"):
            return self.block()
        if self.reader.accept("if"):
            return self.if_()
        if self.reader.accept("raise"):
            return self.raise_()
        if self.reader.accept("perform"):
            return Run(self.query(";"), is_query=True)
        return Run(self.statement(self.tokens(";")))

    def if_(self) -> If:
        branches: list[tuple[Statement | None, tuple[Action, ...]]] = []
        word: str | None = "if"
        while word in ("if", "elsif", "elseif"):
            condition = self.query("then")
            self.reader.expect("then")
            branches.append((condition, self.actions("elsif", "elseif", "else", "end")))
            word = self.reader.accept_any("elsif", "elseif", "else")
        if word == "else":
            branches.append((None, self.actions("end")))
        self.reader.expect("end", "if")
        return If(tuple(branches))

    def raise_(self) -> Raise:
        level = self.reader.accept_any(*_LEVELS) or "exception"
        if self.reader.is_next(";"):
            return Raise("again")
        text, values = self.reader.string(), []
        while self.reader.accept(","):
            values.append(self.query(",", ";", "using"))
        if self.reader.is_next("using"):
            raise self.reader.unsupported("RAISE ... USING")
        if text.replace("%%", "").count("%") != len(values):
            many = "few" if text.replace("%%", "").count("%") > len(values) else "many"
            raise self.reader.invalid(f"too {many} parameters specified for RAISE")
        return Raise(level, text, tuple(values))

    def tokens(self, *stops: str) -> list[Token]:
        """The tokens up to a stop, with an end behind them."""
        start, end = self.reader.skip_to(*stops)
        found = self.reader.tokens[start:end]
        if not found:
            raise self.reader.invalid()
        return [*found, Token("end", "", found[-1].end, found[-1].end)]

    def query(self, *stops: str) -> Statement:
        """``SELECT`` and what stands up to a stop."""
        found = self.tokens(*stops)
        text = f"SELECT {self.reader.text[found[0].start : found[-1].end]}"
        return self.statement(tokens_of(text), text)

    def statement(self, tokens: list[Token], text: str | None = None) -> Statement:
        from noonmark.sql.statement.parser import statement_of  # door: DO is one of its statements

        inner = Reader(self.reader.text if text is None else text, tokens)
        made = statement_of(inner)
        inner.finish()
        return made
