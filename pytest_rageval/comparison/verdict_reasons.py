"""The reasons why a run fails the build, and the reservations about a run that passes, each in a few words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pytest_rageval.comparison.gate_lines import gate_reason
from pytest_rageval.comparison.known_failures import added_gate_words
from pytest_rageval.comparison.renamed_cases import renamed_words
from pytest_rageval.comparison.verdict_facts import VerdictFacts
from pytest_rageval.io.suggestions import listed
from pytest_rageval.runs.flaky_cases import flaky_counts
from pytest_rageval.runs.reservations import leak_words, unjudged_counts
from pytest_rageval.text import amount_text, counted, cut, figures

SHOWN_GATES = SHOWN_PROBLEMS = SHOWN_METRICS = 3
PASSED_THEN = "passed_then"
"""The key of `paired` with how many cases passed under the gates of their time, if that is another number."""
METRIC_FAILED = "metric "
"""The beginning of the name of a problem that a metric of the whole run raised."""
RECORDS_OF = "records of "
"""The beginning of the name of a problem with the records of one side of a comparison."""
OF_THE_RUN = frozenset({"completeness", "records", "verdicts", "examined", "baseline", "update-baseline"})
"""Names of problems that are no gate's text."""
_END_OF_CLAUSE = re.compile(r"[:;]\s")
_NAME_OF_RUN = re.compile(r"\Arun \S+: ")
_LONGEST_PROBLEM = 120
"""Characters of a problem in the sentence; the whole of it stands below."""
ANSWERS_NOT_MEASURED = "answers were not measured"
RUN_THROUGH = (0, 1)
"""Exit codes of pytest with which all selected tests were run."""


def reasons_to_fail(facts: VerdictFacts) -> list[str]:
    """Return why a run fails the build, the most serious first: `5 cases newly fail`. Empty if it passes."""
    reasons = [*_error_reasons(facts), *_case_reasons(facts), *_gate_reasons(facts)]
    reasons += _problem_reasons(_told(facts.problems, is_all_errors=facts.is_all_errors))
    if facts.is_refused and not (facts.is_waived or facts.is_partial or facts.problems):
        reasons.append("not comparable with the baseline")
    # Other exit codes are of sessions that ended early, by a signal or an error of pytest itself.
    if facts.exit_status not in RUN_THROUGH:
        reasons.append("the session was interrupted")
    elif facts.exit_status and not reasons:
        reasons.append("other tests of the session fail")
    return reasons


