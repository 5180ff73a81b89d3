"""Labelling sessions that are open: one a file and person, whoever looks at it from which window."""

from __future__ import annotations

import hashlib
import os
import tempfile
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

from fastapi import Depends, Request

from pytest_rageval.cases.discovery import case_files_of
from pytest_rageval.cases.drafts import ENDING
from pytest_rageval.config.project import Project
from pytest_rageval.config.settings_sources import load_settings
from pytest_rageval.errors import CaseError, Problems, SettingsError
from pytest_rageval.io.environment_secrets import WEB_TOKEN
from pytest_rageval.io.messages import shown_value
from pytest_rageval.label.label_session import LabelSession
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
from pytest_rageval.web.jobs.jobs import read_env_file
from pytest_rageval.web.labelling.working_copy import WorkingCopies
from pytest_rageval.web.rendering import path_to
from pytest_rageval.web.security.code_border import check_listed
from pytest_rageval.web.site import Site
from pytest_rageval.web.versions.agent import AgentVersion
from pytest_rageval.web.versions.agent_store import AgentStore
from pytest_rageval.web.versions.version_folder import VersionChoice, version_choice

PROJECT, DEMO = "project", "demo"
"""How the project's target and the demo are named where systems are chosen; an agent's version is `shop-bot/3`."""


class SystemOption(NamedTuple):
    """A system that can be chosen: `value` in forms, `title` for people."""

    value: str
    title: str


def offered_systems(site: Site, versions: Iterable[AgentVersion]) -> list[SystemOption]:
    """What can be chosen, of the agent versions the one that was saved last first; the project's target, if its
    configuration names one and can be read."""
    try:
        target = site.project().settings.target
    except SettingsError:
        target = None
    asked = [version for version in versions if version.agent.target is not None]
    asked.sort(key=lambda version: version.created, reverse=True)
    options = [SystemOption(str(VersionChoice(version.slug, version.number)), version.title) for version in asked]
    if target is not None:
        options.append(SystemOption(PROJECT, f"the project's target: {target}"))
    return [*options, SystemOption(DEMO, "the demo")]


def chosen_systems(
    chosen: Sequence[str],
    project: Project,
    agents: AgentStore,
    cases: Sequence[EvalCase],
    environment: Mapping[str, str],
) -> list[AskedSystem]:
    """The systems that are named; SettingsError with all that cannot be asked. `environment`: holds their keys."""
    problems = Problems()
    systems = [problems.attempt(_system, name, project, agents, cases, environment) for name in chosen]
    problems.raise_all()
    return [system for system in systems if system is not None]


def _system(
    name: str, project: Project, agents: AgentStore, cases: Sequence[EvalCase], environment: Mapping[str, str]
) -> AskedSystem:
    if name == DEMO:
        return asked_system(project, DEMO, cases, environment)
    if name == PROJECT:
        if project.settings.target is None:
            raise SettingsError("the project has no target any more; choose another system for the chunks")
        return asked_system(project, project.settings.target, cases, environment)
    if (choice := version_choice(name)) is None:
        raise SettingsError(f"{shown_value(name)} names no system; choose one of the list")
    title = agents.read(*choice).title
    settings = _agent_project(choice, project, agents)
    if settings.settings.target is None:
        raise SettingsError(f"{title} names no system to ask; choose another for the chunks")
    try:
        return asked_system(settings, settings.settings.target, cases, environment, title)
    except SettingsError as error:
        raise SettingsError(*(f"{title}: {problem}" for problem in error.problems)) from None


def _agent_project(choice: VersionChoice, project: Project, agents: AgentStore) -> Project:
    """The project's folder with the configuration of an agent's version: asked as a run of it would ask."""
    with tempfile.TemporaryDirectory(prefix="rageval-label-") as folder:
        agents.write_configuration(choice.slug, choice.number, Path(folder))
        settings = load_settings(Path(folder), {"reports": str(project.reports)}, environment={})
    check_listed(settings, project.root)
    return Project(project.root, settings)


MOST_OPEN = 6
"""Sessions that are kept; the one that was used longest ago is closed for another."""
MOST_AT_ONCE = 16
"""Sessions that are opened at the same time."""


