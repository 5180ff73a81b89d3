"""Cases asked outside of pytest: as a stored run, or without a trace."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pytest_rageval.engine import NO_ANSWER, Observed, Unobserved
from pytest_rageval.finish import Extent, Finished
from pytest_rageval.judges.judge import Judge
from pytest_rageval.model import EvalCase, Trial
from pytest_rageval.prefetch import BackgroundLoop, Prefetcher
from pytest_rageval.prepare import Prepared, run_configuration
from pytest_rageval.runs.results_file import RunJournal
from pytest_rageval.session import RunSession
from pytest_rageval.targets.target import Target

Watch = Callable[[int], None]
"""Hears how many cases were asked since it heard last."""
OnFinished = Callable[[Finished, Prepared], object]
"""Writes the reports of a run that has ended."""


@dataclass(frozen=True, slots=True)
class Asking:
    """Who is asked, on which loop: target and judge may belong to it, and outlive the run."""

    target: Target
    loop: BackgroundLoop
    judge: Judge | None = None


def ask_without_trace(asking: Asking, prepared: Prepared, cases: Sequence[EvalCase]) -> dict[str, Observed]:
    """What comes of each case, by key; nothing is written."""
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
    """Ask the cases as a run of their own, stored like any other; what comes of each first trial, by key.

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
    """What comes of the cases; of those that a resumed run has, what it has observed."""
    observed: dict[str, Observed] = {}
    if run.unfinished is not None:
        recorded = {case.key: run.unfinished.observation(case.key, 0) for case in cases if run.is_done(case)}
        observed |= {key: observation for key, observation in recorded.items() if observation is not None}
    waiting = run.waiting(cases)
    for case, evaluated in zip(waiting, run.evaluations(waiting, asking.target, asking.judge), strict=False):
        first = evaluated.trials[0]
        observed[case.key] = first.observation or Unobserved(first.error or NO_ANSWER, first.timings, first.answer)
        watch(len(evaluated.trials))
    return observed
