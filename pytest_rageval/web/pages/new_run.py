"""The pages of a new run: an agent version on a dataset version, with answers given now or uploaded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Literal, NamedTuple, get_args

from fastapi import APIRouter, Depends, Request
from pydantic import AfterValidator, BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.responses import Response

from pytest_rageval.errors import RagevalError
from pytest_rageval.text import printable
from pytest_rageval.web.forms import FormState, Submitted, read_form
from pytest_rageval.web.jobs.job import Job, Source
from pytest_rageval.web.jobs.jobs import Jobs
from pytest_rageval.web.jobs.run_choice import RunChoice
from pytest_rageval.web.pages.agents import Agents
from pytest_rageval.web.pages.datasets import Datasets
from pytest_rageval.web.pages.jobs import TheJobs
from pytest_rageval.web.rendering import NEW_RUN, page, path_to, redirect
from pytest_rageval.web.run_folders import RunFolders, TheFolders
from pytest_rageval.web.run_lines import Rows, made_from
from pytest_rageval.web.site import TheSite
from pytest_rageval.web.uploads.answers_upload import AnswersUpload, read_answers_upload
from pytest_rageval.web.uploads.upload import Upload, Uploads, file_of
from pytest_rageval.web.versions.version_folder import VersionChoice, version_choice

LONGEST_DESCRIPTION = 500
MOST_BASELINES = 100
ANSWERS = "answers"
SOURCES: tuple[tuple[Source, str], ...] = (
    ("connector", "ask the agent now"), ("uploaded answers", "score answers that I upload"),
)  # fmt: skip
LIKE_THIS, NONE = "", "none"
"""The choices of a baseline besides the id of a run."""
BLANK = {"agent": "", "dataset": "", "source": "connector", "description": "", "baseline": LIKE_THIS}
_OTHER_CHOICE = "Another choice than this page was showing: look at what it takes, and start it then."
router = APIRouter()


def _choice(written: str) -> str:
    if version_choice(written) is None:
        raise ValueError("names no version; choose one of the list")
    return written


class NewRunForm(BaseModel):
    """The form of a new run: an agent version on a dataset version, with live or uploaded answers.

    baseline  what the run is compared with: a run, NONE, or the last run like this one
    shown     the choice whose outlook the page showed; "" if no page did
    action    `look` only shows what the choice takes

    The description becomes a command argument, which must not contain NUL.
    """

    agent: Annotated[str, AfterValidator(_choice)]
    dataset: Annotated[str, AfterValidator(_choice)]
    source: Source = "connector"
    description: Annotated[str, AfterValidator(printable)] = Field("", max_length=LONGEST_DESCRIPTION)
    baseline: str = Field(LIKE_THIS, max_length=200)
    shown: str = ""
    action: Literal["look", "start"] = "start"

    @property
    def is_as_shown(self) -> bool:
        """Return True if the page has shown what this choice takes."""
        return self.shown in ("", f"{self.agent} {self.dataset} {self.source}")


class Stores:
    """The agents, datasets, uploads and runs from which a run is chosen."""

    def __init__(self, site: TheSite, agents: Agents, datasets: Datasets, folders: TheFolders) -> None:
        self.agents, self.datasets, self.folders, self.data = agents, datasets, folders, site.settings.data
        self.uploads, self.limits = Uploads(site.settings.data, site.settings.limits), site.settings.limits
        self.env_file = site.settings.env_file

    def agent_options(self) -> list[tuple[str, str]]:
        """Return every version of every agent, grouped by agent, the newest first."""
        versions = (version for slug in self.agents.files.slugs() for version in self.agents.versions(slug)[0])
        return [(str(VersionChoice(version.slug, version.number)), version.title) for version in versions]

    def dataset_options(self) -> list[tuple[str, str]]:
        versions = (version for slug in self.datasets.files.slugs() for version in self.datasets.versions(slug))
        return [(str(VersionChoice(version.slug, version.number)), version.title) for version in versions]

    def first_source(self, agent: str) -> Source:
        """Return the default source of answers: uploaded ones for an agent without a target."""
        chosen = version_choice(agent)
        try:
            is_asked = chosen is None or self.agents.read(*chosen).agent.target is not None
        except RagevalError:
            return "connector"
        return "connector" if is_asked else "uploaded answers"

    def choice(self, agent: str, dataset: str, source: Source) -> RunChoice:
        """Return the named versions, or raise RagevalError if one is missing."""
        chosen_agent, chosen_dataset = version_choice(agent), version_choice(dataset)
        if chosen_agent is None or chosen_dataset is None:
            raise RagevalError("choose an agent and a dataset of the lists")
        return RunChoice(
            self.agents, self.datasets, self.agents.read(*chosen_agent), self.datasets.version(*chosen_dataset), source
        )


TheStores = Annotated[Stores, Depends(Stores)]


def whole_runs(folders: RunFolders) -> Rows:
    """Return the complete runs, the newest first: what a run can be compared with."""
    folders.refresh()
    return [row for row in folders.rows() if row.is_finished and not row.is_partial]


def last_like(rows: Rows, choice: RunChoice) -> str | None:
    """Return the default baseline: the last complete run of the same agent, dataset and source, if there is one."""
    wanted = (choice.agent.slug, choice.dataset.slug, choice.source)
    return next((row.run_id for row in rows if (row.agent, row.dataset, row.source) == wanted), None)


@router.get(NEW_RUN)
def new_run_page(
    request: Request,
    stores: TheStores,
    agent: str = "",
    dataset: str = "",
    source: str = "",
    description: str = "",
    baseline: str = LIKE_THIS,
) -> Response:
    """Show the form with what the chosen run takes; the address holds the choice."""
    agents, datasets = stores.agent_options(), stores.dataset_options()
    chosen = _chosen_version(agent, agents)
    values = {
        "agent": chosen,
        "dataset": _chosen_version(dataset, datasets),
        "description": description,
        "source": source if source in get_args(Source) else stores.first_source(chosen),
        "baseline": baseline,
    }
    return _form_page(request, stores, FormState[NewRunForm](values))


def _chosen_version(written: str, options: Sequence[tuple[str, str]]) -> str:
    """Return the version that an address names: the newest of a bare name, the first of an empty one."""
    if "/" in written:
        return written
    return next((value for value, _ in options if value.startswith(f"{written}/") or not written), written)


@router.post(NEW_RUN)
def start_run(request: Request, stores: TheStores, jobs: TheJobs, submitted: Submitted) -> Response:
    """Start a run that queries the agent, or keep uploaded answers to be reviewed first."""
    form = read_form(NewRunForm, submitted)
    if form.model is None:
        return _form_page(request, stores, form, status=422)
    chosen = form.model
    about = chosen.model_dump(include={"agent", "dataset", "source", "description", "baseline"})
    if chosen.action == "look":
        return redirect(path_to("new-run", **about | {"source": "" if chosen.source == "connector" else chosen.source}))
    if not chosen.is_as_shown:
        return _form_page(request, stores, form.with_problem("", _OTHER_CHOICE), status=422)
    field = ""
    try:
        choice = stores.choice(chosen.agent, chosen.dataset, chosen.source)
        if choice.is_asked:
            choice.outlook()
            return redirect(path_to("jobs", start_job(stores, jobs, choice, chosen.description, chosen.baseline).id))
        field, file = ANSWERS, file_of(submitted, ANSWERS)
        if file is None:
            raise RagevalError("choose the file of answers")
        upload = stores.uploads.begin(request.session, {ANSWERS: file}, about)
        try:
            read_answers(stores, choice, upload)
        except RagevalError:
            stores.uploads.remove(upload)
            raise
    except RagevalError as error:
        return _form_page(request, stores, form.with_problem(field, *error.problems), status=422)
    return redirect(path_to("new-run", "answers", upload.id))


@router.get(f"{NEW_RUN}/answers/{{upload_id}}")
def answers_page(request: Request, stores: TheStores, upload_id: str) -> Response:
    """Show uploaded answers that cover the dataset, before they are scored."""
    upload, choice = _waiting_upload(stores, upload_id)
    answers = read_answers(stores, choice, upload)
    return page(
        request,
        "new_run_answers.html",
        upload=upload,
        choice=choice,
        answers=answers,
        outlook=choice.outlook(),
        warnings=choice.warnings(stores.env_file, answers),
        description=upload.about["description"],
    )


@router.post(f"{NEW_RUN}/answers/{{upload_id}}")
def start_with_answers(_: Submitted, stores: TheStores, jobs: TheJobs, upload_id: str) -> Response:
    """Start a run that scores the uploaded answers."""
    upload, choice = _waiting_upload(stores, upload_id)
    about = upload.about
    job = start_job(stores, jobs, choice, about["description"], about["baseline"], upload)
    stores.uploads.remove(upload)
    return redirect(path_to("jobs", job.id))


@router.post(f"{NEW_RUN}/answers/{{upload_id}}/discard")
def discard_answers(_: Submitted, stores: TheStores, upload_id: str) -> Response:
    upload, _choice = _waiting_upload(stores, upload_id)
    stores.uploads.remove(upload)
    return redirect(path_to("new-run", agent=upload.about["agent"], dataset=upload.about["dataset"]))


def _waiting_upload(stores: Stores, upload_id: str) -> tuple[Upload, RunChoice]:
    """Return an upload and its choice, or raise HTTPException if it is gone or of another kind."""
    try:
        upload = stores.uploads.get(upload_id)
        return upload, stores.choice(upload.about["agent"], upload.about["dataset"], "uploaded answers")
    except (RagevalError, KeyError) as error:
        problem = str(error) if isinstance(error, RagevalError) else "this upload holds no answers"
        raise HTTPException(404, problem) from None


def read_answers(stores: Stores, choice: RunChoice, upload: Upload) -> AnswersUpload:
    path, name = upload.path(ANSWERS), upload.names[ANSWERS]
    return read_answers_upload(path, name, choice.cases, stores.limits.upload_rows)


def start_job(
    stores: Stores, jobs: Jobs, choice: RunChoice, description: str, baseline: str, upload: Upload | None = None
) -> Job:
    """Start the chosen run; raise RagevalError if it cannot begin."""
    rows = whole_runs(stores.folders)
    if baseline not in (LIKE_THIS, NONE) and all(row.run_id != baseline for row in rows):
        raise RagevalError(f"there is no complete run {baseline!r} to compare with; choose another, or none")
    compared = {LIKE_THIS: last_like(rows, choice), NONE: None}.get(baseline, baseline)
    answers = None if upload is None else read_answers(stores, choice, upload)
    file = None if upload is None else upload.path(ANSWERS)
    return jobs.start(lambda folder: choice.lay_out(folder, description.strip(), compared, file, answers))


class BaselineOption(NamedTuple):
    """A choice of what a run is compared with."""

    value: str
    title: str


def _baselines(stores: Stores, rows: Rows, choice: RunChoice | None) -> list[BaselineOption]:
    like = None if choice is None else last_like(rows, choice)
    first = "No baseline: this is the first run of its kind" if like is None else f"the last run like this one: {like}"
    titles = ((row, made_from(row, stores.data)) for row in rows[:MOST_BASELINES])
    others = [BaselineOption(row.run_id, f"{row.description or row.run_id} · {title}") for row, title in titles]
    return [BaselineOption(LIKE_THIS, first), *([BaselineOption(NONE, "nothing")] if like else []), *others]


def _form_page(request: Request, stores: Stores, form: FormState[NewRunForm], *, status: int = 200) -> Response:
    """Render the form with what its choice takes, if there is one. A submitted form may lack fields."""
    form = replace(form, values={**BLANK, **form.values})
    agent, dataset, source = (str(form.values[name]) for name in ("agent", "dataset", "source"))
    rows = whole_runs(stores.folders)
    choice: RunChoice | None = None
    outlook: Sequence[str] = ()
    problems: Sequence[str] = ()
    try:
        if agent and dataset:
            kind: Source = "uploaded answers" if source == "uploaded answers" else "connector"
            choice = stores.choice(agent, dataset, kind)
            paces = (row.seconds / row.cases for row in rows if row.agent == choice.agent.slug
                     and row.source == kind and row.seconds and row.cases)  # fmt: skip
            outlook = choice.outlook(next(paces, None))
    except RagevalError as error:
        problems = error.problems
    return page(
        request,
        "new_run.html",
        status=status,
        form=form,
        agents=stores.agent_options(),
        datasets=stores.dataset_options(),
        sources=SOURCES,
        baselines=_baselines(stores, rows, choice),
        choice=choice,
        outlook=outlook,
        problems=problems,
        warnings=choice.warnings(stores.env_file) if choice is not None else [],
    )
