"""The pages of a new run: an agent version on a dataset version, with answers given now or uploaded."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, get_args

from fastapi import APIRouter, Depends, Request
from pydantic import AfterValidator, BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.responses import Response

from pytest_rageval.errors import RagevalError
from pytest_rageval.text import printable
from pytest_rageval.web.forms import FormState, Submitted, read_form
from pytest_rageval.web.jobs.job import Job, Source
from pytest_rageval.web.jobs.jobs import TheJobs
from pytest_rageval.web.page_context import PageContext
from pytest_rageval.web.pages.agents import Agents
from pytest_rageval.web.pages.datasets import Datasets
from pytest_rageval.web.rendering import page, path_to, redirect
from pytest_rageval.web.run_choice import AnswersUpload, RunChoice, read_answers_upload
from pytest_rageval.web.run_list import Rows, TheFolders, made_from
from pytest_rageval.web.site import TheSite
from pytest_rageval.web.upload import Upload, Uploads, file_of
from pytest_rageval.web.versions.agent_store import AgentStore
from pytest_rageval.web.versions.dataset_store import DatasetStore
from pytest_rageval.web.versions.version_folder import StoredVersion, VersionChoice, version_choice

LONGEST_DESCRIPTION = 500
MOST_BASELINES = 100
ANSWERS = "answers"
SOURCES: tuple[tuple[Source, str], ...] = (
    ("connector", "ask the agent now"),
    ("uploaded answers", "score answers that I upload"),
)
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
    """The agents, datasets, uploads and runs from which a run is chosen and started."""

    def __init__(self, site: TheSite, agents: Agents, datasets: Datasets, folders: TheFolders, jobs: TheJobs) -> None:
        self.agents = agents
        self.datasets = datasets
        self.folders = folders
        self.jobs = jobs
        self.data = site.settings.data
        self.limits = site.settings.limits
        self.env_file = site.settings.env_file
        self.uploads = Uploads(self.data, self.limits)

    def options(self) -> dict[str, list[tuple[str, str]]]:
        """Return every version of every agent and dataset, grouped by name, the newest first."""
        return {"agents": _version_options(self.agents), "datasets": _version_options(self.datasets)}

    def choice(self, agent: str, dataset: str, source: Source) -> RunChoice:
        """Return the named versions, or raise RagevalError if one is missing."""
        chosen_agent = version_choice(agent)
        chosen_dataset = version_choice(dataset)
        if chosen_agent is None or chosen_dataset is None:
            raise RagevalError("choose an agent and a dataset of the lists")
        agent_version = self.agents.read(*chosen_agent)
        dataset_version = self.datasets.read(*chosen_dataset)
        return RunChoice(self.agents, self.datasets, agent_version, dataset_version, source)

    def whole_runs(self) -> Rows:
        """Return the complete runs, the newest first: what a run can be compared with."""
        return [row for row in self.folders.rows() if row.is_complete]

    def answers(self, choice: RunChoice, upload: Upload) -> AnswersUpload:
        """Return the uploaded answers, or raise CaseError unless they cover the dataset."""
        path = upload.plain(ANSWERS)
        name = upload.names[ANSWERS]
        return read_answers_upload(path, name, choice.cases, self.limits.upload_rows)

    def start(self, choice: RunChoice, description: str, baseline: str, upload: Upload | None = None) -> Job:
        """Start the chosen run; raise RagevalError if it cannot begin."""
        rows = self.whole_runs()
        if baseline not in (LIKE_THIS, NONE) and all(row.run_id != baseline for row in rows):
            raise RagevalError(f"there is no complete run {baseline!r} to compare with; choose another, or none")
        compared: str | None = baseline
        if baseline == LIKE_THIS:
            compared = last_like(rows, choice)
        elif baseline == NONE:
            compared = None
        answers: AnswersUpload | None = None
        file: Path | None = None
        if upload is not None:
            answers = self.answers(choice, upload)
            file = upload.plain(ANSWERS)
        return self.jobs.start(lambda folder: choice.lay_out(folder, description.strip(), compared, file, answers))


def _version_options(store: AgentStore | DatasetStore) -> list[tuple[str, str]]:
    """Return the form value and the title of every version of a store."""
    versions: list[StoredVersion] = []
    for slug in store.slugs():
        versions += store.versions(slug)[0]
    return [(str(VersionChoice(version.slug, version.number)), version.title) for version in versions]


TheStores = Annotated[Stores, Depends(Stores)]


def last_like(rows: Rows, choice: RunChoice) -> str | None:
    """Return the default baseline: the last run of the same agent, dataset and source."""
    wanted = (choice.agent.slug, choice.dataset.slug, choice.source)
    return next((row.run_id for row in rows if (row.agent, row.dataset, row.source) == wanted), None)


@router.get("/new-run")
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
    options = stores.options()
    agent = _chosen(agent or _answering_agent(stores.folders.rows()), options["agents"])
    dataset = _chosen(dataset, options["datasets"])
    if source not in get_args(Source):
        source = _usual_source(stores, agent)
    values = {"agent": agent, "dataset": dataset, "source": source, "description": description, "baseline": baseline}
    return _form_page(request, stores, FormState[NewRunForm](values))


def _usual_source(stores: Stores, agent: str) -> Source:
    """Return `uploaded answers` for an agent without a target, else `connector`."""
    named = version_choice(agent)
    if named is not None:
        with suppress(RagevalError):
            if stores.agents.read(*named).agent.target is None:
                return "uploaded answers"
    return "connector"


def _answering_agent(rows: Rows) -> str:
    """Return the agent of the newest run that got an answer: one that never answered is nobody's first choice."""
    for row in rows:
        if row.agent and row.past and row.past.total > row.past.outcomes.get("error", 0):
            return row.agent
    return ""


