"""From a source's own times to the timeline: bindings, minting, reclocking, resumption. All pure.

`binding` is the remap collection, `mint` adds to it, `reclock` gives each update of the source its
time through it, `resume` says where reading starts again and how much of it may be forgotten.
"""

from noonmark.remap.binding import Binding, Remap
from noonmark.remap.mint import Minted, begin, mint, seal
from noonmark.remap.reclock import reclock, reclock_frontier, reclock_time, reclock_updates
from noonmark.remap.resume import compact, offset_resumption, timestamp_resumption

__all__ = [
    "Binding",
    "Minted",
    "Remap",
    "begin",
    "compact",
    "mint",
    "offset_resumption",
    "reclock",
    "reclock_frontier",
    "reclock_time",
    "reclock_updates",
    "seal",
    "timestamp_resumption",
]
