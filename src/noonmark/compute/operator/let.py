"""Let and Get: a relation under a name. Views have no names; reads compute each once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from noonmark.compute.kernel.updates import Rows
from noonmark.compute.operator.base import Operator
from noonmark.sql.ir import relation as r

if TYPE_CHECKING:
    from noonmark.compute.contents.evaluation import ContentsEvaluation


class Let(Operator[r.Let]):
    """Binds a name."""

    def can(self, node: r.Let) -> bool:
        """Always."""
        del node
        return True

    def contents(self, node: r.Let, asked: ContentsEvaluation) -> Rows:
        """The body, for which the value is known."""
        asked.named[node.name] = asked.rows(node.value)
        return asked.rows(node.body)


class Get(Operator[r.Get]):
    """Uses a name."""

    def can(self, node: r.Get) -> bool:
        """Always."""
        del node
        return True

    def contents(self, node: r.Get, asked: ContentsEvaluation) -> Rows:
        """What the name is bound to."""
        return asked.named[node.name]
