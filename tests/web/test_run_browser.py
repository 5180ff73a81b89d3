"""The pages of a run in a real browser: keys, the filter while one types, hostile texts, and nobody kept out."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

import pytest
from browser import Chromium, OpenPage
from hostile import hostile_run
from stored_pages import store_fallen
from web_app import TOKEN, WebApp, served

from pytest_rageval.web import run_cases

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebApp]:
    """A run of which a fifth newly fails, with texts of both sides; one that was killed; one of hostile texts."""
    root = tmp_path_factory.mktemp("looked_at")
    reports = root / "reports"
    store_fallen(reports, failing=20, cases=100)
    hostile_run(reports, "alone", "failed")
    with served(root, token=TOKEN) as app:
        app.post("/login", {"token": TOKEN})
        yield app


@pytest.fixture
def page(chromium: Chromium, app: WebApp) -> Iterator[OpenPage]:
    with chromium.page() as page:
        log_in(page, app)
        yield page
        assert page.problems == []
        assert [request for request in page.requests if not request.startswith(app.address)] == []


def log_in(page: OpenPage, app: WebApp) -> None:
    cookies = [{"name": name, "value": value, "url": app.address} for name, value in app.client.cookies.items()]
    page.evaluate("0")
    page.page.context.add_cookies(cookies)


def rows(page: OpenPage) -> int:
    return int(page.evaluate("document.querySelectorAll('[data-row]').length"))


def test_a_large_run_shows_its_cases_before_its_sections(
    chromium: Chromium, app: WebApp, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(run_cases, "AT_ONCE", 50)
    for address in ("/runs/now", "/compare?a=before&b=now"):
        plain = app.get(address).text
        assert "data-row" in plain
        assert 'id="heat"' not in plain
        (link,) = re.findall(r'<a href="([^"]*/sections[^"]*)">', plain)
        assert 'id="heat"' in app.get(html.unescape(link)).text
        with chromium.page() as page:
            log_in(page, app)
            page.goto(app.address + address)
            page.wait_for_selector("#heat")
            assert page.evaluate("document.querySelectorAll('#late-title').length") == 0
            assert page.problems == []


def test_cases_are_walked_by_keys_as_in_the_report(page: OpenPage, app: WebApp):
    page.goto(f"{app.address}/runs/now")
    for key in ("/", "Control+a"):
        page.keyboard.press(key)
    page.keyboard.type("changed:worse")
    page.wait_for_function("() => document.querySelector('[role=status]')?.textContent.startsWith('20 cases of')")
    assert page.url == f"{app.address}/runs/now?q=changed%3Aworse"
    assert page.evaluate("document.activeElement.id") == "filter"
    page.watch_shifts()
    assert page.shifts(300) == []
    for key in ("Escape", "j", "j", "k", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    page.wait_for_selector("#case h2")
    assert "2 of 20" in page.inner_text(".case-bar")
    for key, seen in (("n", "3 of 20"), ("p", "2 of 20")):
        page.keyboard.press(key)
        page.wait_for_function(f"() => document.querySelector('.case-bar')?.textContent.includes('{seen}')")
    page.keyboard.press("?")
    assert page.evaluate("document.querySelector('#keys').open")
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    page.wait_for_selector("#case-list")
    assert page.url.endswith("?q=changed%3Aworse#cases")
    assert rows(page) == 20
    page.go_back()
    page.wait_for_selector("#case")
    page.reload()
    assert "2 of 20" in page.inner_text(".case-bar")


def test_the_way_back_keeps_filter_order_and_page(page: OpenPage, app: WebApp):
    page.goto(f"{app.address}/runs/now?sort=id#cases")
    page.click("text=next →")
    page.wait_for_url("**page=2*")
    page.click("[data-row] a")
    page.wait_for_selector("#case")
    page.go_back()
    page.wait_for_selector("#case-list")
    assert "51–100 of 100" in page.inner_text(".paging")
    assert page.input_value("[name=sort]") == "id"


def test_a_filter_that_means_nothing_is_said_while_one_types(page: OpenPage, app: WebApp):
    page.goto(f"{app.address}/runs/now")
    page.fill("#filter", "outcome:")
    page.fill("#filter", "outcome:faild")
    page.wait_for_selector("#case-list [role=alert]")
    assert "did you mean 'failed'?" in page.inner_text("#case-list [role=alert]")


def test_without_scripts_everything_is_there(chromium: Chromium, app: WebApp):
    with chromium.page(java_script_enabled=False) as page:
        log_in(page, app)
        page.goto(f"{app.address}/runs/now")
        page.fill("#filter", "changed:worse token_f1<0.5")
        page.click("form.filters button")
        page.wait_for_selector("#case-list >> text=20 cases of 100")
        page.click("#case-list [data-row] a")
        page.wait_for_selector("#case")
        assert not page.is_visible("[data-do]")
        page.click("text=next")
        page.wait_for_selector(".case-bar >> text=2 of 20")
