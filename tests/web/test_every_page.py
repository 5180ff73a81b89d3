"""Every page in a real browser, with attacks in all of its texts: small, still, only own requests, nobody kept out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from chromium import Chromium, OpenPage
from hostile_site import hostile_site, pages_of
from web_app import WebApp, served

from pytest_rageval.web.app import ROUTERS

pytestmark = pytest.mark.browser
PARTS = 6
"""All pages at once would take longer than a test may on a machine that has much to do."""
MOST_BYTES = 150_000
MOST_SHIFT = 0.01
NO_PAGES = ("/assets/{name}", "/runs/{run_id}/export.{form}", "/agents/{slug}/versions/{number}/toml",
            "/datasets/{slug}/versions/{number}/jsonl", "/datasets/{slug}/versions/{number}/csv")  # fmt: skip
"""Addresses of files."""
WATCH = """
  window.shifts = 0;
  new PerformanceObserver((list) => { for (const each of list.getEntries()) window.shifts += each.value; })
    .observe({type: "layout-shift", buffered: true});
"""
SETTLED = "() => new Promise((done) => setTimeout(() => done(window.shifts), 150))"
CONTRAST = {"runOnly": {"type": "rule", "values": ["color-contrast"]}, "resultTypes": ["violations"]}


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebApp]:
    with served(hostile_site(tmp_path_factory.mktemp("hostile"))) as app:
        yield app


@pytest.fixture(scope="module")
def addresses(app: WebApp) -> list[str]:
    return [address for addresses in pages_of(app).values() for address in addresses]


def serious_problems(chromium: Chromium, page: OpenPage, options: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """What an accessibility checker finds, by rule."""
    rules = chromium.call(lambda: Axe().run(page.page._target, options=options)).response["violations"]
    return {rule["id"]: [node["html"][:160] for node in rule["nodes"]][:3] for rule in rules
            if rule["impact"] in ("serious", "critical")}  # fmt: skip


def problems_of(page: OpenPage) -> list[str]:
    """What a page did that it must not; a page that says that something is not there is none of it."""
    return [problem for problem in page.problems if "Failed to load resource" not in problem]


def visit(page: OpenPage, app: WebApp, address: str) -> None:
    page.goto(app.address + address)
    if "/label/cases?file" in address:
        page.wait_for_selector("#label:not([hx-trigger])")


def test_no_page_is_forgotten(app: WebApp):
    routes = {route.path for router in ROUTERS for route in router.routes if "GET" in getattr(route, "methods", ())}
    assert routes == {*pages_of(app), *NO_PAGES}


def test_pages_are_small(app: WebApp, addresses: list[str]):
    """But for a run that has 58 metrics with texts of thousands of characters on each."""
    sizes = {address: len(app.get(address).content) for address in addresses if address != "/runs/alone"}
    assert {address[:80]: size for address, size in sizes.items() if size > MOST_BYTES} == {}


@pytest.mark.parametrize(
    ("width", "height", "scale"),
    [(1280, 800, 1), pytest.param(640, 400, 2, marks=pytest.mark.torture), (320, 700, 1)],
)
@pytest.mark.parametrize("part", range(0, PARTS, 3))
def test_nothing_runs_nothing_moves_and_nothing_is_wider_than_the_window(
    chromium: Chromium, app: WebApp, addresses: list[str], part: int, width: int, height: int, scale: int
):
    """A window of 1280 pixels, the same at 200 %, and a telephone."""
    with chromium.page(width, height, device_scale_factor=scale) as page:
        page.add_init_script(WATCH)
        for address in addresses[part // 3 :: 2]:
            visit(page, app, address)
            assert page.evaluate(SETTLED) <= MOST_SHIFT, address
            assert page.evaluate("document.documentElement.scrollWidth") <= width, address
            assert page.evaluate("top.hacked") is None, address
            assert page.url == app.address + address
        assert problems_of(page) == []
        assert [request for request in page.requests if not request.startswith(app.address)] == []


@pytest.mark.parametrize("part", range(PARTS))
def test_nobody_is_kept_out(chromium: Chromium, app: WebApp, addresses: list[str], part: int):
    """All rules in a light window; the contrast, which is what else differs, in the dark and in forced colours."""
    found: dict[str, Any] = {}
    with chromium.page() as page:
        for address in addresses[part::PARTS]:
            visit(page, app, address)
            found[address] = serious_problems(chromium, page)
            page.emulate_media(color_scheme="dark")
            found[f"{address} in the dark"] = serious_problems(chromium, page, CONTRAST)
            page.emulate_media(color_scheme="light", forced_colors="active")
            found[f"{address} in forced colours"] = serious_problems(chromium, page, CONTRAST)
            page.emulate_media(forced_colors="none")
    assert {address: problems for address, problems in found.items() if problems} == {}


@pytest.mark.parametrize(
    ("address", "swap", "is_swapped"),
    [
        ("/runs", "document.querySelector('select[name=state]').value = 'stopped'", "location.search"),
        ("/history", "document.querySelector('select[name=last]').selectedIndex = 0", "location.search"),
        ("/runs/now", "document.querySelector('#filter').value = 'outcome:failed'", "location.search"),
        ("/compare?a=before&b=now", "document.querySelector('#filter').value = 'changed:worse'",
         "location.search.includes('worse')"),
    ],
)  # fmt: skip
def test_a_part_that_is_swapped_moves_nothing_else(
    chromium: Chromium, app: WebApp, address: str, swap: str, is_swapped: str
):
    with chromium.page() as page:
        page.add_init_script(WATCH)
        visit(page, app, address)
        page.evaluate(f"""() => {{
          {swap};
          document.querySelector("form.filters[hx-get]").requestSubmit();
        }}""")
        page.wait_for_function(f"() => Boolean({is_swapped})")
        assert page.evaluate(SETTLED) <= MOST_SHIFT
        assert problems_of(page) == []