class Where(NamedTuple):
    """What is looked at. It stands in the address, so that a page can be loaded again and sent to others.

    file      path of the case file within the project; blank where a dataset's working copy is labelled
    dataset   slug of that dataset
    opinion   name of whose second opinion it is, or blank
    case      id; blank: the first that is not labelled
    row       of the chunk pointed at
    start     with a range, the row where it begins
    group     of golds to come
    """

    file: str = ""
    dataset: str = ""
    opinion: str = ""
    case: str = ""
    row: int = 0
    start: int | None = None
    group: int = 1

    def at_row(self, row: int, start: int | None = None) -> Where:
        """The same with another chunk pointed at."""
        return self._replace(row=row, start=start)

    def at_case(self, case: str | None) -> Where:
        """Another case of the file."""
        return Where(self.file, self.dataset, self.opinion, case or "")

    @property
    def address(self) -> str:
        group = None if self.group == 1 else self.group
        return path_to(
            "label", "cases", file=self.file, dataset=self.dataset, opinion=self.opinion, case=self.case,
            row=self.row or None, start=self.start, group=group,
        )  # fmt: skip


def label_files(project: Project) -> dict[str, Path]:
    """Files that can be labelled, by path within the project: case files, and drafts beside them."""
    files = case_files_of(project.root, project.settings.cases, project.reports)
    folders = dict.fromkeys([*(file.parent for file in files), project.root / "evalcases"])
    drafts = [file for folder in folders if folder.is_dir() for file in sorted(folder.glob(f"*{ENDING}"))]
    return {file.relative_to(project.root).as_posix(): file for file in [*files, *drafts]}


class OpenLabelling:
    """One session with its lock: requests come from several threads."""

    def __init__(
        self, labelling: Labelling, project: Project, systems_for: Callable[[Sequence[EvalCase]], Sequence[AskedSystem]]
    ) -> None:
        """`systems_for`: who gives the chunks of these cases."""
        self.lock = threading.RLock()
        self.is_closed = False
        self.keys_stamp = (0, 0)
        """Of the file of keys with which the systems are asked."""
        self._path = labelling.path
        if labelling.is_of_drafts and not labelling.path.read_bytes().strip():
            raise CaseError(f"{labelling.path.name}: every draft is decided")
        cases = cases_to_label(labelling.path, project)
        store = label_store(labelling, project)
        self._source = pool_source(labelling, project, cases, systems_for(cases))
        try:
            self.session = LabelSession(cases, store, self._source, is_blind=labelling.blind is not None)
        except CaseError:
            self._source.close()
            raise
        self._stamp = _stamp(self._path)

    def look(self, where: Where) -> None:
        """Point at what an address says; CaseError where there is no such case."""
        session = self.session
        if where.case and where.case != session.case.id:
            session.save()
            session.open_case(where.case)
        last = max(0, len(session.pool.candidates) - 1)
        session.row = min(max(0, where.row), last)
        session.range_start = None if where.start is None else min(max(0, where.start), last)
        session.group = min(max(1, where.group), 9)

    def here(self, where: Where) -> Where:
        """The address of what the session points at now."""
        session = self.session
        is_same = session.case.id == where.case
        row, start = (session.row, session.range_start) if is_same else (0, None)
        return where._replace(case=session.case.id, row=row, start=start, group=session.group if is_same else 1)

    @property
    def seen(self) -> str:
        """A mark of the case, what is said of it and the chunk pointed at, so that a form of an older page is known."""
        session, case = self.session, self.session.case
        chunk = session.candidate.chunk if session.candidate is not None else None
        state = repr((case.id, case.question, case.history, case.contexts, session.states[session.at], chunk))
        return hashlib.sha256(state.encode("utf-8", "replace")).hexdigest()[:16]

    def act(self, action: Callable[[LabelSession], object]) -> None:
        """Do something, and write down at once what was said by it."""
        session = self.session
        session.message = ""
        action(session)
        message, session.message = session.message, ""
        session.save()
        session.message = session.message or message  # what becomes of the file matters more
        self._stamp = _stamp(self._path)

    @property
    def is_of_another_file(self) -> bool:
        """Has another program changed the file since we read or wrote it, and is nothing of ours waiting?"""
        return self.session.is_saved and not self.is_aside and _stamp(self._path) != self._stamp

    @property
    def is_aside(self) -> bool:
        """Do labels go into another file, because this one was changed?"""
        return not self.session.is_blind and self.session.store.file_name != self._path.name

    def close(self) -> None:
        """Ask nobody any more: what is on other pages of this session cannot be marked through it."""
        self.is_closed = True
        self._source.close()


