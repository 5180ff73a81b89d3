"""Pairwise comparisons started in the browser, each `rageval compare --pairwise` in a folder of its own."""

from __future__ import annotations

import re
import shutil
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from pytest_rageval.config.project import find_root
from pytest_rageval.config.settings_sources import load_settings
from pytest_rageval.errors import SettingsError
from pytest_rageval.io.atomic import read_json, readable_json, write_json
from pytest_rageval.io.lock import is_locked
from pytest_rageval.io.masking import public_target
from pytest_rageval.runs.folder import new_folder, utc_name
from pytest_rageval.web.jobs.job import CANCELLED, ENDED, LOG, log_tail, number_in
from pytest_rageval.web.jobs.job_folders import JobFolders
from pytest_rageval.web.jobs.started_process import cancel_process, start_process
from pytest_rageval.web.keys import run_environment
from pytest_rageval.web.site import WebSettings, check_listed, of_app

PAIRWISE_FOLDER = "pairwise"
"""The folder of comparisons in the data folder."""
ORDER = "comparison.json"
RESULT = "result.json"
MOST_AT_ONCE = 2
"""Maximum number of concurrent comparisons."""
MOST_LISTED = 20
State = Literal["running", "stopping", "finished", "stopped", "failed"]


class PairwiseOrder(BaseModel):
    """What to compare: the answers of two runs, by a judge whose specification is without its password."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    before: str
    after: str
    judge: str
    created: str


@dataclass(frozen=True, slots=True)
class PairwiseStatus:
    """The current status of one comparison, with the last lines of its log."""

    order: PairwiseOrder
    state: State
    sentence: str
    log: tuple[str, ...]

    @property
    def is_going(self) -> bool:
        return self.state in ("running", "stopping")


class PairwiseJobs:
    """The folder `data/pairwise`, one per server.

    A comparison is kept as long as its runs: `RunShelf` deletes and restores it with them.
    """

    def __init__(self, settings: WebSettings) -> None:
        self._folders = _comparison_folders(settings.data)
        self._settings = settings
        self._beginning = threading.Lock()

    def start(self, before: str, after: str, judge: str, max_cost: float | None = None) -> PairwiseOrder:
        """Start a comparison of two stored runs; raise SettingsError if it cannot begin."""
        settings = self._settings
        own = load_settings(settings.root, environment={})
        check_listed(own.model_copy(update={"judge": judge, "target": None}), settings.root, is_asked=False)
        with self._beginning:
            if len(self._folders.running()) >= MOST_AT_ONCE:
                raise SettingsError(f"{MOST_AT_ONCE} comparisons at most run at the same time; wait for one to end")
            folder = new_folder(self._folders.path, utc_name())
            created = datetime.now(UTC).isoformat(timespec="seconds")
            shown_judge = public_target(judge)
            order = PairwiseOrder(id=folder.name, before=before, after=after, judge=shown_judge, created=created)
            arguments = ["compare", "--pairwise", "--format", "json", "--exit-zero"]
            arguments += ["--output", str((folder / RESULT).resolve()), "--reports", str(settings.reports.resolve())]
            if max_cost is not None:
                arguments += ["--max-cost", f"{max_cost:g}"]
            try:
                write_json(folder / ORDER, order.model_dump())
                environment = run_environment(settings.root, settings.env_file)
                # Not an option: each user of the machine sees those, and the log masks only credentials of settings.
                environment["RAGEVAL_JUDGE"] = judge
                # After `--` no name from a form can be read as an option.
                start_process(folder, [*arguments, "--", before, after], environment, find_root(settings.root))
            except (SettingsError, OSError):
                shutil.rmtree(folder, ignore_errors=True)
                raise
        return order

    def status(self, name: str) -> PairwiseStatus:
        """Return the current status of a comparison; raise UnknownPageError if the id is unknown."""
        folder = self._folders.place(name)
        order = _order_in(folder)
        is_cancelled = (folder / CANCELLED).exists()
        # The lock before the end: one that ends in between is seen as going or ended, never as gone.
        has_process = is_locked(folder)
        code = number_in(folder / ENDED, "exit_code")
        log = log_tail(folder / LOG)
        state: State
        if code is None and has_process:
            state = "stopping" if is_cancelled else "running"
            sentence = "cancelled; judged pairs stay in the judge cache" if is_cancelled else "the judge compares"
        elif code == 0 and readable_json(folder / RESULT):
            state = "finished"
            sentence = ""
        elif is_cancelled:
            state = "stopped"
            sentence = "cancelled: judged pairs are in the judge cache, and cost nothing when it is started again"
        else:
            state = "failed"
            sentence = _last_error(log) or "its process is gone without a result"
        return PairwiseStatus(order, state, sentence, tuple(log))

    def result(self, name: str) -> Mapping[str, Any]:
        """Return the content of a finished comparison."""
        content: Mapping[str, Any] = read_json(self._folders.place(name) / RESULT, "comparison")
        return content

    def cancel(self, name: str) -> None:
        """Stop a comparison gracefully. Do nothing if it has ended."""
        cancel_process(self._folders.place(name))

    def of_runs(self, before: str, after: str) -> list[PairwiseStatus]:
        """Return the last comparisons of two runs, in either order, the newest first."""
        found: list[PairwiseStatus] = []
        for name in sorted(self._folders.names(), reverse=True):
            with suppress(SettingsError):
                order = _order_in(self._folders.path / name)
                if {order.before, order.after} == {before, after}:
                    found.append(self.status(name))
            if len(found) == MOST_LISTED:
                break
        return found


def _comparison_folders(data: Path) -> JobFolders:
    return JobFolders(data / PAIRWISE_FOLDER, "comparison")


def comparisons_of(data: Path, run_id: str) -> list[Path]:
    """Return the folders of all comparisons of a run, in a data folder."""
    folders = _comparison_folders(data)
    found: list[Path] = []
    for name in folders.names():
        with suppress(SettingsError):
            order = _order_in(folders.path / name)
            if run_id in (order.before, order.after):
                found.append(folders.path / name)
    return found


def _order_in(folder: Path) -> PairwiseOrder:
    try:
        return PairwiseOrder.model_validate(read_json(folder / ORDER, "comparison"))
    except ValidationError:
        raise SettingsError(f"comparison: {folder / ORDER} is not what was written; start it again") from None


def _last_error(log: list[str]) -> str:
    for line in reversed(log):
        if match := re.match(r"(?:ERROR|Error): (.+)", line):
            return match[1]
    return log[-1] if log else ""


ThePairwise = Annotated[PairwiseJobs, of_app("pairwise_jobs")]
"""A route parameter: the pairwise comparisons."""
