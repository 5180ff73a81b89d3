"""The last finished runs of the same cases, for sparklines and the history of a page."""

from __future__ import annotations

from pytest_rageval.errors import SettingsError
from pytest_rageval.runs.disk.reader import StoredRun
from pytest_rageval.runs.disk.run_ref import in_time
from pytest_rageval.runs.history import PastRun, past_run, with_changes

SHOWN_RUNS = 20


def recent_runs(run: StoredRun) -> list[PastRun]:
    """The run and those of the same cases before it, the oldest first; folders that cannot be read are passed over."""
    folders = in_time(run.path.parent)
    names = [folder.name for folder in folders]
    until = names.index(run.path.name) if run.path.name in names else len(folders)
    dataset = run.config["dataset_hash"]
    runs = [past_run(run)]
    for folder in reversed(folders[:until]):
        if len(runs) == SHOWN_RUNS:
            break
        try:
            past = past_run(StoredRun(folder))
        except SettingsError:  # not finished, or damaged: `rageval history` names it
            continue
        if past.dataset_hash == dataset and not past.is_partial:
            runs.append(past)
    return list(with_changes(reversed(runs)))
