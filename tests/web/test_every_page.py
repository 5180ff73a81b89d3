"""Every page with attacks in all of its texts: small, still, only own requests, nobody kept out."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from browser import Chromium, OpenPage
from fastapi.routing import APIRoute
from hostile import JOB_ID, PAYLOADS, TEXTS, hostile_site, pages_of
from processes import IS_THOROUGH, rounds
from web_app import WebApp, served

from pytest_rageval.text import printable
from pytest_rageval.web.app import ROUTERS

pytestmark = pytest.mark.reliability("injection", "every page of the web app", costs="leak")

PARTS = 6
"""All pages at once would take longer than a test may on a machine that has much to do."""
MOST_BYTES = 150_000
NO_PAGES = ("/assets/{name}", "/runs/{run_id}/export.{form}", "/agents/{slug}/versions/{number}/toml",
            "/datasets/{slug}/versions/{number}/jsonl", "/datasets/{slug}/versions/{number}/csv")  # fmt: skip
"""Addresses of files."""
MARKUP = re.compile(
    r"<(img|iframe|object|embed|base |marquee|svg[ /]onload|script(?! src=\"/assets/)|a href=.?javascript)"
)
"""What a page of ours never holds."""
CONTRAST = {"runOnly": {"type": "rule", "values": ["color-contrast"]}, "resultTypes": ["violations"]}


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebApp]:
    with served(hostile_site(tmp_path_factory.mktemp("hostile"))) as app:
        yield app


@pytest.fixture(scope="module")
def addresses(app: WebApp) -> list[str]:
    return [address for addresses in pages_of(app).values() for address in addresses]


@pytest.fixture(scope="module")
def visited(app: WebApp) -> list[str]:
    """What a browser looks at: a page of each route, all of them under torture."""
    return [address for addresses in pages_of(app).values() for address in addresses[: rounds(100, 1)]]


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
    page.watch_shifts()
    if "/label/cases?file" in address:
        page.wait_for_selector("#label:not([hx-trigger])")


def test_no_page_is_forgotten(app: WebApp):
    all_routes = [route for router in ROUTERS for route in router.routes if isinstance(route, APIRoute)]
    routes = {route.path for route in all_routes if "GET" in (route.methods or ())}
    assert {route for route in routes if not route.startswith("/api/")} == {*pages_of(app), *NO_PAGES}


def test_pages_are_small(app: WebApp, addresses: list[str]):
    """But for a run that has 58 metrics with texts of thousands of characters on each."""
    sizes = {address: len(app.get(address).content) for address in addresses if address != "/runs/alone"}
    assert {address[:80]: size for address, size in sizes.items() if size > MOST_BYTES} == {}


def test_attacks_are_text_on_every_page_without_scripts_too(app: WebApp, addresses: list[str]):
    pages = {address: app.get(address).text for address in [*addresses, "/runs/alone?page=2"]}
    assert {address[:80]: found[0] for address, page in pages.items() if (found := MARKUP.search(page))} == {}
    for address, texts in (("/runs/alone", PAYLOADS[:15]), (f"/jobs/{JOB_ID}", TEXTS)):
        shown = " ".join(html.unescape(re.sub(r"<[^>]*>", " ", pages[address])).split())
        assert [text for text in texts if " ".join(printable(text).split()) not in shown] == [], address


def test_whatever_is_filtered_by_there_is_a_page(app: WebApp):
    for text in ("'; DROP TABLE cases; --", '"%_\\', "category:' OR 1=1 --", "\x00", "(((", '"unclosed', *PAYLOADS):
        assert app.get("/runs/alone", params={"q": text, "sort": text[:200]}).status_code == 200, text


@pytest.mark.browser
@pytest.mark.parametrize(
    ("width", "height", "scale"),
    [(1280, 800, 1), pytest.param(640, 400, 2, marks=pytest.mark.torture), (320, 700, 1)],
)
@pytest.mark.parametrize("part", range(0, PARTS, 3))
def test_nothing_runs_nothing_moves_and_nothing_is_wider_than_the_window(
    chromium: Chromium, app: WebApp, visited: list[str], part: int, width: int, height: int, scale: int
):
    """A window of 1280 pixels, the same at 200 %, and a telephone."""
    with chromium.page(width, height, device_scale_factor=scale) as page:
        for address in visited[part // 3 :: 2]:
            visit(page, app, address)
            assert page.shifts(50) == [], address
            assert page.evaluate("document.documentElement.scrollWidth") <= width, address
            assert page.evaluate("top.hacked") is None, address
            assert page.url == app.address + address
        assert problems_of(page) == []
        assert [request for request in page.requests if not request.startswith(app.address)] == []


@pytest.mark.browser
@pytest.mark.parametrize("part", range(PARTS))
def test_nobody_is_kept_out(chromium: Chromium, app: WebApp, visited: list[str], part: int):
    """All rules in a light window; the contrast in the dark, and under torture in forced colours."""
    found: dict[str, Any] = {}
    with chromium.page() as page:
        for address in visited[part::PARTS]:
            visit(page, app, address)
            found[address] = serious_problems(chromium, page)
            page.emulate_media(color_scheme="dark")
            found[f"{address} in the dark"] = serious_problems(chromium, page, CONTRAST)
            page.emulate_media(color_scheme="light")
            if IS_THOROUGH:
                page.emulate_media(forced_colors="active")
                found[f"{address} in forced colours"] = serious_problems(chromium, page, CONTRAST)
                page.emulate_media(forced_colors="none")
    assert {address: problems for address, problems in found.items() if problems} == {}


@pytest.mark.browser
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
        visit(page, app, address)
        page.watch_shifts(from_now=True)
        page.evaluate(f"""() => {{
          {swap};
          document.querySelector("form.filters[hx-get]").requestSubmit();
        }}""")
        page.wait_for_function(f"() => Boolean({is_swapped})")
        assert page.shifts(150) == []
        assert problems_of(page) == []


@pytest.mark.browser
@pytest.mark.parametrize("address", ["/", "/runs"])
def test_columns_of_runs_stay_where_they_are_when_more_rows_arrive(chromium: Chromium, app: WebApp, address: str):
    """A slow page is drawn in parts: one row after the other is taken away, as they arrive in the other direction."""
    with chromium.page() as page:
        visit(page, app, address)
        places = page.evaluate("""() => {
          const heads = [...document.querySelectorAll("table.runs th")];
          const rows = [...document.querySelectorAll("table.runs tbody tr")];
          const lefts = () => heads.map((head) => head.getBoundingClientRect().left).join(" ");
          return [lefts(), ...rows.reverse().map((row) => { row.remove(); return lefts(); })];
        }""")
        assert len(places) > 4
        assert set(places) == {places[0]}


FORMS = """() => [...document.querySelectorAll("form")].map((form) =>
  [...form.querySelectorAll("input, textarea, select")].some((field) => field.name && field.type !== "hidden"))"""
TYPE = """([number, texts]) => {
  const form = document.querySelectorAll("form")[number];
  form.noValidate = true;
  for (const field of form.querySelectorAll("input, textarea, select")) {
    if (["hidden", "file", "submit"].includes(field.type)) continue;
    for (const name of ["maxlength", "required", "pattern", "min", "max"]) field.removeAttribute(name);
    if (["number", "checkbox", "radio"].includes(field.type)) field.type = "text";
    if (field.matches("select")) field.append(new Option(texts, texts, true, true));
    else field.value = texts;
  }
  window.isOld = true;
  HTMLFormElement.prototype.requestSubmit.call(form, form.querySelector("button:not([name=reset])") || undefined);
}"""

EXPECTED = ("Failed to load resource", "The specified value", "Response Status Error Code 4")
"""Said by the browser of a form that was refused, and of a text in a field for a number."""
ANSWERED = """() => {  // another page, or this one with the part that a script has asked for
  window.waited = (window.waited || 0) + 1;
  return document.readyState === "complete" && (!window.isOld || window.waited > 40);
}"""


def pages_with_forms(app: WebApp) -> list[str]:
    """One address of each page, since its forms are the same whatever stands on it."""
    return [addresses[0] for addresses in pages_of(app).values() if addresses]


def check(page: OpenPage, app: WebApp, where: str) -> None:
    problems = [problem for problem in page.problems if not any(words in problem for words in EXPECTED)]
    assert (page.evaluate("top.hacked"), problems) == (None, []), where
    assert [request for request in page.requests if not request.startswith(app.address)] == [], where


@pytest.mark.browser
@pytest.mark.torture
def test_what_is_typed_anywhere_comes_back_as_text(chromium: Chromium, app: WebApp):
    """All attacks in each field of a form at once: the long way round, one by one, meets the same templates."""
    typed = 0
    with chromium.page() as page:
        for address in pages_with_forms(app):
            page.goto(app.address + address)
            for number, has_fields in enumerate(page.evaluate(FORMS)):
                if not has_fields:
                    continue
                page.goto(app.address + address)
                page.evaluate(TYPE, [number, "\n".join(TEXTS)])
                page.wait_for_function(ANSWERED)
                check(page, app, f"{address}, form {number}")
                typed += 1
    assert typed > 20
