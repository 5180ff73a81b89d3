"""The verdict of a run or a comparison in one sentence, the same in every report, and notes on a comparison."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from pytest_rageval.comparison.baseline import Side
from pytest_rageval.comparison.changes import JUDGED_OTHERWISE, OVERALL
from pytest_rageval.comparison.compared_sides import Comparison
from pytest_rageval.comparison.gates_now import Both
from pytest_rageval.comparison.layer_table import layer_notes
from pytest_rageval.comparison.outcomes import IS_KNOWN
from pytest_rageval.config.settings import Settings
from pytest_rageval.io.suggestions import listed
from pytest_rageval.matching.dialects import AMBIGUOUS, DOUBTS, MISSED
from pytest_rageval.runs.comparable import relabelled_note
from pytest_rageval.runs.reservations import is_unjudged, rerun_counts, unjudged_counts
from pytest_rageval.runs.row import IS_BAD
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
        return len(self.comparison.get(name, ())) if self.comparison is not None and self.is_compared else 0

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
        metrics = self.comparison["metrics"] if self.comparison is not None and self.is_compared else {}
        return sorted(name for name, metric in metrics.items() if metric["verdict"] == "regressed")

    @property
    def failed_gates(self) -> list[str]:
        """Return the gates that fail the run; a partial run fails none."""
        let = ("drop", "rise") if self.is_waived else ()
        gates = (gate for gate in self.gates if gate["passed"] is False and gate["op"] not in let)
        return [] if self.is_partial else list(map(gate_name, gates))


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
        return f"{self.word}: {'; '.join([', '.join(map(str, self.counts)), *self.asides])}. {self.gates}"

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
    asides, failed = tuple(_asides(facts)), tuple(facts.failed_gates)
    return RunVerdict(tone, word, _counts(facts), asides, _gates(facts), failed, facts.problems)


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


def alike_line(comparison: Mapping[str, Any], cases: int) -> str:
    """Return the note on a comparison of a part of the cases: `compared on 9 of 10 cases alike in both; 1 changed`."""
    changed = len(comparison["changed_cases"])
    return f"compared on {comparison['paired']['cases']:,} of {counted(cases, 'case')} alike in both; {changed} changed"


def not_comparable(problems: Sequence[object]) -> str:
    """Return why a run fails that shares no case with its baseline, with the remedy."""
    return (
        "not comparable with the baseline: "
        + "; ".join(map(str, problems))
        + "; accept the new state with --rageval-update-baseline, or compare all the same with "
        "--rageval-ignore-invariants"
    )


def gate_name(gate: Mapping[str, Any]) -> str:
    """Return `recall_any@5 drop`, or `recall_any@5` for an absolute gate."""
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
    if (amber := next(_amber(facts), None)) is not None:
        return amber, "amber"
    if not facts.is_compared:
        return "No baseline", "grey"
    return ("Better" if facts.flips("flipped_to_pass") else "Not worse"), "green"


def _amber(facts: VerdictFacts) -> Iterator[str]:
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
    cases, errors = facts.cases, facts.outcome("error")
    all_errors = (
        Count(cases, "cases end in errors", "all ") if cases != 1 else Count(1, "case ends in an error", "the ")
    )
    passing = Count(facts.outcome("passed"), f"of {cases:,} pass" if cases != 1 else "of 1 passes")
    if facts.is_compared:
        worse, better = facts.flips("flipped_to_fail"), Count(facts.flips("flipped_to_pass"), "fixed")
        newly = Count(worse, "case newly fails" if worse == 1 else "cases newly fail")
        return all_errors if facts.is_all_errors else newly, better, passing
    failing = facts.outcome("failed") + facts.outcome("xfailed")
    fails = Count(failing, "case fails" if failing == 1 else "cases fail")
    if facts.is_all_errors:
        return all_errors, fails, passing
    return fails, Count(errors, "error" if errors == 1 else "errors"), passing


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
        yield counted(gated, "case fails a gate", "cases fail gates") + " that the other run did not measure"
    if unknown := facts.flips("not_measured"):
        yield counted(unknown, "case that failed was", "cases that failed were") + " not measured"
    if fallen := len(facts.regressed):
        yield f"{fallen} metric{' has' if fallen == 1 else 's have'} regressed"
    if skipped := facts.outcome("skipped"):
        yield f"{skipped:,} skipped"
    if facts.is_partial:
        yield "only a part of the cases ran"
    yield from unjudged_counts(facts.metrics)
    yield from rerun_counts(facts.metrics)
    yield from doubt_counts(facts.metrics)
    if facts.comparison is not None and facts.changed:
        yield alike_line(facts.comparison, facts.cases)


def doubt_counts(metrics: Mapping[str, Any]) -> Iterator[str]:
    """Yield how many golds are matched in doubt, by the kind of doubt."""
    golds = (metrics.get("doubts") or {}).get("golds", {})
    yield from (f"{counted(golds[doubt], 'gold')} {words}" for doubt, words in DOUBTS.items() if doubt in golds)


def doubt_notes(metrics: Mapping[str, Any], flags: Sequence[str] = ()) -> Iterator[str]:
    """Yield how many golds were matched in doubt or missed with their text, and the names of several files."""
    golds = (metrics.get("doubts") or {}).get("golds", {})
    for doubt in filter(golds.get, DOUBTS):
        why = "headings are not reported; " if doubt == "document" else ""
        was = "was" if golds[doubt] == 1 else "were"
        yield f"{why}{counted(golds[doubt], 'gold')} {was} {DOUBTS[doubt]}; doubt:{doubt} filters their cases"
    if ambiguous := sorted({flag for flag in flags if AMBIGUOUS in flag}):
        yield f"{listed(ambiguous)}; path_prefix names the folders above the notes"
    if missed := [flag for flag in flags if MISSED in flag]:
        spellings = missed[0].partition(": ")[2]
        yield f"{counted(len(missed), 'gold')} missed, though a chunk holds the text; as in: {spellings}"


def _gates(facts: VerdictFacts) -> str:
    failed, all_gates = facts.failed_gates, len(facts.gates)
    problems = listed(list(facts.problems), SHOWN_GATES)
    if failed:
        of = f"{len(failed)} of {all_gates} gates" if all_gates > 1 else "The gate of the run"
        others = f"; besides: {problems}" if problems else ""
        return f"{of} fail{'' if len(failed) > 1 else 's'}: {listed(failed, SHOWN_GATES)}{others}."
    if problems:
        return f"Fails: {problems}."
    if not all_gates:
        return "No gate of the run is set."
    let = sum(gate["passed"] is False for gate in facts.gates)
    return f"No gate fails the run, {let} of {all_gates} would." if let else "No gate of the run fails."


def comparison_notes(content: Mapping[str, Any], cases: int) -> Iterator[str]:
    """Yield the notes on a comparison. `cases`: the number of cases in the run."""
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
"""Problems of a run that depend on the baseline it was compared with when it ended."""


def pair_verdict(after: Side, comparison: Comparison, current: Settings, damages: Mapping[str, str]) -> RunVerdict:
    """Return the verdict of a run against another one than its baseline.

    `damages`: by name of a side, how its records differ from those that the run wrote.
    """
    decided, metrics = after.metrics.get("verdict") or {}, after.metrics
    problems = {name: said for name, said in (decided.get("problems") or {}).items() if name not in OF_A_BASELINE}
    problems |= {f"records of {name}": damage for name, damage in damages.items()}
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
    """Return how many cases have each outcome; with `ratchet`, known failures are those of the other run."""
    outcomes: dict[str, int] = dict(after.metrics["outcomes"])
    if known_failures != "ratchet" or after.scores is None:
        return outcomes
    cases = after.scores
    failing = {key for key, outcome in zip(cases.case_keys, cases.outcomes, strict=True) if outcome in IS_BAD}
    xfailed = {key for key in failing if cases[key].outcome == "xfailed"}
    marked = {
        key for key, record in after.records(xfailed).items() if not str(record["reason"] or "").startswith(IS_KNOWN)
    }
    known = sum(_is_known(key, comparison.both) for key in failing - marked)
    return outcomes | {"xfailed": len(marked) + known, "failed": len(failing - marked) - known}


def _is_known(key: str, both: Both) -> bool:
    """Return True if the scores of the other run fail every gate that the case fails now."""
    if key not in both.was or key not in both.now or both.was[key].outcome not in IS_BAD:
        return False
    gates = both.gates_now.of(both.now[key].decision_hash) or ()
    failed = both.gates_now.failed(gates, both.now[key].scores)
    return bool(failed) and failed <= both.gates_was.failed(gates, both.was[key].scores)
