"""Lists of runs in a real browser: looks, keys, and what moves when a part is replaced."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import pytest
from browser import Chromium
from stored_runs import store_project
from web_app import WebApp, served

from pytest_rageval.io.lock import take_lock

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebApp]:
    root = tmp_path_factory.mktemp("lists")
    reports = store_project(root)
    for number in range(60):
        shutil.copytree(reports / "runs" / "plain", reports / "runs" / f"plain-{number:02}")
    with served(root) as app:
        yield app


def test_a_filter_narrows_the_list_in_place_and_back_and_reload_keep_it(chromium: Chromium, app: WebApp):
    with chromium.page() as page:
        page.goto(app.address + "/runs")
        page.watch_shifts()
        page.select_option("select[name=agent]", "shop-bot")
        page.wait_for_function("() => document.querySelectorAll('#run-list td.id').length === 3")
        assert page.shifts(300) == []
        assert page.evaluate("location.search").startswith("?agent=shop-bot")
        page.reload()
        assert page.locator("#run-list td.id").count() == 3
        assert page.input_value("select[name=agent]") == "shop-bot"
        page.click("#run-list td.id a >> nth=0")
        page.wait_for_selector("h1 .run, h1 a.run")
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


def test_the_card_of_a_run_goes_on_asking_until_it_ends_and_moves_nothing(chromium: Chromium, app: WebApp):
    writing = take_lock(app.settings.reports / "runs" / "stopped")
    try:
        with chromium.page() as page:
            page.goto(app.address + "/")
            page.watch_shifts()
            assert "/runs/stopped" in page.inner_html("#running")
            page.focus("#running a")
            page.wait_for_timeout(1_500)  # in which it is replaced once at least
            assert page.evaluate("document.activeElement.getAttribute('href')") == "/runs/stopped"
            os.close(writing)
            writing = -1
            page.wait_for_function("() => document.querySelector('#running')?.textContent.includes('Nothing runs.')")
            assert page.evaluate("document.activeElement.textContent") == "Show the finished runs"
            assert page.shifts(300) == []
            assert page.locator("#running[hx-trigger]").count() == 0, "it asks no more"
            assert page.problems == []
    finally:
        if writing >= 0:
            os.close(writing)
