"""The verdict of a run or a comparison in one sentence, the same in every report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from pytest_rageval.comparison.gate_lines import gate_name, is_regression
from pytest_rageval.comparison.notes import alike_line, doubt_counts
from pytest_rageval.io.suggestions import listed
from pytest_rageval.runs.reservations import is_unjudged, rerun_counts, unjudged_counts
from pytest_rageval.text import counted

VerdictTone = Literal["red", "amber", "green", "grey"]
SYMBOLS: Mapping[str, str] = {
    "Gate failed": "✘",
    "Errors": "✘",
    "Failed": "✘",
    "Partial": "◐",
    "Nothing examined": "◌",
    "Not judged": "⊘",
    "Not comparable": "≠",
    "Partly comparable": "≈",
    "Worse": "▼",
    "Still failing": "▽",
    "Failing": "▽",
    "Better": "▲",
    "Not worse": "✔",
    "No baseline": "○",
}
SHOWN_GATES = 3
NOT_COMPARABLE = "baseline"
"""The name of the problem that a run shares no case with its baseline."""


class Count(NamedTuple):
    """A number of cases and a label."""

    number: int
    label: str
    before: str = ""
    """The text before the number."""

    def __str__(self) -> str:
        return f"{self.before}{self.number:,} {self.label}"


@dataclass(frozen=True, slots=True)
class VerdictFacts:
    """The facts that decide a verdict.

    metrics      the content of metrics.json, as far as it exists
    comparison   of metrics.json or of two runs: flips, and a verdict by metric; None without a baseline
    gates        of the run, absolute and against the baseline
    problems     the reasons to fail besides the gates, by name
    exit_status  of pytest, if known
    is_waived    whether failed regression gates do not fail the run
    """

    metrics: Mapping[str, Any]
    comparison: Mapping[str, Any] | None = None
    gates: Sequence[Mapping[str, Any]] = ()
    problems: Mapping[str, str] = field(default_factory=dict)
    exit_status: int = 0
    is_waived: bool = False

    @property
    def is_partial(self) -> bool:
        return bool(self.metrics.get("partial"))

    @property
    def cases(self) -> int:
        return int(self.metrics["total_tests"])

    def outcome(self, name: str) -> int:
        return int(self.metrics["outcomes"].get(name, 0))

    @property
    def is_all_errors(self) -> bool:
        """Return True if every case ended in an error."""
        return 0 < self.cases == self.outcome("error")

    @property
    def is_compared(self) -> bool:
        return self.comparison is not None and bool(self.comparison.get("compared", True))

    @property
    def is_refused(self) -> bool:
        """Return True if there is something to compare with, but it shares no unchanged case."""
        return self.comparison is not None and not self.is_compared

    def flips(self, name: str) -> int:
        """Return how many cases this list of the comparison holds; 0 if nothing is compared."""
        if self.comparison is None or not self.is_compared:
            return 0
        return len(self.comparison.get(name, ()))

    @property
    def changed(self) -> int:
        """Return the number of changed cases, which are not compared; 0 if all are, or none is."""
        return self.flips("changed_cases")

    @property
    def new_failing(self) -> int:
        """Return the number of failing cases that are new, changed, or newly measured by the gates that they fail."""
        return self.flips("added_failing") + self.flips("changed_failing") + self.flips("newly_gated")

    @property
    def regressed(self) -> list[str]:
        """Return the metrics that fell beyond their tolerance, not by chance."""
        if self.comparison is None or not self.is_compared:
            return []
        metrics = self.comparison["metrics"]
        return sorted(name for name, metric in metrics.items() if metric["verdict"] == "regressed")

    @property
    def failed_gates(self) -> list[str]:
        """Return the gates that fail the run; a partial run fails none."""
        if self.is_partial:
            return []
        failed = [gate for gate in self.gates if gate["passed"] is False]
        if self.is_waived:
            failed = [gate for gate in failed if not is_regression(gate)]
        return [gate_name(gate) for gate in failed]


@dataclass(frozen=True, slots=True)
class RunVerdict:
    """The verdict: three counts, additional facts, and the gates; `sentence` joins them.

    failed_gates  those that fail the run
    problems      the other reasons to fail
    """

    tone: VerdictTone
    word: str
    counts: tuple[Count, Count, Count]
    asides: tuple[str, ...]
    gates: str
    failed_gates: tuple[str, ...] = ()
    problems: Mapping[str, str] = field(default_factory=dict)

    @property
    def symbol(self) -> str:
        return SYMBOLS[self.word]

    @property
    def sentence(self) -> str:
        counts = ", ".join(map(str, self.counts))
        facts = "; ".join([counts, *self.asides])
        return f"{self.word}: {facts}. {self.gates}"

    @property
    def is_failing(self) -> bool:
        """Return True if a command that shows this verdict exits with 1."""
        return self.tone == "red" or self.word == "Worse"

    def content(self) -> dict[str, Any]:
        """Return the verdict as stored in metrics.json and comparisons."""
        return {"tone": self.tone, "word": self.word, "sentence": self.sentence, "problems": dict(self.problems)}


def run_verdict(facts: VerdictFacts) -> RunVerdict:
    """Return the verdict, with the tone of the worst fact.

    Red: a gate fails or a case ended in an error. Amber: something got worse, fails, is missing or changed.
    Green: nothing newly fails. Grey: there is no baseline. A non-zero exit status is neither green nor grey.
    """
    word, tone = _word(facts)
    return RunVerdict(
        tone=tone,
        word=word,
        counts=_counts(facts),
        asides=tuple(_asides(facts)),
        gates=_gates(facts),
        failed_gates=tuple(facts.failed_gates),
        problems=facts.problems,
    )


def with_verdict(metrics: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the content of metrics.json with its verdict, which older files lack."""
    if "verdict" in metrics:
        return metrics
    verdict = run_verdict(VerdictFacts(metrics, metrics.get("comparison"), metrics["gates"]))
    return {**metrics, "verdict": verdict.content()}


