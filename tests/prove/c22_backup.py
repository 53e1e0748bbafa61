"""C22: a server is backed up 20 times while money moves; each copy is what the server was.

Every backup is restored beside the server and compared with it AS OF the copy's time
(`support.kill.backups`): tables, a view, and the transfers that explain the accounts.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.house.proving import answer, options
from support.kill.backups import back_up


def main(argv: Sequence[str]) -> dict[str, Any]:
    chosen = options(argv, 20, "backups")
    with tempfile.TemporaryDirectory() as folder:
        wrong, done = back_up(Path(folder), chosen.count, chosen.seed)
    return answer("backup under load", f"0 differences in {chosen.count} backups", wrong, done)


if __name__ == "__main__":
    sys.exit(0 if main(sys.argv[1:])["met"] else 1)
