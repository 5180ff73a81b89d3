"""The view of one case, made from its records: texts, chunks with golds, claims, gates, scores, trials, trace."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from pytest_rageval.cases.canonical import case_from_mapping
from pytest_rageval.comparison.case_diff import CaseLines, representative_trial
from pytest_rageval.errors import RagevalError
from pytest_rageval.metrics.calls import OPERATION_UNITS
from pytest_rageval.model import EvalCase, Observation
from pytest_rageval.model.case_fields import CATEGORY, OTHER_DESCRIPTIVE_NAMES
from pytest_rageval.runs.case_place import case_id, place_text
from pytest_rageval.runs.flaky_cases import is_flaky_record
from pytest_rageval.runs.records.observation_line import observation_of
from pytest_rageval.runs.row import IS_BAD
from pytest_rageval.text import duration, score_text, short
from pytest_rageval.views.case_claims import checked_claims
from pytest_rageval.views.case_content import (
    CaseContext,
    CaseFailure,
    CaseFigures,
    CaseHead,
    CaseRetrieval,
    CaseTexts,
    CaseView,
    JudgementRow,
    ScoreRow,
)
from pytest_rageval.views.case_parts import (
    OUTCOMES,
    chunk_rows,
    draft_line,
    gold_labels,
    key_facts,
    limited,
    no_chunks,
)
from pytest_rageval.views.case_reasons import (
    arithmetic,
    error_lines,
    failed_gates,
    gate_lines,
    has_retrieval_failed,
    reasons,
    remarks_on_failure,
)
from pytest_rageval.views.case_trials import case_comparison, trials_view
from pytest_rageval.views.rewrite import rewrite_view

T = TypeVar("T")

LONGEST_TRACE = 6_000
"""Characters of a trace that are shown."""
_UNSHOWN_DETAILS = ("decided_by", "instead")
"""Details of a score that its other texts say as well."""
FLAKY_CASE = ("≈", "flaky")
"""Those of a case that passed though an attempt failed."""
CHANGES = {
    "worse": "new: passed before",
    "fixed": "fixed: failed before",
    "same": "",
    "new": "new, or another case than before",
    "unmeasured": "had scores before",
}
FAILS_NEW_GATE = "failed before, and fails a new gate now"


def case_view(lines: CaseLines, before: CaseLines | None, change: str, run: CaseContext) -> CaseView:
    """Return the view of a case from its records. `change`: how it differs from the other run."""
    record = representative_trial(lines.records)
    line = lines.observations.get(record["trial"])
    observation = _observation(record, line, change, run)
    labelled = observation.case if observation else _labelled_case(line)
    earlier = representative_trial(before.records) if before else None
    texts = _texts(record, line, labelled)
    retrieved = _retrieval(record, labelled, earlier, run.config.get("k"))
    comparison = None
    if run.other is not None:
        answer_before = _answer_before(before, earlier)
        comparison = case_comparison(record, earlier, texts.answer, answer_before, run.names)
    draft = None
    if texts.answer is not None:
        draft = draft_line(record, line, run.run_id)
    key = record["case_key"]
    explain = f"rageval explain {shlex.join([run.run_id, key])}"
    return CaseView(
        head=_head(record, change, run),
        texts=texts,
        retrieved=retrieved,
        failure=_failure(record, earlier, observation, retrieved, run),
        figures=_figures(record, line, observation, run),
        conversation=run.conversation_of(record),
        rewrite=rewrite_view(record, line, run.metrics),
        trials=trials_view(lines.records, lines.observations, record),
        trace=_trace(record),
        comparison=comparison,
        other=run.other,
        rerun=_rerun_command(key, run),
        explain=explain,
        draft=draft,
    )


def _head(record: Mapping[str, Any], change: str, run: CaseContext) -> CaseHead:
    key = record["case_key"]
    symbol, word = OUTCOMES[record["outcome"]]
    if record["outcome"] == "passed" and is_flaky_record(record):
        symbol, word = FLAKY_CASE
    return CaseHead(
        key=key,
        id=case_id(key),
        place=place_text(record),
        outcome=record["outcome"],
        symbol=symbol,
        word=word,
        change=FAILS_NEW_GATE if run.new_gates(key) else CHANGES[change],
        facts=list(_facts(record)),
        latency=latency_words(record),
        has_notable_operations=has_notable_operations(record),
    )


def _texts(record: Mapping[str, Any], line: Mapping[str, Any] | None, labelled: EvalCase | None) -> CaseTexts:
    """Return the texts of a case. `labelled`: None if its run keeps no observations."""
    answer = _answer(record, line)
    expected: list[str] = []
    facts: tuple[str, ...] = ()
    labels: list[tuple[str, str]] = []
    if labelled:
        expected = list(labelled.gold.answers or ())
        facts = tuple(labelled.gold.key_facts or ())
        labels = list(gold_labels(labelled))
    return CaseTexts(
        question=_question(record, line),
        answerable=record.get("answerable", True),
        expected=expected,
        stated=key_facts(facts, record, _whole_answer(record, line)),
        labels=labels,
        answer=answer,
        no_answer=_no_answer(record, answer),
        is_cut=_is_cut(answer, line),
        abstention=_abstention(record),
        has_observation=line is not None,
    )


def _retrieval(
    record: Mapping[str, Any], labelled: EvalCase | None, earlier: Mapping[str, Any] | None, k: int | None
) -> CaseRetrieval:
    """Return what was retrieved. `earlier`: the record of the other run, which tells where a missed gold stood."""
    chunks = list(chunk_rows(record, labelled, earlier, k))
    return CaseRetrieval(
        k=k,
        chunks=chunks,
        missed=[chunk for chunk in chunks if chunk.rank is None],
        no_chunks=no_chunks(record),
        top_score=max((chunk.score or 0 for chunk in chunks), default=0),
        tool_calls=record.get("tool_calls") or (),
        flags=record.get("flags", ()),
    )


def _failure(
    record: Mapping[str, Any],
    earlier: Mapping[str, Any] | None,
    observation: Observation | None,
    retrieved: CaseRetrieval,
    run: CaseContext,
) -> CaseFailure:
    verdict = record["verdict"]
    failed = list(failed_gates(record, earlier, observation, run))
    is_retrieval_bad = has_retrieval_failed(record, run)
    remarks = list(remarks_on_failure(record, retrieved.chunks, has_retrieval_failed=is_retrieval_bad))
    # Golds that were not retrieved explain nothing where retrieval passes its gates.
    missed = retrieved.missed if is_retrieval_bad else ()
    every_gate: list[tuple[str, str, str]] = []
    if observation and run.plan:
        every_gate = list(gate_lines(record, observation, run.plan))
    cause = run.cause(record)
    return CaseFailure(
        cause=cause.text if cause is not None else "",
        why=list(reasons(record, failed, missed, remarks)),
        remarks=remarks,
        errors=list(error_lines(record)),
        gates=verdict["failed_gates"],
        failed=failed,
        gates_held=verdict.get("gates_held", 0),
        every_gate=every_gate,
    )


def _figures(
    record: Mapping[str, Any],
    line: Mapping[str, Any] | None,
    observation: Observation | None,
    run: CaseContext,
) -> CaseFigures:
    return CaseFigures(
        scores=list(_scores(record, observation, run)),
        skipped=_skipped(record),
        claims=list(checked_claims(record, line)),
        judgements=list(_judgements(record)),
        doubts=list(_doubts(record)),
    )


# ── the observation and its texts ─────────────────────────────────────────────────────────────────────────────


def _observation(
    record: Mapping[str, Any], line: Mapping[str, Any] | None, change: str, run: CaseContext
) -> Observation | None:
    """Return the observation of a case if there is something to explain with it: reading one takes its time."""
    if line is None or line["answer"] is None:
        return None
    outcome = record["outcome"]
    is_bad = outcome in IS_BAD or outcome == "error" or change == "worse"
    if not is_bad and not run.plan:
        return None
    return _read_or_none(observation_of, line, run.config)


def _labelled_case(line: Mapping[str, Any] | None) -> EvalCase | None:
    return _read_or_none(case_from_mapping, line["case"]) if line else None


def _read_or_none(read: Callable[..., T | None], *arguments: Any) -> T | None:
    try:
        return read(*arguments)
    except (RagevalError, KeyError, TypeError, ValueError):  # a damaged line costs its details, not the report
        return None


def _answer(record: Mapping[str, Any], line: Mapping[str, Any] | None) -> str | None:
    """Return the answer, in full if the run keeps observations."""
    answer = (line["answer"] or {}).get("answer") if line else None
    return limited(answer if answer is not None else record["answer"])


def _answer_before(before: CaseLines | None, earlier: Mapping[str, Any] | None) -> str | None:
    """Return the answer of the other run. `earlier`: the record that represents its trials."""
    if before is None or earlier is None:
        return None
    return _answer(earlier, before.observations.get(earlier["trial"]))


def _question(record: Mapping[str, Any], line: Mapping[str, Any] | None) -> str | None:
    """Return the question, in full if the run keeps observations."""
    question = line["case"].get("question") if line else None
    return limited(question or record["question"])


def _whole_answer(record: Mapping[str, Any], line: Mapping[str, Any] | None) -> str | None:
    """Return the answer as the metrics read it; None if only its beginning was kept."""
    observed = line["answer"] if line else None
    if observed is not None:
        whole: str | None = observed.get("answer")
        return whole
    answer: str | None = record["answer"]
    if answer is None or answer.endswith("…"):
        return None
    return answer


def _no_answer(record: Mapping[str, Any], answer: str | None) -> str:
    if answer is None and record["error"]:
        return "none: the case ended in an error"
    return ""


def _is_cut(answer: str | None, line: Mapping[str, Any] | None) -> bool:
    """Return True if the run kept only the beginning of the answer, in its record."""
    return line is None and answer is not None and answer.endswith("…")


def _rerun_command(key: str, run: CaseContext) -> str:
    # A run of the web app has its cases in a folder of its own: no command reruns one.
    if run.config.get("origin"):
        return ""
    return f"pytest {shlex.quote(key)}"


def _abstention(record: Mapping[str, Any]) -> str:
    """Return whether the system abstained, in words; empty if it did not, or if that was not looked at."""
    seen = record["abstention"] or {}
    if seen.get("undecided"):
        return "undecided whether it abstained"
    return "abstained" if seen.get("abstained") else ""


def _facts(record: Mapping[str, Any]) -> Iterator[str]:
    for name in (*OTHER_DESCRIPTIVE_NAMES, CATEGORY):
        if record.get(name):
            yield str(record[name])
    if record.get("requires_kg"):
        yield "requires_kg"
    if not record.get("answerable", True):
        yield "unanswerable"
    for tag in record.get("tags", ()):
        if tag:
            yield str(tag)


# ── figures ───────────────────────────────────────────────────────────────────────────────────────────────────


def _judgements(record: Mapping[str, Any]) -> Iterator[JudgementRow]:
    # Older records hold only these two judgements.
    judgements = {name: record.get(name) for name in ("groundedness", "correctness")}
    judgements |= record.get("judgements") or {}
    scored = {name.partition("@")[0] for name in record.get("scores", ())}
    for name, judgement in judgements.items():
        if judgement:
            yield JudgementRow(
                name,
                short(judgement["score"]),
                judgement.get("model") or "?",
                judgement.get("reasoning"),
                is_heuristic=bool(judgement.get("heuristic")),
                is_defined=name in scored,
            )


def _scores(record: Mapping[str, Any], observation: Observation | None, run: CaseContext) -> Iterator[ScoreRow]:
    for name, value in record.get("scores", {}).items():
        terms = []
        formula = arithmetic(name, observation, run)
        if formula:
            terms.append(formula)
        if run.plan:
            terms += _details(record["score_details"].get(name, {}))
        yield ScoreRow(name, run.value_text(name, value), "; ".join(terms))


def _details(details: Mapping[str, Any]) -> Iterator[str]:
    for name, value in details.items():
        if name not in _UNSHOWN_DETAILS:
            shown = "; ".join(map(str, value)) if isinstance(value, list | tuple) else value
            yield f"{name.replace('_', ' ')}: {shown}"


def _skipped(record: Mapping[str, Any]) -> list[tuple[str, list[str]]]:
    """Return the reasons why metrics do not apply, each with its metrics."""
    names: dict[str, list[str]] = {}
    for name, reason in (record.get("skipped_metrics") or {}).items():
        names.setdefault(reason, []).append(name)
    return sorted(names.items())


def _doubts(record: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the doubts about the judge's replies, by rubric."""
    flags_by_rubric = (record["judge"] or {}).get("flags", {})
    for rubric, flags in flags_by_rubric.items():
        for flag in flags:
            yield rubric, flag


