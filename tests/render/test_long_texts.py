"""Texts that no page was laid out for: without a space, of hundreds of lines, of hundreds of claims, right to left."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import Chromium, OpenPage
from stored_pages import page_between, write_page
from stored_runs import PAGE_PLAN, a_full_record, a_row, an_observation, store

from pytest_rageval.render.html.case_view import case_views
from pytest_rageval.render.html.environment import case_address
from pytest_rageval.render.markdown.case_markdown import case_markdown
from pytest_rageval.runs.records.result_line import to_line

pytestmark = pytest.mark.browser
UNBROKEN = "x" * 150
LONG = "The stock of winter is kept there. " * 80
ARABIC = "في المستودع الشمالي منذ عام 2019."
KEYS = {name: f"evalcases/stock.jsonl::{name}" for name in (UNBROKEN, "long", "arabic")}
ANSWERS = {UNBROKEN: UNBROKEN, "long": LONG, "arabic": ARABIC}
CLAIMS = [f"Claim {number} is kept nowhere." for number in range(40)]


def store_texts(reports: Path, run_id: str, ending: str, outcome: str) -> None:
    """A run whose cases have these answers."""
    failed = (("token_f1", "L5_wrong_answer"),) if outcome == "failed" else ()
    rows = [a_row(key, outcome=outcome, failed=failed, latency={"total_ms": 90.0}, mrr=1.0) for key in KEYS.values()]
    records = {
        row.key: a_full_record(
            row,
            question=f"{answer}?",
            answer=answer + ending,
            reason=UNBROKEN,
            groundedness={
                "score": 1.0,
                "reasoning": UNBROKEN,
                "model": "m",
                "heuristic": True,
                "supported_claims": [],
                "unsupported_claims": CLAIMS,
            },
        )
        for row, answer in zip(rows, ANSWERS.values(), strict=True)
    }
    folder = store(reports, run_id, rows, plan=PAGE_PLAN, records=records)
    lines = (
        to_line(an_observation(row, f"{answer}?", answer=f"{LONG} indeed")) + "\n"
        for row, answer in zip(rows, ANSWERS.values(), strict=True)
    )
    (folder / "observations.jsonl").write_text("".join(lines), encoding="utf-8")


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    reports = tmp_path_factory.mktemp("texts")
    store_texts(reports, "before", "", "passed")
    store_texts(reports, "now", " Once more.", "failed")
    return reports


@pytest.fixture(scope="module")
def report(reports: Path) -> Path:
    return write_page(reports, page_between(reports, "before", "now"))


@pytest.fixture(scope="module")
def narrow(chromium: Chromium, report: Path) -> Iterator[OpenPage]:
    with chromium.page(390, 844, permissions=["clipboard-read", "clipboard-write"]) as page:
        yield page.open(report)


WIDTH = "document.documentElement.scrollWidth"


@pytest.mark.parametrize("view", ["", "/compare"])
@pytest.mark.parametrize("name", KEYS)
def test_a_text_without_a_space_widens_no_page(narrow: OpenPage, name: str, view: str):
    narrow.evaluate("location.hash = ''")
    assert narrow.evaluate(WIDTH) == 390
    narrow.go(case_address(KEYS[name]) + view)
    assert narrow.evaluate(WIDTH) == 390


@pytest.mark.parametrize("view", ["", "/compare"])
def test_a_long_case_is_folded(narrow: OpenPage, view: str):
    narrow.go(case_address(KEYS["long"]) + view)
    tallest = "Math.max(...[...document.querySelectorAll('#case .text, #case .claims')].map(each => each.clientHeight))"
    assert narrow.evaluate(tallest) <= 12 * 63, "twelve lines, or twelve claims of three lines"
    if not view:
        assert "28 more claims" in narrow.inner_text("#case")


def test_a_folded_text_is_copied_without_the_word_that_unfolds_it(narrow: OpenPage, reports: Path):
    narrow.go(case_address(KEYS["long"]))
    narrow.keyboard.press("m")
    narrow.wait_for_function("() => document.getElementById('said').textContent === 'copied: Markdown'")
    text = narrow.evaluate("navigator.clipboard.readText()")
    run = page_between(reports, "before", "now")
    [view] = case_views(run, [case for case in run.cases if case.key == KEYS["long"]])
    assert view is not None
    assert f"**question**\n\n```text\n{LONG}?\n```" in text
    assert case_markdown(view) == text, "the command gives another Markdown than the page"


def test_a_text_from_right_to_left_ends_at_its_left(narrow: OpenPage):
    narrow.go(case_address(KEYS["arabic"]))
    places = """() => {
      const text = document.querySelector('#case [data-md=question] .text').firstChild, range = document.createRange();
      const left = at => (range.setStart(text, at), range.setEnd(text, at + 1), range.getBoundingClientRect().left);
      return [left(0), left(text.data.indexOf('.'))];
    }"""
    narrow.evaluate("document.querySelector('#case').scrollIntoView()")
    first, stop = narrow.evaluate(places)
    assert stop < first
