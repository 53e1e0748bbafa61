"""Which operations rely on those before them: what is queued behind a failure fails, too.

A caller that writes and then seals, without waiting in between, says that the write comes first. If
the write fails, the seal would declare complete what is not there. So an operation

    changes     the collections that it appends to, seals, evolves or lets history go of, and
                does not make itself
    relies      on what was asked before for those that it appends to, seals or lets history go of,
                unless it says itself where they must be: by the upper that it expects, by a
                capability, or because it makes them
    completes   those of them that it seals or lets history go of

Law (behind a failure): let a and b be operations of one process, b called before a's failure was
told. If a is refused and b completes a collection that a changes, or if a fails in any other way
and b relies on one, then b fails with `BehindFailure`, and nothing of it happens. By induction so
does whatever is behind b.

A refusal is a mistake in one call, so other updates go on; when storage fails nothing does.
Evolving, dropping and renaming rely on nothing; neither do holds, compaction and the write lock.

Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from noonmark.errors import BehindFailure, UsageError
from noonmark.persist.log import command as c

_COMPLETES = (c.Seal, c.AllowCompaction)


@dataclass(frozen=True)
class Dependence:
    """See the module: collections, by their numbers."""

    changes: frozenset[int] = frozenset()
    relies: frozenset[int] = frozenset()
    completes: frozenset[int] = frozenset()

    def is_behind(self, changed: AbstractSet[int], failure: BaseException) -> bool:
        """Whether it fails with what changes these collections."""
        return bool((self.completes if _is_refusal(failure) else self.relies) & changed)


NOTHING = Dependence()


def dependence(commands: Iterable[c.AnyCommand], written: Iterable[int] = ()) -> Dependence:
    """What a transaction changes and relies on.

    Args:
        commands: those that are known.
        written: the collections of updates that are still being stored.
    """
    relied, completed = set(written), set[int]()
    stated, made, evolved, by_capability = {0}, {0}, set[int](), False
    for command in commands:
        if isinstance(command, _COMPLETES):
            completed.add(command.collection)
        elif isinstance(command, c.Append):
            relied.add(command.collection)
        elif isinstance(command, c.Evolve):
            evolved.add(command.collection)
        elif isinstance(command, c.Expect):
            stated.add(command.collection)
        elif isinstance(command, c.Create):
            made.add(command.expected_id)
        elif isinstance(command, c.Downgrade) and command.stated is not None:
            by_capability = True
    # Nobody else can name what is not made yet: one of that number is another.
    relied, completed = (relied | completed) - made, completed - made
    changed = frozenset(relied | evolved)
    if by_capability:
        return Dependence(changed)
    return Dependence(changed, frozenset(relied - stated), frozenset(completed - stated))


def behind(failure: BaseException) -> BehindFailure:
    """The error of an operation that relies on one that failed."""
    if isinstance(failure, BehindFailure):
        return failure
    error = BehindFailure(
        "not tried, because an operation before it on the same collection failed",
        detail=f"That one failed with: {getattr(failure, 'message', failure)}",
        hint="Nothing of this one happened. Do again what failed, and then this.",
    )
    error.__cause__ = failure
    return error


def _is_refusal(failure: BaseException) -> bool:
    root = failure.__cause__ if isinstance(failure, BehindFailure) else failure
    return isinstance(root, UsageError)
