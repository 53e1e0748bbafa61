"""The vocabulary of time-varying collections: orders, frontiers, updates, descriptions.

Pure, and free of third-party imports. `order` says what a time is, `frontier` what is complete,
`update` what changed, `description` what a batch of changes stands for. The whole in prose:
``docs/formalism.md``.
"""

from noonmark.tvc.description import Description
from noonmark.tvc.frontier import (
    EMPTY,
    Antichain,
    frontier_le,
    known_partitions,
    partition_frontier,
)
from noonmark.tvc.order import (
    EVERY_PARTITION,
    Interval,
    Partition,
    Partitioned,
    Product,
    Time,
    join,
    meet,
    minimum,
    sort_key,
)
from noonmark.tvc.update import Update, advance, consolidate, differentiate, integrate

__all__ = [
    "EMPTY",
    "EVERY_PARTITION",
    "Antichain",
    "Description",
    "Interval",
    "Partition",
    "Partitioned",
    "Product",
    "Time",
    "Update",
    "advance",
    "consolidate",
    "differentiate",
    "frontier_le",
    "integrate",
    "join",
    "known_partitions",
    "meet",
    "minimum",
    "partition_frontier",
    "sort_key",
]
