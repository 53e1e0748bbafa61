"""One process that hands out times, for tests of several.

Run with a location and how long to go on, in seconds. Each line is one `write_ts` that was applied,
as ``before after time``: the monotonic clock (one for all processes of a machine) around the call.
Ends without closing the oracle, as a crash would; exit status 3 says that it was fenced.
"""

from __future__ import annotations

import os
import sys

from noonmark.clock import SYSTEM
from noonmark.errors import Fenced
from noonmark.oracle import ReservedOracle
from noonmark.persist.impl.open import open_consensus
from noonmark.persist.runtime import Runtime


def main(url: str, seconds: str) -> None:
    runtime = Runtime.start()
    oracle = ReservedOracle.open(runtime, open_consensus(url), alone=False)
    until = SYSTEM.monotonic() + float(seconds)
    status = 0
    try:
        while (before := SYSTEM.monotonic()) < until:
            time = oracle.write_ts()
            oracle.apply_write(time)
            assert oracle.read_ts() >= time
            print(before, SYSTEM.monotonic(), time, flush=True)
            runtime.submit(SYSTEM.sleep(0.002)).result()
    except Fenced:
        status = 3
    sys.stdout.flush()
    os._exit(status)


if __name__ == "__main__":
    main(*sys.argv[1:])
