"""Runs archived, deleted and renamed in the browser, each with a way back; and what of their results is shown."""

from __future__ import annotations

import csv
import html
import io
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from hostile import write_comparison, write_job
from openpyxl import load_workbook
from stored_pages import store_fallen
from web_app import WebApp, served

from pytest_rageval.io.lock import take_lock
from pytest_rageval.runs.reader import StoredRun


@pytest.fixture
def app(tmp_path: Path) -> Iterator[WebApp]:
    """Two finished runs, `before` and `now`, and a job that died at its start."""
    store_fallen(tmp_path / "reports", failing=3, cases=6)
    write_job(tmp_path / "data" / "jobs" / "20261122_100000")
    with served(tmp_path) as app:
        yield app


def listed(app: WebApp, address: str = "/runs") -> list[str]:
    return re.findall(r'name="run" value="([^"]+)" aria-label', app.page(address))


def change(app: WebApp, action: str, *runs: str) -> str:
    response = app.post("/runs/selected", {"action": action, "run": [*runs]})
    assert response.status_code == 303, response.text
    return app.page(response.headers["location"])


def test_an_archived_run_is_out_of_the_lists_until_it_is_brought_back(app: WebApp):
    page = change(app, "archive", "before", "now")
    assert "2 runs archived." in page
    assert set(listed(app)) == {"killed", "20261122_100000"}
    assert set(listed(app, "/runs?state=archived")) == {"before", "now"}
    assert "2 archived" in app.page("/runs")
    assert "before" not in app.page("/history")
    change(app, "unarchive", "before", "now")
    assert set(listed(app)) == {"before", "now", "killed", "20261122_100000"}


def test_a_deleted_run_is_gone_and_can_be_restored_with_its_job(app: WebApp):
    page = change(app, "delete", "now", "20261122_100000")
    assert "2 runs deleted." in page
    assert 'value="restore">Undo' in page
    assert "2 deleted runs" in page
    assert set(listed(app)) == {"before", "killed"}
    assert app.get("/runs/now").status_code == 404
    assert not (app.settings.reports / "runs" / "now").exists()
    change(app, "restore", "now", "20261122_100000")
    assert set(listed(app)) == {"before", "now", "killed", "20261122_100000"}
    assert StoredRun(app.settings.reports / "runs" / "now").state == "complete"


def test_the_pairwise_comparisons_of_a_run_are_deleted_and_restored_with_it(app: WebApp):
    compared = app.settings.data / "pairwise"
    write_comparison(compared / "20261122_110000")  # of `before` and `now`
    change(app, "delete", "before", "now")
    assert list(compared.iterdir()) == []
    assert app.get("/compare/pairwise/20261122_110000").status_code == 404
    change(app, "restore", "before", "now")
    assert "started 2026-11-22 10:00" in app.page("/compare/pairwise/20261122_110000")
    lock = take_lock(compared / "20261122_110000")
    assert lock
    refused = app.post("/runs/selected", {"action": "delete", "run": "now"})
    assert "a comparison of run now is going on; cancel it first" in refused.text
    assert set(listed(app)) == {"before", "now", "killed", "20261122_100000"}


def test_nothing_stays_of_a_run_that_cannot_be_restored_any_more(app: WebApp, monkeypatch: pytest.MonkeyPatch):
    write_comparison(app.settings.data / "pairwise" / "20261122_110000")
    monkeypatch.setattr("pytest_rageval.web.run_shelf.MOST_DELETED", 0)
    change(app, "delete", "now")
    assert [path for path in app.settings.data.rglob("*") if "20261122_110000" in str(path)] == []


@pytest.mark.reliability("crashes", "a deleted run is restored over another one of its name")
def test_a_deleted_run_whose_name_another_run_has_is_not_lost(app: WebApp):
    change(app, "delete", "now")
    runs = app.settings.reports / "runs"
    shutil.copytree(runs / "before", runs / "now")
    refused = app.post("/runs/selected", {"action": "restore", "run": "now"})
    assert refused.status_code == 409
    assert f"another run has its name now; move {runs / 'now'} elsewhere first" in html.unescape(refused.text)
    shutil.rmtree(runs / "now")
    change(app, "restore", "now")
    assert StoredRun(runs / "now").finished_metrics["volatile"]["run_id"] == "now"


