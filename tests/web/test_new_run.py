"""A run from the browser: chosen, looked at, started; with answers that the agent gives now or that are uploaded."""

from __future__ import annotations

import html
import json
import re
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from project import FOUNDING
from web_app import WebApp, allow_code, ended, jobs_of, served, until

from pytest_rageval.cases.loading import load_file
from pytest_rageval.errors import CaseError
from pytest_rageval.model import EvalCase
from pytest_rageval.runs.reader import StoredRun
from pytest_rageval.web.run_choice import read_answers_upload
from pytest_rageval.web.versions.agent import Agent
from pytest_rageval.web.versions.agent_store import AgentStore
from pytest_rageval.web.versions.dataset_store import DatasetAbout, DatasetStore

JUDGE = "openai:qwen2.5-14b@http://127.0.0.1:9"
CHOSEN = {"agent": "calculator/1", "dataset": "sums/1"}
UPLOADED = CHOSEN | {"source": "uploaded answers"}


@pytest.fixture
def app(tmp_path: Path) -> Iterator[WebApp]:
    """An agent that is asked by a function, one that judges itself, and the founding documents' dataset."""
    (tmp_path / "calculator_app.py").write_text("def answer(question):\n    return {'answer': '4'}\n")
    allow_code(tmp_path, "calculator_app")
    agents = AgentStore(tmp_path / "data")
    agents.save("calculator", Agent(name="Calculator", target="calculator_app:answer", metrics=("token_f1",)), "", 0)
    agents.save("own-judge", Agent(name="Own judge", judge=JUDGE), "", 0)
    cases = load_file(FOUNDING / "one.csv", FOUNDING).cases
    DatasetStore(tmp_path / "data").save("sums", DatasetAbout(name="Sums"), cases, "", 0)
    with served(tmp_path) as app:
        yield app


def upload(app: WebApp, content: bytes, **fields: str) -> tuple[int, str, str]:
    """Status, address that follows and page of a form with a file of answers."""
    files = {"answers": ("../../answers <b>.csv", content, "text/csv")}
    response = app.post("/new-run", UPLOADED | fields, files=files)
    return response.status_code, response.headers.get("location", ""), html.unescape(response.text)


def finished(app: WebApp, address: str) -> StoredRun:
    job_id = address.rpartition("/")[2]
    status = until(jobs_of(app.settings.root), job_id, ended)
    assert status.state == "finished", (status, jobs_of(app.settings.root).log(job_id))
    return StoredRun(app.settings.reports / "runs" / job_id)


def test_what_a_run_takes_is_said_before_it_is_started(app: WebApp):
    page = html.unescape(app.page("/new-run?agent=own-judge/1&dataset=sums/1&source=uploaded+answers"))
    assert "2 cases; nothing is asked" in page
    assert re.search(r"judge openai:qwen2.5-14b@http://127.0.0.1:9: up to \d+ judgements", page)
    assert "2 questions to calculator_app:answer" in app.page("/new-run?agent=calculator/1")
    assert "Own judge v1 × Sums v1" in app.page("/new-run?agent=own-judge&dataset=sums")
    assert "names no system to ask" in app.page("/new-run?agent=own-judge/1&source=connector")
    assert "there is no version 9" in app.page("/new-run?agent=calculator/9")
    assert "choose an agent" in app.page("/new-run?agent=../../etc&dataset=sums/1")


def test_a_choice_that_the_page_did_not_show_is_shown_before_it_is_started(app: WebApp):
    """Else the lists would say one thing and the run be made of another."""
    other = CHOSEN | {"agent": "own-judge/1", "shown": "calculator/1 sums/1 connector", "description": "mine"}
    refused = app.post("/new-run", other)
    assert refused.status_code == 422
    page = html.unescape(refused.text)
    assert "Another choice than this page was showing" in page
    assert "Own judge v1 × Sums v1" in page
    assert 'value="own-judge/1 sums/1 connector"' in page
    looked = app.post("/new-run", other | {"action": "look"})
    assert looked.headers["location"] == "/new-run?agent=own-judge%2F1&dataset=sums%2F1&description=mine"
    assert 'value="mine"' in app.page(looked.headers["location"])
    assert not list((app.settings.data / "jobs").glob("*"))


def test_an_agent_that_nobody_can_ask_is_first_offered_an_upload(app: WebApp):
    assert "File of answers" in app.page("/new-run?agent=own-judge&dataset=sums")
    assert "File of answers" not in app.page("/new-run?agent=calculator&dataset=sums")


