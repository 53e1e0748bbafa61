"""The pictures of the console in the docs, from a real run.

``PYTHONPATH=tests python -m support.serve.console_pictures`` makes them again.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from playwright.sync_api import Page

from noonmark.demo.scenario import STATEMENTS
from support.neighbour.browser import browsing
from support.serve.process import serving

_FOLDER = Path(__file__).resolve().parents[3] / "docs" / "operate" / "images"
_CHART = """SELECT date_trunc('second', bid_time) AS at, sum(amount) AS amount
FROM bids GROUP BY 1 ORDER BY 1;"""
_GROW_MS = 30_000


def main() -> None:
    """Serve the demo's sources and views for a while, and look at them."""
    _FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder)) as server:
        with server.connect() as link:
            for statement in STATEMENTS:
                link.execute(statement)
            link.execute("SELECT * FROM house")
        with browsing() as browser:
            address = f"http://127.0.0.1:{server.http}"
            page = browser.new_page(base_url=address, viewport={"width": 1280, "height": 720})
            page.wait_for_timeout(_GROW_MS)
            _sql(page)
            _dataflow(page)
            _time(page)


def _sql(page: Page) -> None:
    page.goto("/")
    page.fill("textarea", _CHART)
    page.keyboard.press("Control+Enter")
    page.get_by_role("button", name="Chart").click()
    page.screenshot(path=_FOLDER / "sql.png")


def _dataflow(page: Page) -> None:
    page.goto("/#/dataflow")
    page.get_by_role("button", name="materialized-view sellers").click()
    page.get_by_text("How it is maintained").wait_for()
    page.screenshot(path=_FOLDER / "dataflow.png")


def _time(page: Page) -> None:
    page.goto("/#/time/sellers")
    page.get_by_label("compare two times").check()
    page.locator("tr.plus").first.wait_for()
    page.screenshot(path=_FOLDER / "time.png")


if __name__ == "__main__":
    main()
