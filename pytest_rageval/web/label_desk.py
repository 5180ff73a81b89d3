"""The open labelling sessions: one per file, shared by all windows."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, Field

from pytest_rageval.cases.discovery import case_files_of
from pytest_rageval.cases.drafts import ENDING
from pytest_rageval.cases.marks import Place
from pytest_rageval.config.project import Project
from pytest_rageval.errors import CaseError, Problems, SettingsError
from pytest_rageval.io.messages import shown_value
from pytest_rageval.label.label_session import LabelSession
from pytest_rageval.label.label_store import CaseFileStore, CaseState, LabelStore
from pytest_rageval.label.opening import (
    AskedSystem,
    Labelling,
    asked_system,
    cases_to_label,
    label_store,
    pool_source,
    project_systems,
)
from pytest_rageval.model import EvalCase
from pytest_rageval.web.keys import key_environment
from pytest_rageval.web.label_systems import DEMO, PROJECT, SystemOption, offered_systems, preselected_systems
from pytest_rageval.web.rendering import path_to
from pytest_rageval.web.run_list import RunFolders
from pytest_rageval.web.site import UnknownPageError, check_listed, of_app
from pytest_rageval.web.versions.agent_store import AgentStore, configured
from pytest_rageval.web.versions.dataset_store import DatasetStore, DatasetVersion
from pytest_rageval.web.versions.version_folder import version_choice

Blank = Annotated[int | None, BeforeValidator(lambda written: None if written == "" else written)]
"""An optional number, which a form sends as blank."""


def _system(
    name: str, project: Project, agents: AgentStore, cases: Sequence[EvalCase], environment: Mapping[str, str]
) -> AskedSystem:
    """Return a chosen system with keys from `environment`; raise SettingsError if it cannot be queried."""
    if name == DEMO:
        return asked_system(project, DEMO, cases, environment)
    if name == PROJECT:
        if project.settings.target is None:
            raise SettingsError("the project has no target any more; choose another system for the chunks")
        return asked_system(project, project.settings.target, cases, environment)
    choice = version_choice(name)
    if choice is None:
        raise SettingsError(f"{shown_value(name)} names no system; choose one of the list")
    version = agents.read(*choice)
    version.check_sound()
    if version.agent.target is None:
        raise SettingsError(f"{version.title} names no system to ask; choose another for the chunks")
    with configured(version.agent, agents.registry, project.reports) as (settings, _):
        # A stored agent may name code that the project has not listed for the browser.
        check_listed(settings, project.root)
    try:
        return asked_system(Project(project.root, settings), version.agent.target, cases, environment, version.title)
    except SettingsError as error:
        raise SettingsError(*(f"{version.title}: {problem}" for problem in error.problems)) from None


MOST_OPEN = 6
"""Maximum number of open sessions; the least recently used one is closed for a new one."""


class LabelPlace(BaseModel):
    """A place in a labelling session, as its address holds it, so that a page can be reloaded and shared.

    file      path of the case file within the project; blank for a dataset's open version
    dataset   slug of that dataset
    case      id; blank for the first unlabelled case
    row       of the selected chunk
    start     the first row of a selected range
    group     of the next golds
    """

    file: str = ""
    dataset: str = ""
    case: str = ""
    row: int = Field(0, ge=0)
    start: Blank = None
    group: int = Field(1, ge=1, le=9)

    def at_row(self, row: int, start: int | None = None) -> LabelPlace:
        """Return this place with another chunk selected."""
        return self.model_copy(update={"row": row, "start": start})

    def at_case(self, case: str | None) -> LabelPlace:
        """Return the place of another case in the same file."""
        return LabelPlace(file=self.file, dataset=self.dataset, case=case or "")

    @property
    def address(self) -> str:
        return path_to(
            "label",
            "cases",
            file=self.file,
            dataset=self.dataset,
            case=self.case,
            row=self.row or None,
            start=self.start,
            group=None if self.group == 1 else self.group,
        )


def label_files(project: Project) -> dict[str, Path]:
    """Return the files that can be labelled by their path within the project: case files and their drafts."""
    files = case_files_of(project.root, project.settings.cases, project.reports)
    folders = dict.fromkeys([*(file.parent for file in files), project.root / "evalcases"])
    found = list(files)
    for folder in folders:
        if folder.is_dir():
            found += sorted(folder.glob(f"*{ENDING}"))
    return {file.relative_to(project.root).as_posix(): file for file in found}


class OpenVersionStore(CaseFileStore):
    """The case file of an open version. Labels are written only until the version is sealed."""

    def __init__(self, datasets: DatasetStore, version: DatasetVersion, notes: Path | None) -> None:
        super().__init__(datasets.path(version.slug, version.number), notes)
        self._datasets = datasets
        self._version = version

    def save(self, state: CaseState, pool: Sequence[Place]) -> str:
        with self._datasets.unsealed(self._version.slug, self._version.number):
            return super().save(state, pool)


class OpenLabelling:
    """One labelling session with its lock, because requests use several threads."""

    def __init__(
        self,
        labelling: Labelling,
        project: Project,
        systems_for: Callable[[Sequence[EvalCase]], Sequence[AskedSystem]],
        store: LabelStore | None = None,
    ) -> None:
        """Open a session over the chunks of the systems that `systems_for` returns for its cases."""
        self.lock = threading.RLock()
        self.is_closed = False
        self.keys_stamp = (0, 0)
        """The time and size of the `.env` whose keys the systems use."""
        self._path = labelling.path
        if labelling.is_of_drafts and not labelling.path.read_bytes().strip():
            raise CaseError(f"{labelling.path.name}: every draft is decided")
        cases = cases_to_label(labelling.path, project)
        store = store or label_store(labelling, project)
        self._source = pool_source(labelling, project, cases, systems_for(cases))
        try:
            self.session = LabelSession(cases, store, self._source)
        except CaseError:
            self._source.close()
            raise
        self._stamp = _stamp(self._path)

    def move_to(self, place: LabelPlace) -> None:
        """Move the session to the place in an address, or raise CaseError if there is no such case."""
        session = self.session
        before = session.case.id, session.row
        if place.case and place.case != session.case.id:
            session.save()
            session.open_case(place.case)
        last = max(0, len(session.pool.candidates) - 1)
        session.row = min(place.row, last)
        session.group = place.group
        session.range_start = None if place.start is None else min(max(0, place.start), last)
        # A confirmation is for the case that asked for it, not for another one that was opened meanwhile.
        is_same_place = before == (session.case.id, session.row)
        session.asks_to_clear = session.asks_to_clear and is_same_place

    def current_place(self, place: LabelPlace) -> LabelPlace:
        """Return the place that the session shows now."""
        session = self.session
        now = LabelPlace(file=place.file, dataset=place.dataset, case=session.case.id)
        if session.case.id != place.case:
            return now
        return now.model_copy(update={"row": session.row, "start": session.range_start, "group": session.group})

    @property
    def seen(self) -> str:
        """Return a hash of the case, its labels and its chunks, to detect forms of outdated pages."""
        session = self.session
        case = session.case
        chunks = [candidate.chunk for candidate in session.pool.candidates]
        labels = session.states[session.at]
        seen = (case.id, case.question, case.history, case.contexts, labels, chunks, session.asks_to_clear)
        return hashlib.sha256(repr(seen).encode("utf-8", "replace")).hexdigest()[:16]

    def act(self, action: Callable[[LabelSession], object]) -> None:
        """Apply an action, and save its labels at once."""
        session = self.session
        action(session)
        message = session.message
        session.message = ""
        session.save()
        session.message = session.message or message  # the result of saving matters more
        self._stamp = _stamp(self._path)

    def is_outdated(self, keys_stamp: tuple[int, int]) -> bool:
        """Return True if another program changed the file or the keys and the session has no unsaved labels."""
        is_other_file = not self.is_aside and _stamp(self._path) != self._stamp
        return self.session.is_saved and (is_other_file or self.keys_stamp != keys_stamp)

    @property
    def is_aside(self) -> bool:
        """Return True if labels go into another file because this one was changed."""
        return self.session.store.file_name != self._path.name

    def close(self) -> None:
        """Stop querying systems. Other pages of this session can no longer mark chunks through it."""
        self.is_closed = True
        self._source.close()


@dataclass
class _Slot:
    """The slot of a session, which may still be opening."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    labelling: OpenLabelling | None = None

    def close(self) -> None:
        """Wait until the session is not in use, then close it."""
        with self.lock:
            if self.labelling is not None:
                with self.labelling.lock:
                    self.labelling.close()


