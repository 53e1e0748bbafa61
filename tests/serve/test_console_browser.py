"""The console in a real browser: every page, both themes, from a telephone to a wall.

Set NOONMARK_SCREENSHOTS to a folder to keep what was seen.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from support.neighbour.browser import Watch, browsing
from support.serve.process import Server, serving

pytestmark = [pytest.mark.server, pytest.mark.spark]

expect.set_options(timeout=30_000)
#: A page, and what must be on it when it is there.
PAGES = {
    "sql": "Run",
    "dataflow": "orders",
    "time/orders": "rows of orders",
    "sources": "ticker",
    "views": "totals",
    "live/totals": "rows as of",
}
LOOKS = [(scheme, width) for width in (1280, 380, 3840) for scheme in ("light", "dark")]
HOSTILE = '<img src=x onerror="document.title=1">'
LONG = "a_name_that_is_as_long_as_postgresql_lets_it_be_sixty_three_lett"[:63]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("console")) as found:
        with found.connect() as link:
            link.execute("CREATE TABLE orders (id int PRIMARY KEY, item text, amount int)")
            link.execute("INSERT INTO orders VALUES (1, 'lamp', 30), (2, 'desk', 250)")
            link.execute(f'CREATE TABLE "{HOSTILE.replace(chr(34), chr(34) * 2)}" (a int)')
            link.execute("CREATE SOURCE ticker FROM LOAD GENERATOR COUNTER (TICK INTERVAL '1s')")
            link.execute(
                "CREATE MATERIALIZED VIEW totals AS "
                "SELECT item, sum(amount) AS total FROM orders GROUP BY item"
            )
            link.execute(f"CREATE TABLE {LONG} (a int)".encode())
            link.execute(
                "CREATE MATERIALIZED VIEW shares AS SELECT id, 7500 / (amount - 250) AS share "
                "FROM orders WHERE id = 2"
            )
            link.execute("SELECT * FROM totals")
            with pytest.raises(psycopg.errors.DivisionByZero):
                link.execute("SELECT * FROM shares")
        yield found


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing() as found:
        yield found


@pytest.fixture
def page(browser: Browser, server: Server) -> Iterator[Page]:
    context = browser.new_context(base_url=f"http://127.0.0.1:{server.http}")
    found = context.new_page()
    watch = Watch(found)
    yield found
    context.close()
    assert watch.complaints == []
    assert watch.hosts == {f"127.0.0.1:{server.http}"}


def _keep(page: Page, name: str) -> None:
    folder = os.environ.get("NOONMARK_SCREENSHOTS")
    if folder:
        page.screenshot(path=str(Path(folder) / f"{name.replace('/', '-')}.png"))


def _answers(page: Page) -> None:
    """An answer as a chart, and an error below it."""
    page.fill("textarea", "SELECT item, total FROM totals; SELECT itme FROM orders")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("alert").first).to_contain_text("does not exist")
    page.get_by_role("button", name="Chart").click()
    expect(page.get_by_role("img", name="Chart of total")).to_be_visible()


def _serious(page: Page) -> list[Any]:
    found = Axe().run(page).response["violations"]
    return [
        (each["id"], [node["html"] for node in each["nodes"]])
        for each in found
        if each["impact"] in ("serious", "critical")
    ]


@pytest.mark.parametrize(("scheme", "width"), LOOKS)
def test_every_page_is_there_for_everybody(
    browser: Browser, server: Server, scheme: Any, width: int
) -> None:
    context = browser.new_context(
        base_url=f"http://127.0.0.1:{server.http}", color_scheme=scheme,
        viewport={"width": width, "height": 900},
    )  # fmt: skip
    page = context.new_page()
    watch = Watch(page)
    for name, shown in PAGES.items():
        page.goto(f"/#/{name}")
        expect(page.locator("main")).to_contain_text(shown)
        if name == "sql":
            _answers(page)
        _keep(page, f"{name}-{scheme}-{width}")
        assert _serious(page) == [], name
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width, f"{name} is {wide} wide"
        for link in page.locator("#nav a").all():
            box = link.bounding_box()
            assert box is not None
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= width, "a page that cannot be seen in the menu"
        assert page.locator("html").get_attribute("data-theme") == scheme
    context.close()
    assert watch.complaints == []


@pytest.mark.alone
def test_the_first_paint_is_soon(browser: Browser, server: Server) -> None:
    """Without anything in the browser's cache; the median of five."""
    painted = []
    for _ in range(5):
        context = browser.new_context(base_url=f"http://127.0.0.1:{server.http}")
        page = context.new_page()
        page.goto("/")
        expect(page.locator("main")).to_contain_text("Run")
        painted.append(page.evaluate(_PAINTED))
        context.close()
    assert sorted(painted)[2] < 1_000, painted


