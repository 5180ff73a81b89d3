"""A project for the web app in which every text that a person, a system or a judge wrote attacks the page."""

from __future__ import annotations

import io
import json
from pathlib import Path

from attacks import PAYLOADS, hostile_run
from label_project import FILE, label_project
from page_states import some_cases, store_fallen
from web_app import WebApp
from web_forms import sent_by

from pytest_rageval.cases.conversion import case_from_record
from pytest_rageval.model import NOWHERE, EvalCase
from pytest_rageval.text import printable
from pytest_rageval.web.jobs.job_files import ENDED, JOB, LOG, Job
from pytest_rageval.web.rendering import path_to
from pytest_rageval.web.versions.agent import Agent
from pytest_rageval.web.versions.agent_store import AgentStore
from pytest_rageval.web.versions.dataset_store import DatasetAbout, DatasetStore

TEXTS = [text for text in PAYLOADS if "\x00" not in text]
"""What a file can hold."""
ALL = " ".join(TEXTS)
JOB_ID = "20261122_100000"


def write_job(folder: Path) -> None:
    """A job that failed, with attacks in all that a person or a system wrote."""
    folder.mkdir(parents=True)
    job = Job(
        id=folder.name, agent=ALL, agent_version=1, dataset=ALL, dataset_version=1, source="connector", description=ALL,
        created="2026-11-22T10:00:00+00:00", cases=2, warnings=tuple(TEXTS), arguments=(),
    )  # fmt: skip
    (folder / JOB).write_text(job.model_dump_json())
    (folder / ENDED).write_text('{"exit_code": 4, "ended": "2026-11-22T10:00:01+00:00", "is_cancelled": false}')
    (folder / LOG).write_text("".join(f"ERROR: {printable(text)}\n" for text in PAYLOADS), encoding="utf-8")


def hostile_versions(data: Path) -> None:
    """Two versions of an agent and of a dataset, with attacks in every field."""
    agents, datasets = AgentStore(data), DatasetStore(data)
    for number in (0, 1):
        text = " ".join(TEXTS[number:])
        agent = Agent(
            name=text[:80], description=text, tags=tuple(TEXTS), target=text, llm=text, params={text: text},
            headers={text: text}, gates=(text,), judge=text, prompts={"reference_match": text},
            more={text: text}, thresholds={"reference_match": 0.7},
        )  # fmt: skip
        agents.save("hostile", agent, text, number)
        records = [{"id": f"{n} {text}", "question": text[number:] or "q", "reference": text, "category": text,
                    "tags": [text], "metadata": {text: text}} for n, text in enumerate(TEXTS)]  # fmt: skip
        cases = [case_from_record(record, NOWHERE)[0] for record in records]
        about = DatasetAbout(name=text[:80], description=text, tags=tuple(TEXTS), origin=text)
        datasets.save("hostile", about, cases, text, number)
    agents.save("plain", Agent(name=ALL, target="demo", description=ALL), ALL, 0)
    datasets.save("plain", DatasetAbout(name=ALL), [EvalCase("one", ALL)], ALL, 0)


def hostile_site(root: Path) -> Path:
    """The folder of a project with something on every page."""
    file = label_project(root)
    folder = file.parents[1]
    case = {"id": "one", "question": ALL, "category": ALL, "tags": TEXTS}
    file.write_text(json.dumps(case) + "\n" + json.dumps(case | {"id": "two"}) + "\n")
    (folder / "notes" / "<b onclick=x>.md").write_text(f"# cream {ALL}\n\n" + "\n".join(TEXTS) + "\n", encoding="utf-8")
    reports = folder / "reports"
    store_fallen(reports, failing=20, cases=60)
    hostile_run(reports, "alone", "failed")
    write_job(folder / "data" / "jobs" / JOB_ID)
    hostile_versions(folder / "data")
    return folder


