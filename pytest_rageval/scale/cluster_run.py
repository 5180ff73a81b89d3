"""A run whose cases are evaluated elsewhere: its records are written here, as they come."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_rageval.model import EvalCase
from pytest_rageval.prefetch import Tally
from pytest_rageval.prepare import Prepared
from pytest_rageval.runs.reader import OBSERVATIONS, RESULTS
from pytest_rageval.scale.assignment import shares
from pytest_rageval.scale.block import Block
from pytest_rageval.scale.dispatch import Crew, Dispatch, LostCrewError
from pytest_rageval.scale.portions import Portions, portion_size
from pytest_rageval.session import RunSession


def waiting_cases(
    run: RunSession, cases: Sequence[EvalCase], repeat: int
) -> tuple[Sequence[EvalCase], Sequence[EvalCase]]:
    """The cases without a result: those with an answer that an interrupted run was given, and those to be asked."""
    unfinished = run.unfinished
    if unfinished is None:
        return (), cases
    answered, unasked = list[EvalCase](), list[EvalCase]()
    for case in cases:
        if not run.is_done(case):
            has_answer = any(unfinished.observation(case.key, number) is not None for number in range(repeat))
            (answered if has_answer else unasked).append(case)
    return answered, unasked


def crew_size(prepared: Prepared, cases: int, most: int) -> int:
    """How many workers share the run: at most so many, each with a case, and a call of target and judge, in flight."""
    settings, judge = prepared.settings, prepared.judge
    limits = [most, cases, settings.concurrency]
    if judge is not None and not judge.heuristic:
        limits.append(settings.judge_concurrency)
    return max(1, min(limits))


class ClusterRun:
    """Cases of one run, evaluated by a crew of so many workers.

    `tally` says how far they are.
    """

    def __init__(self, run: RunSession, cases: Sequence[EvalCase], crew: Crew, workers: int) -> None:
        self._run, self._writer = run, run.writer
        parts = shares(run.prepared.settings, workers)
        size = portion_size(len(cases), workers, max(share.concurrency for share in parts))
        self.dispatch = Dispatch(crew, Portions(cases, size), parts, self._writer.crashed)
        self.tally = Tally(self.dispatch)

    def blocks(self) -> Iterator[Block | None]:
        """Each block once its records are on disk, in the order of their arrival; None now and then, while none comes.

        SettingsError where no worker can take part.
        """
        try:
            for block in self.dispatch.blocks():
                if block is not None:
                    self._keep(block)
                yield block
                if self._run.broken_off is not None:
                    return
        except LostCrewError as error:
            run_id = self._writer.folder.run_id
            self._run.broken_off = f"{error}; mend that, and finish the run with --rageval-resume {run_id}"

    def _keep(self, block: Block) -> None:
        # Answers first: a result without its answer cannot be scored again.
        for name, lines in ((OBSERVATIONS, block.observations), (RESULTS, block.results)):
            if lines:
                self._writer.folder.append(name, lines.removesuffix("\n"))
        tally = self.tally
        tally.asked, tally.judged = tally.asked + block.asked, tally.judged + block.judged
        tally.cost_usd += block.cost_usd
        self._run.broken_off = self._run.breaker.add(block.calls)
