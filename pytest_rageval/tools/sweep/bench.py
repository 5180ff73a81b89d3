"""Cases asked outside of pytest, and the bench of a sweep: one target for all its points."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from pytest_rageval.config.project import Project
from pytest_rageval.config.settings import Settings
from pytest_rageval.config.settings_sources import load_settings
from pytest_rageval.config.tables import Gates
from pytest_rageval.engine import NO_ANSWER, Observed, Unobserved
from pytest_rageval.errors import SettingsError
from pytest_rageval.finish import Extent, Finished
from pytest_rageval.io.sealed_lines import record_at
from pytest_rageval.judges.judge import Judge
from pytest_rageval.model import EvalCase, Json, Observation, Trial
from pytest_rageval.prefetch import BackgroundLoop, Prefetcher
from pytest_rageval.prepare import Prepared, check_can_answer, make_target, prepare, run_configuration
from pytest_rageval.runs.reader import OBSERVATIONS, StoredRun, observation_of
from pytest_rageval.runs.results_file import RunJournal
from pytest_rageval.session import RunSession
from pytest_rageval.targets.target import Target, is_called
from pytest_rageval.tools.sweep.grid import Grid, Point

Watch = Callable[[int], None]
"""Called with a number of asked cases, to show progress."""
OnFinished = Callable[[Finished, Prepared], object]
"""Writes the reports of a run that has ended."""


@dataclass(frozen=True, slots=True)
class Asking:
    """A target and a judge with the loop that they belong to; they may outlive the run."""

    target: Target
    loop: BackgroundLoop
    judge: Judge | None = None

    @classmethod
    def of(cls, prepared: Prepared) -> Asking:
        """Make the configured target, on a loop of its own."""
        with ExitStack() as opened:
            loop = BackgroundLoop(prepared.settings.longest_call)
            opened.callback(loop.close)
            asking = cls(make_target(prepared.project), loop)
            opened.pop_all()  # success: from now on `close` closes it
        return asking

    def close(self) -> None:
        """Release the target, and the judge if there is one."""
        self.loop.cancel()
        if not self.loop.is_blocked:
            self.loop.run(self.target.aclose())
            if self.judge is not None:
                self.loop.run(self.judge.aclose())
        self.loop.close()


def ask_without_trace(asking: Asking, prepared: Prepared, cases: Sequence[EvalCase]) -> dict[str, Observed]:
    """Ask the cases and return their observations by key; write nothing."""
    prefetcher = Prefetcher(prepared.plan, RunJournal(None, prepared.settings, None, None), asking.loop)
    observed = prefetcher.now([Trial(case) for case in cases], asking.target, asking.judge)
    return {case.key: outcome for case, outcome in zip(cases, observed, strict=True)}


def write_run(
    asking: Asking,
    prepared: Prepared,
    cases: Sequence[EvalCase],
    files: Collection[Path],
    watch: Watch,
    on_finished: OnFinished,
) -> dict[str, Observed]:
    """Ask the cases as a stored run of their own; return the observations of first trials, by key.

    A run that is resumed asks only what it has no record of. Whatever ends this early leaves a run to be resumed.
    """
    prepared = replace(prepared, baseline=None)
    config = run_configuration(prepared, cases, files)
    run = RunSession.open(prepared, config, is_judge_asked=False, loop=asking.loop)
    try:
        observed = _asked(asking, run, cases, watch)
        expected = frozenset(case.key for case in cases)
        finished = run.finish(Extent(expected, expected))
    finally:
        run.close()
    on_finished(finished, prepared)
    return observed


def _asked(asking: Asking, run: RunSession, cases: Sequence[EvalCase], watch: Watch) -> dict[str, Observed]:
    """Ask the cases and return their observations; of a resumed run also those that it has."""
    observed: dict[str, Observed] = {}
    if run.unfinished is not None:
        recorded = {case.key: run.unfinished.observation(case.key, 0) for case in cases if run.is_done(case)}
        observed |= {key: observation for key, observation in recorded.items() if observation is not None}
    waiting = run.waiting(cases)
    for case, evaluated in zip(waiting, run.evaluations(waiting, asking.target, asking.judge), strict=False):
        first = evaluated.evaluation.trials[0]
        observed[case.key] = first.observation or Unobserved(first.error or NO_ANSWER, first.timings, first.answer)
        watch(len(evaluated.evaluation.trials))
    return observed


NOT_TUNED = {"gates": Gates(), "gate": (), "regression": (), "tolerated": (), "enabled": None}
"""Settings without gates: their cut-offs would raise k, and a point is asked for its own k alone."""


@dataclass(frozen=True, slots=True)
class Answers:
    """The answers to the cases at a point: observations by key, and errors by key with their reason."""

    observations: Mapping[str, Observation]
    errors: Mapping[str, str] = field(default_factory=dict)
    run: str | None = None

    @classmethod
    def of(cls, observed: Mapping[str, Observed], run: str | None = None) -> Answers:
        return cls(
            {key: outcome for key, outcome in observed.items() if isinstance(outcome, Observation)},
            {key: outcome.problem.message for key, outcome in observed.items() if not isinstance(outcome, Observation)},
            run,
        )


class Bench:
    """The place that asks cases at points. Used as a context: it closes the target that it makes."""

    def __init__(
        self,
        project: Project,
        options: Mapping[str, Json],
        cases: Sequence[EvalCase],
        files: Sequence[Path],
        grid: Grid,
        sweep_id: str,
        watch: Watch = lambda _: None,
        on_finished: OnFinished = lambda _, __: None,
    ) -> None:
        """`options`: those of the command, as settings; `files`: where the cases come from."""
        self.project, self.cases, self.grid = project, cases, grid
        self.calls = self.indexings = 0
        self._index: object = None
        self.sweep_id = sweep_id
        self._options, self._files = options, files
        self._watch, self._on_finished = watch, on_finished
        prepared = self._prepared(self.settings_of(Point({})))
        self._asking = Asking.of(prepared)
        with ExitStack() as opened:
            opened.callback(self._asking.close)
            target = self._asking.target
            if not is_called(target):
                raise SettingsError(f"sweep: {target.name} is not asked, its answers are there; name another target")
            check_can_answer(prepared, target, cases)
            opened.pop_all()

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *_: object) -> None:
        self._asking.close()

    def settings_of(self, point: Point, run_id: str | None = None, resume: str | None = None) -> Settings:
        """Return the settings of a run at this point; raise SettingsError for invalid values."""
        options = point.options({**self._options, "retrieval_only": True})
        if run_id is not None:
            options |= {"run_id": run_id, "description": f"sweep {self.sweep_id}: {point}"}
        if resume is not None:
            options |= {"resume": resume, "description": f"sweep {self.sweep_id}: {point}"}
        return load_settings(self.project.root, options).model_copy(update=NOT_TUNED)

    def k_of(self, point: Point) -> int:
        """Return how many chunks count at this point."""
        k = point.params.get("k")
        return k if isinstance(k, int) else self.project.settings.k

    def run_id(self, point: Point) -> str:
        """Return the id of the point's run: the same whenever the sweep is resumed."""
        if not point.params:
            return f"{self.sweep_id}-default"
        return f"{self.sweep_id}-{hashlib.sha256(point.key.encode()).hexdigest()[:8]}"

    def measured(self, point: Point) -> Answers:
        """Ask the cases at this point as a stored run, or read the run if it has ended."""
        run_id = self.run_id(point)
        stored = StoredRun(self.project.reports / "runs" / run_id)
        if stored.state == "complete":
            return self._stored(stored)
        is_begun = (stored.path / "config.json").is_file()
        settings = self.settings_of(point, None if is_begun else run_id, run_id if is_begun else None)
        prepared = self._prepared(settings)
        watch = self._counting(point)
        observed = write_run(self._asking, prepared, self.cases, self._files, watch, self._on_finished)
        return Answers.of(observed, run_id)

    def asked(self, point: Point, cases: Sequence[EvalCase]) -> Answers:
        """Ask some cases at this point; store nothing."""
        if not cases:
            return Answers({})
        prepared = self._prepared(self.settings_of(point))
        observed = ask_without_trace(self._asking, prepared, cases)
        self._counting(point)(len(cases))
        return Answers.of(observed)

    def _counting(self, point: Point) -> Watch:
        index = self.grid.index_of(point)

        def watch(asked: int) -> None:
            self.calls += asked
            if asked and index != self._index:
                self.indexings, self._index = self.indexings + 1, index
            self._watch(self.calls)

        return watch

    def _prepared(self, settings: Settings) -> Prepared:
        return prepare(self.project._replace(settings=settings))

    def _stored(self, stored: StoredRun) -> Answers:
        places = stored.observation_places()
        if not places and self.cases:
            raise SettingsError(
                f"run {stored.run_id} keeps no {OBSERVATIONS}, from which the sweep would go on; begin a new sweep"
            )
        errors = {
            record["case_key"]: record["error"]["message"] or record["error"]["kind"]
            for record in stored.records()
            if record["error"]
        }
        observations = {}
        for (key, trial), place in places.items():
            observation = observation_of(record_at(place), stored.config) if trial == 0 and key not in errors else None
            if observation is not None:
                observations[key] = observation
        return Answers(observations, errors, stored.run_id)