def pages_of(app: WebApp) -> dict[str, list[str]]:
    """Addresses of every page of a hostile site, by the route that they are of."""
    now = path_to("runs", "now", "cases", some_cases(1, cases=1)[0].key)
    alone = path_to("runs", "alone", "cases", f"evalcases/{PAYLOADS[0][:40]}.jsonl::0 {PAYLOADS[0]}")
    return {
        "/": ["/"], "/running": ["/running"], "/indexing": ["/indexing"], "/login": ["/login"],
        "/runs": ["/runs", path_to("runs", text=ALL[:300])],
        "/runs/{run_id}": ["/runs/now", "/runs/alone", "/runs/killed", path_to("runs", "now", q=ALL[:300]), "/runs/no"],
        "/runs/{run_id}/cases/{key:path}": [now, f"{now}?view=compare", alone],
        "/compare": ["/compare", "/compare?a=before&b=now", path_to("compare", a=ALL[:300], b="now")],
        "/history": ["/history", path_to("history", metric=ALL[:300], agent=ALL[:300])],
        "/agents": ["/agents", path_to("agents", q=ALL)], "/agents/new": ["/agents/new"],
        "/agents/{slug}": ["/agents/hostile"], "/agents/{slug}/edit": ["/agents/hostile/edit"],
        "/agents/{slug}/versions/{number}": ["/agents/hostile/versions/1"],
        "/agents/{slug}/diff": ["/agents/hostile/diff"],
        "/datasets": ["/datasets", path_to("datasets", q=ALL)], "/datasets/new": ["/datasets/new?dataset=hostile"],
        "/datasets/{slug}": ["/datasets/hostile", path_to("datasets", "hostile", q=ALL, category=ALL)],
        "/datasets/{slug}/versions/{number}": ["/datasets/hostile/versions/1"],
        "/datasets/{slug}/diff": ["/datasets/hostile/diff"],
        "/datasets/{slug}/versions/{number}/audit": ["/datasets/hostile/versions/2/audit"],
        "/datasets/{slug}/versions/{number}/cases/{position}": [
            f"/datasets/hostile/versions/2/cases/{position}" for position in ("3", "new")
        ],
        "/datasets/{slug}/label": ["/datasets/hostile/label", working_copy(app)],
        "/datasets/uploads/{upload_id}": [waiting_dataset(app), waiting_dataset(app, "answer\n")],
        "/new-run": ["/new-run", path_to("new-run", agent=ALL, dataset=ALL, description=ALL)],
        "/new-run/answers/{upload_id}": [waiting_answers(app)],
        "/jobs/{job_id}": [f"/jobs/{JOB_ID}"], "/jobs/{job_id}/progress": [],
        "/label/opinions": ["/label/opinions?dataset=plain", path_to("label", "opinions", file=FILE)],
        "/label": ["/label"], "/health": ["/health"],
        "/label/cases": [path_to("label", "cases", file=FILE, case="one", row=1),
                         "/label/cases?file=evalcases/shop.drafts.jsonl", "/label/cases?dataset=plain"],
    }  # fmt: skip


def waiting_dataset(app: WebApp, header: str = "question,reference,answer,tag\n") -> str:
    """The address of an upload whose texts, columns and name attack."""
    rows = "".join(f'"{quoted}","{quoted}",x,x\n' for quoted in (text.replace('"', '""') for text in TEXTS))
    name = f"{TEXTS[15]}.csv"
    response = app.post("/datasets/uploads", files={"cases": (name, io.BytesIO((header + rows).encode()))})
    return str(response.headers["location"])


def working_copy(app: WebApp) -> str:
    """The address of a working copy in which a dataset is labelled."""
    address = "/datasets/plain/label"
    page = app.page(address)
    if "No working copy is open" in page:
        assert app.post(address, sent_by(page, address)).status_code == 303
    return address


def waiting_answers(app: WebApp) -> str:
    answers = json.dumps({"id": "one", "answer": ALL, "model_name": ALL}).encode()
    files = {"answers": ('"><img src=x onerror=top.hacked=1>.jsonl', answers, "application/json")}
    chosen = {"agent": "plain/1", "dataset": "plain/1", "source": "uploaded answers", "description": ALL[:400]}
    response = app.post("/new-run", chosen, files=files)
    assert response.status_code == 303, response.text
    return str(response.headers["location"])