def test_what_cannot_be_done_with_runs_is_said_and_nothing_changes(app: WebApp):
    run = app.settings.reports / "runs" / "now"
    (run / "metrics.json").rename(run / "kept")
    lock = take_lock(run)
    assert lock
    refused = app.post("/runs/selected", {"action": "delete", "run": ["before", "now", "../../etc"]})
    assert refused.status_code == 409
    assert "run now is going on; cancel it first" in refused.text
    assert "there is no run" in refused.text
    assert (app.settings.reports / "runs" / "before").is_dir()
    assert "tick the runs first" in app.post("/runs/selected", {"action": "archive"}).text
    assert "cannot be restored" in app.post("/runs/selected", {"action": "restore", "run": "../x"}).text
    assert app.post("/runs/selected", {"action": "burn", "run": "now"}).status_code == 400


def test_two_selected_runs_are_compared(app: WebApp):
    response = app.post("/runs/selected", {"action": "compare", "run": ["now", "before"]})
    assert app.get(response.headers["location"]).headers["location"] == "/compare?a=before&b=now"


def test_a_description_is_changed_in_the_run_itself(app: WebApp):
    assert app.post("/runs/now/description", {"description": "the <b>second</b> try"}).status_code == 303
    assert "the &lt;b&gt;second&lt;/b&gt; try" in app.page("/runs/now")
    assert StoredRun(app.settings.reports / "runs" / "now").finished_metrics["description"] == "the <b>second</b> try"
    assert "the &lt;b&gt;second" in app.page("/runs?text=second")
    assert app.post("/runs/now/description", {"description": "x" * 501}).status_code == 422
    assert app.post("/runs/nothing/description", {"description": "x"}).status_code == 404


def test_the_results_show_question_answer_reference_scores_and_explanation(app: WebApp):
    page = app.page("/runs/now")
    head = re.findall(r'<th scope="col"[^>]*>(.*?)</th>', page.partition('class="cases"')[2])
    assert head[:6] == ["outcome", "id", "worst change", "question", "answer", "reference"]
    assert "explanation" in head
    assert "token_f1 is 0.2, gate &gt;= 0.5 · groundedness: one claim has no source" in page
    chosen = app.page("/runs/now?col=mrr&col=category")
    assert re.findall(r'<th scope="col"[^>]*>(.*?)</th>', chosen.partition('class="cases"')[2]) == [
        "outcome", "id", "worst change", "mrr", "category",
    ]  # fmt: skip
    assert 'data-label="mrr">0.5' in chosen


def test_menus_stand_for_terms_of_the_filter(app: WebApp):
    failed = html.unescape(app.page("/runs/now?outcome=failed"))
    assert 'name="q" id="filter" value="outcome:failed"' in failed
    assert '<option value="failed" selected>failed</option>' in failed
    assert "3 cases of" in failed
    other = html.unescape(app.page("/runs/now?q=outcome:failed+mrr%3C1&outcome=passed"))
    assert 'value="mrr<1 outcome:passed"' in other
    assert 'id="filter" value=""' in app.page("/runs/now?q=outcome:failed&outcome=*")
    address = app.get("/runs/now?q=&outcome=failed", headers={"HX-Request": "true"}).headers["hx-replace-url"]
    assert address == "/runs/now?q=outcome%3Afailed"


def test_exports_hold_what_is_shown(app: WebApp):
    query = "q=outcome:failed&col=question&col=mrr"
    rows = list(csv.reader(io.StringIO(app.get(f"/runs/now/export.csv?{query}").text)))
    assert rows[0] == ["id", "outcome", "question", "mrr"]
    assert [row[1] for row in rows[1:]] == ["failed"] * 3
    sheet = load_workbook(io.BytesIO(app.get(f"/runs/now/export.xlsx?{query}").content)).worksheets[0]
    assert [[str(cell) for cell in row] for row in sheet.iter_rows(values_only=True)] == rows
    records = json.loads(app.get("/runs/now/export.json?q=outcome:failed").text)
    assert {record["outcome"] for record in records["cases"]} == {"failed"}
    assert app.get("/runs/now/export.csv?q=outcome:faild").status_code == 409
