"""A report in use: keys, filter, cases, comparison, paper, and browsers that lack something."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from browser import Chromium, OpenPage
from project import SOME, Project
from stored_pages import a_page, page_between, write_page
from stored_runs import CASES, LONG, some_cases, store_full

from pytest_rageval.render.html.environment import case_address

pytestmark = pytest.mark.browser
KEY = f"evalcases/warehouse.jsonl::{LONG}-0"
MOST_NODES = 2_500

ADDRESSES = {"page": "", "case": case_address(KEY)}


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that became worse, compared with the one before."""
    folder = tmp_path_factory.mktemp("worse")
    return write_page(folder, a_page(folder, "worse"))


@pytest.fixture
def page(chromium: Chromium, report: Path) -> Iterator[OpenPage]:
    with chromium.page() as opened:
        yield opened.open(report)


def test_everything_is_reached_by_keyboard(page: OpenPage):
    press = page.keyboard.press
    press("/")
    assert page.evaluate("document.activeElement.id") == "filter"
    page.keyboard.type("changed:worse")
    page.wait_for_function("() => document.getElementById('count').textContent === '12 of 40'")
    press("Escape")
    press("j")
    press("j")
    second = page.evaluate("document.activeElement.textContent")
    press("Enter")
    page.wait_for_selector("#case h2")
    assert second in page.inner_text("#case h2")
    assert page.inner_text(".case-bar .faint") == "2 of 12"
    press("n")
    page.wait_for_function("() => document.querySelector('.case-bar .faint').textContent === '3 of 12'")
    press("?")
    assert page.is_visible("#keys")
    press("Escape")
    press("Escape")
    page.wait_for_selector("#list")
    assert page.input_value("#filter") == "changed:worse"
    assert page.problems == []


def test_a_link_to_a_case_needs_no_filter(chromium: Chromium, report: Path):
    with chromium.page() as page:
        page.open(report, case_address(KEY))
        assert LONG in page.inner_text("#case h2")
        text = page.inner_text("#case")
        assert "token_f1 = 0.2, needs >= 0.5 (L5_wrong_answer)" in text.partition("Retrieved")[0]
        assert "✘ missed gold 2 of 2" in text
        assert "stock/since.md > # Since" in text
        assert "← nearest: chunk 2" in page.inner_text(".unsupported")
        assert f"pytest {KEY}" in text


def test_an_address_that_is_cut_within_a_letter_names_nothing_and_breaks_nothing(chromium: Chromium, report: Path):
    with chromium.page() as page:
        page.open(report, "#/case/%E0%A4")
        assert "This run has no case “%E0%A4”." in page.inner_text("#case")
        page.open(report, "#%E0%A4")
        assert page.problems == []


def test_where_only_the_baseline_is_there_a_case_opens_as_itself(chromium: Chromium, project: Project):
    """As in CI: baseline.json is committed, neither the records of its run nor the texts of its cases are."""
    project.cases(SOME)
    project.run("--rageval-update-baseline")
    shutil.rmtree(project.runs[-1])
    (project.path / "reports/baseline.texts.json.gz").unlink()
    project.write("worse.py", "import bot\ndef answer(question):\n    return bot.answer(question) | {'answer': 'no'}\n")
    project.run("--rageval-target", "worse:answer")
    with chromium.page() as page:
        page.open(project.runs[-1] / "report.html")
        page.locator(".flips a, ol a >> nth=0").first.click()
        page.wait_for_selector("#case h2")
        assert "gold_in_answer = 0" in page.inner_text("#case")


def test_a_case_has_scores_and_chunks_of_both_runs(chromium: Chromium, report: Path):
    with chromium.page() as page:
        page.open(report, case_address(KEY) + "/compare")  # as older reports linked it
        assert "token_f1 0.900 → 0.200" in page.inner_text(".compared .moved")
        page.click("text=chunks before and after, 2 equal")
        assert page.locator(".compared tr.same:visible").count() == 2


NEEDED = (".case h2", "[data-md=question]", "[data-md=expected]", "[data-md=answer]", ".why li", "[data-md=chunks] tr",
          "[data-md='missed gold'] li")  # fmt: skip


def test_a_case_opens_with_all_that_explains_it(chromium: Chromium, report: Path):
    with chromium.page() as page:
        page.open(report, case_address(KEY))
        for selector in NEEDED:
            box = page.locator(selector).last.bounding_box()
            assert box is not None, selector
            assert box["height"] > 0, selector
            assert box["y"] + box["height"] <= 800, selector