_PAINTED = "performance.getEntriesByName('first-contentful-paint')[0].startTime"


def test_an_answer_as_table_and_chart(page: Page) -> None:
    page.goto("/")
    page.fill("textarea", "SELECT item, total FROM totals ORDER BY item")
    page.keyboard.press("Control+Enter")
    expect(page.locator("td")).to_have_text(["desk", "250", "lamp", "30"])
    page.get_by_role("button", name="Chart").click()
    expect(page.get_by_role("img", name="Chart of total").locator("rect")).to_have_count(2)
    page.reload()
    expect(page.locator("textarea")).to_have_value("SELECT item, total FROM totals ORDER BY item")


def test_an_error_says_where(page: Page) -> None:
    page.goto("/")
    page.fill("textarea", "SELECT 1;\nSELECT itme FROM orders")
    page.get_by_role("button", name="Run").click()
    expect(page.get_by_role("alert").first).to_contain_text('column "itme" does not exist')
    expect(page.get_by_role("alert").first).to_contain_text("orders.item")
    at = page.evaluate("document.querySelector('textarea').selectionStart")
    assert at == len("SELECT 1;\nSELECT ")


def test_the_place_of_an_error_is_not_what_is_run_next(page: Page) -> None:
    """An error selects the word that it is about; to run again runs everything again."""
    page.goto("/")
    page.fill("textarea", "SELECT itme FROM orders")
    for _ in range(2):
        # What the page asks of the catalog by itself are "queries".
        with page.expect_request(lambda sent: '{"query":' in (sent.post_data or "")) as asked:
            page.keyboard.press("Control+Enter")
        assert asked.value.post_data_json == {"query": "SELECT itme FROM orders"}
        expect(page.get_by_role("alert").first).to_contain_text("does not exist")
    page.fill("textarea", "SELECT 1; SELECT itme FROM orders")
    page.evaluate("document.querySelector('textarea').setSelectionRange(10, 33)")
    page.keyboard.press("Control+Enter")
    at = len("SELECT 1; SELECT ")
    expect(page.locator("textarea")).to_have_js_property("selectionStart", at)
    expect(page.locator("td")).to_have_count(0)


def test_relations_are_offered(page: Page) -> None:
    page.goto("/")
    page.get_by_role("complementary").get_by_role("button", name="totals", exact=True).click()
    expect(page.locator("td").first).to_have_text("desk")
    page.goto("/#/live")
    page.get_by_role("link", name="totals", exact=True).click()
    expect(page.locator("main")).to_contain_text("rows as of")


def test_a_failing_view_is_found_in_one_look(page: Page, server: Server) -> None:
    page.goto("/#/views")
    expect(page.get_by_text("1 failing")).to_be_visible()
    first = page.locator("section").first
    expect(first).to_contain_text("shares")
    expect(first).to_contain_text("division by zero")
    page.goto("/#/dataflow")
    expect(page.get_by_role("button", name="materialized-view shares")).to_contain_text("failing")
    page.goto("/#/sql")
    with server.connect() as link:
        link.execute("UPDATE orders SET amount = 251 WHERE id = 2")
        assert link.execute("SELECT share FROM shares").fetchall() == [(7500,)]
        link.execute("UPDATE orders SET amount = 250 WHERE id = 2")


def test_history_is_played(page: Page) -> None:
    page.goto("/#/time/orders")
    chart = page.get_by_role("img", name="Chart of rows of orders")
    expect(chart.locator(".mark")).to_have_count(1)
    page.get_by_role("button", name="Play").click()
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    expect(page.get_by_label("Time", exact=True)).not_to_have_value("1000")
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("button", name="Play")).to_be_visible()


def test_a_statement_is_cancelled(page: Page) -> None:
    page.goto("/")
    hard = "SELECT count(*) FROM generate_series(1, 100000) a, generate_series(1, 100000) b"
    page.fill("textarea", hard)
    page.get_by_role("button", name="Run").click()
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator("main")).to_contain_text("The statement was cancelled.")


def test_completion_knows_the_catalog(page: Page) -> None:
    page.goto("/")
    expect(page.locator("#health")).to_have_text("ready")
    page.fill("textarea", "")
    page.wait_for_timeout(500)
    page.locator("textarea").press_sequentially("SELECT * FROM tot")
    expect(page.get_by_role("option").first).to_contain_text("totals")
    page.keyboard.press("Tab")
    expect(page.locator("textarea")).to_have_value("SELECT * FROM totals")