class LabelDesk:
    """The open sessions of a server."""

    def __init__(self, data: Path, env_file: Path | None = None) -> None:
        """`env_file`: holds keys for the systems that are asked, beside the environment."""
        self.copies = WorkingCopies(data)
        self._data, self._env_file = data, env_file
        self._lock = threading.Lock()
        self._turns = [threading.Lock() for _ in range(MOST_AT_ONCE)]
        """A session is opened once, while sessions of other files are opened and used."""
        self._open: dict[_Key, OpenLabelling] = {}

    def open(self, project: Project, where: Where) -> OpenLabelling:
        """The session of a file, begun anew where another program has changed the file; a RagevalError where it cannot
        be opened."""
        if where.dataset:
            self.copies.sound(where.dataset)
        key = _key(where)
        with self._turn(key):
            labelling = self._taken(key)
            if labelling is not None and (labelling.is_of_another_file or self._has_other_keys(labelling)):
                labelling.close()
                labelling = None
            if labelling is None:
                keys_stamp = self._keys_stamp
                labelling = self._opened(project, where)
                labelling.keys_stamp = keys_stamp
            self._put_back(key, labelling)
            return labelling

    def begin_anew(self, where: Where) -> None:
        """Forget a session, with its undo: the file is read again."""
        key = _key(where)
        with self._turn(key):
            labelling = self._taken(key)
            if labelling is not None:
                with labelling.lock:
                    labelling.close()

    def close_dataset(self, slug: str) -> None:
        """Close the sessions of a dataset's working copy; what is being marked is written before."""
        self._close(lambda key: key.dataset == slug)

    def close(self) -> None:
        """Close all sessions."""
        self._close(lambda _: True)

    def _close(self, is_meant: Callable[[_Key], bool]) -> None:
        with self._lock:
            keys = list(filter(is_meant, self._open))
        for key in keys:
            self.begin_anew(Where(*key))

    def _turn(self, key: _Key) -> threading.Lock:
        return self._turns[hash(key) % len(self._turns)]

    def _taken(self, key: _Key) -> OpenLabelling | None:
        with self._lock:
            return self._open.pop(key, None)

    def _put_back(self, key: _Key, labelling: OpenLabelling) -> None:
        """Keep a session as the one that was used last; the oldest goes where there are too many."""
        with self._lock:
            self._open[key] = labelling
            surplus = [self._open.pop(next(iter(self._open))) for _ in range(len(self._open) - MOST_OPEN)]
        for other in surplus:
            other.close()

    def _has_other_keys(self, labelling: OpenLabelling) -> bool:
        """Has the file of keys changed since the session was opened, and is nothing waiting to be written?"""
        return labelling.session.is_saved and labelling.keys_stamp != self._keys_stamp

    @property
    def _keys_stamp(self) -> tuple[int, int]:
        return (0, 0) if self._env_file is None else _stamp(self._env_file)

    def _opened(self, project: Project, where: Where) -> OpenLabelling:
        environment = {**({} if self._env_file is None else read_env_file(self._env_file)), **os.environ}
        environment.pop(WEB_TOKEN, None)  # no agent's header may name it
        if where.dataset:
            copy = self.copies.sound(where.dataset)
            agents = AgentStore(self._data)
            labelling = Labelling(self.copies.path(copy.slug), blind=where.opinion or None)
            return OpenLabelling(
                labelling, project, lambda cases: chosen_systems(copy.systems, project, agents, cases, environment)
            )
        labelling = _labelling(project, where)
        return OpenLabelling(labelling, project, lambda cases: project_systems(labelling, project, cases, environment))


def _desk(request: Request) -> LabelDesk:
    desk: LabelDesk = request.app.state.label_desk
    return desk


TheDesk = Annotated[LabelDesk, Depends(_desk)]
"""A parameter of a route: the desk."""


class _Key(NamedTuple):
    """Sessions are told apart by these."""

    file: str
    dataset: str
    opinion: str


def _key(where: Where) -> _Key:
    return _Key(where.file, where.dataset, where.opinion)


def _labelling(project: Project, where: Where) -> Labelling:
    path = label_files(project).get(where.file)
    if path is None:
        raise CaseError(f"there is no case file {where.file!r} in this project")
    return Labelling(path, blind=where.opinion or None)


def _stamp(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except OSError:
        return (0, 0)
    return status.st_mtime_ns, status.st_size
