"""The opening of a labelling session: cases, a store for the labels, and systems to ask for chunks."""

from __future__ import annotations

import asyncio
import math
import uuid
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from pytest_rageval.cases.conversations import said_before
from pytest_rageval.cases.drafts import ENDING
from pytest_rageval.cases.note_folder import NoteFolder
from pytest_rageval.cases.project_cases import load_files, sound_cases
from pytest_rageval.config.project import Project
from pytest_rageval.errors import CaseError, Problems, SettingsError
from pytest_rageval.io.masking import Mask
from pytest_rageval.io.suggestions import did_you_mean
from pytest_rageval.label.label_store import CaseFileStore, DraftStore, LabelStore, OpinionStore, opinion_file
from pytest_rageval.label.notes_search import NotesSearch
from pytest_rageval.label.pools import Pool, Retrieval, merged, path_prefix
from pytest_rageval.model import AskRequest, EvalCase, Json, Problem
from pytest_rageval.run.ask import ask_system
from pytest_rageval.run.prefetch import BackgroundLoop, LoopBlockedError
from pytest_rageval.run.prepare import target_in
from pytest_rageval.targets import check_target
from pytest_rageval.targets.target import BaseTarget

POOL_K = 20
"""Chunks to ask for: more than a system is tested with, so that golds just below the cut are seen."""
AHEAD = 2
"""Cases that are asked for before they are opened."""
MOST_POOLS = 200
"""Pools that are kept in memory."""
MOST_PATHS = 1000
"""Paths of chunks to remember, enough to tell how a system names its notes."""
CLOSE_PATIENCE_S = 2.0
"""Seconds that targets may take to close."""


class Labelling(NamedTuple):
    """The cases to label, and how.

    path     the case file, or a file of drafts
    targets  specifications of systems to ask; none: the project's
    notes    folder that is searched as well; None: the project's, if it has one
    blind    the person who gives a second opinion; None: the labels of the file itself
    """

    path: Path
    targets: tuple[str, ...] = ()
    notes: Path | None = None
    blind: str | None = None

    @property
    def is_of_drafts(self) -> bool:
        return self.path.name.endswith(ENDING)


def cases_to_label(path: Path, project: Project) -> list[EvalCase]:
    """Read the cases of a file; raise CaseError if it is missing or broken."""
    if not path.is_file():
        near = [file.name for file in path.parent.glob("*.jsonl")] if path.parent.is_dir() else []
        raise CaseError(f"{path}: there is no such file{did_you_mean(path.name, near)}")
    return sound_cases(load_files(project, [path]))


def label_store(labelling: Labelling, project: Project) -> LabelStore:
    """Return the store for the labels; raise CaseError if they cannot be written there."""
    notes = labelling.notes or project.notes
    if labelling.is_of_drafts:
        return DraftStore(labelling.path, project.root, notes)
    if labelling.blind is not None:
        return OpinionStore(opinion_file(labelling.path, labelling.blind), project.root)
    return CaseFileStore(labelling.path, notes)


def pool_source(
    labelling: Labelling, project: Project, cases: Sequence[EvalCase], systems: Sequence[AskedSystem]
) -> PoolSource:
    """Return the systems and the notes to ask for chunks, to be closed; raise SettingsError without any."""
    notes = labelling.notes or project.notes
    if not systems and notes is None:
        raise SettingsError("no system to ask: name one with --target, e.g. --target demo, or a folder with --notes")
    search = NotesSearch(notes) if notes is not None else None
    paths = (anchor.rel_path for case in cases for anchor in case.gold.supports or ())
    return PoolSource(systems, search, paths, is_shuffled=labelling.blind is not None)


def project_systems(
    labelling: Labelling, project: Project, cases: Sequence[EvalCase], environment: Mapping[str, str] | None = None
) -> list[AskedSystem]:
    """Return the named systems, else the project's own; raise SettingsError if one cannot be asked.

    environment  as for `target_in`
    """
    specs = labelling.targets or tuple(filter(None, (project.settings.target,)))
    problems = Problems()
    systems = [problems.attempt(asked_system, project, spec, cases, environment) for spec in specs]
    problems.raise_all()
    return [system for system in systems if system is not None]


def asked_system(
    project: Project,
    spec: str,
    cases: Sequence[EvalCase],
    environment: Mapping[str, str] | None = None,
    name: str | None = None,
) -> AskedSystem:
    """Return the system of this specification, with the project's settings; raise SettingsError if it cannot be asked.

    name  its name, if not its target's
    """
    settings = project.settings
    target = target_in(project, spec, environment)
    if problems := check_target(target, spec, cases, is_partial_allowed=True):
        raise SettingsError(*problems)
    mask = Mask(settings.secrets(environment))
    return AskedSystem(name or target.name, target, settings.longest_call, settings.ask_params, mask)


# ── systems that are asked ────────────────────────────────────────────────────────────────────────────────────


class AskedSystem(NamedTuple):
    """A system that gives chunks, by its name on the screen.

    longest_call  seconds that one question may take in all
    params        parameters of each question
    mask          removes credentials from the chunks
    """

    name: str
    target: BaseTarget
    longest_call: float
    params: Mapping[str, Json]
    mask: Mask