@pytest.mark.child_process
def test_an_agent_is_asked_and_the_next_run_is_compared_with_this_one(app: WebApp):
    started = app.post("/new-run", CHOSEN | {"description": "the first"})
    assert started.status_code == 303
    run = finished(app, started.headers["location"])
    assert run.config["origin"] == {
        "agent": "calculator", "agent_version": 1, "dataset": "sums", "dataset_version": 1, "source": "connector",
    }  # fmt: skip
    again = finished(app, app.post("/new-run", CHOSEN).headers["location"])
    assert run.finished_metrics["comparison"] is None
    assert again.finished_metrics["comparison"]["baseline_run_id"] == run.run_id
    stricter = Agent(
        name="Calculator", target="calculator_app:answer", metrics=("token_f1",), thresholds={"token_f1": 0.01}
    )
    AgentStore(app.settings.data).save("calculator", stricter, "stricter", 1)
    held_to_more = finished(app, app.post("/new-run", CHOSEN | {"agent": "calculator/2"}).headers["location"])
    assert held_to_more.finished_metrics["comparison"]["baseline_run_id"] == again.run_id
    alone = finished(app, app.post("/new-run", CHOSEN | {"baseline": "none"}).headers["location"])
    assert alone.finished_metrics["comparison"] is None
    chosen = finished(app, app.post("/new-run", CHOSEN | {"baseline": run.run_id}).headers["location"])
    assert chosen.finished_metrics["comparison"]["baseline_run_id"] == run.run_id
    assert "no complete run" in app.post("/new-run", CHOSEN | {"baseline": "nothing-like-it"}).text


@pytest.mark.child_process
def test_uploaded_answers_have_no_baseline_before_others_were_uploaded(app: WebApp):
    finished(app, app.post("/new-run", CHOSEN).headers["location"])
    answers = (FOUNDING / "uploaded.csv").read_bytes()
    first, again = (finished(app, app.post(upload(app, answers)[1]).headers["location"]) for _ in range(2))
    assert first.finished_metrics["comparison"] is None
    assert "no baseline yet" in first.finished_metrics["verdict"]["sentence"]
    assert again.finished_metrics["comparison"]["baseline_run_id"] == first.run_id


@pytest.mark.child_process
def test_a_run_that_died_at_its_start_is_in_the_list_of_runs_with_its_reason(app: WebApp):
    (app.settings.root / "calculator_app.py").write_text("raise ValueError('no numbers today')\n")
    job_id = app.post("/new-run", CHOSEN | {"description": "dead"}).headers["location"].rpartition("/")[2]
    assert until(jobs_of(app.settings.root), job_id, ended).state == "failed"
    assert not (app.settings.reports / "runs" / job_id).exists()
    for listed in (app.page("/runs"), app.page("/runs?state=failed&text=dead&agent=calculator"), app.page("/")):
        assert job_id in listed
        assert "no numbers today" in listed
    assert app.get(f"/runs/{job_id}").headers["location"] == f"/jobs/{job_id}"
    assert job_id not in app.page("/runs?state=passed")


@pytest.mark.child_process
def test_a_run_that_ended_and_whose_folder_was_deleted_is_no_failed_run(app: WebApp):
    run = finished(app, app.post("/new-run", CHOSEN).headers["location"])
    assert run.run_id in app.page("/runs")
    shutil.rmtree(run.path)
    assert run.run_id not in app.page("/runs")


@pytest.mark.child_process
def test_uploaded_answers_are_looked_at_and_then_scored_with_who_wrote_them(app: WebApp):
    status, address, _ = upload(app, (FOUNDING / "uploaded.csv").read_bytes())
    assert status == 303
    page = html.unescape(app.page(address))
    assert "2 answers for all 2 cases, written by qwen2.5-14b" in page
    assert "1 answer of 2 come without contexts" in page
    assert "answers <b>.csv" in page
    run = finished(app, app.post(address).headers["location"])
    assert 'data-label="reference">4<' in app.page(f"/runs/{run.run_id}")
    assert run.config["origin"]["source"] == "uploaded answers"
    lines = (run.path / "results.jsonl").read_text().splitlines()
    records = {record["test_case_id"]: record for record in map(json.loads, lines)}
    first = records["q1"]
    assert (first["model_name"], first["timestamp"], first["meta"]) == ("qwen2.5-14b", "2025-01-01T00:00:00Z", {"a": 1})
    assert app.get(address).status_code == 404


def test_answers_that_do_not_cover_the_dataset_are_refused_with_a_list_and_nothing_is_kept(app: WebApp):
    status, _, page = upload(app, b"id,answer\nq1,4\nq9,Paris\n", description="<i>kept</i>")
    assert status == 422
    assert "answers <b>.csv:3: no case has the id 'q9'" in page
    assert "answers <b>.csv: no answer for q2" in page
    assert 'value="<i>kept</i>"' in page
    assert not list((app.settings.data / "uploads").iterdir())
    assert upload(app, b"PK\x03\x04")[0] == 422
    assert app.post("/new-run", UPLOADED).status_code == 422


