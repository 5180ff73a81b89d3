"""The pages of agents: the list, an agent with its versions, the form, and the differences of two versions."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from fastapi import APIRouter, Depends, Request
from starlette.datastructures import FormData
from starlette.responses import PlainTextResponse, Response

from pytest_rageval.config.options import TARGET_FORMS
from pytest_rageval.metrics import load_registry
from pytest_rageval.metrics.registry import Metric, Registry, doc_parts
from pytest_rageval.providers import PROVIDERS
from pytest_rageval.web.first_question import ask_one_question
from pytest_rageval.web.forms import FormState, Submitted
from pytest_rageval.web.keys import KEYS_OF_PROVIDERS, key_environment, key_states, needed_keys
from pytest_rageval.web.pages.agent_form import (
    CHAT_PROVIDERS,
    JUDGES,
    AgentForm,
    ReadAgent,
    agent_of_form,
    agent_values,
    found_values,
    read_agent_form,
    shown_metrics,
    with_default_prompt,
)
from pytest_rageval.web.rendering import page, path_to, redirect
from pytest_rageval.web.site import Site, TheSite
from pytest_rageval.web.versions.agent import MAIN_RUBRIC, Agent, AgentVersion, editable_rubrics, threshold_gate
from pytest_rageval.web.versions.agent_check import agent_warnings
from pytest_rageval.web.versions.agent_store import FIRST_METRICS, AgentStore, new_agent
from pytest_rageval.web.versions.value_changes import agent_changes, changed_in_words
from pytest_rageval.web.versions.version_folder import NewerVersion, slug_of

router = APIRouter()
AUTHOR = "author"
"""The key of the session for the name that its forms suggest."""
TITLES = {"reference_match": "Judged correctness", "faithfulness": "Faithfulness to sources"}
"""The names that people know the first metrics by."""


@cache
def _registry() -> Registry:
    return load_registry([])


def _store(site: TheSite) -> AgentStore:
    return AgentStore(site.settings.data, _registry())


Agents = Annotated[AgentStore, Depends(_store)]


@router.get("/agents")
def agents_page(request: Request, store: Agents, q: str = "") -> Response:
    versions, problems = store.newest_versions()
    shown = [version for version in versions if _mentions(version, q)]
    return page(request, "agents.html", versions=shown, all=len(versions), problems=problems, q=q, folder=store.folder)


@router.get("/agents/new")
def new_agent_page(request: Request, store: Agents) -> Response:
    return _form_page(request, store, FormState(agent_values(new_agent(), store.registry)), None, 0)


@router.post("/agents")
def create_agent(request: Request, site: TheSite, store: Agents, submitted: Submitted) -> Response:
    """Save the first version of an agent, unless the name is taken."""
    if (page := _before_saving(request, site, store, submitted, None, 0)) is not None:
        return page
    form, agent = agent_of_form(submitted, store.registry, None, site.settings.root)
    if agent is None or form.model is None:
        return _form_page(request, store, form, None, 0, status=422)
    slug = slug_of(agent.name)
    try:
        _save(request, store, slug, agent, form.model, form.model.note.strip(), 0)
    except NewerVersion:
        refused = form.with_problem("name", "is taken: an agent of this name, or of one very like it, is there already")
        return _form_page(request, store, refused, None, 0, status=422)
    return redirect(path_to("agents", slug))


def _save(
    request: Request, store: AgentStore, slug: str, agent: Agent, form: AgentForm, note: str, based_on: int
) -> None:
    store.save(slug, agent, note, based_on, form.author.strip())
    request.session[AUTHOR] = form.author.strip()


def _before_saving(
    request: Request, site: Site, store: AgentStore, submitted: FormData, original: AgentVersion | None, based_on: int
) -> Response | None:
    """Return the form after one question to the system, or with a prompt reset; None if its button saves."""
    if isinstance(rubric := submitted.get("reset"), str) and rubric in editable_rubrics():
        state = with_default_prompt(submitted, store.registry, rubric)
        return _form_page(request, store, state, original, based_on, reset=rubric)
    if "ask" not in submitted:
        return None
    root, env_file = site.settings.root, site.settings.env_file
    form, agent = _asked_agent(submitted, store.registry, root)
    if agent is None or form.model is None:
        return _form_page(request, store, form, original, based_on, status=422)
    told = ask_one_question(agent, store, root, key_environment(env_file), form.model.question)
    if told.mapping:
        form = replace(form, values={**form.values, **found_values(told.mapping, form.model.url.strip())})
    return _form_page(request, store, form, original, based_on, told=told)


def _asked_agent(form: FormData, registry: Registry, root: Path) -> ReadAgent:
    """Return the agent as far as it is asked; its name and how it is measured may still be wrong."""
    measured = {"name": "asked", "judge_kind": "lexical", "metrics": "token_f1", "other_metrics": "", "gates": ""}
    kept = [(name, text) for name, text in form.multi_items() if name not in measured and "." not in name]
    read = agent_of_form(FormData([*kept, *measured.items()]), registry, None, root)
    return read._replace(form=FormState(read_agent_form(form, registry).values, read.form.errors, read.form.model))


@router.get("/agents/{slug}")
def agent_page(request: Request, site: TheSite, store: Agents, slug: str) -> Response:
    return _version_page(request, site, store, store.newest(slug))


@router.get("/agents/{slug}/versions/{number}")
def agent_version_page(request: Request, site: TheSite, store: Agents, slug: str, number: int) -> Response:
    return _version_page(request, site, store, store.read(slug, number))


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
    state: FormState[AgentForm] = FormState(agent_values(original.agent, store.registry))
    return _form_page(request, store, state, original, newest)


@router.post("/agents/{slug}")
def save_agent(request: Request, site: TheSite, store: Agents, submitted: Submitted, slug: str) -> Response:
    """Save the next version of an agent, or show the conflict if another window saved one since."""
    newest = store.last(slug)
    based_on = _number_or(submitted.get("based_on"), newest)
    original = store.read(slug, min(based_on, newest))
    if (page := _before_saving(request, site, store, submitted, original, based_on)) is not None:
        return page
    form, agent = agent_of_form(submitted, store.registry, original.agent, site.settings.root)
    if agent is None or form.model is None:
        return _form_page(request, store, form, original, based_on, status=422)
    if agent == original.agent and original.problem is None and based_on == newest:
        refused = form.with_problem("", f"Nothing differs from version {based_on}.")
        return _form_page(request, store, refused, original, based_on, status=422)
    note = form.model.note.strip() or changed_in_words(agent_changes(original.agent, agent))
    try:
        _save(request, store, slug, agent, form.model, note, based_on)
    except NewerVersion as newer:
        return _conflict_page(request, store, form, original, agent, newer)
    return redirect(path_to("agents", slug))


@router.get("/agents/{slug}/diff")
def agent_diff_page(
    request: Request, store: Agents, slug: str, before: int | None = None, after: int | None = None
) -> Response:
    """Show the differences of two versions, by default the last two."""
    numbers, earlier, later = store.compared(slug, before, after)
    one, other = store.read(slug, earlier), store.read(slug, later)
    return page(
        request,
        "agent_diff.html",
        before=one,
        after=other,
        numbers=list(reversed(numbers)),
        slug=slug,
        changes=agent_changes(one.agent, other.agent),
    )


# ── pages ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _version_page(request: Request, site: Site, store: AgentStore, version: AgentVersion) -> Response:
    versions, problems = store.versions(version.slug)
    agent = version.agent
    on = shown_metrics(agent, store.registry)
    thresholds = [(store.registry[name], threshold) for name, threshold in agent.thresholds.items()]
    held = [(metric, threshold, threshold_gate(metric, threshold)) for metric, threshold in thresholds]
    others = [(name, _own_gate(store.registry, name)) for name in on if name not in agent.thresholds]
    return page(
        request,
        "agent.html",
        version=version,
        agent=agent,
        versions=versions,
        problems=problems,
        held=held,
        others=others,
        main_rubric=MAIN_RUBRIC,
        titles=TITLES,
        keys=needed_keys(agent, site.settings.env_file),
        warnings=agent_warnings(agent, store.registry),
        newest=store.last(version.slug),
        place=store.path(version.slug, version.number),
    )


def _form_page(
    request: Request,
    store: AgentStore,
    form: FormState[AgentForm],
    original: AgentVersion | None,
    based_on: int,
    *,
    status: int = 200,
    reset: str = "",
    **content: Any,
) -> Response:
    """Render the form.

    original  the version that its values come from, None for a new agent
    reset     the rubric whose prompt was just restored
    """
    choices = [_metric_choice(store.registry, metric) for metric in store.registry]
    main = [choice for name in FIRST_METRICS for choice in choices if choice.metric.name == name]
    others = [choice for choice in choices if choice not in main]
    on = frozenset(form.values.get("metrics", ()))
    wrong = {name.partition(".")[2] for name in form.errors} | {reset}
    settings = request.app.state.site.settings
    states = {state.name: state for state in key_states(settings.env_file)[0]}
    author = str(request.session.get(AUTHOR, ""))
    form = replace(form, values={"author": author, **form.values})
    return page(
        request,
        "agent_form.html",
        status=status,
        form=form,
        original=original,
        based_on=based_on,
        main=main,
        others=others,
        titles=TITLES,
        are_others_open=any(choice.metric.name in wrong for choice in others) or not on <= {*FIRST_METRICS},
        rubrics=editable_rubrics(),
        main_rubric=MAIN_RUBRIC,
        targets=TARGET_FORMS.items(),
        chat_providers=CHAT_PROVIDERS,
        judges=JUDGES,
        models={kind: row.models for kind, row in PROVIDERS.items() if row.title},
        keys={provider: states[variable] for provider, variable in KEYS_OF_PROVIDERS.items()},
        on=on,
        are_prompts_open=not wrong.isdisjoint(editable_rubrics()),
        **{"conflict": None, "told": None, **content},
    )


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
    conflict = {
        "base": original.number,
        "number": newer.newest,
        "theirs": agent_changes(original.agent, theirs.agent),
        "mine": agent_changes(theirs.agent, typed),
        "note": theirs.note,
    }
    return _form_page(request, store, form, theirs, newer.newest, status=409, conflict=conflict)


class MetricChoice(NamedTuple):
    """A metric of the form, with its definition in one line and its own gate in words."""

    metric: Metric
    definition: str
    gate: str


def _metric_choice(registry: Registry, metric: Metric) -> MetricChoice:
    return MetricChoice(metric, doc_parts(metric).definition.replace("`", ""), _own_gate(registry, metric.name))


def _own_gate(registry: Registry, name: str) -> str:
    """Return the default gate of a metric, without the tag of a failure."""
    bare = name.partition("@")[0]
    gates = registry[bare].gates if bare in registry else ()
    return "; ".join(gate.partition(" tag ")[0].partition(" when ")[0].removeprefix(f"{bare} ") for gate in gates[:1])


def _mentions(version: AgentVersion, q: str) -> bool:
    agent = version.agent
    texts = (version.slug, agent.name, agent.description, agent.target_in_words, agent.judge, *agent.tags)
    return all(any(word in text.lower() for text in texts) for word in q.lower().split())


def _number_or(written: object, otherwise: int) -> int:
    return int(written) if isinstance(written, str) and re.fullmatch("[0-9]{1,6}", written) else otherwise