def with_problem(metrics: Mapping[str, Any], name: str, problem: str) -> Mapping[str, Any]:
    """Return the content of metrics.json with the verdict that it has with one more reason to fail."""
    decided = metrics.get("verdict") or {}
    problems = {**(decided.get("problems") or {}), name: problem}
    exit_status = decided.get("exit_status", 0)
    facts = VerdictFacts(metrics, metrics.get("comparison"), metrics["gates"], problems, exit_status)
    return {**metrics, "verdict": decided | run_verdict(facts).content()}


def not_comparable(problems: Sequence[object]) -> str:
    """Return why a run fails that shares no case with its baseline, with the remedy."""
    why = "; ".join(map(str, problems))
    return (
        f"not comparable with the baseline: {why}; accept the new state with --rageval-update-baseline, or compare "
        "all the same with --rageval-ignore-invariants"
    )


def _word(facts: VerdictFacts) -> tuple[str, VerdictTone]:
    if facts.failed_gates:
        return "Gate failed", "red"
    if facts.outcome("error"):
        return "Errors", "red"
    if facts.is_refused and not (facts.is_waived or facts.is_partial):
        return "Not comparable", "red"
    if facts.problems:
        return "Failed", "red"
    doubtful = next(_amber_words(facts), None)
    if doubtful is not None:
        return doubtful, "amber"
    if not facts.is_compared:
        return "No baseline", "grey"
    if facts.flips("flipped_to_pass"):
        return "Better", "green"
    return "Not worse", "green"


