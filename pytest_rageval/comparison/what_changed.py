"""The settings, versions and commits that differ between a run and the run that it was compared with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_rageval.comparison.baseline import read_baseline
from pytest_rageval.errors import SettingsError
from pytest_rageval.runs.config_diff import SettingChange, config_changes
from pytest_rageval.runs.reader import StoredRun

_COMMIT = 7
"""Characters of a commit that are shown."""


def changes_since(run: StoredRun, comparison: Mapping[str, Any] | None, baseline: Path) -> list[SettingChange]:
    """Return what differs since the compared run: settings and versions, then the commit of the project.

    Empty if nothing was compared, or if the configuration of the compared run is gone.

    comparison  with the baseline, or with the previous run
    baseline    the file of the baseline
    """
    if not comparison:
        return []
    before = _config_before(run, comparison, baseline)
    if before is None:
        return []
    return changes_between(before, run.config)


def changes_between(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[SettingChange]:
    """Return what differs between two config.json: settings and versions, then the commit of the project."""
    changes = config_changes(before, after)
    was = _commit_text(before)
    now = _commit_text(after)
    # A committed baseline names no commit: only the folder of its run does.
    if was is not None and now is not None and was != now:
        changes.append(SettingChange("commit", was, now))
    return changes


def _config_before(run: StoredRun, comparison: Mapping[str, Any], baseline: Path) -> Mapping[str, Any] | None:
    """Return the configuration of the compared run: from its folder, or else from the committed baseline."""
    run_id = comparison.get("baseline_run_id")
    if not isinstance(run_id, str) or not run_id or Path(run_id).name != run_id:
        return None
    folder = run.path.parent / run_id
    try:
        # A run that took the id of the baseline's run has replaced its folder.
        if folder != run.path and (folder / "config.json").is_file():
            return StoredRun(folder).config
        side = read_baseline(baseline, is_required=False)
    except SettingsError:  # damaged or replaced: the summary of this run must not fail for it
        return None
    if side is None or side.run_id != run_id:
        return None
    return side.config


def _commit_text(config: Mapping[str, Any]) -> str | None:
    """Return the commit of the tested project, and whether files were changed since; None if it is not known."""
    project = config.get("project") or {}
    commit = project.get("commit")
    if not commit:
        return None
    text = str(commit)[:_COMMIT]
    return f"{text} with changes" if project.get("is_changed") else text
