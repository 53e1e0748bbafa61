"""CREATE DOMAIN and ALTER DOMAIN."""

from __future__ import annotations

from dataclasses import replace

from noonmark.errors import InvalidSyntax, Unsupported
from noonmark.sql.statement import domains as s
from noonmark.sql.statement.base import Name, Statement
from noonmark.sql.statement.columns import check_collation, check_text
from noonmark.sql.statement.reader import Reader
from noonmark.sql.statement.tables import CheckText

_PARTS = ("collate", "default", "constraint", "not", "null", "check", "unique", "primary",
          "references", "generated", "deferrable", "initially")  # fmt: skip
_REFUSED = {
    "unique": "unique constraints",
    "primary key": "primary key constraints",
    "references": "foreign key constraints",
    "foreign key": "foreign key constraints",
    "exclude": "exclusion constraints",
}


def create_domain(reader: Reader) -> Statement:
    """What follows CREATE DOMAIN."""
    name = reader.name()
    reader.accept("as")
    made = s.CreateDomain(name, reader.type_to(*_PARTS))
    null: bool | None = None
    while not reader.ended:
        if reader.accept("collate"):
            check_collation(reader)
        elif reader.is_next("default"):
            position = reader.position
            reader.take()
            if made.default is not None:
                raise InvalidSyntax("multiple default expressions", position=position)
            made = replace(made, default=reader.scalar_to(*_PARTS))
        else:
            written, says = _constraint(reader)
            if says is not None and null not in (None, says):
                raise InvalidSyntax("conflicting NULL/NOT NULL constraints")
            null = null if says is None else says
            made = replace(made, checks=(*made.checks, *written))
    return replace(made, not_null=null is False)


def _constraint(reader: Reader) -> tuple[tuple[CheckText, ...], bool | None]:
    """A CHECK, or whether NULL may be."""
    name = reader.identifier() if reader.accept("constraint") else None
    if reader.accept("not", "null"):
        return (), False
    if reader.accept("null"):
        return (), True
    if reader.accept("check"):
        return (check_text(reader, name),), None
    for word, what in _REFUSED.items():
        if reader.is_next(*word.split()):
            raise InvalidSyntax(f"{what} not possible for domains", position=reader.position)
    if reader.is_next("deferrable") or reader.is_next("initially"):
        raise Unsupported("specifying constraint deferrability not supported for domains",
                          position=reader.position)  # fmt: skip
    raise reader.invalid()


def alter_domain(reader: Reader, name: Name) -> Statement | None:
    """What follows ALTER DOMAIN name, where it is not about its name, its place or its owner."""
    action = _action(reader)
    return None if action is None else s.AlterDomain(name, action)


def _action(reader: Reader) -> s.DomainAction | None:
    if reader.accept("set", "default"):
        return s.DomainDefault(reader.scalar_to())
    if reader.accept("drop", "default"):
        return s.DomainDefault(None)
    if reader.accept("set", "not", "null"):
        return s.DomainNotNull(True)
    if reader.accept("drop", "not", "null"):
        return s.DomainNotNull(False)
    if reader.accept("drop", "constraint"):
        if_exists = reader.if_exists()
        dropped = reader.identifier()
        reader.accept_any("cascade", "restrict")
        return s.DomainDrop(dropped, if_exists)
    if reader.accept("validate", "constraint"):
        return s.DomainValidate(reader.identifier())
    if reader.accept("rename", "constraint"):
        old = reader.identifier()
        reader.expect("to")
        return s.DomainRename(old, reader.identifier())
    if reader.accept("add"):
        written, says = _constraint(reader)
        if says is not None:
            return s.DomainNotNull(not says)
        return s.DomainAdd(written[0], not reader.accept("not", "valid"))
    return None
