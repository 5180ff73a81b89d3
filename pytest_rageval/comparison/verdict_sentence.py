"""The verdict of a run or of a pair in one sentence, the same for every reader, and notes on a comparison."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from pytest_rageval.comparison.baseline import Side
from pytest_rageval.comparison.changes import JUDGED_OTHERWISE, OVERALL
from pytest_rageval.comparison.gates_now import Both
from pytest_rageval.comparison.layer_table import layer_notes
from pytest_rageval.comparison.outcomes import IS_KNOWN
from pytest_rageval.comparison.verdicts import Comparison
from pytest_rageval.config.settings import Settings
from pytest_rageval.io.suggestions import listed
from pytest_rageval.runs.comparable import relabelled_note
from pytest_rageval.runs.row import IS_BAD
from pytest_rageval.text import counted

VerdictTone = Literal["red", "amber", "green", "grey"]
SYMBOLS: Mapping[str, str] = {
    "Gate failed": "✘", "Errors": "✘", "Failed": "✘", "Partial": "◐", "Nothing examined": "◌", "Not comparable": "≠",
    "Partly comparable": "≈",
    "Worse": "▼", "Still failing": "▽", "Failing": "▽", "Better": "▲", "Not worse": "✔", "No baseline": "○",
}  # fmt: skip
SHOWN_GATES = 3
NOT_COMPARABLE = "baseline"
"""The name of the problem that a run has no case in common with its baseline."""


class Count(NamedTuple):
    """A number of cases and what they did."""

    number: int
    label: str
    before: str = ""
    """What stands before the number."""

    def __str__(self) -> str:
        return f"{self.before}{self.number} {self.label}"


@dataclass(frozen=True, slots=True)
class VerdictFacts:
    """What a verdict is made from.

    metrics      content of metrics.json, as much of it as there is
    comparison   of metrics.json or of `pair`: flips, and by metric its verdict; None without a baseline
    gates        of the run, absolute and against the baseline
    problems     what fails the run beside its gates, by name
    exit_status  of pytest, where it is known
    is_waived    regression gates that fail do not fail the run
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
    def failing(self) -> int:
        """Cases whose gates do not hold, known failures among them."""
        return self.outcome("failed") + self.outcome("xfailed")

    @property
    def is_all_errors(self) -> bool:
        """Did no case come to an outcome of its own?"""
        return 0 < self.cases == self.outcome("error")

    @property
    def is_compared(self) -> bool:
        return self.comparison is not None and bool(self.comparison.get("compared", True))

    @property
    def is_refused(self) -> bool:
        """There is something to compare with, and what was asked or decided differs too much for it."""
        return self.comparison is not None and not self.is_compared

    def flips(self, name: str) -> int:
        return len(self.comparison.get(name, ())) if self.comparison is not None and self.is_compared else 0

    @property
    def changed(self) -> int:
        """Cases that changed since, so that they are compared with nothing; 0 where all are, or none is."""
        return self.flips("changed_cases")

    @property
    def new_failing(self) -> int:
        """Failing cases that the other side does not have, not as they are, or not measured by the gates that fail."""
        return self.flips("added_failing") + self.flips("changed_failing") + self.flips("newly_gated")

    @property
    def regressed(self) -> list[str]:
        """Metrics that fell beyond their tolerance, and not by chance."""
        metrics = self.comparison["metrics"] if self.comparison is not None and self.is_compared else {}
        return sorted(name for name, metric in metrics.items() if metric["verdict"] == "regressed")

    @property
    def failed_gates(self) -> list[str]:
        """Gates that fail the run. On a part of the cases none does."""
        gates = () if self.is_partial else self.gates
        return [gate_name(gate) for gate in gates if gate["passed"] is False and not self._is_let(gate)]

    def _is_let(self, gate: Mapping[str, Any]) -> bool:
        return self.is_waived and gate["op"] in ("drop", "rise")