def test_the_time_of_an_answer_is_a_picture(page: Page) -> None:
    page.goto("/")
    page.fill("textarea", "SELECT * FROM totals, orders;")
    page.get_by_role("button", name="Explain timestamp").click()
    picture = page.get_by_role("img", name=re.compile("Since, upper"))
    expect(picture).to_contain_text("orders")
    expect(picture).to_contain_text("answered as of")


def test_a_node_tells_how_it_is_maintained(page: Page) -> None:
    page.goto("/#/dataflow")
    page.get_by_role("button", name="materialized-view totals").click()
    side = page.get_by_role("complementary", name="Chosen node")
    expect(side).to_contain_text("accumulators by group")
    expect(side).to_contain_text("CREATE MATERIALIZED VIEW")


def test_names_are_text(page: Page) -> None:
    page.goto("/#/dataflow")
    expect(page.locator("svg")).to_contain_text("<img src=x onerror=")
    assert page.title() == "Dataflow · Noonmark"


def test_what_changed_between_two_times(page: Page, server: Server) -> None:
    with server.connect() as link:
        link.execute("INSERT INTO orders VALUES (7, 'rug', 80)")
        link.execute("DELETE FROM orders WHERE id = 7")
        link.execute("UPDATE orders SET amount = 31 WHERE id = 1")
        link.execute("SELECT * FROM totals")
    page.goto("/#/time/orders")
    expect(page.locator("main")).to_contain_text("rows of orders")
    page.get_by_label("compare two times").check()
    page.get_by_label("Compared with").fill("0")
    expect(page.locator("tr.plus td").first).to_have_text("+")
    expect(page.locator("tr.plus td").nth(1)).to_have_text("1")
    expect(page.locator("main")).not_to_contain_text("rug")


def test_a_table_that_moves(page: Page, server: Server) -> None:
    page.goto("/#/live/orders")
    expect(page.locator("main")).to_contain_text("desk")
    with server.connect() as link:
        link.execute("INSERT INTO orders VALUES (3, 'chair', 90)")
    expect(page.locator("main")).to_contain_text("chair")
    with server.connect() as link:
        link.execute("DELETE FROM orders WHERE id = 3")
    expect(page.locator("main")).not_to_contain_text("chair")


def test_a_bad_record_is_shown_with_its_bytes(
    page: Page, server: Server, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("files")
    (folder / "a.json").write_text('{"id": 1}\n{"id": "seven"}\n')
    with server.connect() as link:
        link.execute(
            f"CREATE SOURCE numbers (id int) FROM FILES '{folder}/*.json' FORMAT JSON".encode()
        )
        link.execute("SET real_time_recency = on")
        link.execute("SELECT * FROM numbers")
    page.goto("/#/sources")
    card = page.locator("section", has_text="numbers")
    card.get_by_role("button", name="Bindings and bad records").click()
    expect(card).to_contain_text('{"id": "seven"}')
    expect(card).to_contain_text("7b226964")
    _keep(page, "sources-bad-record")


def test_everything_is_reached_by_the_keyboard(page: Page) -> None:
    page.goto("/#/dataflow")
    expect(page.locator("svg")).to_contain_text("totals")
    node = page.get_by_role("button", name="materialized-view totals")
    node.focus()
    page.keyboard.press("Enter")
    side = page.get_by_role("complementary", name="Chosen node")
    expect(side).to_contain_text("How it is maintained")
    page.goto("/#/time/orders")
    page.get_by_label("Time", exact=True).focus()
    before = page.locator("main strong").first.text_content()
    page.keyboard.press("Home")
    expect(page.locator("main strong").first).not_to_have_text(str(before))


def test_a_view_is_audited_by_a_button(page: Page) -> None:
    page.goto("/#/views/totals")
    page.get_by_role("button", name="Audit").click()
    expect(page.locator("main")).to_contain_text("no row differs", timeout=90_000)


def test_who_has_a_password_gives_it(page: Page, server: Server) -> None:
    with server.connect() as link:
        link.execute("CREATE ROLE ada LOGIN PASSWORD 'sundial' SUPERUSER")
    page.goto("/")
    page.click("#user")
    page.fill("[name=user]", "ada")
    page.fill("[name=password]", "sundial")
    page.click("dialog .primary")
    expect(page.locator("#user")).to_have_text("ada")
    page.fill("textarea", "SELECT current_user")
    page.get_by_role("button", name="Run").click()
    expect(page.locator("td")).to_have_text(["ada"])
