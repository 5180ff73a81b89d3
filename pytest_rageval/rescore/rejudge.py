"""New judgements of a run's stored answers, in place of the old ones."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from pytest_rageval.errors import JudgeError, SettingsError
from pytest_rageval.io.bounded_map import at_once
from pytest_rageval.judges.judge import BaseJudge
from pytest_rageval.model import NOTHING, Answer, Observation, Problem, Timings, Trial
from pytest_rageval.rescore.relabel import Line, Lines
from pytest_rageval.run.ask import problem_of
from pytest_rageval.run.engine import judgements_of
from pytest_rageval.run.plan import Plan
from pytest_rageval.run.rewrites import is_rewrite_judged
from pytest_rageval.run.scoring import AskFailure, Observed
from pytest_rageval.runs.reader import StoredRun
from pytest_rageval.runs.records.observation_line import observation_record, observed_of, trial_of
from pytest_rageval.runs.records.record_files import record_at
from pytest_rageval.text import printable


@dataclass(slots=True)
class Rejudge:
    """A judge's second look at stored answers.

    `judged` and `failed` count answers; an answer whose judging fails becomes an error of its case, as in a run.
    """

    run: StoredRun
    plan: Plan
    judge: BaseJudge
    watch: Callable[[int], None]
    judged: int = 0
    failed: int = 0
    problem: Problem | None = field(default=None)

    def lines(self, lines: Lines) -> Lines:
        """Yield the lines of observations.jsonl with new judgements; a line with the same judgements stays the same.

        Raise SettingsError at the limit of cost, or if no answer could be judged: then the old judgements remain.
        """
        limit = self.plan.settings.concurrency
        yield from at_once(self._line, lines, limit, close=self.judge.aclose, watch=self.watch)
        # A wrong key or a dead server: the judgements that were paid for stay.
        if self.problem is not None and self.failed == self.judged:
            what = printable(f"{self.problem.kind}: {self.problem.message}")
            raise SettingsError(f"none of {self.judged} answers could be judged, run {self.run.run_id} stays: {what}")

    def ask_all(self) -> None:
        """Put all answers to the judge and keep nothing, to learn what a batch takes."""
        lines: Lines = map(record_at, self.run.observation_places().values())
        limit = self.plan.settings.concurrency
        for _ in at_once(self._line, lines, limit, close=self.judge.aclose, watch=self.watch):
            pass

    async def _line(self, line: Line) -> Line:
        if line["answer"] is None:
            return line
        before = observed_of(line, self.run.config)
        trial = trial_of(line)
        assert before.answer is not None
        observed = await self._judge(trial, before.answer, before)
        self._count(observed)
        new = observation_record(trial, observed, self.plan.settings)
        # Judgements from the cache count as different from paid ones: their cost differs.
        is_same = new["error"] == line["error"] and new["judgements"] == line["judgements"]
        is_rewrite_same = _judgements_of_rewrite(new) == _judgements_of_rewrite(line)
        return line if is_same and is_rewrite_same else {**line, **new}

    def _count(self, observed: Observed) -> None:
        if isinstance(observed, AskFailure):
            self.judged += 1
            problems: Sequence[Problem] = (observed.problem,)
        else:
            # An answer without questions to the judge does not count as judged.
            self.judged += bool(observed.judgements)
            problems = observed.judge_problems
        if problems:
            self.failed += 1
            self.problem = self.problem or problems[0]

    async def _judge(self, trial: Trial, answer: Answer, before: Observed) -> Observed:
        started = time.perf_counter()
        try:
            dialogue = before.dialogue if isinstance(before, Observation) else None
            judgements = await judgements_of(
                self.judge, trial.case, answer, self.plan, trial.number, self._problem, dialogue
            )
            rewritten = await self._rewritten(trial, before)
        except SettingsError:
            raise
        except Exception as error:  # noqa: BLE001  a user's own judge may raise anything; it is this case's error
            problem = Problem("judge_exception", f"{type(error).__name__}: {error}")
            return AskFailure(problem, _timed(before.timings, started), answer)
        timings = _timed(before.timings, started)
        if isinstance(before, Observation):
            return replace(before, judgements=judgements, timings=timings, rewritten=rewritten)
        # An error's record lacks these values; without `ask_ms` the system was not queried.
        was_asked = timings.ask_ms is not None
        settings = self.plan.settings
        return Observation(
            trial.case,
            answer,
            judgements=judgements,
            k=settings.k,
            asked_k=self.run.config["asked_k"] if was_asked else None,
            timings=timings,
            trial=trial.number,
            params=settings.ask_params if was_asked else NOTHING,
        )

    async def _rewritten(self, trial: Trial, before: Observed) -> Observation | Problem | None:
        """Return what was observed of the case asked as its rewrite, judged again."""
        if not isinstance(before, Observation) or not isinstance(before.rewritten, Observation):
            return before.rewritten if isinstance(before, Observation) else None
        rewritten = before.rewritten
        if not is_rewrite_judged(self.plan):
            return replace(rewritten, judgements={})
        judgements = await judgements_of(
            self.judge,
            rewritten.case,
            rewritten.answer,
            self.plan.for_rewrites,
            trial.number,
            self._problem,
            rewritten.dialogue,
        )
        return replace(rewritten, judgements=judgements)

    def _problem(self, error: JudgeError) -> Problem:
        if error.kind == "budget":
            raise SettingsError(f"{error}; run {self.run.run_id} stays as it was") from None
        return problem_of(f"judge_{error.kind}", error, self.plan.mask)


def check_judge_of(run: StoredRun, judge: BaseJudge) -> None:
    """Raise SettingsError if a fixture's object judged the run: only pytest can make it."""
    models = {record["judge"]["model"] for record in run.records() if record["judge"]}
    configured = run.config["judge"] or {}
    if not models or configured.get("model") in models or judge.model in models:
        return
    listed = printable(", ".join(sorted(models)))
    raise SettingsError(
        f"run {run.run_id} was judged by {listed}, which the configuration does not name (a rag_judge fixture?); "
        "say with --judge who is to judge"
    )


def _judgements_of_rewrite(line: Line) -> object:
    return line.get("rewrite", {}).get("judgements")


def _timed(timings: Timings, started: float) -> Timings:
    return replace(timings, judge_ms=round((time.perf_counter() - started) * 1000, 3))
