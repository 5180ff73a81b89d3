"""The pages of a new run: an agent version on a dataset version, with live or uploaded answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Annotated, Literal, get_args

from fastapi import APIRouter, Depends, Request
from pydantic import AfterValidator, BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.responses import Response

from pytest_rageval.errors import RagevalError
from pytest_rageval.metrics import load_registry
from pytest_rageval.metrics.registry import Registry
from pytest_rageval.text import printable
from pytest_rageval.web.forms import FormState, Submitted, read_form
from pytest_rageval.web.jobs.job import Source
from pytest_rageval.web.jobs.jobs import Jobs
from pytest_rageval.web.jobs.run_choice import RunChoice, RunOutlook
from pytest_rageval.web.pages.jobs import TheJobs
from pytest_rageval.web.rendering import NEW_RUN, page, path_to, redirect
from pytest_rageval.web.site import TheSite
from pytest_rageval.web.uploads.answers_upload import AnswersUpload, read_answers_upload
from pytest_rageval.web.uploads.upload import Upload, Uploads, file_of
from pytest_rageval.web.versions.agent_store import AgentStore
from pytest_rageval.web.versions.dataset_store import DatasetStore
from pytest_rageval.web.versions.version_folder import VersionChoice, version_choice

LONGEST_DESCRIPTION = 500


def _choice(written: str) -> str:
    if version_choice(written) is None:
        raise ValueError("names no version; choose one of the list")
    return written


Choice = Annotated[str, AfterValidator(_choice)]


class NewRunForm(BaseModel):
    """The form of a new run: an agent version on a dataset version, with live or uploaded answers.

    shown   the choice whose outlook the page showed; "" if no page did
    action  `look` only shows what the choice takes

    The description becomes a command argument, which must not contain NUL.
    """

    agent: Choice
    dataset: Choice
    source: Source = "connector"
    description: Annotated[str, AfterValidator(printable)] = Field("", max_length=LONGEST_DESCRIPTION)
    shown: str = ""
    action: Literal["look", "start"] = "start"

    @property
    def is_as_shown(self) -> bool:
        """Return True if the page has shown what this choice takes."""
        return self.shown in ("", f"{self.agent} {self.dataset} {self.source}")


ANSWERS = "answers"
SOURCES: tuple[tuple[Source, str], ...] = (
    ("connector", "ask the agent now"), ("uploaded answers", "score answers that I upload"),
)  # fmt: skip
BLANK: dict[str, str | Sequence[str]] = {"agent": "", "dataset": "", "source": "connector", "description": ""}
_OTHER_CHOICE = "Another choice than this page was showing: look at what it takes, and start it then."

router = APIRouter()


@cache
def _registry() -> Registry:
    return load_registry([])


class Stores:
    """The stores of agents, datasets and uploads, and the choices from them."""

    def __init__(self, site: TheSite) -> None:
        self.agents = AgentStore(site.settings.data, _registry())
        self.datasets = DatasetStore(site.settings.data)
        self.uploads = Uploads(site.settings.data, site.settings.limits)
        self.limits = site.settings.limits

    def agent_options(self) -> list[tuple[str, str]]:
        """Return every version of every agent, grouped by agent, the newest first."""
        slugs = self.agents.files.slugs()
        versions = (version for slug in slugs for version in self.agents.versions(slug)[0])
        return [(str(VersionChoice(version.slug, version.number)), version.title) for version in versions]

    def dataset_options(self) -> list[tuple[str, str]]:
        slugs = self.datasets.files.slugs()
        versions = (version for slug in slugs for version in self.datasets.versions(slug))
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


@router.get(NEW_RUN)
def new_run_page(
    request: Request, stores: TheStores, agent: str = "", dataset: str = "", source: str = "", description: str = ""
) -> Response:
    """Show the form with what the chosen run takes; the address holds the choice."""
    agents, datasets = stores.agent_options(), stores.dataset_options()
    chosen = _chosen_version(agent, agents)
    values = {
        "agent": chosen,
        "dataset": _chosen_version(dataset, datasets),
        "description": description,
        "source": source if source in get_args(Source) else stores.first_source(chosen),
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
    if chosen.action == "look":
        source = "" if chosen.source == "connector" else chosen.source
        about = {"agent": chosen.agent, "dataset": chosen.dataset, "source": source, "description": chosen.description}
        return redirect(path_to("new-run", **about))
    if not chosen.is_as_shown:
        return _form_page(request, stores, form.with_problem("", _OTHER_CHOICE), status=422)
    try:
        choice = stores.choice(chosen.agent, chosen.dataset, chosen.source)
        if chosen.source == "connector":
            choice.outlook()
            return _start(jobs, choice, chosen.description)
    except RagevalError as error:
        return _form_page(request, stores, form.with_problem("", *error.problems), status=422)
    file = file_of(submitted, ANSWERS)
    if file is None:
        return _form_page(request, stores, form.with_problem(ANSWERS, "choose the file of answers"), status=422)
    about = {"agent": chosen.agent, "dataset": chosen.dataset, "description": chosen.description}
    try:
        upload = stores.uploads.begin(request.session, {ANSWERS: file}, about)
    except RagevalError as error:
        return _form_page(request, stores, form.with_problem(ANSWERS, *error.problems), status=422)
    try:
        _read(stores, choice, upload)
    except RagevalError as error:
        stores.uploads.remove(upload)
        return _form_page(request, stores, form.with_problem(ANSWERS, *error.problems), status=422)
    return redirect(path_to("new-run", "answers", upload.id))


@router.get(f"{NEW_RUN}/answers/{{upload_id}}")
def answers_page(request: Request, stores: TheStores, upload_id: str) -> Response:
    """Show uploaded answers that cover the dataset, before they are scored."""
    upload, choice = _waiting_upload(stores, upload_id)
    answers = _read(stores, choice, upload)
    return page(
        request,
        "new_run_answers.html",
        upload=upload,
        choice=choice,
        answers=answers,
        outlook=choice.outlook(),
        warnings=choice.warnings(answers),
        description=upload.about["description"],
    )


@router.post(f"{NEW_RUN}/answers/{{upload_id}}")
def start_with_answers(_: Submitted, stores: TheStores, jobs: TheJobs, upload_id: str) -> Response:
    """Start a run that scores the uploaded answers."""
    upload, choice = _waiting_upload(stores, upload_id)
    answers = _read(stores, choice, upload)
    response = _start(jobs, choice, upload.about["description"], upload, answers)
    stores.uploads.remove(upload)
    return response


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


def _read(stores: Stores, choice: RunChoice, upload: Upload) -> AnswersUpload:
    path, name = upload.path(ANSWERS), upload.names[ANSWERS]
    return read_answers_upload(path, name, choice.cases, stores.limits.upload_rows)


def _start(
    jobs: Jobs, choice: RunChoice, description: str, upload: Upload | None = None, answers: AnswersUpload | None = None
) -> Response:
    """Start the run and redirect to its page."""
    file = None if upload is None else upload.path(ANSWERS)
    baseline = jobs.last_whole(choice.agent.slug, choice.comparable_versions(), choice.dataset.slug, choice.source)
    job = jobs.start(lambda folder: choice.lay_out(folder, description.strip(), baseline, file, answers))
    return redirect(path_to("jobs", job.id))


def _form_page(request: Request, stores: Stores, form: FormState[NewRunForm], *, status: int = 200) -> Response:
    """Render the form with what its choice takes, if there is one. A submitted form may lack fields."""
    form = replace(form, values={**BLANK, **form.values})
    choice, outlook, problems = _choice_and_outlook(stores, form)
    return page(
        request,
        "new_run.html",
        status=status,
        form=form,
        agents=stores.agent_options(),
        datasets=stores.dataset_options(),
        sources=SOURCES,
        choice=choice,
        outlook=outlook,
        problems=problems,
        warnings=choice.warnings() if choice is not None else [],
    )


def _choice_and_outlook(
    stores: Stores, form: FormState[NewRunForm]
) -> tuple[RunChoice | None, RunOutlook | None, Sequence[str]]:
    agent, dataset, source = (str(form.values.get(name, "")) for name in ("agent", "dataset", "source"))
    if not agent or not dataset:
        return None, None, ()
    kind: Source = "uploaded answers" if source == "uploaded answers" else "connector"
    try:
        choice = stores.choice(agent, dataset, kind)
    except RagevalError as error:
        return None, None, error.problems
    try:
        return choice, choice.outlook(), ()
    except RagevalError as error:
        return choice, None, error.problems