def shown_problems(metrics: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the problems of a run by its metrics.json, without those that its errors say already."""
    problems: Mapping[str, str] = metrics["verdict"]["problems"]
    errors = metrics.get("outcomes", {}).get("error", 0)
    return _told(problems, is_all_errors=0 < errors == metrics.get("total_tests"))


def _told(problems: Mapping[str, str], *, is_all_errors: bool) -> Mapping[str, str]:
    """Leave out that gates were not measured if all cases end in errors."""
    if not is_all_errors:
        return problems
    return {name: problem for name, problem in problems.items() if not _is_unmeasured_gate(name)}


def reservations(facts: VerdictFacts, *, fails_build: bool) -> Iterator[str]:
    """Yield what a reader must know of a verdict besides its reasons, the most serious first.

    That answers or retrieval were not measured stands in the headline of a run that passes.
    """
    if facts.is_partial:
        yield _ran_in_part(facts.metrics)
    if fails_build:
        yield from _worse_known_failures(facts)
        yield from facts.weaker_gates
        yield from _not_measured(facts)
    yield from _answers_without_gate(facts)
    yield from leak_words(facts.metrics)
    yield from unjudged_counts(facts.metrics)
    if facts.cases and facts.cases == facts.outcome("skipped"):
        yield "nothing was examined"
    if facts.is_refused and facts.is_partial:
        yield "not comparable with the baseline"
    fixed = facts.flips("flipped_to_pass")
    if fixed:
        yield f"{fixed:,} fixed"
    unmeasured = facts.flips("not_measured")
    if unmeasured:
        yield counted(unmeasured, "case that failed was", "cases that failed were") + " not measured"
    if facts.comparison is not None and facts.is_compared:
        yield from added_gate_words(facts.comparison)
    renamed = renamed_words(facts.comparison)
    if renamed:
        yield renamed
    if facts.removed:
        yield counted(facts.removed, "case of the baseline was", "cases of the baseline were") + " removed"
    skipped = facts.outcome("skipped")
    if 0 < skipped < facts.cases:
        yield f"{skipped:,} skipped"
    yield from flaky_counts(facts.metrics)
    if facts.changed:
        yield counted(facts.changed, "changed case is", "changed cases are") + " not compared"
    # Without a baseline no regression gate is measured, and after errors none at all: both are said otherwise.
    unmeasured_gates = sum(gate["passed"] is None for gate in facts.gates)
    if unmeasured_gates and facts.is_compared and not facts.is_all_errors:
        yield counted(unmeasured_gates, "gate was", "gates were") + " not measured"


def _answers_without_gate(facts: VerdictFacts) -> Iterator[str]:
    """Yield how many gold answers no gate compares, if gates were removed: a project may always have been without."""
    number = facts.metrics.get("answers_without_gate")
    if number and facts.weaker_gates:
        yield counted(number, "case has a gold answer", "cases have gold answers") + " that no gate compares"


def passing_words(facts: VerdictFacts) -> str:
    """Return what a run that passes has shown: `nothing got worse`, and that it was not all if so."""
    words = _shown(facts)
    missed = " and ".join(_not_measured(facts))
    return f"{words}, but {missed}" if missed else words


def _not_measured(facts: VerdictFacts) -> Iterator[str]:
    """Yield what was not measured, though the cases or the other run have something to measure."""
    if facts.lacks_answers:
        yield ANSWERS_NOT_MEASURED
    if facts.lost_retrieval:
        cases = counted(facts.lost_retrieval, "case that the baseline measured", "cases that the baseline measured")
        yield f"retrieval was not measured in {cases}"
    elif facts.unmeasured_retrieval:
        yield f"retrieval was not measured in {counted(facts.unmeasured_retrieval, 'case')}"


def _shown(facts: VerdictFacts) -> str:
    let_pass = _let_pass(facts)
    if let_pass:
        return let_pass
    if facts.is_compared:
        return "nothing got worse"
    known = facts.outcome("xfailed")
    if known:
        return counted(known, "case is a known failure", "cases are known failures")
    if facts.comparison is None:
        return "nothing fails, and there is no baseline yet"
    return "nothing fails"


def pass_rate(facts: VerdictFacts) -> str:
    """Return `115 of 135 pass, was 119`; what was is shown if both runs hold the same cases."""
    passed = facts.outcome("passed")
    text = f"{passed:,} of {facts.cases:,} pass"
    if facts.cases == 1:
        text = f"{passed} of 1 case passes"
    paired = None
    if facts.comparison is not None and facts.is_compared:
        paired = facts.comparison.get("paired")
    if paired is None or not paired["cases"]:
        return text
    was = f"was {paired['passed_before']:,}"
    if PASSED_THEN in paired:
        was = f"was {paired[PASSED_THEN]:,} under the earlier gates"
    if paired["cases"] == facts.cases:
        return f"{text}, {was}"
    compared = f"of the {paired['cases']:,} compared {paired['passed_after']:,}, {was}"
    return f"{text} ({compared})"


def _error_reasons(facts: VerdictFacts) -> Iterator[str]:
    errors = facts.outcome("error")
    if facts.is_all_errors:
        yield f"all {errors:,} cases end in errors" if errors != 1 else "the only case ends in an error"
        return
    conversations = facts.metrics.get("conversations") or {}
    broken = conversations.get("broken") or {}
    # A broken conversation counts once: its error and the turns that were not asked for it are one event.
    others = errors - conversations.get("blocked_turns", 0) - conversations.get("broken_by_error", 0)
    if others > 0:
        yield counted(others, "case ends in an error", "cases end in errors")
    if broken:
        yield _broken(broken, conversations["blocked_turns"])


def _broken(broken: Mapping[str, int], blocked_turns: int) -> str:
    """Return `1 conversation broke at turn 2; 3 turns blocked`."""
    places = sorted(set(broken.values()))
    at = f" at turn {places[0]}" if len(places) == 1 else ""
    return f"{counted(len(broken), 'conversation')} broke{at}; {counted(blocked_turns, 'turn')} blocked"


def _case_reasons(facts: VerdictFacts) -> Iterator[str]:
    """Yield how many cases fail, apart by what they did before."""
    failing = facts.outcome("failed")
    known = "known failure" if facts.known_failures == "ratchet" else "failing case"
    kinds = (
        (facts.flips("flipped_to_fail"), "case newly fails", "cases newly fail"),
        (facts.flips("fails_new_gate"), f"{known} fails a new gate", f"{known}s fail a new gate"),
        (facts.flips("newly_gated"), "case fails a gate not measured before", "cases fail gates not measured before"),
        (facts.renamed_failing, "renamed case fails as before", "renamed cases fail as before"),
        (facts.added_failing, "added case fails", "added cases fail"),
        (facts.flips("changed_failing"), "changed case fails", "changed cases fail"),
    )
    for cases, one, several in kinds:
        # A mark of the project's own may let some of them pass.
        number = min(cases, failing)
        failing -= number
        if number:
            yield counted(number, one, several)
    if failing and facts.is_compared:
        yield counted(failing, "case still fails", "cases still fail")
    elif failing:
        yield counted(failing, "case fails", "cases fail")


def _gate_reasons(facts: VerdictFacts) -> Iterator[str]:
    failed = facts.failed_gates
    for gate in failed[:SHOWN_GATES]:
        yield gate_reason(gate)
    hidden = len(failed) - SHOWN_GATES
    if hidden > 0:
        yield counted(hidden, "more gate fails", "more gates fail")


def _problem_reasons(problems: Mapping[str, str]) -> Iterator[str]:
    # By name, as metrics.json keeps them: the sentence of a stored run is that of the run.
    for name, problem in sorted(problems.items())[:SHOWN_PROBLEMS]:
        yield _problem_reason(name, problem)
    hidden = len(problems) - SHOWN_PROBLEMS
    if hidden > 0:
        yield counted(hidden, "more problem")


def _is_unmeasured_gate(name: str) -> bool:
    """Return True for the name of a problem that is the text of a gate which no case measured."""
    return name not in OF_THE_RUN and not name.startswith((RECORDS_OF, METRIC_FAILED))


def _problem_reason(name: str, problem: str) -> str:
    """Return a problem in a few words of our own: what it quotes and its remedy stand below the sentence."""
    if _is_unmeasured_gate(name):
        return f"gate {cut(name, _LONGEST_PROBLEM)} was not measured"
    if name.startswith(METRIC_FAILED):
        return f"{cut(name, _LONGEST_PROBLEM)} failed"
    # The sentence is about this run: its name says nothing of what is wrong.
    first_clause = _END_OF_CLAUSE.split(_NAME_OF_RUN.sub("", problem, count=1), maxsplit=1)[0]
    return cut(first_clause, _LONGEST_PROBLEM)


def _let_pass(facts: VerdictFacts) -> str:
    """Return what got worse though nothing fails the run; '' if nothing did."""
    worse = []
    newly_failing = facts.flips("flipped_to_fail") + facts.flips("fails_new_gate")
    if newly_failing:
        newly = counted(newly_failing, "case newly fails", "cases newly fail")
        worse.append(f"{newly}, which fails no build here")
    worse += _worse_known_failures(facts)
    waived = [gate for gate in facts.gates if gate["passed"] is False]
    if waived and not facts.is_partial:
        worse.append(counted(len(waived), "gate is", "gates are") + " let pass")
    if facts.regressed and not waived:
        metrics = counted(len(facts.regressed), "metric without a gate got", "metrics without a gate got")
        worse.append(f"{metrics} worse ({listed(_regressed_words(facts), SHOWN_METRICS)})")
    worse += facts.weaker_gates
    return ", ".join(worse)


def _regressed_words(facts: VerdictFacts) -> list[str]:
    """Return `token_f1 0.667 → 0.308` for each metric that got worse."""
    metrics = (facts.comparison or {})["metrics"]
    return [_from_to(name, metrics[name]) for name in facts.regressed]


def _from_to(name: str, metric: Mapping[str, Any]) -> str:
    before = metric.get("before")
    after = metric.get("after")
    if before is None or after is None:
        return name
    unit = metric.get("unit")
    if unit is not None:
        return f"{name} {amount_text(before, unit)} → {amount_text(after, unit)}"
    was, now = figures(before, after)
    return f"{name} {was} → {now}"


def _worse_known_failures(facts: VerdictFacts) -> Iterator[str]:
    number = facts.worse_known_failures
    if number:
        yield counted(number, "known failure", "known failures") + " got worse"


def _ran_in_part(metrics: Mapping[str, Any]) -> str:
    selection = metrics.get("selection")
    if not selection:
        return "only a part of the cases ran"
    if selection["recorded"] == selection["cases"]:
        if metrics["outcomes"].get("skipped"):
            # An answer file lacks some answers, which allow_partial permits.
            return "not all cases have an answer"
        return "only a part of the cases ran"
    return f"only {selection['recorded']:,} of {counted(selection['cases'], 'case')} ran"
