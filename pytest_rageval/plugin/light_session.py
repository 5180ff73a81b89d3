"""What a pytest session knows about cases without heavy imports: their files, our options, notes for its end.

Standard library and pytest only: this is made in every test session of every project that has the plugin installed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from pytest_rageval.cases.discovery import (
    NO_CASES,
    case_files_of,
    has_case_suffix,
    is_case_file,
    is_reference_file,
    literal_folder,
    unmatched_globs,
    unread_note,
)
from pytest_rageval.config.files import case_globs, has_table, reports_of
from pytest_rageval.config.options import OPTIONS

if TYPE_CHECKING:
    from pytest_rageval.io.case_output import Routing

FIXTURES = "rageval-fixtures"
"""The name under which our fixtures are registered."""

_TABLES_BELOW = ("*/pyproject.toml", "*/rageval.toml", "*/*/pyproject.toml", "*/*/rageval.toml")
"""Configurations in subfolders, as of the projects in a monorepo: services/desk."""


# Not in `items`: pytest cuts tracebacks at the file of this function, and would begin them in our code.
def one_case(rag_client: object, rag_judge: object, rag_judge_cache: object) -> None:
    """Stand for all eval items: the parameters are the fixtures that every item resolves."""


class RunControl(Protocol):
    """The part of a session that writes the run; reports reach it through the hooks of every session."""

    def open_for_workers(self) -> None: ...

    def take_report(self, report: pytest.TestReport) -> None: ...

    def count_calls(self, report: pytest.TestReport) -> None: ...


class LightSession:
    """Facts about one session of pytest, on any process, whether it turns out to have cases or not."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.root = config.rootpath
        self.is_worker = hasattr(config, "workerinput")
        self.control: RunControl | None = None
        """The part that writes the run, once the session has cases; None on a worker of xdist."""
        self.notes: list[str] = []
        """Notes for the end of the run."""
        self.of_pytest: pytest.Session
        """Set when pytest starts the session, before anything is collected."""
        self.collected: list[Path] = []
        """Case files of this session, on the controller of xdist those that its workers will collect."""
        self.html_report: Any = None
        """The data of pytest-html's page, where it writes one."""
        self.ended: set[str] = set()
        """Node ids of tests with an outcome."""
        self.failed: set[str] = set()
        """Node ids of tests that pytest counted as failed."""
        self.ids_of_workers: Sequence[str] = ()
        """Node ids that the workers of xdist have collected."""
        self.routing = config.stash.get(ROUTING, None)

    @cached_property
    def globs(self) -> tuple[str, ...]:
        return case_globs(self.root)

    @cached_property
    def reports_folder(self) -> Path:
        """Return the folder of the runs, without checking all settings; it never contains cases."""
        return self.root / (self.config.getoption("rageval_reports") or reports_of(self.root))

    @cached_property
    def named_files(self) -> frozenset[Path]:
        """Return the files named on the command line."""
        return frozenset(path for path in self.named_places if path.is_file())

    @property
    def named_places(self) -> list[Path]:
        """Return the files and folders named on the command line; like pytest, do not follow links."""
        folder = self.config.invocation_params.dir
        places = [folder / argument.split("::")[0] for argument in self.config.args]
        return [Path(os.path.abspath(place)) for place in places]

    @cached_property
    def found_files(self) -> tuple[Path, ...]:
        """Return all case files that the globs find, whatever was selected."""
        return tuple(case_files_of(self.root, self.globs, self.reports_folder))

    @cached_property
    def _real_files(self) -> frozenset[str]:
        """Return the found files that are no links: none of them is collected under a second name."""
        return frozenset(map(os.path.realpath, self.found_files))

    @property
    def all_files(self) -> list[Path]:
        """Return the case files that the globs find, and those collected by name."""
        return list(dict.fromkeys([*self.found_files, *self.collected]))

    def owns(self, path: Path) -> bool:
        """Return True if this is a case file: found by the globs, or named and with a case as its first record."""
        # The suffix first: this is asked of every file of every suite.
        if not has_case_suffix(path) or path.is_relative_to(self.reports_folder):
            return False
        is_named = path in self.named_files
        if is_case_file(path, self.root, self.globs):
            return is_named or path in self.found_files or os.path.realpath(path) not in self._real_files
        if not is_named or is_reference_file(path):
            return is_named
        from pytest_rageval.cases.loading import looks_like_cases  # here, because most suites have no such files

        return looks_like_cases(path)

    def is_faulty(self, path: Path) -> bool:
        """Return True if this file is named like a case file: if it is not collected, its mistakes are shown."""
        is_named = has_case_suffix(path) and path in self.named_files
        return is_named and not any(mark in path.name for mark in NO_CASES)

    def files_to_collect(self) -> list[Path]:
        """Return the case files below the paths of the command line, as collection will find them."""
        places = self.named_places
        named = [path for path in places if path.is_file() and self.owns(path)]
        folders = [path for path in places if path.is_dir()]
        below = [path for path in self.found_files if self._is_collected_below(path, folders)]
        return list(dict.fromkeys([*named, *below]))

    def _is_collected_below(self, path: Path, folders: Sequence[Path]) -> bool:
        return any(path.is_relative_to(folder) and not self._is_ignored(path, folder) for folder in folders)

    @cached_property
    def lost_files(self) -> list[Path]:
        """Return what should hold cases below the named places and is no file: a link that leads nowhere, say."""
        return [path for path in self.files_to_collect() if not path.is_file()]

    @cached_property
    def unmatched_globs(self) -> list[str]:
        """Return the patterns of the table that match no file, of those that are about the named places."""
        unmatched = unmatched_globs(self.root, self.globs, self.found_files)
        return [glob for glob in unmatched if self._is_about(self.root / literal_folder(glob))]

    def _is_about(self, folder: Path) -> bool:
        return any(place.is_relative_to(folder) or folder.is_relative_to(place) for place in self.named_places)

    @property
    def has_lost_cases(self) -> bool:
        """Return True if discovery has problems. Suites without a sign of cases are not searched."""
        return self.routing is not None and bool(self.lost_files or self.unmatched_globs)

    def _is_ignored(self, path: Path, folder: Path) -> bool:
        """Return True if pytest ignores this file, or a folder between it and the named one."""
        between = [parent for parent in path.parents if parent != folder and parent.is_relative_to(folder)]
        ignores = self.config.hook.pytest_ignore_collect
        # From the outermost folder to the file, as pytest asks.
        return any(ignores(collection_path=place, config=self.config) for place in (*reversed(between), path))

    def is_deselected(self, path: Path) -> bool:
        """Return True if `--deselect` leaves out all of this file."""
        prefixes = tuple(self.config.getoption("deselect") or ())
        return bool(prefixes) and path.relative_to(self.root).as_posix().startswith(prefixes)

    def projects(self) -> list[Path]:
        """Return the nearest folders with a configuration table above the named places, in their order."""
        places = [place if place.is_dir() else place.parent for place in self.named_places]
        starts = dict.fromkeys([self.config.invocation_params.dir, *places])
        nearest: dict[Path, None] = {}
        for start in starts:
            folder = next(filter(has_table, (start, *start.parents)), None)
            if folder is not None:
                nearest[folder] = None
        return list(nearest)

    def check_one_project(self) -> None:
        """Raise a usage error if two projects are named: a run has one configuration and one baseline."""
        if self.config.args_source is not pytest.Config.ArgsSource.ARGS or len(self.config.args) < 2:
            return
        above: set[Path] = set()
        for place in self.named_places:
            above.update((place, *place.parents))
        named = [folder for folder in self.projects() if folder in above]
        apart = [folder for folder in named if not any(folder in other.parents for other in named)]
        if len(apart) > 1:
            folders = " and ".join(map(str, apart))
            raise pytest.UsageError(
                f"rageval: {folders} are projects with configuration tables of their own; run pytest in each of them"
            )

    def unsaid(self, *, is_empty: bool) -> Iterator[str]:
        """Yield notes about case files that this session leaves out and tables that it does not read.

        `is_empty`: was nothing collected? Then projects below the root directory are looked for as well.
        """
        projects = self.projects()
        if is_empty and not projects:
            folders: set[Path] = set()
            for pattern in _TABLES_BELOW:
                folders.update(table.parent for table in self.root.glob(pattern))
            projects = sorted(folder for folder in folders if has_table(folder))
        unread = [folder for folder in projects if folder != self.root]
        for folder in unread[:5]:
            yield (
                f"rageval: the configuration table in {folder} is not read: pytest's root directory is "
                f"{self.root}{self._root_file}; run `pytest --rootdir .` in that folder, or move the table to the root"
            )
        if unread or not has_table(self.root):
            return
        are_named = self.config.args_source is pytest.Config.ArgsSource.ARGS
        if any("::" in place for place in self.config.args) or (are_named and self.named_files):
            return
        unread_files = unread_note(self.found_files, self.root)
        if unread_files is not None:
            yield f"rageval: {unread_files}"
        inside = {*self.files_to_collect()}
        outside = [path for path in self.found_files if path not in inside]
        if outside:
            from pytest_rageval.text import counted  # here, because its patterns cost a third of our start-up

            verb = "is" if len(outside) == 1 else "are"
            first = outside[0].relative_to(self.root)
            yield (
                f"rageval: {counted(len(outside), 'case file')} {verb} outside of what was collected, such as {first}; "
                "name the folder on the command line, or add it to testpaths"
            )

    @property
    def _root_file(self) -> str:
        """Return the file that makes the root directory the root, in brackets, if any."""
        return f" (by {self.config.inipath.name})" if self.config.inipath is not None else ""

    @property
    def given_options(self) -> dict[str, Any]:
        """Return our options on the command line by the names of their settings."""
        options = {option.field: self.config.getoption(option.dest, None) for option in OPTIONS}
        return {name: value for name, value in options.items() if value is not None}

    @property
    def workers(self) -> int:
        """Return how many processes share the limits: 1 without workers of xdist."""
        return int(self.worker_input("workercount") or 1)

    def worker_input(self, name: str) -> str:
        """Return what the controller told this worker of xdist; an empty string on any other process."""
        return str(getattr(self.config, "workerinput", {}).get(name, ""))


SESSION: pytest.StashKey[LightSession] = pytest.StashKey()
ROUTING: pytest.StashKey[Routing] = pytest.StashKey()
"""The destination of standard output and error between tests."""
