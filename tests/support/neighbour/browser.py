"""A real browser (Chromium, by Playwright) in front of `noonmark serve`."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def chromium() -> str:
    """Where the browser is; without one the test is skipped, or fails where one is asked for."""
    found = next(filter(None, map(shutil.which, _NAMES)), None)
    if found is None:
        why = "no Chromium on the PATH (Debian and Ubuntu: the package chromium)"
        if os.environ.get("NOONMARK_REQUIRE_BROWSER"):
            pytest.fail(why)
        pytest.skip(why)
    return found


@contextmanager
def browsing() -> Iterator[Browser]:
    """A browser without a window."""
    path = chromium()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


class Watch:
    """What a page complains of, and where it reaches to."""

    def __init__(self, page: Page) -> None:
        self.complaints: list[str] = []
        self.hosts: set[str] = set()
        page.on("console", lambda said: said.type == "error" and self._note(said.text))
        page.on("pageerror", lambda error: self._note(str(error)))
        page.on("request", lambda sent: self.hosts.add(sent.url.split("/")[2]))

    def _note(self, text: str) -> None:
        self.complaints.append(text)
