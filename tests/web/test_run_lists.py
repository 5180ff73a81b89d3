"""Dashboard, list of runs, comparison and history, over the real server."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from html import unescape

import pytest
from stored_runs import some_cases, store_full, store_project
from web_app import WebApp, served, text_of

from pytest_rageval.comparison.verdict_sentence import with_verdict
from pytest_rageval.io.lock import take_lock
from pytest_rageval.runs.reader import StoredRun

MOST_BYTES = 150_000


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebApp]:
    root = tmp_path_factory.mktemp("lists")
    store_project(root)
    with served(root) as app:
        yield app


def rows_of(html: str) -> list[str]:
    """Run ids of a page's table, in order."""
    return re.findall(r'<td class="id"><a href="/runs/([^"]+)">', html)


def test_the_dashboard_shows_the_last_run_of_each_agent_and_data_set(app: WebApp):
    html = app.page("/")
    shown = text_of(html)
    assert "shop-bot v3 × products v2" in shown
    assert "faq-bot v1 × faq v2" in shown
    assert "unversioned (pytest) · bot:answer" in shown
    metrics = with_verdict(StoredRun(app.settings.reports / "runs/shop-2").finished_metrics)
    assert metrics["verdict"]["sentence"] in shown
    assert f"{100 * metrics['outcomes']['passed'] / metrics['total_tests']:.1f} % pass" in shown
    means = {name.partition("@")[0]: metric["mean"] for name, metric in metrics["metrics"].items()}
    assert f"recall_any {means['recall_any']:.3f} context_recall {means['context_recall']:.3f}" in shown
    latency = metrics["volatile"]["operations"]["latency_ms"]
    assert f"token_f1 {means['token_f1']:.3f} p95 {latency['p95']:.0f} ms" in shown
    assert rows_of(html)[-3:] == ["shop-2", "shop-1", "shop-0"]
    assert len(html.encode()) < MOST_BYTES


def test_what_runs_now_is_a_card_that_asks_for_itself_until_nothing_runs(app: WebApp):
    writing = take_lock(app.settings.reports / "runs" / "stopped")
    try:
        running = app.page("/")
    finally:
        os.close(writing)
    card = re.search(r'<section id="running".*?</section>', running, re.DOTALL)
    assert card
    assert 'hx-get="/running" hx-trigger="every 1s"' in card[0]
    assert "/runs/stopped" in card[0]
    part = app.page("/running")
    assert "Nothing runs." in part
    assert "hx-trigger" not in part
    assert 'id="running"' not in app.page("/")


@pytest.mark.parametrize(
    ("asked", "runs"),
    [
        ("agent=shop-bot", {"shop-0", "shop-1", "shop-2"}),
        ("agent=unversioned&state=failed", {"plain"}),
        ("source=uploaded%20answers", {"faq-0"}),
        ("dataset=faq", {"faq-0"}),
        ("state=unreadable", {"broken"}),
        ("state=stopped", {"stopped"}),
        ("text=TRY+1", {"shop-1"}),
        ("text=%27%3B+DROP+TABLE+runs%3B--", set()),
        ("agent=nobody", set()),
        ("page=99&agent=shop-bot", {"shop-0", "shop-1", "shop-2"}),
    ],
)
def test_runs_are_narrowed_by_an_address(app: WebApp, asked: str, runs: set[str]):
    html = app.page(f"/runs?{asked}")
    assert set(rows_of(html)) == runs
    assert runs or "No run meets this filter." in text_of(html)


def test_the_lists_say_what_a_run_does_to_the_build_and_why(app: WebApp):
    for address in ("/runs", "/"):
        html = app.page(address)
        headlines = re.findall(r'<small class="headline( fails)?">(.*?)</small>', html)
        assert (" fails", "Fails the build: 4 cases fail") in headlines
        assert ("", "Passes: nothing fails, and there is no baseline yet") in headlines


def test_why_a_run_cannot_be_read_stands_below_it(app: WebApp):
    assert "metrics.json is not JSON as we write it" in text_of(app.page("/runs?state=unreadable"))
    assert "its page says how to finish it" in text_of(app.page("/runs?state=stopped"))