@pytest.mark.child_process
def test_a_threshold_that_uploaded_answers_cannot_meet_does_not_count_and_is_named(app: WebApp):
    agents = AgentStore(app.settings.data)
    agents.save("held", Agent(name="Held", thresholds={"faithfulness": 0.7, "reference_match": 0.2}), "", 0)
    cases = [replace(case, contexts=None) for case in load_file(FOUNDING / "one.csv", FOUNDING).cases]
    DatasetStore(app.settings.data).save("bare", DatasetAbout(name="Bare"), cases, "", 0)
    bare = upload(app, b"id,answer\nq1,4\nq2,Paris\n", agent="held/1", dataset="bare/1")[1]
    line = "thresholds of Held v1 that would look at nothing do not count: faithfulness"
    assert line in app.page(bare)
    assert finished(app, app.post(bare).headers["location"]).finished_metrics["verdict"]["problems"] == {}
    some = upload(app, (FOUNDING / "uploaded.csv").read_bytes(), agent="held/1")[1]
    assert line not in app.page(some)


def test_a_model_that_judges_its_own_answers_is_said_before_the_run_is_started(app: WebApp):
    status, address, _ = upload(app, (FOUNDING / "uploaded.csv").read_bytes(), agent="own-judge/1")
    assert status == 303
    assert "qwen2.5-14b judges itself" in html.unescape(app.page(address))
    assert app.post(f"{address}/discard").status_code == 303
    assert app.post(address).status_code == 404


def test_a_form_that_names_nothing_is_refused_in_place(app: WebApp):
    response = app.post("/new-run", {"agent": "x", "dataset": "sums/1", "source": "telepathy"})
    assert response.status_code == 422
    assert "Not started" in response.text


@pytest.mark.child_process
def test_no_character_of_a_description_keeps_a_run_from_its_start(app: WebApp):
    response = app.post("/new-run", CHOSEN | {"description": "a\x00b\x1b[31m"})
    assert finished(app, response.headers["location"]).finished_metrics["description"] == "a\\x00b\\x1b[31m"


def test_uploaded_answers_are_no_dataset(app: WebApp):
    _, address, _ = upload(app, (FOUNDING / "uploaded.csv").read_bytes())
    upload_id = address.rpartition("/")[2]
    assert app.get(f"/datasets/uploads/{upload_id}").status_code == 404
    assert app.post(f"/datasets/uploads/{upload_id}", {"action": "discard"}).status_code == 404
    assert app.get(address).status_code == 200


@pytest.mark.child_process
def test_no_more_runs_begin_than_may_run_at_once_however_many_are_started_together(
    app: WebApp, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("pytest_rageval.web.jobs.jobs.MOST_AT_ONCE", 2)
    (app.settings.root / "calculator_app.py").write_text(
        "import time\ndef answer(question):\n    time.sleep(600)\n    return {'answer': '4'}\n"
    )
    fields = CHOSEN | {"form_token": app.form_token()}
    headers = {"Origin": app.address}
    with ThreadPoolExecutor(5) as pool:
        responses = list(pool.map(lambda _: app.client.post("/new-run", data=fields, headers=headers), range(5)))
    begun = [response.headers["location"] for response in responses if response.status_code == 303]
    try:
        assert len(begun) == 2
        refused = next(response for response in responses if response.status_code == 422)
        assert "2 at most run at the same time" in refused.text
    finally:
        for address in begun:
            app.post(f"{address}/cancel")
        for address in begun:
            until(jobs_of(app.settings.root), address.rpartition("/")[2], ended)


def cases(*ids: str) -> list[EvalCase]:
    return [EvalCase(case_id, f"What is {case_id}?") for case_id in ids]


def answers(tmp_path: Path, *records: dict[str, object]) -> Path:
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_repeated_ids_and_broken_lines_are_said_with_their_place(tmp_path: Path):
    file = answers(tmp_path, {"id": "q1", "answer": "4"}, {"id": "q1", "answer": "5"}, {"id": "q2"})
    with pytest.raises(CaseError) as error:
        read_answers_upload(file, "mine.jsonl", cases("q1", "q2"), 100)
    assert [problem.partition(": ")[0] for problem in error.value.problems] == ["mine.jsonl:2:8", "mine.jsonl:3:1"]


def test_a_file_of_another_kind_or_with_too_many_rows_is_refused(tmp_path: Path):
    with pytest.raises(CaseError, match=r"ends with \.csv or \.jsonl"):
        read_answers_upload(tmp_path / "answers.xlsx", "mine.xlsx", cases("q1"), 100)
    file = answers(tmp_path, {"id": "q1", "answer": "4"}, {"id": "q2", "answer": "4"})
    with pytest.raises(CaseError, match="more answers than the 1 that are taken"):
        read_answers_upload(file, "mine.jsonl", cases("q1", "q2"), 1)