def test_arrow_keys_go_through_the_answers_of_a_case_with_trials(chromium: Chromium, tmp_path: Path):
    row = some_cases(1, cases=1)[0]
    rows = [replace(row, trial=number, trial_passed=number == 1) for number in range(3)]
    store_full(tmp_path, "now", [*rows, *some_cases(0, cases=3)[1:]])
    with chromium.page(permissions=["clipboard-read", "clipboard-write"]) as page:
        page.open(write_page(tmp_path, page_between(tmp_path, None, "now")), case_address(row.key))
        assert page.locator(".trials li:visible").count() == 1
        assert "trial 1" in page.inner_text(".trials li:visible")
        for key, number in (("ArrowRight", 2), ("ArrowRight", 3), ("ArrowRight", 3), ("ArrowLeft", 2)):
            page.keyboard.press(key)
            assert f"trial {number}" in page.inner_text(".trials li:visible")
        page.keyboard.press("s")
        page.wait_for_function("() => document.getElementById('said').textContent.startsWith('copied: draft case')")
        assert page.evaluate("navigator.clipboard.readText()").startswith('{"id": "draft-')
        page.keyboard.press("n")
        page.wait_for_function("() => document.querySelector('.case-bar .faint').textContent.startsWith('2 of')")
        page.keyboard.press("ArrowLeft")
        page.wait_for_function("() => document.querySelector('.case-bar .faint').textContent.startsWith('1 of')")


def test_the_document_stays_small(page: OpenPage):
    assert page.evaluate("document.querySelectorAll('*').length") <= MOST_NODES
    page.evaluate("document.getElementById('list').scrollTop = 600")
    page.wait_for_timeout(100)
    assert page.evaluate("document.querySelectorAll('#list .row').length") < CASES + 1


def test_every_name_of_a_metric_has_its_definition_as_a_tip(page: OpenPage):
    tips = page.evaluate("[...document.querySelectorAll('.metric')].map(name => name.title)")
    assert tips
    assert all(len(tip) > 20 for tip in tips), tips


def test_a_regressed_metric_names_the_cases_that_caused_it(chromium: Chromium, tmp_path: Path):
    with chromium.page() as page:
        page.open(write_page(tmp_path, a_page(tmp_path, "gate failed")))
        row = page.locator("tr.worse + tr.causes >> nth=0")
        assert "12 cases fell" in row.inner_text()
        assert row.locator("li a").count() == 10
        row.locator("a >> text=all 12").click()
        page.wait_for_function("() => document.getElementById('count').textContent === '12 of 40'")


# Each colour scheme with each kind of page; what else a reader may set, once a day on one of them.
TORTURE = pytest.mark.torture
KINDS = [
    *itertools.product(["light", "dark"], ADDRESSES),
    ("forced colours", "page"),
    pytest.param("forced colours", "case", marks=TORTURE),
    ("200 % zoom", "case"),
    pytest.param("200 % zoom", "page", marks=TORTURE),
]


@pytest.mark.parametrize(("kind", "address"), KINDS)
def test_nobody_is_kept_out(chromium: Chromium, report: Path, kind: str, address: str):
    options: dict[str, Any] = {"color_scheme": "dark" if kind == "dark" else "light"}
    if kind == "forced colours":
        options["forced_colors"] = "active"
    if kind == "200 % zoom":
        options |= {"device_scale_factor": 2}
    width, height = (640, 400) if kind == "200 % zoom" else (1280, 800)
    with chromium.page(width, height, **options) as page:
        page.open(report, ADDRESSES[address])
        found = Axe().run(page).response["violations"]
        serious = {rule["id"]: [node["html"][:120] for node in rule["nodes"]][:3] for rule in found
                   if rule["impact"] in ("serious", "critical")}  # fmt: skip
        assert serious == {}


def test_without_scripts_the_page_can_be_read(chromium: Chromium, report: Path):
    with chromium.page(java_script_enabled=False) as page:
        page.goto(report.as_uri())
        text = page.inner_text("body")
        assert "12 cases newly fail" in text
        assert page.locator("#plain li").count() == 12
        assert "token_f1 is 0.2, gate >= 0.5" in page.inner_text("#plain")
        assert not page.is_visible("#filter")


def test_a_browser_that_cannot_inflate_shows_the_plain_cases_and_says_so(chromium: Chromium, report: Path):
    with chromium.page() as page:
        page.add_init_script("delete window.DecompressionStream")
        page.goto(report.as_uri())
        assert "cannot inflate" in page.inner_text("#no-inflate")
        assert page.locator("#plain li").count() == 12


def test_on_paper_the_first_page_is_the_first_screen_and_all_failing_cases_follow(chromium: Chromium, tmp_path: Path):
    store_full(tmp_path, "now", some_cases(230, cases=300))
    with chromium.page(688, 1017, forced_colors="none") as page:  # A4 without its margins
        page.open(write_page(tmp_path, page_between(tmp_path, None, "now")))
        page.emulate_media(media="print")
        # The rest of the cases is read once the page is there.
        page.wait_for_function("""() => {
          dispatchEvent(new Event("beforeprint"));
          return document.querySelectorAll("#plain li").length >= 230;
        }""")
        assert page.evaluate("document.querySelector('.two').getBoundingClientRect().bottom") < 1017
        assert page.locator("#plain li:visible").count() == 230
        assert not page.is_visible("#list")
        colours = page.evaluate("""[...new Set([...document.querySelectorAll('main *')].filter(e => e.offsetParent)
            .map(e => getComputedStyle(e).color))]""")
        assert all(len(set(colour.strip("rgb()").split(", "))) == 1 for colour in colours), colours
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        assert page.locator("#plain li").count() == 0
