"""Texts that attack a page, in everything that new runs, jobs and labels show: shown as text, and nothing happens."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator

import pytest
from hostile import ALL, TEXTS, write_job
from labelling import FILE, label_project
from web_app import WebApp, served

from pytest_rageval.model import EvalCase
from pytest_rageval.text import printable
from pytest_rageval.web.rendering import path_to
from pytest_rageval.web.versions.agent import Agent
from pytest_rageval.web.versions.agent_store import AgentStore
from pytest_rageval.web.versions.dataset_store import DatasetAbout, DatasetStore

ID = "</title><script>top.hacked=1</script>"


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebApp]:
    file = label_project(tmp_path_factory.mktemp("hostile"))
    root = file.parents[1]
    case = {"id": ID, "question": ALL, "category": ALL, "tags": TEXTS}
    file.write_text(json.dumps(case) + "\n")
    (root / "notes" / "<b onclick=x>.md").write_text(f"# cream {ALL}\n\n" + "\n".join(TEXTS) + "\n", encoding="utf-8")
    write_job(root / "data/jobs/20261122_100000")
    AgentStore(root / "data").save("agent", Agent(name=ALL, target="demo", description=ALL), ALL, 0)
    cases = [EvalCase(ID, ALL)]
    DatasetStore(root / "data").save("dataset", DatasetAbout(name=ALL), cases, ALL, 0)
    with served(root) as app:
        yield app


def pages(app: WebApp) -> list[str]:
    answers = json.dumps({"id": ID, "answer": ALL, "model_name": ALL}).encode()
    files = {"answers": ('"><img src=x onerror=top.hacked=1>.jsonl', answers, "application/json")}
    chosen = {"agent": "agent/1", "dataset": "dataset/1", "source": "uploaded answers", "description": ALL[:400]}
    response = app.post("/new-run", chosen, files=files)
    assert response.status_code == 303, response.text
    return [
        "/new-run", response.headers["location"], "/jobs/20261122_100000",
        path_to("label", "cases", file=FILE, case=ID), path_to("label", "cases", file=FILE, case=ID, row=1),
    ]  # fmt: skip


def test_what_was_written_can_be_read(app: WebApp):
    new_run, answers, job, label, _ = (html.unescape(app.page(address)) for address in pages(app))
    for text in map(printable, TEXTS):
        assert text in job
        assert " ".join(text.split()) in " ".join(label.split())
    assert printable(TEXTS[0]) in new_run
    assert printable(TEXTS[0]) in answers
