"""Runs archived and deleted, both with a way back, and their descriptions."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Annotated

from pytest_rageval.errors import Problems, SettingsError
from pytest_rageval.io.atomic import read_json, readable_json, write_json
from pytest_rageval.io.lock import is_locked
from pytest_rageval.runs.folder import write_metrics
from pytest_rageval.runs.reader import METRICS
from pytest_rageval.text import printable
from pytest_rageval.web.jobs.job import JOB, read_job
from pytest_rageval.web.jobs.pairwise_jobs import PAIRWISE_FOLDER, comparisons_of
from pytest_rageval.web.site import Site, of_app

MOST_DELETED = 50
"""Deleted runs that can be restored; the ones deleted before them are gone."""


class RunShelf:
    """The archived and deleted runs of a data folder.

    `archived.json` names the archived ones. A deleted one is moved to `deleted/ID/`, with its job and its pairwise
    comparisons, whose pages quote its answers.
    """

    def __init__(self, site: Site) -> None:
        data = site.settings.data
        self._data = data
        self._runs = site.runs
        self._jobs = data / "jobs"
        self._deleted = data / "deleted"
        self._parts = {"run": self._runs, "job": self._jobs}
        self._file = data / "archived.json"

    def archived(self) -> frozenset[str]:
        """Return the ids of the archived runs."""
        try:
            return frozenset(readable_json(self._file).get("runs", ()))
        except TypeError:
            return frozenset()

    def archive(self, run_ids: Iterable[str], *, is_archived: bool = True) -> None:
        """Leave runs out of the lists, or show them again."""
        chosen = set(run_ids)
        before = self.archived()
        after = before | chosen if is_archived else before - chosen
        write_json(self._file, {"runs": sorted(after)})

    def deleted(self) -> list[str]:
        """Return the ids of the runs that can be restored, the last deleted first."""
        folders = [path for path in self._deleted.glob("*") if path.is_dir() and not path.is_symlink()]
        return [path.name for path in sorted(folders, key=lambda path: path.stat().st_mtime, reverse=True)]

    def delete(self, run_ids: Collection[str]) -> None:
        """Move runs with what belongs to them out of the way; raise SettingsError if one is going on or unknown."""
        problems = Problems()
        known = _names(self._runs) | _names(self._jobs)
        for run_id in run_ids:
            if run_id not in known:
                problems.append(f"there is no run {run_id!r}")
            elif any(is_locked(folder / known[run_id]) for folder in self._parts.values()):
                problems.append(f"run {run_id} is going on; cancel it first")
            elif any(map(is_locked, comparisons_of(self._data, run_id))):
                problems.append(f"a comparison of run {run_id} is going on; cancel it first")
        # All or none: nothing changes if one of them cannot be deleted.
        problems.raise_all()
        for run_id in run_ids:
            place = self._deleted / known[run_id]
            # Of an earlier run of this name, deleted before.
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir(parents=True)
            for name, folder in self._parts.items():
                if (folder / known[run_id]).is_dir():
                    shutil.move(folder / known[run_id], place / name)
            # If both of its runs are deleted, it goes with the first one, and comes back with that.
            for comparison in comparisons_of(self._data, run_id):
                (place / PAIRWISE_FOLDER).mkdir(exist_ok=True)
                shutil.move(comparison, place / PAIRWISE_FOLDER / comparison.name)
        for old in self.deleted()[MOST_DELETED:]:
            shutil.rmtree(self._deleted / old, ignore_errors=True)

    def restore(self, run_ids: Iterable[str]) -> None:
        """Bring deleted runs back; raise SettingsError for one that is gone, or whose name another run has now."""
        there = self.deleted()
        for run_id in run_ids:
            if run_id not in there:
                raise SettingsError(f"run {run_id!r} is gone: it cannot be restored")
            kept = list(self._kept_parts(run_id))
            for deleted, place in kept:
                if deleted.is_dir() and place.exists():
                    raise SettingsError(
                        f"run {run_id!r} cannot be restored: another run has its name now; move {place} elsewhere first"
                    )
            for deleted, place in kept:
                if deleted.is_dir():
                    place.parent.mkdir(parents=True, exist_ok=True)
                    shutil.move(deleted, place)
            shutil.rmtree(self._deleted / run_id, ignore_errors=True)

    def _kept_parts(self, run_id: str) -> Iterator[tuple[Path, Path]]:
        """Yield where the parts of a deleted run are, and where they were."""
        kept = self._deleted / run_id
        for name, folder in self._parts.items():
            yield kept / name, folder / run_id
        for comparison in (kept / PAIRWISE_FOLDER).glob("*"):
            yield comparison, self._data / PAIRWISE_FOLDER / comparison.name

    def describe(self, run_id: str, description: str) -> None:
        """Change the description of a run, in its folder and in its job."""
        path = self._runs / _names(self._runs).get(run_id, "") / METRICS
        if path.is_file():
            write_metrics(path, {**read_json(path, "run"), "description": description or None})
        if run_id in _names(self._jobs):
            job = read_job(self._jobs / run_id).model_copy(update={"description": description})
            write_json(self._jobs / run_id / JOB, job.model_dump())


def _names(folder: Path) -> dict[str, str]:
    """Return the folders by printable name: a name from a form never becomes a path."""
    try:
        return {printable(path.name): path.name for path in folder.iterdir() if path.is_dir() and not path.is_symlink()}
    except OSError:
        return {}


TheShelf = Annotated[RunShelf, of_app("run_shelf")]
"""A route parameter: the archived and deleted runs."""