def _trace(record: Mapping[str, Any]) -> str | None:
    if not record.get("trace"):
        return None
    text = json.dumps(record["trace"], ensure_ascii=False, indent=1)
    return text if len(text) <= LONGEST_TRACE else text[:LONGEST_TRACE] + "\n…"


def latency_words(record: Mapping[str, Any]) -> str:
    """Return the time that the system and the judge took, phase by phase, and the tokens, cost and requests."""
    parts = []
    for name, milliseconds in (record.get("latency") or {}).items():
        if milliseconds and milliseconds >= 1:
            phase = name.removesuffix("_ms").replace("_", " ")
            parts.append(f"{phase} {duration(milliseconds)}")
    operations = record.get("operations") or {}
    for name, words in _USED.items():
        if name in operations:
            parts.append(words + score_text(operations[name], OPERATION_UNITS[name]))
    requests = record.get("requests") or 0
    if requests > 1:
        parts.append(f"{requests} requests")
    return " · ".join(parts)


_USED = {
    "ttft_ms": "first token ",
    "input_tokens": "input tokens ",
    "output_tokens": "output tokens ",
    "cost_usd": "cost ",
}
"""Operations of a case besides its latency, with their words."""


def has_notable_operations(record: Mapping[str, Any]) -> bool:
    """Return True if more than a time is known of what asking took, or if the run scores any of it."""
    operations = record.get("operations") or {}
    if (record.get("requests") or 0) > 1 or not _USED.keys().isdisjoint(operations):
        return True
    return not OPERATION_UNITS.keys().isdisjoint(record["scores"])
