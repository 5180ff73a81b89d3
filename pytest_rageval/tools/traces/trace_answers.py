"""Traces matched to cases, as lines of an answers file; and those that people disliked, as drafts of cases."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from pytest_rageval.model import EvalCase, Json
from pytest_rageval.tools.traces.traced_answers import TracedAnswer
from pytest_rageval.words import fold

LONGEST_PASSAGE = 2000
"""Characters of a cited passage that a draft keeps."""


@dataclass(slots=True)
class Matched:
    """Lines of an answers file, and what came to no case.

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


def match_traces(traced: Sequence[TracedAnswer], cases: Sequence[EvalCase]) -> Matched:
    """Put each trace to its case: by the attribute that names it, else by the text of the question.

    Of several traces of a case the last one counts. Cases of several files that ask the same all get the answer.
    """
    matched = Matched()
    by_name: defaultdict[str, list[EvalCase]] = defaultdict(list)
    by_question: defaultdict[str, list[EvalCase]] = defaultdict(list)
    for case in cases:
        by_name[case.id].append(case)
        by_name[case.key].append(case)
        by_question[fold(case.question)].append(case)
    answers: dict[str, TracedAnswer] = {}
    for entry in traced:
        if entry.answer is None and entry.chunks is None:
            matched.silent.append(entry)
            continue
        fitting = by_name.get(entry.case_id or "") or next(
            (listed for text in entry.questions if (listed := by_question.get(fold(text)))), []
        )
        if not fitting:
            (matched.unmatched if entry.question else matched.silent).append(entry)
        for case in fitting:
            matched.repeated += case.key in answers
            answers[case.key] = entry
    shared = {case.id for listed in by_name.values() if len({case.key for case in listed}) > 1 for case in listed}
    for case in cases:
        if (answer := answers.get(case.key)) is None:
            matched.unanswered.append(case)
        else:
            matched.records.append(answer.record(case.key if case.id in shared else case.id))
            matched.undocumented += answer.chunks is None
    return matched


def drafts_of(traced: Sequence[TracedAnswer], feedback: str) -> list[dict[str, Json]]:
    """A draft for each question whose answer got this feedback, with the answer and what it cited.

    There is no gold in it: a bad answer does not hold the right one. Questions that differ in case and spaces alone
    give one draft.
    """
    drafts: dict[str, dict[str, Json]] = {}
    for entry in traced:
        if entry.feedback == feedback and entry.question:
            drafts.setdefault(fold(entry.question), _draft(entry, entry.question))
    return list(drafts.values())


def _draft(entry: TracedAnswer, question: str) -> dict[str, Json]:
    names = ("chunk_id", "rel_path", "heading_path")
    cited = [
        {name: chunk[name] for name in names if name in chunk}
        | ({"text": chunk["text"][:LONGEST_PASSAGE]} if "text" in chunk else {})
        for chunk in entry.chunks or ()
    ]
    told: dict[str, Json] = {"trace_id": entry.trace_id, "feedback": entry.feedback, "answer": entry.answer}
    if cited:
        told["cited"] = cited
    digest = hashlib.sha256(fold(question).encode()).hexdigest()[:12]
    return {
        "id": f"trace-{digest}",
        "question": question,
        "tags": ["draft", "from-traces"],
        "metadata": {"draft": told},
    }
