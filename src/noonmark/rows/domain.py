"""Domains: types that somebody made of another one, with what must hold of their values.

Law (base): no value is of a domain: it is of the type below all domains, `Domain.base`, and so is
every column and every expression. A domain is what a column is declared as (`Column.domain`), and
what a cast asks about. So nothing that stores, compares or computes values knows of domains.

Law (constraints): a value that becomes one of a domain fulfils NOT NULL and the CHECKs of the
domain and of every domain below it, the lowest first, each domain's by name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

from noonmark.rows.types import SqlType


@dataclass(frozen=True, slots=True)
class Domain(SqlType):
    """A domain as it is now: it is its `uid`, whatever it is called and asks for.

    Attributes:
        uid: what it is, for ever.
        number: that of its item in the catalog.
        name: as SQL writes it.
        base: the type of its values.
        over: the domain that it is made of, if it is made of one.
        is_not_null: whether it says NOT NULL itself.
        default: the text of its DEFAULT.
        checks: of each of its own CHECKs the name and the text, in which VALUE is the value.
        types: what the names of types in its texts mean.
    """

    spelling: ClassVar[str] = "domain"
    uid: str
    number: int = field(default=0, compare=False)
    name: str = field(default="", compare=False)
    base: SqlType = field(default=SqlType(), compare=False)
    over: Domain | None = field(default=None, compare=False)
    is_not_null: bool = field(default=False, compare=False)
    default: str | None = field(default=None, compare=False)
    checks: tuple[tuple[str, str], ...] = field(default=(), compare=False)
    types: tuple[tuple[str, SqlType], ...] = field(default=(), compare=False)

    def __str__(self) -> str:
        return self.name or self.spelling

    def chain(self) -> Iterator[Domain]:
        """The domains that it is made of, the lowest first, and itself."""
        if self.over is not None:
            yield from self.over.chain()
        yield self

    @property
    def below(self) -> SqlType:
        """What it is made of: another domain, or its base."""
        return self.base if self.over is None else self.over

    @property
    def takes_null(self) -> bool:
        """Whether NULL is one of its values, as far as NOT NULL says."""
        return not any(each.is_not_null for each in self.chain())

    @property
    def is_constrained(self) -> bool:
        """Whether not every value of its base is one of it."""
        return any(each.is_not_null or each.checks for each in self.chain())

    @property
    def state(self) -> tuple[Any, ...]:
        """What may change of it: two of one uid are as they were iff this is the same."""
        below = None if self.over is None else self.over.state
        return (self.number, self.name, self.base, below, self.is_not_null, self.default,
                self.checks, self.types)  # fmt: skip


def value_type(declared: SqlType) -> SqlType:
    """The type of the values of what is declared so."""
    return declared.base if isinstance(declared, Domain) else declared
