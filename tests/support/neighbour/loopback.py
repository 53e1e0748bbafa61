"""Neighbours of tests are on this machine: importing this lets connections go there.

By itself a server refuses them (`noonmark.source.outgoing`). Processes of tests inherit it.
"""

from __future__ import annotations

import os

from noonmark.source.outgoing import ALLOW

os.environ.setdefault(ALLOW, "loopback")