def _chosen(written: str, options: Sequence[tuple[str, str]]) -> str:
    """Return the version that an address names: the newest of a bare name, the first of an empty one."""
    if "/" in written:
        return written
    for value, _ in options:
        if not written or value.startswith(f"{written}/"):
            return value
    return written


@router.post("/new-run")
def start_run(request: Request, stores: TheStores, submitted: Submitted) -> Response:
    """Start a run that queries the agent, or keep uploaded answers to be reviewed first."""
    form = read_form(NewRunForm, submitted)
    if form.model is None:
        return _form_page(request, stores, form, status=422)
    chosen = form.model
    about = chosen.model_dump(include={"agent", "dataset", "source", "description", "baseline"})
    # A redirect: the address then holds the choice, to be reloaded and shared.
    if chosen.action == "look":
        source = "" if chosen.source == "connector" else chosen.source
        return redirect(path_to("new-run", **about | {"source": source}))
    # Without scripts the page does not follow the menus, and its cost would be that of another choice.
    if not chosen.is_as_shown:
        return _form_page(request, stores, form.with_problem("", _OTHER_CHOICE), status=422)
    field = ""  # at which a problem is shown
    try:
        choice = stores.choice(chosen.agent, chosen.dataset, chosen.source)
        if choice.is_asked:
            # Raises where the choice cannot be run: before a process is started.
            choice.outlook()
            job = stores.start(choice, chosen.description, chosen.baseline)
            return redirect(path_to("jobs", job.id))
        field = ANSWERS
        file = file_of(submitted, ANSWERS)
        if file is None:
            raise RagevalError("choose the file of answers")
        # Kept before it is read: the page after this one shows what it holds.
        upload = stores.uploads.begin(request.session, {ANSWERS: file}, about)
        try:
            stores.answers(choice, upload)
        except RagevalError:
            stores.uploads.remove(upload)
            raise
    except RagevalError as error:
        return _form_page(request, stores, form.with_problem(field, *error.problems), status=422)
    return redirect(path_to("new-run", "answers", upload.id))


@dataclass(frozen=True, kw_only=True)
class NewRunPage(PageContext):
    """The form of a run, with what it takes."""

    template = "new_run.html"
    form: FormState[NewRunForm]
    """The typed values and their errors."""
    agents: Sequence[tuple[str, str]]
    """The versions of agents that can be chosen, with their titles."""
    datasets: Sequence[tuple[str, str]]
    """The versions of datasets that can be chosen, with their titles."""
    sources: Sequence[tuple[str, str]]
    """Where answers can come from, with titles."""
    baselines: Sequence[tuple[str, str]]
    """What the run can be compared with, with titles."""
    choice: RunChoice | None
    """The chosen versions; None until both are chosen."""
    outlook: Sequence[str]
    """What the run takes: requests, cost and time."""
    problems: Sequence[str]
    """Why the choice cannot be run."""
    warnings: Sequence[str]
    """What is risky about the run, a sentence each."""


