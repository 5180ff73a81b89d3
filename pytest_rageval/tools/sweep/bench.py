"""Cases asked outside of pytest, and the bench of a sweep: one target for all its points."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from pytest_rageval.config.project import Project
from pytest_rageval.config.settings import Settings
from pytest_rageval.config.settings_sources import load_settings
from pytest_rageval.config.tables import Gates
from pytest_rageval.engine import NO_ANSWER, Observed, Unobserved
from pytest_rageval.errors import SettingsError
from pytest_rageval.finish import Extent, Finished
from pytest_rageval.io.sealed_lines import record_at
from pytest_rageval.judges.judge import Judge
from pytest_rageval.matching.dialects import PlaceRules, namesakes_of
from pytest_rageval.model import EvalCase, Json, Observation, Trial
from pytest_rageval.prefetch import BackgroundLoop, Prefetcher
from pytest_rageval.prepare import Prepared, check_can_answer, make_target, prepare, run_configuration
from pytest_rageval.rescore.rescore import observed_of
from pytest_rageval.runs.reader import OBSERVATIONS, StoredRun
from pytest_rageval.runs.results_file import RunJournal
from pytest_rageval.session import RunSession
from pytest_rageval.targets.target import Target, is_called, takes_params
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
        return cls(make_target(prepared.project), BackgroundLoop(prepared.settings.longest_call))

    def ask(self, prepared: Prepared, cases: Sequence[EvalCase]) -> dict[str, Observed]:
        """Ask the cases and return their observations by key; write nothing."""
        prefetcher = Prefetcher(prepared.plan, RunJournal(None, prepared.settings, None, None), self.loop)
        observed = prefetcher.now([Trial(case) for case in cases], self.target, self.judge)
        return {case.key: outcome for case, outcome in zip(cases, observed, strict=True)}

    def close(self) -> None:
        """Release the target, and the judge if there is one."""
        self.loop.cancel()
        if not self.loop.is_blocked:
            self.loop.run(self.target.aclose())
            if self.judge is not None:
                self.loop.run(self.judge.aclose())
        self.loop.close()


NOT_TUNED = {"gates": Gates(), "gate": (), "regression": (), "tolerated": (), "enabled": None}
"""Settings without gates: their cut-offs would raise k, and a point is asked for its own k alone."""


class Answers(NamedTuple):
    """The outcomes of cases at a point by key, and the stored run if there is one."""

    observed: Mapping[str, Observed]
    run: str | None = None

    @property
    def observations(self) -> dict[str, Observation]:
        return {key: outcome for key, outcome in self.observed.items() if isinstance(outcome, Observation)}

    @property
    def errors(self) -> dict[str, str]:
        return {key: one.problem.message for key, one in self.observed.items() if isinstance(one, Unobserved)}


class Bench:
    """The place that asks cases at points. Used as a context: it closes the target that it makes."""

    def __init__(
        self,
        project: Project,
        options: Mapping[str, Json],
        cases: Sequence[EvalCase],
        files: Sequence[Path],
        grid: Grid,
        watch: Watch,
        on_finished: OnFinished,
    ) -> None:
        """`options`: those of the command, as settings; `files`: where the cases come from."""
        self.project, self.cases, self.grid = project, cases, grid
        self.calls = self.indexings = 0
        self.sweep_id = ""
        self._index: object = None
        self._options, self._files = options, files
        self._watch, self._on_finished = watch, on_finished
        self._default = self._prepared(self.settings_of(Point({})))
        self._asking = Asking.of(self._default)

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *_: object) -> None:
        self._asking.close()

    def check(self) -> None:
        """Raise SettingsError unless the target can be asked at every point, before anything is asked."""
        target = self._asking.target
        if not is_called(target):
            raise SettingsError(f"sweep: {target.name} is not asked, its answers are there; name another target")
        # Whatever a system makes of k, no more chunks than that count.
        unseen = [] if takes_params(target) else [name for name in self.grid.values if name != "k"]
        if unseen:
            raise SettingsError(
                f"--grid: {target.name} takes a question alone and cannot be given {', '.join(unseen)}; "
                "add a parameter named request to the function, whose params hold them"
            )
        check_can_answer(self._default, target, self.cases)
        problems: dict[str, None] = {}
        for point in self.grid.points():
            try:
                self.settings_of(point)
            except SettingsError as error:
                problems |= {f"--grid: {problem.replace('--rageval-', '')}": None for problem in error.problems}
        if problems:
            raise SettingsError(*problems)

    def settings_of(self, point: Point, **run: str) -> Settings:
        """Return the settings at this point, and of its `run_id` or `resume`; raise SettingsError for bad values."""
        options = point.options({**self._options, "retrieval_only": True})
        described = {"description": f"sweep {self.sweep_id}: {point}"} if run else {}
        return load_settings(self.project.root, {**options, **run, **described}).model_copy(update=NOT_TUNED)

    def k_of(self, point: Point) -> int:
        """Return how many chunks count at this point."""
        k = point.params.get("k")
        return k if isinstance(k, int) else self.project.settings.k

    @cached_property
    def place_rules(self) -> PlaceRules:
        """Return how the golds of the cases and the places of answers are compared."""
        return self._default.knowing(namesakes_of(self.cases)).plan.place_rules

    def run_id(self, point: Point) -> str:
        """Return the id of the point's run: the same whenever the sweep is resumed."""
        if not point.params:
            return f"{self.sweep_id}-default"
        return f"{self.sweep_id}-{hashlib.sha256(point.key.encode()).hexdigest()[:8]}"

    def measured(self, point: Point) -> Answers:
        """Ask the cases at this point as a stored run, or read the run if it has ended.

        A run that is resumed asks only what it has no record of. Whatever ends this early leaves a run to be resumed.
        """
        run_id = self.run_id(point)
        stored = StoredRun(self.project.reports / "runs" / run_id)
        if stored.state == "complete":
            return self._stored(stored)
        way = "resume" if (stored.path / "config.json").is_file() else "run_id"
        prepared = replace(self._prepared(self.settings_of(point, **{way: run_id})), baseline=None)
        config = run_configuration(prepared, self.cases, self._files)
        run = RunSession.open(prepared, config, is_judge_asked=False, loop=self._asking.loop)
        try:
            observed = self._asked(run, self._counting(point))
            expected = frozenset(case.key for case in self.cases)
            finished = run.finish(Extent(expected, expected))
        finally:
            run.close()
        self._on_finished(finished, prepared)
        return Answers(observed, run_id)

    def _asked(self, run: RunSession, watch: Watch) -> dict[str, Observed]:
        """Ask the cases and return their first trials; of a resumed run also those that it has."""
        observed: dict[str, Observed] = {}
        if run.unfinished is not None:
            recorded = {case.key: run.unfinished.observation(case.key, 0) for case in self.cases if run.is_done(case)}
            observed |= {key: observation for key, observation in recorded.items() if observation is not None}
        waiting = run.waiting(self.cases)
        evaluations = run.evaluations(waiting, self._asking.target, self._asking.judge)
        for case, evaluated in zip(waiting, evaluations, strict=False):
            first = evaluated.evaluation.trials[0]
            observed[case.key] = first.observation or Unobserved(first.error or NO_ANSWER, first.timings, first.answer)
            watch(len(evaluated.evaluation.trials))
        return observed

    def asked(self, point: Point, cases: Sequence[EvalCase]) -> Answers:
        """Ask some cases at this point; store nothing."""
        if not cases:
            return Answers({})
        observed = self._asking.ask(self._prepared(self.settings_of(point)), cases)
        self._counting(point)(len(cases))
        return Answers(observed)

    def _counting(self, point: Point) -> Watch:
        index = point.only(self.grid.indexing)

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
        first = {key: record_at(place) for (key, trial), place in places.items() if trial == 0}
        return Answers({key: observed_of(line, stored.config) for key, line in first.items()}, stored.run_id)
