"""A stored run of a small project, made by a real run of pytest; and the command, called in a project's folder."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result
from in_process import run_pytest
from project import BOT, ProjectFolder

from pytest_rageval.cli.main import rageval
from pytest_rageval.errors import RagevalError

RUN = "one"
TABLE = 'target = "bot:answer"'
DECIDED = ("config.json", "results.jsonl", "observations.jsonl", "metrics.json", "summary.md", "scores.jsonl")
"""What deciding a run again may rewrite."""


class StoredProject(ProjectFolder):
    """A folder with cases, a bot and runs."""

    @classmethod
    def new(cls, path: Path, cases: Iterable[Mapping[str, Any]], table: str = TABLE, extra: str = "") -> StoredProject:
        project = cls(path)
        project.write("bot.py", BOT)
        project.configure(table, extra)
        project.cases(cases)
        return project

    def copied(self, path: Path) -> StoredProject:
        shutil.copytree(self.path, path)
        return StoredProject(path)

    def pytest(self, *arguments: str, run_id: str = RUN) -> None:
        """Run pytest there, with no plugin but ours."""
        done = run_pytest(self.path, "-q", "--rageval-run-id", run_id, *arguments)
        assert done.returncode in (0, 1), done.stdout + done.stderr

    def folder(self, run_id: str = RUN) -> Path:
        return self.path / "reports" / "runs" / run_id

    def files(self, run_id: str = RUN) -> dict[str, bytes]:
        """The run's files that can be rewritten, and the metrics.json of the last run."""
        paths = [*(self.folder(run_id) / name for name in DECIDED), self.path / "reports" / "metrics.json"]
        return {str(path.relative_to(self.path)): path.read_bytes() for path in paths if path.exists()}

    def records(self, run_id: str = RUN) -> dict[str, dict[str, Any]]:
        """The last record of each case by its id."""
        lines = (self.folder(run_id) / "results.jsonl").read_text(encoding="utf-8").splitlines()
        return {record["test_case_id"]: record for record in map(json.loads, lines)}

    def json(self, name: str, run_id: str = RUN) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder(run_id) / name).read_text(encoding="utf-8"))
        return found

    def config_hash(self) -> str:
        return str(self.json("config.json")["config_hash"])


def command(*arguments: str | Path) -> Result:
    """`rageval ARGUMENTS` in the current folder."""
    return CliRunner().invoke(rageval, [str(argument) for argument in arguments])


def problems(result: Result) -> list[str]:
    """The lines that the command would show for its error, and nothing else."""
    assert isinstance(result.exception, RagevalError), (result.output, result.exception)
    assert all("\n" not in problem for problem in result.exception.problems)
    return list(result.exception.problems)
