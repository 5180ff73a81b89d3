"""Traces of a system in use: as answers of cases, and as drafts where people disliked the answer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from pytest_rageval.language.words import fold
from pytest_rageval.make.trace_answer import TracedAnswer
from pytest_rageval.model import EvalCase, Json


@dataclass(slots=True)
class MatchedTraces:
    """Lines of an answers file, and counts of what matched no case.

    unmatched   traces whose question is that of no case
    unanswered  cases without a trace
    repeated    how many traces were left out for a later one of the same case
    silent      traces without a question, or with neither answer nor documents
    undocumented  how many answers come without documents
    """

    records: list[dict[str, Json]] = field(default_factory=list)
    unmatched: list[TracedAnswer] = field(default_factory=list)
    unanswered: list[EvalCase] = field(default_factory=list)
    repeated: int = 0
    silent: list[TracedAnswer] = field(default_factory=list)
    undocumented: int = 0


def match_traces(traced: Sequence[TracedAnswer], cases: Sequence[EvalCase]) -> MatchedTraces:
    """Match each trace to its case: by the attribute that names it, else by the text of the question.

    Of several traces of a case the last one counts. Cases of several files that ask the same all get the answer.
    """
    matched = MatchedTraces()
    by_name: defaultdict[str, dict[str, EvalCase]] = defaultdict(dict)
    by_question: defaultdict[str, list[EvalCase]] = defaultdict(list)
    for case in cases:
        by_name[case.id][case.key] = case
        by_name[case.key][case.key] = case
        by_question[fold(case.question)].append(case)
    answers: dict[str, TracedAnswer] = {}
    for entry in traced:
        if entry.answer is None and entry.chunks is None:
            matched.silent.append(entry)
            continue
        fitting = list(by_name[entry.case_id or ""].values())
        for text in entry.questions:
            if not fitting:
                fitting = by_question[fold(text)]
        if not fitting and entry.questions:
            matched.unmatched.append(entry)
        elif not fitting:
            matched.silent.append(entry)
        for case in fitting:
            if case.key in answers:
                matched.repeated += 1
            answers[case.key] = entry
    for case in cases:
        answer = answers.get(case.key)
        if answer is None:
            matched.unanswered.append(case)
            continue
        is_ambiguous = len(by_name[case.id]) > 1
        matched.records.append(answer.record(case.key if is_ambiguous else case.id))
        if answer.chunks is None:
            matched.undocumented += 1
    return matched


def drafts_of(traced: Sequence[TracedAnswer], feedback: str) -> list[dict[str, Json]]:
    """Draft a case for each question whose answer got this feedback, with the answer and what it cited.

    Questions that differ only in case and spaces give one draft, unless something else was said before them: an entry
    of a session has the questions and answers before it as its history.
    """
    drafts: dict[tuple[str, str], dict[str, Json]] = {}
    histories = _histories(traced)
    for number, entry in enumerate(traced):
        if entry.feedback != feedback or not entry.questions:
            continue
        history = histories.get(number, [])
        said = " ".join(str(turn["text"]) for turn in history)
        drafts.setdefault((fold(said), fold(entry.questions[0])), entry.draft(history))
    return list(drafts.values())


MOST_BEFORE = 20
"""Turns of a session before a question to keep, the last ones."""


def _histories(traced: Sequence[TracedAnswer]) -> dict[int, list[dict[str, Json]]]:
    """Return what was said before each entry of a session, by the entry's number, in the order of time."""
    sessions: defaultdict[str, list[int]] = defaultdict(list)
    for number, entry in enumerate(traced):
        if entry.session is not None and entry.questions:
            sessions[entry.session].append(number)
    histories: dict[int, list[dict[str, Json]]] = {}
    for numbers in sessions.values():
        if all(traced[number].start is not None for number in numbers):
            numbers.sort(key=lambda number: traced[number].start or 0.0)
        said: list[dict[str, Json]] = []
        for number in numbers:
            histories[number] = said[-2 * MOST_BEFORE :]
            entry = traced[number]
            said.append({"role": "user", "text": entry.questions[0]})
            if entry.answer is not None:
                said.append({"role": "assistant", "text": entry.answer})
    return histories