def _amber_words(facts: VerdictFacts) -> Iterator[str]:
    """Yield the reasons that keep a run from being good, the worst first."""
    if facts.is_partial:
        yield "Partial"
    if facts.is_refused:
        yield "Not comparable"
    if facts.cases == facts.outcome("skipped"):
        yield "Nothing examined"
    if is_unjudged(facts.metrics):
        yield "Not judged"
    if facts.flips("flipped_to_fail") or facts.regressed:
        yield "Worse"
    if facts.outcome("failed"):
        yield "Still failing" if facts.is_compared and not facts.new_failing else "Failing"
    if facts.exit_status:
        yield "Failing"
    if facts.changed:
        yield "Partly comparable"


def _counts(facts: VerdictFacts) -> tuple[Count, Count, Count]:
    """Return newly failing and fixed cases, or without a baseline failing ones and errors; and passing ones.

    If every case ended in an error, that comes first: a count of new failures would mislead.
    """
    cases = facts.cases
    passing = Count(facts.outcome("passed"), f"of {cases:,} pass" if cases != 1 else "of 1 passes")
    if facts.is_compared:
        newly_failing = facts.flips("flipped_to_fail")
        first = Count(newly_failing, "case newly fails" if newly_failing == 1 else "cases newly fail")
        second = Count(facts.flips("flipped_to_pass"), "fixed")
        if facts.is_all_errors:
            first = _all_errors(cases)
        return first, second, passing
    failing = facts.outcome("failed") + facts.outcome("xfailed")
    fails = Count(failing, "case fails" if failing == 1 else "cases fail")
    if facts.is_all_errors:
        return _all_errors(cases), fails, passing
    errors = facts.outcome("error")
    return fails, Count(errors, "error" if errors == 1 else "errors"), passing


def _all_errors(cases: int) -> Count:
    if cases == 1:
        return Count(1, "case ends in an error", "the ")
    return Count(cases, "cases end in errors", "all ")


def _asides(facts: VerdictFacts) -> Iterator[str]:
    """Yield the facts that the three counts do not hold."""
    errors = facts.outcome("error")
    if errors and facts.is_compared and not facts.is_all_errors:
        yield f"{errors:,} ended in {'an error' if errors == 1 else 'errors'}"
    if added := facts.flips("added_failing"):
        yield counted(added, "added case fails", "added cases fail")
    if changed := facts.flips("changed_failing"):
        yield counted(changed, "changed case fails", "changed cases fail")
    if gated := facts.flips("newly_gated"):
        fail = counted(gated, "case fails a gate", "cases fail gates")
        yield f"{fail} that the other run did not measure"
    if unknown := facts.flips("not_measured"):
        failed = counted(unknown, "case that failed was", "cases that failed were")
        yield f"{failed} not measured"
    if regressed := len(facts.regressed):
        yield f"{regressed} metric{' has' if regressed == 1 else 's have'} regressed"
    if skipped := facts.outcome("skipped"):
        yield f"{skipped:,} skipped"
    if facts.is_partial:
        yield "only a part of the cases ran"
    yield from unjudged_counts(facts.metrics)
    yield from rerun_counts(facts.metrics)
    yield from doubt_counts(facts.metrics)
    if facts.comparison is not None and facts.changed:
        yield alike_line(facts.comparison, facts.cases)


def _gates(facts: VerdictFacts) -> str:
    failed = facts.failed_gates
    all_gates = len(facts.gates)
    problems = listed(list(facts.problems), SHOWN_GATES)
    if failed:
        which = f"{len(failed)} of {all_gates} gates" if all_gates > 1 else "The gate of the run"
        fail = "fail" if len(failed) > 1 else "fails"
        others = f"; besides: {problems}" if problems else ""
        return f"{which} {fail}: {listed(failed, SHOWN_GATES)}{others}."
    if problems:
        return f"Fails: {problems}."
    if not all_gates:
        return "No gate of the run is set."
    waived = sum(gate["passed"] is False for gate in facts.gates)
    if waived:
        return f"No gate fails the run, {waived} of {all_gates} would."
    return "No gate of the run fails."
