"""The pages of agents: the list, an agent with its versions, the form, and the differences of two versions."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Annotated, NamedTuple

from fastapi import APIRouter, Depends, Request
from starlette.datastructures import FormData
from starlette.responses import PlainTextResponse, Response

from pytest_rageval.config.options import TARGET_FORMS
from pytest_rageval.errors import SettingsError
from pytest_rageval.metrics import load_registry
from pytest_rageval.metrics.doc_parts import doc_parts
from pytest_rageval.metrics.registry import Metric, Registry
from pytest_rageval.providers import PROVIDERS
from pytest_rageval.web.first_question import FirstAnswer, ask_one_question
from pytest_rageval.web.forms import FormState, Submitted
from pytest_rageval.web.keys import KEYS_OF_PROVIDERS, key_environment, key_states, needed_keys, store_key
from pytest_rageval.web.pages.agent_contexts import (
    AgentConflict,
    AgentDiffPage,
    AgentFormPage,
    AgentPage,
    AgentsPage,
    MetricChoice,
    WantedKey,
)
from pytest_rageval.web.pages.agent_form import (
    CHAT_PROVIDERS,
    JUDGES,
    MAPPED,
    AgentForm,
    agent_of_form,
    read_agent_form,
    shown_metrics,
    with_default_prompt,
)
from pytest_rageval.web.pages.agent_values import agent_values, found_values
from pytest_rageval.web.pages.compared_agents import rivals
from pytest_rageval.web.pages.usual_judge import usual_judge
from pytest_rageval.web.rendering import page, path_to, redirect
from pytest_rageval.web.run_list import RunFolders, TheFolders
from pytest_rageval.web.site import Site, TheSite
from pytest_rageval.web.versions.agent import MAIN_RUBRIC, Agent, AgentVersion, editable_rubrics, threshold_gate
from pytest_rageval.web.versions.agent_store import FIRST_METRICS, AgentStore, agent_warnings, new_agent
from pytest_rageval.web.versions.value_changes import agent_changes, changed_in_words
from pytest_rageval.web.versions.version_folder import NewerVersion, mentions, slug_of

router = APIRouter()
AUTHOR = "author"
"""The key of the session for the name that its forms suggest."""
SIGNS = {">=": "at least", "<=": "at most", ">": "more than", "<": "less than", "==": "exactly", "=": "exactly"}
"""The comparisons of gates in words."""
TITLES = {"reference_match": "Judged correctness", "faithfulness": "Faithfulness to sources"}
"""The names that people know the first metrics by."""


class Asked(NamedTuple):
    """The reply to the one question; the key that the server wants; why a typed key cannot be kept."""

    told: FirstAnswer | None = None
    wanted_key: WantedKey | None = None
    key_problem: str = ""


NOT_ASKED = Asked()


@cache
def _registry() -> Registry:
    return load_registry([])


def _store(site: TheSite) -> AgentStore:
    return AgentStore(site.settings.data, _registry())


Agents = Annotated[AgentStore, Depends(_store)]


@router.get("/agents")
def agents_page(request: Request, store: Agents, q: str = "") -> Response:
    versions, problems = store.newest_versions()
    shown = [version for version in versions if mentions(q, version.texts)]
    context = AgentsPage(versions=shown, all=len(versions), problems=problems, q=q, folder=store.folder)
    return page(request, context)


@router.get("/agents/new")
def new_agent_page(request: Request, site: TheSite, store: Agents) -> Response:
    judge = usual_judge(site)
    values = agent_values(new_agent(judge=judge.spec), store.registry)
    return _form_page(request, store, FormState(values), None, 0, judge_reason=judge.reason)


@router.post("/agents")
def create_agent(request: Request, site: TheSite, store: Agents, submitted: Submitted) -> Response:
    """Save the first version of an agent, unless the name is taken."""
    return _decide(request, site, store, submitted)


@router.post("/agents/{slug}")
def save_agent(request: Request, site: TheSite, store: Agents, submitted: Submitted, slug: str) -> Response:
    """Save the next version of an agent, or show the conflict if another window saved one since."""
    return _decide(request, site, store, submitted, slug)


def _decide(request: Request, site: Site, store: AgentStore, submitted: FormData, slug: str = "") -> Response:
    """Do what the pressed button says: reset a prompt, ask the system one question, or save; "" for a new agent."""
    newest = 0
    based_on = 0
    original: AgentVersion | None = None
    if slug:
        newest = store.last(slug)
        based_on = _number_or(submitted.get("based_on"), newest)
        original = store.read(slug, min(based_on, newest))
    form_page = partial(_form_page, request, store, original=original, based_on=based_on)

    rubric = submitted.get("reset")
    if isinstance(rubric, str) and rubric in editable_rubrics():
        return form_page(with_default_prompt(submitted, store.registry, rubric), reset=rubric)
    if "ask" in submitted:
        return _ask(site, store, submitted, form_page)

    key_problem = ""
    # Whichever button was pressed: a key that was typed is not thrown away.
    if _typed_key(submitted):
        submitted, key_problem = _with_key(site, submitted)
    edited = original.agent if original is not None else None
    form, agent = agent_of_form(submitted, store.registry, edited, site.settings.root)
    if key_problem:
        form = form.with_problem("", f"The key was not kept: {key_problem}.")
    if agent is None or form.model is None or key_problem:
        return form_page(form, status=422)
    note = form.model.note.strip()
    author = form.model.author.strip()
    if original is not None:
        # A version that was edited by hand is saved again, since its seal no longer fits.
        if agent == original.agent and original.problem is None and based_on == newest:
            return form_page(form.with_problem("", f"Nothing differs from version {based_on}."), status=422)
        note = note or changed_in_words(agent_changes(original.agent, agent))
    try:
        saved = store.save(slug or slug_of(agent.name), agent, note, based_on, author)
    except NewerVersion as newer:
        if original is not None:
            return _conflict_page(request, store, form, original, agent, newer)
        taken = "is taken: an agent of this name, or of one very like it, is there already"
        return form_page(form.with_problem("name", taken), status=422)
    request.session[AUTHOR] = author
    return redirect(path_to("agents", saved.slug))


def _ask(site: Site, store: AgentStore, submitted: FormData, form_page: Callable[..., Response]) -> Response:
    """Ask the agent one question; its name and how it is measured may still be wrong, and are replaced."""
    key_problem = ""
    if submitted.get("ask") == "key" or _typed_key(submitted):
        submitted, key_problem = _with_key(site, submitted)
    # What a question does not need may still be wrong in the form, and must not keep it from being asked.
    sound = {"name": "asked", "judge_kind": "lexical", "metrics": "token_f1", "other_metrics": "", "gates": ""}
    key = str(submitted.get("map_question", "")).strip()
    other_fields = [name for name in (*MAPPED, "mapping") if name != "map_question"]
    if not any(submitted.get(name) for name in other_fields):
        sound["map_question"] = ""  # a field for the question alone is no mapping: the rest is detected
    # Names with a dot are thresholds and prompts.
    kept = [(name, text) for name, text in submitted.multi_items() if name not in sound and "." not in name]
    asked_form = FormData([*kept, *sound.items()])
    read, agent = agent_of_form(asked_form, store.registry, None, site.settings.root)
    values = dict(read_agent_form(submitted, store.registry).values)
    if agent is None or read.model is None:
        return form_page(replace(read, values=values), status=422)
    environment = key_environment(site.settings.env_file)
    answer = ask_one_question(agent, store.registry, site.settings.root, environment, read.model.question, key)
    if answer.url:
        values["url"] = answer.url
    if answer.mapping:
        values |= found_values(answer.mapping, answer.url)
    wanted = _wanted_key(agent) if answer.is_refused else None
    return form_page(FormState(values), asked=Asked(answer, wanted, key_problem))


BEARER = "Authorization"


def _wanted_key(agent: Agent) -> WantedKey:
    if agent.target_kind == "chat" and agent.target and "@http" not in agent.target:
        provider = agent.target.partition(":")[0]
        if provider in KEYS_OF_PROVIDERS:
            return WantedKey(KEYS_OF_PROVIDERS[provider], "")
    for header, value in agent.headers.items():
        if value.startswith("env:"):
            return WantedKey(value.removeprefix("env:"), header)
    return WantedKey("BOT_KEY", BEARER)


def _typed_key(submitted: FormData) -> str:
    return str(submitted.get("key_value", "")).strip()


def _with_key(site: Site, submitted: FormData) -> tuple[FormData, str]:
    """Store the typed key in `.env`; return the form with the header that sends it, and what is wrong with the key."""
    variable, header, value = (
        str(submitted.get(name, "")).strip() for name in ("key_variable", "key_header", "key_value")
    )
    if header.lower() == BEARER.lower() and value and " " not in value:
        value = f"Bearer {value}"
    try:
        store_key(site.settings.env_file, variable, value)
    except SettingsError as error:
        return submitted, str(error)
    if not header:
        return submitted, ""
    names = [str(name).strip() for name in submitted.getlist("header_name")]
    values = [str(value) for value in submitted.getlist("header_value")]
    pairs = [pair for pair in zip(names, values, strict=False) if pair[0] and pair[0].lower() != header.lower()]
    others = [(name, text) for name, text in submitted.multi_items() if name not in ("header_name", "header_value")]
    for name, text in [*pairs, (header, f"env:{variable}")]:
        others += [("header_name", name), ("header_value", text)]
    return FormData(others), ""


@router.get("/agents/{slug}")
def agent_page(request: Request, site: TheSite, store: Agents, folders: TheFolders, slug: str) -> Response:
    return _version_page(request, site, store, folders, store.newest(slug))


@router.get("/agents/{slug}/versions/{number}")
def agent_version_page(
    request: Request, site: TheSite, store: Agents, folders: TheFolders, slug: str, number: int
) -> Response:
    return _version_page(request, site, store, folders, store.read(slug, number))


@router.get("/agents/{slug}/versions/{number}/toml")
def agent_toml(store: Agents, slug: str, number: int) -> Response:
    """Return the unchanged file, for download or for a run of the command."""
    disposition = f'attachment; filename="{slug}-v{number}.toml"'
    content = store.content(slug, number).decode("utf-8", "replace")
    return PlainTextResponse(content, headers={"Content-Disposition": disposition})


@router.get("/agents/{slug}/edit")
def edit_agent_page(request: Request, store: Agents, slug: str, version: int | None = None) -> Response:
    """Show the form over the newest version, or over an older one to save as the next."""
    newest = store.last(slug)
    original = store.read(slug, version or newest)
    state: FormState[AgentForm] = FormState(agent_values(original.agent.public, store.registry))
    return _form_page(request, store, state, original, newest)


@router.get("/agents/{slug}/diff")
def agent_diff_page(
    request: Request, store: Agents, slug: str, before: int | None = None, after: int | None = None
) -> Response:
    """Show the differences of two versions, by default the last two."""
    numbers, earlier_number, later_number = store.compared(slug, before, after)
    earlier = store.read(slug, earlier_number)
    later = store.read(slug, later_number)
    context = AgentDiffPage(
        before=earlier,
        after=later,
        numbers=list(reversed(numbers)),
        slug=slug,
        changes=agent_changes(earlier.agent, later.agent),
    )
    return page(request, context)


# ── pages ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _version_page(
    request: Request, site: Site, store: AgentStore, folders: RunFolders, version: AgentVersion
) -> Response:
    versions, problems = store.versions(version.slug)
    agent = version.agent
    held = []
    for name, threshold in agent.thresholds.items():
        metric = store.registry[name]
        held.append((metric, threshold, threshold_gate(metric, threshold)))
    without_threshold = [name for name in shown_metrics(agent, store.registry) if name not in agent.thresholds]
    others = [(name, _own_gate(store.registry, name)) for name in without_threshold]
    context = AgentPage(
        version=version,
        agent=agent.public,
        versions=versions,
        problems=problems,
        held=held,
        others=others,
        titles=TITLES,
        keys=needed_keys(agent, site.settings.env_file),
        warnings=agent_warnings(agent, store.registry),
        newest=store.last(version.slug),
        rivals=rivals(folders.rows(), version.slug, version.number),
        place=store.path(version.slug, version.number),
    )
    return page(request, context)


def _form_page(
    request: Request,
    store: AgentStore,
    form: FormState[AgentForm],
    original: AgentVersion | None,
    based_on: int,
    *,
    status: int = 200,
    reset: str = "",
    conflict: AgentConflict | None = None,
    asked: Asked = NOT_ASKED,
    judge_reason: str = "",
) -> Response:
    """Render the form.

    original      the version that its values come from, None for a new agent
    reset         the rubric whose prompt was just restored
    conflict      the version that another window saved meanwhile
    asked         the reply to the one question
    judge_reason  why the preselected judge was chosen
    """
    main = [_metric_choice(store.registry, store.registry[name]) for name in FIRST_METRICS]
    others = [_metric_choice(store.registry, metric) for metric in store.registry if metric.name not in FIRST_METRICS]
    on = frozenset(form.values.get("metrics", ()))
    # `threshold.mrr` is a field of a metric, `prompt.faithfulness` one of a rubric: folded parts are opened for them.
    to_see = {name.partition(".")[2] for name in form.errors} | {reset}
    has_other_metric = not on <= {*FIRST_METRICS}
    has_other_problem = any(choice.metric.name in to_see for choice in others)
    settings = request.app.state.site.settings
    states = {state.name: state for state in key_states(settings.env_file)[0]}
    author = str(request.session.get(AUTHOR, ""))
    form = replace(form, values={"author": author, **form.values})
    context = AgentFormPage(
        form=form,
        original=original,
        based_on=based_on,
        main=main,
        others=others,
        titles=TITLES,
        are_others_open=has_other_metric or has_other_problem,
        rubrics=editable_rubrics(),
        main_rubric=MAIN_RUBRIC,
        targets=TARGET_FORMS.items(),
        chat_providers=CHAT_PROVIDERS,
        judges=JUDGES,
        models={kind: row.models for kind, row in PROVIDERS.items() if row.title},
        keys={provider: states[variable] for provider, variable in KEYS_OF_PROVIDERS.items()},
        on=on,
        are_prompts_open=not to_see.isdisjoint(editable_rubrics()),
        conflict=conflict,
        told=asked.told,
        wanted_key=asked.wanted_key,
        key_problem=asked.key_problem,
        judge_reason=judge_reason,
        has_hidden_key=original is not None and original.agent.public != original.agent,
    )
    return page(request, context, status=status)


def _conflict_page(
    request: Request,
    store: AgentStore,
    form: FormState[AgentForm],
    original: AgentVersion,
    typed: Agent,
    newer: NewerVersion,
) -> Response:
    """Render the typed form over the version that was saved in between, with the differences."""
    theirs = store.read(newer.slug, newer.newest)
    conflict = AgentConflict(
        base=original.number,
        number=newer.newest,
        theirs=agent_changes(original.agent, theirs.agent),
        mine=agent_changes(theirs.agent, typed),
        note=theirs.note,
    )
    return _form_page(request, store, form, theirs, newer.newest, status=409, conflict=conflict)


def _metric_choice(registry: Registry, metric: Metric) -> MetricChoice:
    return MetricChoice(metric, doc_parts(metric).definition.replace("`", ""), _own_gate(registry, metric.name))


def _own_gate(registry: Registry, name: str) -> str:
    """Return the default gate of a metric in words, as `at least 1`, without the tag of a failure."""
    bare = name.partition("@")[0]
    if bare not in registry or not registry[bare].gates:
        return ""
    condition = registry[bare].gates[0].partition(" tag ")[0].partition(" when ")[0]
    sign, _, limit = condition.removeprefix(f"{bare} ").partition(" ")
    return f"{SIGNS[sign]} {limit}" if sign in SIGNS else f"{sign} {limit}".strip()


def _number_or(written: object, otherwise: int) -> int:
    if isinstance(written, str) and re.fullmatch("[0-9]{1,6}", written):
        return int(written)
    return otherwise
