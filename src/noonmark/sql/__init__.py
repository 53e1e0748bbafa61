"""SQL: text in PostgreSQL's dialect to a typed, frozen plan.

    text -> parse (sqlglot) -> plan (names and types) -> ir -> rules -> ir

Law (nothing passes through): the plan holds only nodes of `ir` and functions of `functions`. What
is not in them is refused when it is planned, by name and with its position.

Law (depth): parsing, planning and evaluation descend into a statement as Python calls. What is
deeper than `dialect.DEPTH_MAX` is refused with `TooComplex`, before a thread's stack of 8 MiB is
used up; where there are fewer than `FRAMES_MAX` calls to be had, some hundred brackets are. Long
statements are planned in threads that have more of both (`adapter.planner`).
"""

import sys

FRAMES_MAX = 10_000

sys.setrecursionlimit(max(FRAMES_MAX, sys.getrecursionlimit()))
