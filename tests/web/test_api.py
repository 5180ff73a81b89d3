"""The HTTP API: its description holds for whatever is sent, and it does what the pages do."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from processes import PATIENCE_S
from schemathesis import APIOperation
from schemathesis.checks import CheckFunction, not_a_server_error
from schemathesis.specs.openapi.checks import response_schema_conformance, status_code_conformance
from stored_pages import store_fallen
from web_app import TOKEN, WebApp, ended, jobs_of, served, until

pytestmark = pytest.mark.reliability("web", "generated requests to the JSON API")

BEARER = {"Authorization": f"Bearer {TOKEN}"}
CHECKS: list[CheckFunction] = [not_a_server_error, response_schema_conformance, status_code_conformance]


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebApp]:
    """An app with runs, the demo as an agent, and its questions as a dataset."""
    root = tmp_path_factory.mktemp("api")
    store_fallen(root / "reports", failing=3, cases=6)
    with served(root) as app:
        app.post("/demo/agent")
        app.post("/demo/questions")
        yield app


@pytest.fixture
def program(app: WebApp) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"{app.address}/api/v1", headers=BEARER, timeout=PATIENCE_S) as program:
        yield program


def attempts(operation: APIOperation, headers: dict[str, str]) -> Callable[[], None]:
    """Requests of all kinds to one operation."""

    @given(case=operation.as_strategy())
    @settings(max_examples=12, deadline=None, database=None, suppress_health_check=[*HealthCheck])
    def attempt(case: schemathesis.Case) -> None:
        case.call_and_validate(headers=headers, checks=CHECKS)

    return attempt


def test_whatever_is_sent_is_answered_as_described(app: WebApp):
    """Lists are asked with the token. What starts or stops a run is asked without it: refused, and nothing happens."""
    described = schemathesis.openapi.from_url(f"{app.address}/api/v1/openapi.json", headers=BEARER)
    operations, begun = [each.ok() for each in described.get_all_operations()], sorted(app.settings.data.glob("jobs/*"))
    assert len(operations) == 11
    for operation in operations:
        attempts(operation, BEARER if operation.method == "get" else {})()
    assert sorted(app.settings.data.glob("jobs/*")) == begun


def test_agents_datasets_runs_and_cases_are_read(program: httpx.Client):
    assert [agent["title"] for agent in program.get("/agents").json()] == ["Demo v1"]
    assert program.get("/agents/demo/1").json()["agent"]["target"] == "demo"
    dataset = program.get("/datasets/demo-questions/1?limit=2").json()
    assert len(dataset["cases"]) == 2 < dataset["total"]
    assert {run["id"] for run in program.get("/runs").json()} >= {"before", "now"}
    assert program.get("/runs/now").json()["cases"] == 6
    cases = program.get("/runs/now/cases", params={"q": "outcome:failed", "limit": 2}).json()
    assert cases["total"] == 3
    assert cases["cases"][0]["question"] == "Where is the winter stock kept, and since when?"
    assert cases["cases"][0]["scores"]["mrr"] == 0.5
    refused = program.get("/runs/now/cases", params={"q": "outcome:faild"})
    assert (refused.status_code, refused.json()) == (
        409, {"problems": ["no case has outcome 'faild'; did you mean 'failed'?"]},
    )  # fmt: skip
    assert program.get("/runs/nothing").json() == {"problems": ["there is no run 'nothing'"]}


def test_a_browser_reads_and_only_a_program_changes_something(app: WebApp):
    assert app.get("/api/v1/runs").status_code == 200
    order = {"agent": "demo/1", "dataset": "demo-questions/1"}
    refused = app.client.post("/api/v1/runs", json=order, headers={"Origin": app.address})
    assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
    with app.stranger() as stranger:
        assert stranger.get("/api/v1/runs").status_code == 401
        assert stranger.get("/api/v1/openapi.json").status_code == 401
        foreign = BEARER | {"Origin": "http://evil.example"}
        assert stranger.post("/api/v1/runs", json=order, headers=foreign).status_code == 403


@pytest.mark.child_process
def test_a_run_is_started_watched_and_cancelled_and_answers_are_scored(app: WebApp, program: httpx.Client):
    started = program.post("/runs", json={"agent": "demo/1", "dataset": "demo-questions/1", "description": "by API"})
    assert started.status_code == 201, started.text
    job = started.json()["id"]
    assert until(jobs_of(app.settings.root), job, ended).state == "finished"
    assert program.get(f"/jobs/{job}").json()["done"] == program.get(f"/runs/{job}").json()["cases"]
    assert program.post(f"/jobs/{job}/cancel").json()["state"] == "finished"
    ids = [case["id"] for case in program.get("/datasets/demo-questions/1?limit=1000").json()["cases"]]
    lines = "".join(f'{{"id": "{id}", "answer": "It is so."}}\n' for id in ids).encode()
    fields = {"agent": "demo/1", "dataset": "demo-questions/1"}
    scored = program.post("/answers", data=fields, files={"answers": ("a.jsonl", io.BytesIO(lines))})
    assert scored.status_code == 201, scored.text
    assert until(jobs_of(app.settings.root), scored.json()["id"], ended).state == "finished"
    short = program.post("/answers", data=fields, files={"answers": ("a.jsonl", io.BytesIO(lines[:40] + b"\n"))})
    assert short.status_code == 409
    assert not list((app.settings.data / "uploads").glob("*"))
