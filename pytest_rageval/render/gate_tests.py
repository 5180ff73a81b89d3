"""Gates of the run as tests with names of their own, for the terminal, JUnit XML and the exit code."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from pytest_rageval.comparison.gate_lines import gate_line
from pytest_rageval.run.finish import FinishedRun
from pytest_rageval.run.plan import Plan


class GateTest(NamedTuple):
    """One gate of the run: its name, its outcome (passed, failed, skipped), and why."""

    name: str
    outcome: str
    message: str | None = None


def gate_tests(finished: FinishedRun, plan: Plan) -> Iterator[GateTest]:
    """Yield the gates to report. On a partial run only the summary shows them: its means are of other cases."""
    for name, message in finished.problems.items():
        yield GateTest(name, "failed", message)
    if finished.is_partial:
        return
    # A run that becomes the baseline accepts its regressions, as one that allows them does.
    is_waived = plan.settings.allow_regressions or plan.settings.update_baseline
    for gate in finished.metrics["gates"]:
        is_regression = gate["op"] in ("drop", "rise")
        name = f"{gate['metric']} {gate['op']}" if is_regression else gate.get("label", gate["metric"])
        if gate["passed"]:
            yield GateTest(name, "passed")
        elif gate["passed"] is None or (is_regression and is_waived):
            yield GateTest(name, "skipped", gate_line(gate))
        else:
            message = gate_line(gate)
            # The name of a gate is the same for every tag: the tag stands in the message.
            if gate.get("tag"):
                message += f" ({gate['tag']})"
            yield GateTest(name, "failed", message)