@dataclass(frozen=True, kw_only=True)
class NewRunAnswersPage(PageContext):
    """Uploaded answers, before they are scored."""

    template = "new_run_answers.html"
    upload: Upload
    """The uploaded file."""
    choice: RunChoice
    """The chosen versions."""
    answers: AnswersUpload
    """The answers."""
    outlook: Sequence[str]
    """What the run takes: requests, cost and time."""
    warnings: Sequence[str]
    """What is risky about the run, a sentence each."""
    description: str
    """The description that stays with the run."""


class Waiting(NamedTuple):
    """Uploaded answers that wait for a decision, with the choice that they belong to."""

    upload: Upload
    choice: RunChoice


def _waiting(stores: TheStores, upload_id: str) -> Waiting:
    """Return an upload and its choice, or raise HTTPException if it is gone or of another kind."""
    try:
        upload = stores.uploads.get(upload_id)
        return Waiting(upload, stores.choice(upload.about["agent"], upload.about["dataset"], "uploaded answers"))
    except (RagevalError, KeyError) as error:
        problem = str(error) if isinstance(error, RagevalError) else "this upload holds no answers"
        raise HTTPException(404, problem) from None


TheAnswers = Annotated[Waiting, Depends(_waiting)]


@router.get("/new-run/answers/{upload_id}")
def answers_page(request: Request, stores: TheStores, waiting: TheAnswers) -> Response:
    """Show uploaded answers that cover the dataset, before they are scored."""
    upload, choice = waiting
    answers = stores.answers(choice, upload)
    context = NewRunAnswersPage(
        upload=upload,
        choice=choice,
        answers=answers,
        outlook=choice.outlook(),
        warnings=choice.warnings(stores.env_file, answers),
        description=upload.about["description"],
    )
    return page(request, context)


@router.post("/new-run/answers/{upload_id}")
def start_with_answers(_: Submitted, stores: TheStores, waiting: TheAnswers) -> Response:
    """Start a run that scores the uploaded answers."""
    about = waiting.upload.about
    job = stores.start(waiting.choice, about["description"], about["baseline"], waiting.upload)
    stores.uploads.remove(waiting.upload)
    return redirect(path_to("jobs", job.id))


@router.post("/new-run/answers/{upload_id}/discard")
def discard_answers(_: Submitted, stores: TheStores, waiting: TheAnswers) -> Response:
    stores.uploads.remove(waiting.upload)
    about = waiting.upload.about
    return redirect(path_to("new-run", agent=about["agent"], dataset=about["dataset"]))


def _baselines(stores: Stores, rows: Rows, choice: RunChoice | None) -> list[tuple[str, str]]:
    """Return what the run can be compared with: values and titles."""
    like = None if choice is None else last_like(rows, choice)
    if like is None:
        options = [(LIKE_THIS, "No baseline: this is the first run of its kind")]
    else:
        options = [(LIKE_THIS, f"the last run like this one: {like}"), (NONE, "nothing")]
    for row in rows[:MOST_BASELINES]:
        options.append((row.run_id, f"{row.description or row.run_id} · {made_from(row, stores.data)}"))
    return options


def _last_pace(rows: Rows, choice: RunChoice) -> float | None:
    """Return the seconds a case of the last run of this agent and source; None without one."""
    for row in rows:
        if row.agent == choice.agent.slug and row.source == choice.source and row.seconds and row.cases:
            return row.seconds / row.cases
    return None


def _form_page(request: Request, stores: Stores, form: FormState[NewRunForm], *, status: int = 200) -> Response:
    """Render the form with what its choice takes, if there is one. A submitted form may lack fields."""
    form = replace(form, values={**BLANK, **form.values})
    agent, dataset, source = (str(form.values[name]) for name in ("agent", "dataset", "source"))
    rows = stores.whole_runs()
    choice: RunChoice | None = None
    outlook: Sequence[str] = ()
    problems: Sequence[str] = ()
    try:
        if agent and dataset:
            # A form that is shown again may hold any word.
            kind: Source = "uploaded answers" if source == "uploaded answers" else "connector"
            choice = stores.choice(agent, dataset, kind)
            outlook = choice.outlook(_last_pace(rows, choice))
    except RagevalError as error:
        problems = error.problems
    options = stores.options()
    context = NewRunPage(
        form=form,
        agents=options["agents"],
        datasets=options["datasets"],
        sources=SOURCES,
        baselines=_baselines(stores, rows, choice),
        choice=choice,
        outlook=outlook,
        problems=problems,
        warnings=choice.warnings(stores.env_file) if choice is not None else [],
    )
    return page(request, context, status=status)