def test_two_selected_runs_are_compared_the_older_one_first(app: WebApp):
    response = app.get("/compare?run=shop-2&run=shop-0")
    assert (response.status_code, response.headers["location"]) == (303, "/compare?a=shop-0&b=shop-2")
    html = app.page("/compare?a=shop-0&b=shop-2")
    shown = text_of(html)
    assert "Fails the build: 4 cases newly fail" in shown
    assert "k 5 → 3" in shown
    assert len(re.findall("data-row", html)) == 40
    assert len(html.encode()) < MOST_BYTES


def test_cases_of_a_comparison_are_filtered_and_opened_against_the_chosen_run(app: WebApp):
    html = app.page("/compare?a=shop-0&b=shop-2&q=changed:worse")
    assert len(re.findall("data-row", html)) == 4
    link = unescape(re.findall(r'data-row><td>.*?href="([^"]+)"', html)[0])
    assert "against=shop-0" in link
    case = app.page(link)
    assert "/compare?a=shop-0&b=shop-2" in unescape(case)
    assert "is nothing to filter by" in text_of(app.page("/compare?a=shop-0&b=shop-2&q=colour:red"))
    assert len(re.findall("data-row", app.page("/runs/shop-2?q=outcome:failed"))) == 4, (
        "that of the run is another list"
    )


def test_a_case_on_one_side_only_is_said(app: WebApp):
    reports = app.settings.reports
    fewer = store_full(reports, "fewer", some_cases(0, cases=38))
    try:
        shown = text_of(app.page("/compare?a=shop-0&b=fewer"))
        assert "Only before: 2 cases" in shown
        shown = text_of(app.page("/compare?a=fewer&b=shop-0"))
        assert "Only after: 2 cases" in shown
    finally:
        shutil.rmtree(fewer)


def test_a_menu_leads_to_the_same_cases_of_another_agent_version(app: WebApp):
    menu = re.search(r'<select name="version">(.*?)</select>', app.page("/runs/shop-2"))
    assert menu
    assert re.findall(r'value="([^"]+)"( selected)?>(.*?)<', menu[1]) == [
        ("shop-2", " selected", "v3"), ("shop-1", "", "v2"), ("shop-0", "", "v1"),
    ]  # fmt: skip
    asked, there = "/runs/shop-2?version=shop-0&q=outcome:failed", "/runs/shop-0?q=outcome%3Afailed"
    assert app.get(asked).headers["location"] == there
    assert app.get(asked, headers={"HX-Request": "true"}).headers["hx-redirect"] == there
    compared = app.get("/compare?a=shop-0&b=shop-2&version=shop-1").headers["location"]
    assert compared == "/compare?a=shop-0&b=shop-1"
    assert 'name="version"' not in app.page("/runs/plain")


@pytest.mark.parametrize(
    ("asked", "status", "problem"),
    [
        ("", 200, "Compare two runs"),
        ("run=shop-0", 409, "1 runs are selected: select two"),
        ("a=shop-0&b=stopped", 409, "run stopped was interrupted"),
        ("a=shop-0&b=broken", 409, "is not JSON as we write it"),
        ("a=nothing&b=shop-0", 404, "there is no run"),
        ("a=../../etc&b=shop-0", 404, "there is no run"),
    ],
)
def test_a_comparison_that_cannot_be_made_is_said(app: WebApp, asked: str, status: int, problem: str):
    response = app.get(f"/compare?{asked}")
    assert response.status_code == status
    assert problem in text_of(response.text)


def test_history_shows_each_metric_in_time_with_its_table(app: WebApp):
    cases = StoredRun(app.settings.reports / "runs/shop-0").config["dataset_hash"]
    html = app.page(f"/history?dataset={cases}")
    shown = text_of(html)
    assert html.count('<figure class="plot"') >= 3
    assert re.search("pass rate mean of 3 runs in time .*0.90 1.00", shown) or "0.90" in shown
    assert re.findall(r'<td><a href="/runs/([^"]+)"', html) == ["shop-0", "shop-1", "shop-2"]
    assert "k 4→3" in shown
    alone = app.page(f"/history?dataset={cases}&metric=token_f1&last=50&agent=shop-bot")
    assert alone.count('<figure class="plot"') == 1
    assert app.page("/history?dataset=nothing").count('<figure class="plot"') == 0
    assert max(map(len, (html, alone))) < MOST_BYTES
