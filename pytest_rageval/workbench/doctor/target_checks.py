"""The checks of `rageval doctor` on the system under test: can it be reached, does its index hold the gold?"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

from pytest_rageval.cases import load_file
from pytest_rageval.cases.discovery import case_files_of
from pytest_rageval.config.project import Project
from pytest_rageval.errors import RagevalError, TargetError
from pytest_rageval.io.masking import public_target
from pytest_rageval.io.suggestions import listed
from pytest_rageval.matching import match
from pytest_rageval.model import Answer, Chunk, EvalCase
from pytest_rageval.prepare import make_target
from pytest_rageval.targets import check_target
from pytest_rageval.targets.http_target import ListsChunks
from pytest_rageval.targets.target import Target
from pytest_rageval.text import counted
from pytest_rageval.workbench.doctor.diagnosis import Diagnosis

LONGEST_LISTING = 3.0
"""Seconds for the chunks of an index: a doctor is not waited for."""


def look_at_target(project: Project) -> Iterator[Diagnosis]:
    """The configured target: can it be made, can it be reached, does it have all answers? It is asked no question."""
    spec = project.settings.target
    if spec is None:
        yield Diagnosis("warning", "none", "set target, or override the rag_client fixture")
        return
    name = public_target(spec)
    try:
        target = make_target(project)
    except RagevalError as error:
        yield from (Diagnosis("problem", problem) for problem in error.problems)
        return
    cases = _cases(project)
    if problems := check_target(target, spec, cases, is_partial_allowed=project.settings.allow_partial):
        yield from (Diagnosis("problem", problem) for problem in problems)
        return
    is_http = spec.startswith(("http:", "https:", "openai:", "ollama:"))
    yield Diagnosis("ok", f"{name}: {'something listens there' if is_http else 'is there'}; no question was asked")
    yield from asyncio.run(_index(target, project, cases))


async def _index(target: Target, project: Project, cases: Sequence[EvalCase]) -> list[Diagnosis]:
    """Does the index hold the gold, where the system lists its chunks?"""
    try:
        if not isinstance(target, ListsChunks):
            return []
        async with asyncio.timeout(LONGEST_LISTING):
            chunks = await target.index_chunks()
        return [] if chunks is None else [*_gold_in_index(project, chunks, cases)]
    except TimeoutError:
        return [Diagnosis("warning", f"its chunks were not listed within {LONGEST_LISTING:g} s",
                          "rageval cases audit --index waits longer")]  # fmt: skip
    except TargetError as error:
        return [Diagnosis("warning", f"its chunks cannot be listed: {error}", "mend that, or leave the listing out")]
    finally:
        await target.aclose()


def _gold_in_index(project: Project, chunks: Sequence[Chunk], cases: Sequence[EvalCase]) -> Iterator[Diagnosis]:
    """Golds that no chunk of the index matches: their cases cannot be won, whatever the system does."""
    whole_index = Answer("", chunks=tuple(chunks))
    lost = []
    labelled = 0
    for case in cases:
        matching = match(case, whole_index, project.settings.gold_by)
        if matching.kind == "none":
            continue
        labelled += 1
        hits = {gold for golds in matching.hits or () for gold in golds}
        groups = case.gold.support_groups if matching.kind == "anchors" else ()
        if not any(hits >= {*group} for group in groups or [[gold] for gold in range(matching.golds)]):
            lost.append(case.key)
    cases_labelled = counted(labelled, "labelled case")
    if lost:
        what = f"{len(lost)} of {cases_labelled} cannot be won: no indexed chunk matches the gold of {listed(lost)}"
        yield Diagnosis("warning", what, "mend the labels, or index what is missing")
    elif labelled:
        all_of_them = f"all {cases_labelled}" if labelled > 1 else cases_labelled
        yield Diagnosis("ok", f"its {counted(len(chunks), 'chunk')} hold the gold of {all_of_them}")


def _cases(project: Project) -> list[EvalCase]:
    files = case_files_of(project.root, project.settings.cases, project.reports)
    return [case for path in files for case in load_file(path, project.root).cases]
