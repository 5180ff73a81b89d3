"""eval_results.json of a sweep: the request, every point with its scores, the choice, and the lines to paste."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from pytest_rageval.cases.canonical import content_hash
from pytest_rageval.config.project import Project
from pytest_rageval.errors import SettingsError
from pytest_rageval.io.atomic import read_json, write_json
from pytest_rageval.io.masking import Mask, public_target
from pytest_rageval.io.suggestions import did_you_mean
from pytest_rageval.model import EvalCase, Json
from pytest_rageval.runs.folder import new_reports_folder, utc_name
from pytest_rageval.tune.sweep.outcome import ScoredPoint, Sweep
from pytest_rageval.tune.sweep.ranking import Weights

RESULTS_FILE = "eval_results.json"


@dataclass(frozen=True)
class SweepRequest:
    """The request of a sweep: stored, so that an interrupted sweep resumes as it was started."""

    grid: Mapping[str, tuple[Json, ...]]
    indexing: tuple[str, ...]
    weights: Weights
    paths: tuple[str, ...] = ()
    sample: int | None = None
    seed: int = 0
    confirm: bool = False


_SAME = {"target": "another target", "configured": "other settings", "cases_digest": "other cases"}
"""Values that must not change while a sweep is resumed, with the name of each change."""


class SweepFile:
    """The folder of one sweep.

    head    the part of its file that is known when it starts
    probes  by the widest point of a family, keys of the cases whose lists are not those cut from it
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.sweep_id = folder.name
        self.path = folder / RESULTS_FILE
        self.head: dict[str, Any] = {}
        self.probes: dict[str, list[str]] = {}

    @classmethod
    def new(cls, reports: Path, head: dict[str, Any]) -> SweepFile:
        """Begin a file in a folder named by the UTC time; raise SettingsError if that fails."""
        file = cls(new_reports_folder(reports / "sweeps", f"sweep_{utc_name()}"))
        file.head = head
        file.keep(())
        return file

    @classmethod
    def find(cls, reports: Path, reference: str) -> SweepFile:
        """Return the sweep with this id, or the `latest`."""
        ids = sorted(path.parent.name for path in (reports / "sweeps").glob(f"*/{RESULTS_FILE}"))
        if reference == "latest" and ids:
            reference = ids[-1]
        if reference not in ids:
            otherwise = f"; the last one is {ids[-1]}" if ids else f"; {reports / 'sweeps'} holds none"
            raise SettingsError(f"there is no sweep {reference!r}{did_you_mean(reference, ids, otherwise)}")
        return cls(reports / "sweeps" / reference)

    def request(self) -> SweepRequest:
        """Return the request that this sweep was started with."""
        try:
            return TypeAdapter(SweepRequest).validate_python(read_json(self.path, "sweep").get("request"))
        except ValidationError:
            raise SettingsError(f"{self.path} is not what a sweep writes; begin a new one") from None

    def resume(self, head: dict[str, Any]) -> None:
        """Take up the sweep; SettingsError if target, settings or cases differ from those it was started with."""
        begun = read_json(self.path, "sweep")
        for name, what in _SAME.items():
            if begun.get(name) != head[name]:
                raise SettingsError(f"--resume: sweep {self.sweep_id} was begun with {what}; begin a new one")
        self.head = head
        self.probes = dict(begun.get("probes") or {})

    def keep(self, points: Sequence[ScoredPoint]) -> None:
        """Write the points and probes so far of an unfinished sweep."""
        self._write({"finished": False, "points": [_point(point) for point in points]})

    def finish(self, sweep: Sweep) -> dict[str, Any]:
        """Write the result of the sweep, and return it."""
        return self._write(sweep_content(sweep))

    def _write(self, content: Mapping[str, Any]) -> dict[str, Any]:
        whole = {"sweep_id": self.sweep_id, **self.head, **content, "probes": self.probes}
        write_json(self.path, whole)
        return whole


def sweep_head(request: SweepRequest, project: Project, cases: Sequence[EvalCase]) -> dict[str, Any]:
    """Return the part of the file that is known when a sweep starts."""
    settings = project.settings
    lines = sorted(f"{case.key} {content_hash(case)}" for case in cases)
    text = "\n".join(lines)
    parameters = Mask(settings.secrets()).value(settings.ask_params)
    return {
        "request": asdict(request),
        "target": None if settings.target is None else public_target(settings.target),
        "cases": len(cases),
        "cases_digest": hashlib.sha256(text.encode()).hexdigest(),
        "configured": {"k": settings.k, **parameters},
    }


def sweep_content(sweep: Sweep) -> dict[str, Any]:
    """Return a finished sweep as JSON."""
    front = {id(point.point) for point in sweep.front}
    points = [{**_point(point), "on_front": id(point.point) in front} for point in sweep.points]
    calls = {"asked": sweep.calls, "all_points": sweep.calls_of_all, "saved": sweep.saved}
    return {
        "finished": True,
        "points": points,
        "default": _point(sweep.default),
        "recommended": _point(sweep.best),
        "difference": _difference(sweep),
        "choosing": sweep.choosing,
        "confirming": sweep.confirming,
        "calls": calls,
        "indexings": sweep.indexings,
        "notes": list(sweep.notes),
        "toml": sweep.toml,
    }


def _difference(sweep: Sweep) -> dict[str, Any]:
    return {
        **asdict(sweep.difference),
        "distinguishable": sweep.difference.is_distinguishable,
        "better": sweep.is_better,
        "on": "the other half of the cases" if sweep.is_confirmed else "the cases it was chosen on",
        "recommended": asdict(sweep.best_scores),
        "default": asdict(sweep.default_scores),
    }


def _point(scored: ScoredPoint) -> dict[str, Any]:
    return {
        "params": dict(scored.point.params),
        "rank": scored.rank or None,
        "how": scored.how,
        "run": scored.run,
        "asked": scored.asked,
        "errors": len(scored.errors),
        **asdict(scored.scores),
    }