@dataclass(frozen=True, slots=True)
class RunVerdict:
    """The verdict: three counts, asides that they do not hold, and the gates; `sentence` is all of it.

    failed_gates  that fail the run
    problems      what fails the run beside its gates
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
        return f"{self.word}: {'; '.join([', '.join(map(str, self.counts)), *self.asides])}. {self.gates}"

    @property
    def is_failing(self) -> bool:
        """Does a command that shows this verdict end with 1?"""
        return self.tone == "red" or self.word == "Worse"

    def content(self) -> dict[str, Any]:
        """Return the verdict as metrics.json and comparisons hold it."""
        return {"tone": self.tone, "word": self.word, "sentence": self.sentence, "problems": dict(self.problems)}


def run_verdict(facts: VerdictFacts) -> RunVerdict:
    """The tone comes from the worst fact: red where a gate fails or a case ended in an error, amber where something got
    worse, fails, is missing or changed since, green where nothing newly fails, grey where there is nothing to compare
    with.

    What ends with an exit status other than 0 is neither green nor grey.
    """
    word, tone = _word(facts)
    asides, failed = tuple(_asides(facts)), tuple(facts.failed_gates)
    return RunVerdict(tone, word, _counts(facts), asides, _gates(facts), failed, facts.problems)


def with_verdict(metrics: Mapping[str, Any]) -> Mapping[str, Any]:
    """The content of metrics.json with its verdict, which those written before it was do not hold."""
    if "verdict" in metrics:
        return metrics
    verdict = run_verdict(VerdictFacts(metrics, metrics.get("comparison"), metrics["gates"]))
    return {**metrics, "verdict": verdict.content()}


def alike_line(comparison: Mapping[str, Any], cases: int) -> str:
    """`compared on 9 of 10 cases, which are alike in both; 1 changed`: of a comparison on a part of the run's cases."""
    changed = len(comparison["changed_cases"])
    return f"compared on {comparison['paired']['cases']} of {counted(cases, 'case')} alike in both; {changed} changed"


def not_comparable(problems: Sequence[object]) -> str:
    """Return why a run fails that has no case in common with its baseline, and what to do about it."""
    return (
        "not comparable with the baseline: " + "; ".join(map(str, problems))
        + "; accept the new state with --rageval-update-baseline, or compare all the same with "
        "--rageval-ignore-invariants"
    )  # fmt: skip


def gate_name(gate: Mapping[str, Any]) -> str:
    """`recall_any@5 drop`, or `recall_any@5` of an absolute gate."""
    is_regression = gate["op"] in ("drop", "rise")
    return f"{gate['metric']} {gate['op']}" if is_regression else str(gate["metric"])


def _word(facts: VerdictFacts) -> tuple[str, VerdictTone]:
    if facts.failed_gates:
        return "Gate failed", "red"
    if facts.outcome("error"):
        return "Errors", "red"
    if facts.is_refused and not (facts.is_waived or facts.is_partial):
        return "Not comparable", "red"
    if facts.problems:
        return "Failed", "red"
    return next(((word, "amber") for word in _amber(facts)), None) or _good(facts)


def _amber(facts: VerdictFacts) -> Iterator[str]:
    """What keeps a run from being good, the worst first."""
    if facts.is_partial:
        yield "Partial"
    if facts.is_refused:
        yield "Not comparable"
    if facts.cases == facts.outcome("skipped"):
        yield "Nothing examined"
    if facts.flips("flipped_to_fail") or facts.regressed:
        yield "Worse"
    if facts.outcome("failed"):
        yield "Still failing" if facts.is_compared and not facts.new_failing else "Failing"
    if facts.exit_status:
        yield "Failing"
    if facts.changed:
        yield "Partly comparable"


def _good(facts: VerdictFacts) -> tuple[str, VerdictTone]:
    if not facts.is_compared:
        return "No baseline", "grey"
    return ("Better" if facts.flips("flipped_to_pass") else "Not worse"), "green"


def _counts(facts: VerdictFacts) -> tuple[Count, Count, Count]:
    passing = Count(facts.outcome("passed"), f"of {facts.cases} pass" if facts.cases != 1 else "of 1 passes")
    if facts.is_compared:
        worse, better = facts.flips("flipped_to_fail"), facts.flips("flipped_to_pass")
        newly = Count(worse, "case newly fails" if worse == 1 else "cases newly fail")
        return _all_errors(facts) if facts.is_all_errors else newly, Count(better, "fixed"), passing
    failing, errors = facts.failing, facts.outcome("error")
    fails = Count(failing, "case fails" if failing == 1 else "cases fail")
    if facts.is_all_errors:
        return _all_errors(facts), fails, passing
    return fails, Count(errors, "error" if errors == 1 else "errors"), passing


def _all_errors(facts: VerdictFacts) -> Count:
    """Where nothing was examined, how many cases newly fail would say that all is well."""
    if facts.cases == 1:
        return Count(1, "case ends in an error", "the ")
    return Count(facts.cases, "cases end in errors", "all ")


