"""The target as `rageval doctor` checks it: is it there, what does a server reply, does its index hold the gold?"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Sequence

from pytest_rageval.cases.project_cases import conversations_of, readable_cases
from pytest_rageval.check.audit import findings_in_index
from pytest_rageval.check.diagnosis import Diagnosis, failure, success, warning
from pytest_rageval.config.options import HTTP, PYTHON, kind_of
from pytest_rageval.config.project import Project
from pytest_rageval.config.toml_text import toml_value
from pytest_rageval.errors import RagevalError, TargetError
from pytest_rageval.io.case_output import Output
from pytest_rageval.io.masking import public_target
from pytest_rageval.io.messages import shown_value
from pytest_rageval.io.suggestions import listed
from pytest_rageval.llm.credentials import TARGET_TOKEN
from pytest_rageval.matching.places import match
from pytest_rageval.metrics.added import project_registry
from pytest_rageval.model import Chunk, EvalCase, Problem
from pytest_rageval.run.ask import ask_system
from pytest_rageval.run.engine import ask_request
from pytest_rageval.run.plan import make_plan
from pytest_rageval.run.prepare import make_target
from pytest_rageval.targets import check_target
from pytest_rageval.targets.first_contact import (
    CONTACT_QUESTION,
    REFUSED,
    are_places_named,
    first_contact,
    places_line,
)
from pytest_rageval.targets.http_target import ListsChunks
from pytest_rageval.targets.own_target import OwnTarget
from pytest_rageval.targets.target import BaseTarget, Connection
from pytest_rageval.text import counted

LONGEST_LISTING = 3.0
"""Seconds to list the chunks of an index: the command must stay fast."""


def look_at_target(project: Project) -> Iterator[Diagnosis]:
    """Check that the target can be made and reached, and has all answers; ask a server or Python code one question."""
    with Output():  # what the project's code prints is kept from the terminal
        yield from _of_target(project)


def _of_target(project: Project) -> Iterator[Diagnosis]:
    spec = project.settings.target
    if spec is None:
        yield warning("none", "set target, or override the rag_client fixture")
        return
    name = public_target(spec)
    try:
        target = make_target(project)
    except RagevalError as error:
        yield from (failure(problem) for problem in error.problems)
        return
    cases = readable_cases(project)
    problems = check_target(target, spec, cases, is_partial_allowed=project.settings.allow_partial)
    if problems:
        yield from (failure(problem) for problem in problems)
        return
    conversations = conversations_of(cases)
    if conversations and target.without_history:
        yield warning(f"{counted(conversations, 'conversation')}: {target.without_history}")
    kind = kind_of(spec)
    if kind in (HTTP, PYTHON):
        yield from asyncio.run(_one_question(target, spec, project, cases))
        return
    there = "something listens there" if kind.is_over_http else "is there"
    yield success(f"{name}: {there}; no question was asked")
    yield from asyncio.run(_index(target, project, cases))


ANSWER_S = 2.0
"""Seconds for the answer to the one question."""
NAME_PATHS = "golds name places: report rel_path of each chunk, or correct its expression in target.mapping"


async def _one_question(target: BaseTarget, spec: str, project: Project, cases: Sequence[EvalCase]) -> list[Diagnosis]:
    """Ask one question; report what is retrieved, how places are named, and a mapping for a reply that is not read."""
    plan = make_plan(project.settings, project_registry(project), project.root)
    with_gold = [case for case in cases if case.gold.supports]
    case = next(iter([*with_gold, *cases]), EvalCase("", CONTACT_QUESTION))
    name = public_target(spec)
    limit = asyncio.timeout(ANSWER_S)
    answer = await ask_system(target, ask_request(case, plan), plan.mask, limit, f"{ANSWER_S:g} s")
    if isinstance(answer, Problem):
        if limit.expired():
            return [warning(f"{name}: no answer to one question within {ANSWER_S:g} s", "a run waits longer (timeout)")]
        await target.aclose()
        if kind_of(spec) is PYTHON:
            return [failure(f"{answer.message}, asked {shown_value(case.question)}")]
        fix = _fix_of_refusal(project) if answer.status in REFUSED else ""
        return [failure(answer.message, fix), *await _other_contract(spec, case.question, project)]
    chunks = answer.chunks
    text = "no text" if answer.text is None else counted(len(answer.text), "character")
    listed_chunks = "no list of chunks" if chunks is None else counted(len(chunks), "chunk")
    found = [success(f"{name}: answers one question: {text}, {listed_chunks}")]
    if chunks:
        if with_gold and not are_places_named(chunks):
            found.append(warning(places_line(chunks), NAME_PATHS))
        else:
            found.append(success(places_line(chunks)))
        matching = match(case, answer, project.settings.gold_by, plan.place_rules)
        found += [warning(f"{case.id}: {flag}") for flag in matching.flags]
    return [*found, *await _index(target, project, cases)]


def _fix_of_refusal(project: Project) -> str:
    """Return what to do about status 401 or 403: give a key, or correct the one that is sent."""
    headers = project.settings.headers
    variables = [value.removeprefix("env:") for value in headers.values() if value.startswith("env:")]
    if os.environ.get(TARGET_TOKEN):
        variables.append(TARGET_TOKEN)
    if variables:
        return f"check the value of {listed(variables)}"
    return f'set {TARGET_TOKEN}, sent as a bearer token, or write headers = {{ NAME = "env:VARIABLE" }}'


async def _other_contract(spec: str, question: str, project: Project) -> list[Diagnosis]:
    """Report how a server replies whose answer cannot be read, and the mapping that would read it."""
    connection = Connection(timeout=ANSWER_S, headers=project.settings.resolved_headers())
    contact = await first_contact(spec, question, connection)
    found = [warning(line) for line in contact.findings]
    if contact.mapping:
        found.append(warning("its own JSON", f"put into the table: {toml_value({'mapping': contact.mapping})}"))
    return found


async def _index(target: BaseTarget, project: Project, cases: Sequence[EvalCase]) -> list[Diagnosis]:
    """Check that the index holds the gold, if the system lists its chunks."""
    try:
        system = target.own if isinstance(target, OwnTarget) else target
        if not isinstance(system, ListsChunks):
            return []
        async with asyncio.timeout(LONGEST_LISTING):
            chunks = await system.index_chunks()
        return [] if chunks is None else [*_gold_in_index(project, chunks, cases)]
    except TimeoutError:
        late = f"its chunks were not listed within {LONGEST_LISTING:g} s"
        return [warning(late, "rageval cases audit --index waits longer")]
    except TargetError as error:
        return [warning(f"its chunks cannot be listed: {error}", "mend that, or leave the listing out")]
    finally:
        await target.aclose()


def _gold_in_index(project: Project, chunks: Sequence[Chunk], cases: Sequence[EvalCase]) -> Iterator[Diagnosis]:
    """Name the cases that cannot be won, whatever the system does: no chunk of the index matches their gold."""
    findings = findings_in_index(cases, chunks, project.settings.gold_by)
    lost = list(dict.fromkeys(finding.case.key for finding in findings if finding.is_unwinnable))
    golds = [case.gold for case in cases]
    labelled = sum(bool(gold.supports or gold.chunk_ids or gold.relevance) for gold in golds)
    cases_labelled = counted(labelled, "labelled case")
    if lost:
        what = f"{len(lost)} of {cases_labelled} cannot be won: no indexed chunk matches the gold of {listed(lost)}"
        yield warning(what, "mend the labels, or index what is missing")
    elif labelled:
        all_of_them = f"all {cases_labelled}" if labelled > 1 else cases_labelled
        yield success(f"its {counted(len(chunks), 'chunk')} hold the gold of {all_of_them}")
