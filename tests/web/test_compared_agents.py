"""Two agents side by side: question, reference, both answers, pass before and after, moved metrics, filters, pages."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from browser import Chromium
from stored_runs import (
    PAGE_PLAN,
    a_full_record,
    an_observation,
    at,
    origin,
    rewrite,
    some_cases,
    store,
    updated,
)
from web_app import WebApp, served, text_of

from pytest_rageval.runs.records.result_line import to_line
from pytest_rageval.runs.row import Row

MANY = 120
ATTACK = "<script>top.hacked=1</script>"


def store_agent(reports: Path, run_id: str, agent: str, rows: list[Row], answers: dict[int, str], hour: int) -> Path:
    """A whole run of an agent; `answers` replaces those of single cases."""
    records = {}
    for number, row in enumerate(rows):
        records[row.key] = a_full_record(
            row, question=f"Where is stock {number} kept?", reference_answers=[f"In warehouse {number}."]
        )
        if number in answers:
            records[row.key]["answer"] = answers[number]
    folder = store(reports, run_id, rows, plan=PAGE_PLAN, records=records)
    lines = (to_line(an_observation(row, f"Where is stock {number} kept?")) for number, row in enumerate(rows))
    (folder / "observations.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    rewrite(folder / "config.json", updated(begun=at(hour), origin=origin(agent, hour)))
    rewrite(folder / "metrics.json", lambda metrics: metrics["volatile"].update(timestamp=at(hour)))
    return folder


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebApp]:
    """Shop v1 fails five cases; help v2 fails two others, answers four otherwise, and scores higher in one case."""
    root = tmp_path_factory.mktemp("agents")
    reports = root / "reports"
    shop = some_cases(5, cases=MANY)
    helper = some_cases(0, cases=MANY)
    worse = some_cases(MANY, cases=MANY)
    helper[10:12] = worse[10:12]
    helper[20] = replace(helper[20], scores={**helper[20].scores, "token_f1": 0.95})
    store_agent(reports, "of-shop", "shop", shop, {}, 1)
    answers = {0: "In the south.", 1: "In the south.", 10: f"Nowhere {ATTACK}", 11: "Nowhere."}
    store_agent(reports, "of-help", "help", helper, answers, 2)
    with served(root) as app:
        yield app


def shown(page: str) -> list[str]:
    """The numbers of the cases on a page."""
    return re.findall(r"<tr data-row.*?-(\d+)</a></th>", page, re.DOTALL)


def test_two_chosen_runs_show_both_answers_and_what_moved(app: WebApp):
    response = app.post("/runs/selected", {"action": "answers", "run": ["of-help", "of-shop"]})
    page = app.page(response.headers["location"])
    text = text_of(page)
    assert "shop v1 → B help v2" in text
    assert "<title>shop v1 and help v2" in page
    assert "115 → 118 of 120 shared cases pass" in text
    assert "better 6 " in text
    assert "worse 2 " in text
    assert "different 4 " in text
    assert len(shown(page)) == 50
    worse = app.page("/compare/answers?a=of-shop&b=of-help&show=worse")
    assert sorted(shown(worse)) == ["10", "11"]
    row = text_of(worse)
    assert "Where is stock 10 kept?" in row
    assert "In warehouse 10." in row, "the reference"
    assert "In the northern one. [1] Since 2019" in row
    assert "Nowhere." in row
    assert "mrr 1.000 → 0.500 ▼" in row
    assert ATTACK not in worse


def test_filters_and_pages_lead_on(app: WebApp):
    address = "/compare/answers?a=of-shop&b=of-help"
    assert sorted(shown(app.page(f"{address}&show=better"))) == ["0", "1", "2", "20", "3", "4"]
    assert sorted(shown(app.page(f"{address}&show=different"))) == ["0", "1", "10", "11"]
    first = app.page(address)
    (following,) = re.findall(r'<a rel="next" href="([^"]+)"', first)
    second = app.page(html.unescape(following))
    last = app.page(f"{address}&page=99")
    assert len({*shown(first), *shown(second), *shown(last)}) == MANY
    assert len(first.encode()) < 150_000
    case = html.unescape(re.findall(r'<th scope="row" class="id"><a href="([^"]+)"', first)[0])
    assert "against=of-shop" in case
    assert app.get(case).status_code == 200
    assert app.get(f"{address}&show=nicer").status_code == 400


def test_what_cannot_be_shown_side_by_side_is_said(app: WebApp):
    assert app.get("/compare/answers?a=of-shop&b=nothing").status_code == 404
    refused = app.get("/compare/answers?run=of-shop")
    assert (refused.status_code, "select two" in refused.text) == (409, True)
    assert app.get("/compare/answers?a=of-shop").headers["location"] == "/compare?a=of-shop"
    other = some_cases(0, cases=2)
    other = [replace(row, key=f"evalcases/other.jsonl::{number}") for number, row in enumerate(other)]
    store_agent(app.settings.reports, "of-other", "other", other, {}, 3)
    page = text_of(app.page("/compare/answers?a=of-shop&b=of-other"))
    assert "These two runs have no case in common" in page


def test_an_agent_leads_to_others_that_answered_the_same_dataset(app: WebApp):
    for name in ("shop", "help"):
        fields = {"name": name, "target_kind": "demo", "metrics": "token_f1", "judge_kind": "lexical"}
        assert app.post("/agents", fields).status_code == 303
    page = html.unescape(app.page("/agents/shop"))
    assert "/compare/answers?a=of-help&b=of-shop" in page
    assert "98.3 % pass, here 95.8 %" in page
    compared = html.unescape(app.page("/compare?a=of-shop&b=of-help"))
    assert "/compare/answers?a=of-shop&b=of-help" in compared


@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_is_still_fits_and_keeps_nobody_out(chromium: Chromium, app: WebApp, width: int):
    with chromium.page(width) as page:
        page.goto(f"{app.address}/compare/answers?a=of-shop&b=of-help&show=different")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        report = chromium.call(lambda: Axe().run(page.page._target)).response["violations"]
        assert [rule["id"] for rule in report if rule["impact"] in ("serious", "critical")] == []
        page.click("text=worse 2")
        page.wait_for_url("**show=worse*")
        assert page.evaluate("document.querySelectorAll('[data-row]').length") == 2
        assert page.problems == []


def test_the_page_of_a_run_leads_to_labels_and_to_the_other_run_of_its_cases(app: WebApp):
    page = app.page("/runs/of-help")
    [address] = re.findall(r'<a href="(/compare[^"]*)">compare with [^<]*</a>', page)
    assert html.unescape(address) == "/compare?a=of-shop&b=of-help"
    assert "WORSE" in app.page(html.unescape(address)).upper()
    before_the_fold = page[: page.index("<details")]
    assert re.search(r'<a class="button" href="/datasets/[^"]*#labels">Label</a>', before_the_fold)
