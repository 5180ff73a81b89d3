"""What a pytest session knows of cases without loading anything heavy: their files, our options, notes for its end.

Standard library and pytest only: this is made in every test session of every project that has the plugin installed.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from pytest_rageval import cases
from pytest_rageval.cases.discovery import find_case_files, is_case_file
from pytest_rageval.config.files import case_globs, has_table, reports_of
from pytest_rageval.config.options import OPTIONS

FIXTURES = "rageval-fixtures"
"""The name under which our fixtures are registered."""


class EvalSession:
    """Facts about one session, on whatever process: alone, the controller of xdist, or a worker."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.root = config.rootpath
        self.is_worker = hasattr(config, "workerinput")
        self.notes: list[str] = []
        """What a person should know at the end of the run."""
        self.of_pytest: pytest.Session
        """Set when pytest starts it: before anything is collected."""
        self.collected: list[Path] = []
        """Case files of this session, on the controller of xdist those that its workers will collect."""

    @cached_property
    def globs(self) -> tuple[str, ...]:
        return case_globs(self.root)

    @cached_property
    def reports_folder(self) -> Path:
        """Where runs are kept, as far as it can be known without checking all settings: never a place of cases."""
        return self.root / (self.config.getoption("rageval_reports") or reports_of(self.root))

    @cached_property
    def named_files(self) -> frozenset[Path]:
        """Files named on the command line."""
        return frozenset(path for path in self.named_places if path.is_file())

    @property
    def named_places(self) -> list[Path]:
        """Files and folders named on the command line."""
        folder = self.config.invocation_params.dir
        return [(folder / argument.split("::")[0]).resolve() for argument in self.config.args]

    @cached_property
    def found_files(self) -> tuple[Path, ...]:
        """All case files that the globs find, whatever was selected."""
        files = find_case_files(self.root, self.globs)
        return tuple(path for path in files if not path.is_relative_to(self.reports_folder))

    @property
    def all_files(self) -> list[Path]:
        """Case files that the globs find, and those collected because they were named."""
        return list(dict.fromkeys([*self.found_files, *self.collected]))

    def owns(self, path: Path) -> bool:
        """Is this a case file: found by the globs, or named on the command line with a case as its first record?"""
        if path.suffix not in (".jsonl", ".csv") or path.is_relative_to(self.reports_folder):
            return False
        is_named = path in self.named_files
        return is_case_file(path, self.root, self.globs) or (is_named and cases.looks_like_cases(path))

    def files_to_collect(self) -> list[Path]:
        """Case files below the paths of the command line, as collection will find them."""
        places = self.named_places
        named = [path for path in places if path.is_file() and self.owns(path)]
        folders = [path for path in places if path.is_dir()]
        below = [path for path in self.found_files if any(path.is_relative_to(folder) for folder in folders)]
        return list(dict.fromkeys([*named, *below]))

    def unsaid(self) -> Iterator[str]:
        """What a person would not notice: case files that this session leaves out, a table that nobody reads."""
        if not has_table(self.root):
            here = self.config.invocation_params.dir
            unread = next((folder for folder in (here, *here.parents) if has_table(folder)), None)
            if unread is not None:
                yield (
                    f"rageval: the configuration table in {unread} is not read: pytest's root directory is "
                    f"{self.root}; move it there, or run pytest with --rootdir {unread}"
                )
            return
        if any("::" in place for place in self.config.args) or self.named_files:
            return
        inside = {*self.files_to_collect()}
        outside = [path for path in self.found_files if path not in inside]
        if outside:
            files = "1 case file is" if len(outside) == 1 else f"{len(outside)} case files are"
            first = outside[0].relative_to(self.root)
            yield (
                f"rageval: {files} outside of what was collected, such as {first}; name the folder on the command "
                "line, or add it to testpaths"
            )

    @property
    def given_options(self) -> dict[str, Any]:
        """Options of ours on the command line, by the setting they stand for."""
        options = {option.field: self.config.getoption(option.dest, None) for option in OPTIONS}
        return {name: value for name, value in options.items() if value is not None}

    @property
    def workers(self) -> int:
        """Among how many processes limits are divided: the workers of xdist, 1 elsewhere."""
        return int(self.worker_input("workercount") or 1)

    def worker_input(self, name: str) -> str:
        """What the controller told this worker of xdist; an empty string on any other process."""
        return str(getattr(self.config, "workerinput", {}).get(name, ""))


SESSION = pytest.StashKey[EvalSession]()