class PoolSource:
    """The systems, and the search if there is one; `close` releases them."""

    def __init__(
        self,
        systems: Sequence[AskedSystem],
        search: NotesSearch | None,
        paths: Iterable[str] = (),
        *,
        is_shuffled: bool = False,
    ) -> None:
        """Take the systems; `paths` are those of the cases' golds, which with the chunks' tell how notes are named.

        `is_shuffled`: pools are in an order that says nothing about ranks.
        """
        self._systems = systems
        self._search = search
        self._is_shuffled = is_shuffled
        self.notes = NoteFolder(search.folder) if search is not None else None
        self._loop = BackgroundLoop(max((system.longest_call for system in systems), default=math.inf))
        self._pools: dict[str, Future[Pool]] = {}
        self._is_closed = False
        self._paths = dict.fromkeys(paths)
        self._first_case: str | None = None
        self._has_first = asyncio.Event()

    @property
    def systems(self) -> tuple[str, ...]:
        return tuple(system.name for system in self._systems)

    def pool(self, case: EvalCase) -> Future[Pool]:
        """Return the pool of a case, asked for at most once unless it was long ago."""
        future = self._pools.pop(case.key, None) or self._loop.submit(self._filled(case))
        self._pools[case.key] = future
        while len(self._pools) > MOST_POOLS:
            self._pools.pop(next(iter(self._pools))).cancel()
        return future

    def prepare(self, cases: Sequence[EvalCase]) -> None:
        """Ask for the pools of the next cases."""
        for case in cases[:AHEAD]:
            self.pool(case)

    def ask(self, case: EvalCase, question: str) -> Future[Pool]:
        """Ask the systems another question in the scope of a case."""
        return self._loop.submit(self._filled(replace(case, question=question, rewrite=None)))

    def wait(self, pool: Future[Pool]) -> Pool:
        """Return a pool once it is there, or the problem that a system blocks all others."""
        try:
            return self._loop.wait(pool)
        except LoopBlockedError as error:
            return Pool(problems=(str(error),))

    def close(self) -> None:
        """Cancel pending calls and close the targets; safe to call twice."""
        if self._is_closed:
            return
        self._is_closed = True
        for future in self._pools.values():
            future.cancel()
        closing = self._loop.submit(self._close_targets())
        # An async target that blocks its loop is abandoned on its daemon thread, without a wait.
        if wait([closing], CLOSE_PATIENCE_S).done:
            self._loop.close()

    async def _close_targets(self) -> None:
        for system in self._systems:
            await system.target.aclose()

    async def _filled(self, case: EvalCase) -> Pool:
        try:
            return await self._pool(case)
        except Exception as error:  # noqa: BLE001 because whoever waits for the pool shows it
            return Pool(problems=(f"{type(error).__name__}: {error}",))

    def _remember_paths(self, retrievals: Iterable[Retrieval]) -> None:
        """Keep the paths of chunks, up to a limit that bounds what a system can make this remember."""
        for retrieval in retrievals:
            for chunk in retrieval.chunks:
                if len(self._paths) >= MOST_PATHS:
                    return
                if chunk.rel_path:
                    self._paths[chunk.rel_path] = None

    async def _pool(self, case: EvalCase) -> Pool:
        self._first_case = self._first_case or case.key
        try:
            retrievals = await asyncio.gather(*(_asked(case, system) for system in self._systems))
            self._remember_paths(retrievals)
        finally:
            if case.key == self._first_case:
                self._has_first.set()
        found = None
        if self._search is not None:
            # A follow-up such as "And from Jeju?" has few words of its own to search by.
            sections = await asyncio.to_thread(self._search.find, case.rewrite or case.question, POOL_K)
            # A system that gives nothing for a case must not change how its notes are named.
            await self._has_first.wait()
            prefix = path_prefix(self._search.folder, self._paths)
            if "://" in prefix and not _has_gold_by_url(case):
                # A note is labelled by its own name: another system of the same notes has another host.
                retrievals = [_without_prefix(retrieval, prefix) for retrieval in retrievals]
                prefix = ""
            found = [replace(section, rel_path=f"{prefix}{section.rel_path}") for section in sections]
        return merged(case, retrievals, found, is_shuffled=self._is_shuffled)


def _has_gold_by_url(case: EvalCase) -> bool:
    return any("://" in anchor.rel_path for anchor in case.gold.supports or ())


def _without_prefix(retrieval: Retrieval, prefix: str) -> Retrieval:
    """Return the chunks of a system with their paths as they follow a prefix."""
    chunks = [
        replace(chunk, rel_path=(chunk.rel_path or "").removeprefix(prefix) or None) for chunk in retrieval.chunks
    ]
    return retrieval._replace(chunks=tuple(chunks))


async def _asked(case: EvalCase, system: AskedSystem) -> Retrieval:
    # A turn is asked as if the system had given the references so far: labels must not depend on its answers.
    history = said_before(case, [turn.reference for turn in case.earlier]) or None
    request = AskRequest(
        case.question,
        POOL_K,
        history,
        case.vaults,
        case.folders,
        case.contexts,
        system.params,
        case.key,
        conversation_id=None if case.turn is None else uuid.uuid4().hex,
    )
    limit = asyncio.timeout(system.longest_call)
    answer = await ask_system(system.target, request, system.mask, limit, f"{system.longest_call:.3g} s")
    if isinstance(answer, Problem):
        return Retrieval(system.name, problem=f"{answer.kind}: {answer.message}")
    if answer.chunks is None:
        return Retrieval(system.name, problem="reports no retrieved chunks; let it return them in its debug output")
    return Retrieval(system.name, answer.chunks)
