"""Cases asked outside of pytest: a target and a judge on a loop of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pytest_rageval.config.tables import Gates
from pytest_rageval.io.case_output import Output
from pytest_rageval.judges.judge import BaseJudge
from pytest_rageval.model import EvalCase, Observation, Trial
from pytest_rageval.run.prefetch import BackgroundLoop, Prefetcher
from pytest_rageval.run.prepare import Preparation, make_target
from pytest_rageval.run.scoring import AskFailure, Observed
from pytest_rageval.targets.target import BaseTarget

NOT_TUNED = {"gates": Gates(), "gate": (), "regression": (), "tolerated": (), "enabled": None, "confirm": 0}
"""Settings without gates: their cut-offs would raise k, and a point is asked for its own k alone.

A point confirms no failure: it is another setting, whose scores are wanted and not its verdict.
"""


class Answers(NamedTuple):
    """The outcomes of cases at a point by key, and the stored run if there is one."""

    observed: Mapping[str, Observed]
    run: str | None = None

    @property
    def observations(self) -> dict[str, Observation]:
        return {key: outcome for key, outcome in self.observed.items() if isinstance(outcome, Observation)}

    @property
    def errors(self) -> dict[str, str]:
        """Return the messages of the cases that could not be asked."""
        failures = {key: outcome for key, outcome in self.observed.items() if isinstance(outcome, AskFailure)}
        return {key: failure.problem.message for key, failure in failures.items()}


@dataclass(frozen=True, slots=True)
class AskingLoop:
    """A target and a judge with the loop that they belong to; they may outlive the run.

    new_output  makes what takes the output of each case's code; by default it is kept from the terminal
    """

    target: BaseTarget
    loop: BackgroundLoop
    judge: BaseJudge | None = None
    new_output: Callable[[], Output] = Output

    @classmethod
    def of(cls, prepared: Preparation, new_output: Callable[[], Output] = Output) -> AskingLoop:
        """Make the configured target, on a loop of its own."""
        loop = BackgroundLoop(prepared.settings.longest_call)
        return cls(make_target(prepared.project), loop, new_output=new_output)

    def ask(self, prepared: Preparation, cases: Sequence[EvalCase]) -> dict[str, Observed]:
        """Ask the cases and return their observations by key; write nothing."""
        prefetcher = Prefetcher(prepared.plan, lambda _: None, lambda _, observed: list(observed), self.loop)
        prefetcher.new_output = self.new_output
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