class LabelDesk:
    """The open sessions of a server, by file and dataset."""

    def __init__(self, data: Path, env_file: Path | None = None, folders: RunFolders | None = None) -> None:
        """Open the desk of a data folder.

        env_file  holds further keys for the systems
        folders   the runs that show which system has answered; None if no run is known
        """
        self._folders = folders
        self._agents = AgentStore(data)
        self._datasets = DatasetStore(data)
        self._env_file = env_file
        self._lock = threading.Lock()
        self._slots: dict[_Key, _Slot] = {}
        self.chosen: dict[str, Sequence[str]] = {}
        """The chosen systems by dataset."""

    def open(self, project: Project, place: LabelPlace) -> OpenLabelling:
        """Return the session of a file, reopened if the file or the keys changed; RagevalError if that fails."""
        key = place.file, place.dataset
        while True:
            slot = self._slot(key)
            with slot.lock:  # open it once, without blocking other sessions
                if self._slots.get(key) is not slot:
                    continue  # closed by another request
                keys_stamp = (0, 0) if self._env_file is None else _stamp(self._env_file)
                if slot.labelling is not None and slot.labelling.is_outdated(keys_stamp):
                    slot.labelling.close()
                    slot.labelling = None
                if place.dataset and slot.labelling is not None:
                    self._open_version(place.dataset)
                if slot.labelling is None:
                    slot.labelling = self._open(project, place)
                    slot.labelling.keys_stamp = keys_stamp
                return slot.labelling

    def close(self, file: str | None = None, dataset: str | None = None) -> None:
        """Close all sessions, or that of a file or of a dataset with its undo history: it is read again then."""
        with self._lock:
            keys = list(self._slots)
            if file is not None or dataset is not None:
                keys = [key for key in keys if key == (file or "", dataset or "")]
            slots = [self._slots.pop(key) for key in keys]
        for slot in slots:
            slot.close()

    def choose(self, slug: str, systems: Sequence[str]) -> None:
        """Retrieve the chunks of a dataset from these systems from now on."""
        self.chosen[slug] = systems
        self.close(dataset=slug)

    def offered(self, target: str | None) -> list[SystemOption]:
        """Return the systems that can retrieve chunks. `target`: of the project."""
        runs = self._folders.rows() if self._folders is not None else ()
        return offered_systems(target, self._agents.newest_versions()[0], runs)

    def selected(self, slug: str, options: Sequence[SystemOption]) -> Sequence[str]:
        """Return the systems that a person chose for a dataset, or else the preselected one."""
        return self.chosen.get(slug, preselected_systems(options))

    def _slot(self, key: _Key) -> _Slot:
        """Return the place of a session, as the most recently used one. Close the oldest if there are too many."""
        surplus = []
        with self._lock:
            slot = self._slots.pop(key, None) or _Slot()
            self._slots[key] = slot  # at the end: the order is that of use
            while len(self._slots) > MOST_OPEN:
                oldest = next(iter(self._slots))
                surplus.append(self._slots.pop(oldest))
        for other in surplus:  # without the lock: a session that is in use is waited for
            other.close()
        return slot

    def _open(self, project: Project, place: LabelPlace) -> OpenLabelling:
        environment = key_environment(self._env_file)
        if place.dataset:
            version = self._open_version(place.dataset)
            store = OpenVersionStore(self._datasets, version, project.notes)
            labelling = Labelling(self._datasets.path(version.slug, version.number))
            return OpenLabelling(
                labelling,
                project,
                lambda cases: self._systems(place.dataset, project, cases, environment),
                store,
            )
        path = label_files(project).get(place.file)
        if path is None:
            raise CaseError(f"there is no case file {place.file!r} in this project")
        labelling = Labelling(path)
        return OpenLabelling(labelling, project, lambda cases: project_systems(labelling, project, cases, environment))

    def _systems(
        self, slug: str, project: Project, cases: Sequence[EvalCase], environment: Mapping[str, str]
    ) -> list[AskedSystem]:
        """Return the systems for a dataset; raise SettingsError naming all that cannot be queried."""
        chosen = self.selected(slug, self.offered(project.settings.target))
        problems = Problems()
        systems = [problems.attempt(_system, name, project, self._agents, cases, environment) for name in chosen]
        problems.raise_all()
        return [system for system in systems if system is not None]

    def _open_version(self, slug: str) -> DatasetVersion:
        """Return the version that takes labels, or raise UnknownPageError if none is open."""
        newest = self._datasets.newest(slug)
        if not newest.is_open:
            raise UnknownPageError(
                f"{newest.title} takes no labels: it was finished, or a run uses it; press Label on its page"
            )
        return newest


TheDesk = Annotated[LabelDesk, of_app("label_desk")]
"""A route parameter: the desk."""
_Key = tuple[str, str]


def _stamp(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except OSError:
        return (0, 0)
    return status.st_mtime_ns, status.st_size
