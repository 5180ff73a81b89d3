"""The HTTP API, `/api/v1/…`: agents, datasets, runs and cases as JSON; answers uploaded, runs started and cancelled.

The functions are those of the pages. A program gives the app's token as `Authorization: Bearer`; whatever changes
something needs it, because a browser sends cookies with requests of other pages, too.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, FastAPI, File, Form, Query, Request, UploadFile
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from pytest_rageval.model import EvalCase
from pytest_rageval.web.jobs.jobs import Jobs, TheJobs
from pytest_rageval.web.opened_runs import TheRuns
from pytest_rageval.web.pages.agents import Agents
from pytest_rageval.web.pages.datasets import Datasets
from pytest_rageval.web.pages.new_run import ANSWERS, LIKE_THIS, TheStores
from pytest_rageval.web.pages.run import any_cases
from pytest_rageval.web.run_list import TheFolders
from pytest_rageval.web.sessions import is_program
from pytest_rageval.web.site import TheSite, UnknownPageError

PREFIX = "/api/v1"
MOST_ROWS = 1_000


def _program(request: Request) -> None:
    if request.app.state.tokens.token is not None and not is_program(request):
        raise HTTPException(401, "Give the token: Authorization: Bearer TOKEN.", {"WWW-Authenticate": "Bearer"})


class ApiProblem(BaseModel):
    """What is wrong, a line each."""

    problems: list[str]


REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": ApiProblem} for status in (400, 401, 403, 404, 409, 413, 415, 422, 429, 503, 507)
}
router = APIRouter(prefix=PREFIX, responses=REFUSALS, tags=["v1"])
Program = Depends(_program)
Limit = Annotated[int, Query(ge=1, le=MOST_ROWS)]
Start = Annotated[int, Query(ge=0, le=10_000_000)]


class _Read(BaseModel):
    model_config = ConfigDict(from_attributes=True, populate_by_name=True, coerce_numbers_to_str=True)


class VersionInfo(_Read):
    """A version of an agent or dataset."""

    name: str = Field(validation_alias="slug", description="in addresses and as `NAME/NUMBER` in requests")
    title: str
    number: int
    note: str
    created: str
    author: str
    problem: str | None


class ListedRun(_Read):
    """A run, as the list of runs shows it."""

    id: str = Field(validation_alias="run_id")
    state: str
    begun: str
    source: str
    agent: str | None
    agent_version: str | None
    dataset: str | None
    dataset_version: str | None
    description: str | None
    cases: int | None
    pass_rate: float | None
    verdict: str | None = Field(validation_alias="sentence")
    problem: str | None


class JobInfo(_Read):
    """The progress of a run that was started here."""

    id: str
    state: str
    sentence: str
    done: int
    total: int
    passed: int
    failed: int
    errors: int


class CasesInfo(BaseModel):
    """Cases that pass the filter, worst first unless sorted."""

    total: int
    cases: list[dict[str, Any]]


class NewRun(BaseModel):
    """A run of `NAME/NUMBER` versions; baseline: a run, `none`, or "" for the usual one."""

    agent: str = Field(max_length=100)
    dataset: str = Field(max_length=100)
    description: str = Field("", max_length=500)
    baseline: str = Field(LIKE_THIS, max_length=200)


def _job(jobs: Jobs, job_id: str) -> JobInfo:
    status = jobs.status(job_id)
    return JobInfo(id=job_id, state=status.state, sentence=status.sentence, **asdict(status.progress))


@router.get("/agents")
def list_agents(agents: Agents) -> list[VersionInfo]:
    """List the newest version of each agent."""
    return [VersionInfo.model_validate(version) for version in agents.newest_versions()[0]]


@router.get("/agents/{name}/{number}")
def read_agent_version(agents: Agents, name: str, number: int) -> dict[str, Any]:
    """Read an agent: what is asked, who judges, what counts."""
    version = agents.read(name, number)
    return {**VersionInfo.model_validate(version).model_dump(), "agent": version.agent.model_dump(mode="json")}


@router.get("/datasets")
def list_datasets(datasets: Datasets) -> list[VersionInfo]:
    """List the newest version of each dataset."""
    return [VersionInfo.model_validate(version) for version in datasets.newest_versions()[0]]


@router.get("/datasets/{name}/{number}")
def read_dataset_version(
    datasets: Datasets, name: str, number: int, start: Start = 0, limit: Limit = 100
) -> dict[str, Any]:
    """Read cases of a dataset: id, question, reference answers, category and tags."""
    version = datasets.read(name, number)
    cases = datasets.cases(name, number)
    shown = [_case(case) for case in cases[start : start + limit]]
    return {**VersionInfo.model_validate(version).model_dump(), "total": len(cases), "cases": shown}


def _case(case: EvalCase) -> dict[str, Any]:
    return {
        "id": case.id,
        "question": case.question,
        "reference_answers": list(case.gold.answers or ()),
        "category": case.category,
        "tags": list(case.tags),
    }


@router.get("/runs")
def list_runs(folders: TheFolders, start: Start = 0, limit: Limit = 100) -> list[ListedRun]:
    """List all runs that are not archived, the newest first, whoever started them."""
    return [ListedRun.model_validate(row) for row in folders.rows()[start : start + limit]]


@router.get("/runs/{run_id}")
def read_run_by_id(folders: TheFolders, run_id: str) -> ListedRun:
    """Read a run."""
    rows = [*folders.rows(), *folders.rows(is_archived=True)]
    row = next((row for row in rows if row.run_id == run_id), None)
    if row is None:
        raise UnknownPageError(f"there is no run {run_id!r}")
    return ListedRun.model_validate(row)


@router.get("/runs/{run_id}/cases")
def read_run_cases(
    site: TheSite,
    runs: TheRuns,
    run_id: str,
    q: Annotated[str, Query(max_length=2_000, description="a filter, as in `outcome:failed`")] = "",
    sort: Annotated[str, Query(max_length=200)] = "",
    start: Start = 0,
    limit: Limit = 100,
) -> CasesInfo:
    """Read the cases of a run: question, answer, reference, scores, outcome and explanation."""
    opened = any_cases(runs, site.stored_run(run_id))
    keys = opened.keys(q, sort)
    return CasesInfo(total=len(keys), cases=opened.table.objects(keys[start : start + limit]))


@router.post("/runs", status_code=201, dependencies=[Program])
def start_new_run(stores: TheStores, jobs: TheJobs, order: Annotated[NewRun, Body()]) -> JobInfo:
    """Start a run that asks the agent now."""
    choice = stores.choice(order.agent, order.dataset, "connector")
    choice.outlook()
    return _job(jobs, stores.start(choice, order.description, order.baseline).id)


@router.post("/answers", status_code=201, dependencies=[Program])
def score_answers(
    stores: TheStores,
    jobs: TheJobs,
    agent: Annotated[str, Form(max_length=100)],
    dataset: Annotated[str, Form(max_length=100)],
    answers: Annotated[UploadFile, File(description="CSV or JSONL with `id` and `answer` for each case")],
    description: Annotated[str, Form(max_length=500)] = "",
    baseline: Annotated[str, Form(max_length=200)] = LIKE_THIS,
) -> JobInfo:
    """Upload answers and start a run that scores them."""
    choice = stores.choice(agent, dataset, "uploaded answers")
    choice.outlook()
    upload = stores.uploads.begin({}, {ANSWERS: answers}, {})
    try:
        job = stores.start(choice, description, baseline, upload)
    finally:
        stores.uploads.remove(upload)
    return _job(jobs, job.id)


@router.get("/jobs/{job_id}")
def read_job_status(jobs: TheJobs, job_id: str) -> JobInfo:
    """Read how far a run is that was started here."""
    return _job(jobs, job_id)


@router.post("/jobs/{job_id}/cancel", dependencies=[Program])
def cancel_run(jobs: TheJobs, job_id: str) -> JobInfo:
    """Stop a run; what has ended stays."""
    jobs.cancel(job_id)
    return _job(jobs, job_id)


@router.get("/openapi.json", include_in_schema=False)
def openapi_document(request: Request) -> JSONResponse:
    """Return the description of this API."""
    app: FastAPI = request.app
    return JSONResponse(app.openapi())
