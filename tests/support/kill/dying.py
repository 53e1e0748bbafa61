"""A process that is killed in the middle of two puts: one unlinked, one linked but not fsynced."""

from __future__ import annotations

import asyncio
import os

from noonmark.persist.impl.file_system import FileSystem
from noonmark.persist.impl.files import FileBlob


class _Dies(FileSystem):
    """Leaves one put before its link, and dies at the fsync of the next one's folder."""

    def __init__(self) -> None:
        self.links = 0
        self.dies = False

    def link(self, folder: int, name: str, to_folder: int, to_name: str) -> None:
        self.links += 1
        if self.links == 1:
            raise InterruptedError
        super().link(folder, name, to_folder, to_name)
        self.dies = True

    def fsync_folder(self, folder: int) -> None:
        if self.dies:
            os._exit(9)
        super().fsync_folder(folder)


def die_in_put(root: str) -> None:
    """Runs in a child; never returns."""

    async def run() -> None:
        blob = FileBlob(root, system=_Dies())
        try:
            await blob.put("log/unlinked", b"")
        finally:
            await blob.put("log/linked", b"linked")

    asyncio.run(run())
