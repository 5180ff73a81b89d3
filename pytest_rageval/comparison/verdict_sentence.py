"""The verdict of a run or a comparison in one sentence, the same in every report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pytest_rageval.comparison.gate_lines import gate_name
from pytest_rageval.comparison.verdict_facts import VerdictFacts
from pytest_rageval.comparison.verdict_reasons import pass_rate, passing_words, reasons_to_fail, reservations
from pytest_rageval.runs.reservations import LEAKS, is_unjudged

VerdictTone = Literal["red", "amber", "green", "grey"]
SYMBOLS: Mapping[str, str] = {"red": "✘", "amber": "!", "green": "✔", "grey": "○"}
"""The symbol of each tone. Red fails the build; one that passes has a reservation, or nothing to compare with.

One symbol for one end: with one for each word, two runs that failed the build had two, and nothing told why.
"""
WORDS = (
    "Gate failed",
    "Errors",
    "Failed",
    "Repeats a credential",
    "Partial",
    "Nothing examined",
    "Not judged",
    "Answers unmeasured",
    "Retrieval unmeasured",
    "Not comparable",
    "Partly comparable",
    "Worse",
    "Fewer gates",
    "Failing",
    "Better",
    "Not worse",
    "No baseline",
)
"""The words of verdicts."""
NOT_COMPARABLE = "baseline"
"""The name of the problem that a run shares no case with its baseline."""


@dataclass(frozen=True, slots=True)
class RunVerdict:
    """The verdict on a run or a comparison; `sentence` says what happens to the build, and why.

    word          the worst fact in one or two words, for lists
    reasons       why the build fails; empty if it passes
    passing       what a run that passes has shown
    pass_rate     how many cases pass, and how many did before
    reservations  what a reader must know besides
    failed_gates  the names of the gates that fail the run
    problems      the other reasons to fail, by name
    """

    tone: VerdictTone
    word: str
    reasons: tuple[str, ...]
    passing: str
    pass_rate: str
    reservations: tuple[str, ...]
    failed_gates: tuple[str, ...] = ()
    problems: Mapping[str, str] = field(default_factory=dict)

    @property
    def symbol(self) -> str:
        return SYMBOLS[self.tone]

    @property
    def fails_build(self) -> bool:
        """Return True if a command that shows this verdict exits with 1."""
        return bool(self.reasons)

    @property
    def headline(self) -> str:
        """Return the first clause: `Fails the build: 5 cases newly fail`, `Passes: nothing got worse`."""
        if self.reasons:
            return f"Fails the build: {', '.join(self.reasons)}"
        return f"Passes: {self.passing}"

    @property
    def details(self) -> str:
        """Return what follows the headline: `115 of 135 pass, was 119; 2 fixed`."""
        return "; ".join([self.pass_rate, *self.reservations])

    @property
    def sentence(self) -> str:
        return f"{self.headline}. {self.details}."

    def content(self) -> dict[str, Any]:
        """Return the verdict as stored in metrics.json and comparisons."""
        return {
            "tone": self.tone,
            "word": self.word,
            "fails_build": self.fails_build,
            "sentence": self.sentence,
            "problems": dict(self.problems),
        }


def run_verdict(facts: VerdictFacts) -> RunVerdict:
    """Return the verdict. Red fails the build; amber passes with a reservation; grey has no baseline; green has one."""
    reasons = tuple(reasons_to_fail(facts))
    fails_build = bool(reasons)
    word, tone = _word(facts, fails_build=fails_build)
    return RunVerdict(
        tone=tone,
        word=word,
        reasons=reasons,
        passing=passing_words(facts),
        pass_rate=pass_rate(facts),
        reservations=tuple(reservations(facts, fails_build=fails_build)),
        failed_gates=tuple(gate_name(gate) for gate in facts.failed_gates),
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


def _word(facts: VerdictFacts, *, fails_build: bool) -> tuple[str, VerdictTone]:
    if fails_build:
        return _failing_word(facts), "red"
    # The worst doubt is the word; the sentence has them all.
    doubtful = next(_amber_words(facts), None)
    if doubtful is not None:
        return doubtful, "amber"
    if not facts.is_compared:
        return "No baseline", "grey"
    if facts.flips("flipped_to_pass"):
        return "Better", "green"
    return "Not worse", "green"


def _failing_word(facts: VerdictFacts) -> str:
    # Scores say nothing of cases without an answer, so that errors come before gates.
    if facts.outcome("error"):
        return "Errors"
    if facts.failed_gates:
        return "Gate failed"
    if facts.is_refused and not facts.is_partial:
        return "Not comparable"
    if facts.flips("flipped_to_fail") or facts.flips("fails_new_gate"):
        return "Worse"
    if facts.outcome("failed"):
        return "Failing"
    return "Failed"


def _amber_words(facts: VerdictFacts) -> Iterator[str]:
    """Yield the reasons that keep a run that passes from being good, the worst first."""
    if facts.metrics.get(LEAKS):
        yield "Repeats a credential"
    if facts.is_partial:
        yield "Partial"
    if facts.is_refused:
        yield "Not comparable"
    if facts.cases == facts.outcome("skipped"):
        yield "Nothing examined"
    if is_unjudged(facts.metrics):
        yield "Not judged"
    newly_failing = facts.flips("flipped_to_fail") or facts.flips("fails_new_gate")
    if newly_failing or facts.worse_known_failures or facts.regressed:
        yield "Worse"
    if facts.weaker_gates:
        yield "Fewer gates"
    if facts.has_lost_answers:
        yield "Answers unmeasured"
    if facts.lost_retrieval:
        yield "Retrieval unmeasured"
    if facts.changed or facts.removed:
        yield "Partly comparable"