def _asides(facts: VerdictFacts) -> Iterator[str]:
    """Facts that the three counts do not hold."""
    errors = facts.outcome("error")
    if errors and facts.is_compared and not facts.is_all_errors:
        yield f"{errors} ended in {'an error' if errors == 1 else 'errors'}"
    if added := facts.flips("added_failing"):
        yield counted(added, "added case fails", "added cases fail")
    if changed := facts.flips("changed_failing"):
        yield counted(changed, "changed case fails", "changed cases fail")
    if gated := facts.flips("newly_gated"):
        yield counted(gated, "case fails a gate", "cases fail gates") + " that the other run did not measure"
    if unknown := facts.flips("not_measured"):
        yield counted(unknown, "case that failed was", "cases that failed were") + " not measured"
    if fallen := len(facts.regressed):
        yield f"{fallen} metric{' has' if fallen == 1 else 's have'} regressed"
    if skipped := facts.outcome("skipped"):
        yield f"{skipped} skipped"
    if facts.is_partial:
        yield "only a part of the cases ran"
    if facts.comparison is not None and facts.changed:
        yield alike_line(facts.comparison, facts.cases)


def _gates(facts: VerdictFacts) -> str:
    failed, all_gates = facts.failed_gates, len(facts.gates)
    others = f"; besides: {listed(list(facts.problems), SHOWN_GATES)}" if facts.problems else ""
    if failed:
        of = f"{len(failed)} of {all_gates} gates" if all_gates > 1 else "The gate of the run"
        return f"{of} fail{'' if len(failed) > 1 else 's'}: {listed(failed, SHOWN_GATES)}{others}."
    if facts.problems:
        return f"Fails: {listed(list(facts.problems), SHOWN_GATES)}."
    if not all_gates:
        return "No gate of the run is set."
    let = sum(gate["passed"] is False for gate in facts.gates)
    return f"No gate fails the run, {let} of {all_gates} would." if let else "No gate of the run fails."


def comparison_notes(content: Mapping[str, Any], cases: int) -> Iterator[str]:
    """Yield the notes on a comparison as metrics.json or a pair holds it. `cases`: of the run."""
    yield from content["differences"]
    if unlike := sorted(name for name, metric in content["metrics"].items() if metric["why"] == JUDGED_OTHERWISE):
        yield f"not compared, since judged otherwise: {listed(unlike)}; --ignore-invariants compares them all the same"
    if changes := content["gate_changes"]:
        yield f"gates changed, and those of now decide about both runs: {', '.join(changes)}"
    if content["changed_cases"]:
        yield f"{alike_line(content, cases)}: {listed(content['changed_cases'])}"
    if content["relabelled"]:
        yield relabelled_note(content["relabelled"])
    if (why := content["metrics"].get(OVERALL, {}).get("why")) and content["compared"]:
        yield f"overall score: no change is shown, {why}"
    if content["compared"]:
        yield from layer_notes(content)


OF_A_BASELINE = (NOT_COMPARABLE, "update-baseline")
"""Problems of a run that follow from what it was compared with when it ended."""


def pair_verdict(after: Side, comparison: Comparison, current: Settings) -> RunVerdict:
    """Return the verdict of a run against another one than that with which it was compared when it ended."""
    decided, metrics = after.metrics.get("verdict") or {}, after.metrics
    problems = {name: said for name, said in (decided.get("problems") or {}).items() if name not in OF_A_BASELINE}
    if not (comparison.content["compared"] or metrics["partial"]):
        problems[NOT_COMPARABLE] = not_comparable(comparison.problems)
    absolute = [gate for gate in metrics["gates"] if gate["op"] not in ("drop", "rise")]
    return run_verdict(
        VerdictFacts(
            {**metrics, "outcomes": _outcomes(after, comparison, decided.get("known_failures"))},
            comparison.content,
            [*absolute, *comparison.gates],
            problems,
            decided.get("exit_status", 0),
            is_waived=current.allow_regressions,
        )
    )


def _outcomes(after: Side, comparison: Comparison, known_failures: str | None) -> Mapping[str, int]:
    """Return how many cases have each outcome; of a ratchet the known failures are those of the other run."""
    outcomes: dict[str, int] = dict(after.metrics["outcomes"])
    if known_failures != "ratchet" or after.scores is None:
        return outcomes
    cases = after.scores.cases
    failing = {key for key, outcome in zip(cases.case_keys, cases.outcomes, strict=True) if outcome in IS_BAD}
    xfailed = {key for key in failing if cases[key].outcome == "xfailed"}
    marked = {
        key for key, record in after.records(xfailed).items() if not str(record["reason"] or "").startswith(IS_KNOWN)
    }
    known = sum(_is_known(key, comparison.both) for key in failing - marked)
    return outcomes | {"xfailed": len(marked) + known, "failed": len(failing - marked) - known}


def _is_known(key: str, both: Both) -> bool:
    """Do the scores of the other run fail every gate that the case fails now?"""
    if key not in both.was or key not in both.now or both.was[key].outcome not in IS_BAD:
        return False
    gates = both.gates_now.of(both.now[key].decision_hash) or ()
    failed = both.gates_now.failed(gates, both.now[key].scores)
    return bool(failed) and failed <= both.gates_was.failed(gates, both.was[key].scores)
