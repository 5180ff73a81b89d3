"""Lists of runs in a real browser: looks, keys, and what moves when a part is replaced."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe
from chromium import Chromium
from listed_runs import indexed, store_project
from web_app import WebApp, served

from pytest_rageval.io.lock import take_lock
from pytest_rageval.runs.reader import StoredRun

pytestmark = pytest.mark.browser
MOST_SHIFT = 0.01
WATCH = """() => {
  window.shifts = 0;
  new PerformanceObserver(list => {
    for (const entry of list.getEntries()) window.shifts += entry.value;  // those after a key or a click too
  }).observe({type: 'layout-shift', buffered: false});
}"""
SETTLED = "() => new Promise(done => setTimeout(() => done(window.shifts), 300))"


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebApp]:
    root = tmp_path_factory.mktemp("lists")
    reports = store_project(root)
    for number in range(60):
        shutil.copytree(reports / "runs" / "plain", reports / "runs" / f"plain-{number:02}")
    with served(root) as app:
        indexed(app)
        yield app


def addresses(app: WebApp) -> list[str]:
    cases = StoredRun(app.settings.reports / "runs/shop-0").config["dataset_hash"]
    return ["/", "/runs", "/runs?state=unreadable", "/compare", "/compare?a=shop-0&b=shop-2",
            f"/history?dataset={cases}", f"/history?dataset={cases}&metric=mrr"]  # fmt: skip


TORTURE = pytest.mark.torture


@pytest.mark.parametrize(
    ("scheme", "width"),
    [
        ("light", 1280),
        ("dark", 320),
        pytest.param("dark", 1280, marks=TORTURE),
        pytest.param("light", 320, marks=TORTURE),
    ],
)
def test_lists_are_accessible_and_as_wide_as_the_window(chromium: Chromium, app: WebApp, scheme: str, width: int):
    with chromium.page(width=width, color_scheme=scheme) as page:
        for address in addresses(app):
            page.goto(app.address + address)
            found = Axe().run(page).response["violations"]
            serious = {rule["id"]: [node["html"][:120] for node in rule["nodes"]][:3] for rule in found
                       if rule["impact"] in ("serious", "critical")}  # fmt: skip
            assert serious == {}, address
            assert page.evaluate("document.documentElement.scrollWidth") == width, address
        assert page.problems == []
        assert all(address.startswith(app.address) for address in page.requests)


def test_a_filter_narrows_the_list_in_place_and_back_and_reload_keep_it(chromium: Chromium, app: WebApp):
    with chromium.page() as page:
        page.goto(app.address + "/runs")
        page.evaluate(WATCH)
        page.select_option("select[name=agent]", "shop-bot")
        page.wait_for_function("() => document.querySelectorAll('#run-list td.id').length === 3")
        assert page.evaluate(SETTLED) <= MOST_SHIFT
        assert page.evaluate("location.search").startswith("?agent=shop-bot")
        page.reload()
        assert page.locator("#run-list td.id").count() == 3
        assert page.input_value("select[name=agent]") == "shop-bot"
        page.click("#run-list td.id a >> nth=0")
        page.wait_for_selector("h1 a.run")
        page.go_back()
        page.wait_for_selector("#run-list")
        assert page.locator("#run-list td.id").count() == 3
        assert page.problems == []


def test_two_runs_are_compared_by_keyboard_alone(chromium: Chromium, app: WebApp):
    with chromium.page() as page:
        page.goto(app.address + "/runs?agent=shop-bot")
        for _ in range(2):
            while not page.evaluate("document.activeElement.matches('input[type=checkbox]:not(:checked)')"):
                page.keyboard.press("Tab")
            page.keyboard.press("Space")
        page.keyboard.press("Enter")
        page.wait_for_selector("#case-list")
        assert page.evaluate("location.search") == "?a=shop-1&b=shop-2"
        assert page.problems == []


def test_lists_work_without_scripts(chromium: Chromium, app: WebApp):
    with chromium.page(java_script_enabled=False) as page:
        page.goto(app.address + "/")
        page.select_option("select[name=agent]", "faq-bot")
        page.click("form.filters button")
        assert page.locator("#run-list td.id").count() == 1


def test_the_card_of_a_run_goes_on_asking_until_it_ends_and_moves_nothing(chromium: Chromium, app: WebApp):
    writing = take_lock(app.settings.reports / "runs" / "stopped")
    try:
        indexed(app)  # a page that is still counting loads itself anew, and forgets what is watched
        with chromium.page() as page:
            page.goto(app.address + "/")
            page.evaluate(WATCH)
            assert "/runs/stopped" in page.inner_html("#running")
            page.focus("#running a")
            page.wait_for_timeout(1_500)  # in which it is replaced once at least
            assert page.evaluate("document.activeElement.getAttribute('href')") == "/runs/stopped"
            os.close(writing)
            writing = -1
            page.wait_for_function("() => document.querySelector('#running')?.textContent.includes('Nothing runs.')")
            assert page.evaluate("document.activeElement.textContent") == "Show what came of it"
            assert page.evaluate(SETTLED) <= MOST_SHIFT
            asked = len(page.requests)
            page.wait_for_timeout(2_500)
            assert len(page.requests) == asked
            assert page.problems == []
    finally:
        if writing >= 0:
            os.close(writing)
