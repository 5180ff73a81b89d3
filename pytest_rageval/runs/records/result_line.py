"""The record of one trial in results.jsonl, whose texts are cut."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

from pytest_rageval.abstention.languages import untrained_language
from pytest_rageval.cases.canonical import content_hash
from pytest_rageval.io.sealed_lines import sealed_line
from pytest_rageval.matching.places import gold_kind, matching_fields
from pytest_rageval.metrics.abstention import abstention
from pytest_rageval.metrics.answer import answer_kinds
from pytest_rageval.model import (
    Answer,
    CaseResult,
    Chunk,
    EvalCase,
    FailedGate,
    FailedJudgement,
    GoldKind,
    Matching,
    Observation,
    Problem,
    Timings,
)
from pytest_rageval.model.case_fields import descriptions_of
from pytest_rageval.run.plan import Plan
from pytest_rageval.run.scoring import Evaluation
from pytest_rageval.runs.causes import with_cause
from pytest_rageval.runs.conversation_counts import turn_fields
from pytest_rageval.runs.decision_hash import decision_hash
from pytest_rageval.runs.records.attempt_fields import attempt_fields, attempts_in, decided_fields
from pytest_rageval.runs.records.judged_fields import (
    NO_COST,
    UNJUDGED,
    judge_cost,
    judge_input,
    judged_fields,
    judgements_of_case,
)
from pytest_rageval.runs.records.line_form import PHASES, REPEATS_CREDENTIAL, SCHEMA
from pytest_rageval.runs.records.record_texts import RecordTexts, error_record
from pytest_rageval.runs.records.reported_fields import reported_fields
from pytest_rageval.runs.records.rewrite_fields import rewrite_fields
from pytest_rageval.runs.row import legacy_names
from pytest_rageval.targets.native_contract import misplaced_fields


def result_record(
    result: CaseResult, plan: Plan, config_hash: str, overall: CaseResult | None = None
) -> dict[str, Any]:
    """Return one line of results.jsonl; see docs/runs.md for every field.

    `overall`: the result over all trials of the case, which the verdict is about; None with a single trial.
    """
    case = result.case
    obs = result.observation
    text = RecordTexts(plan.settings)
    if obs is not None:
        answer = obs.answer
        matching = obs.matching
        kind = matching.kind
    else:
        answer = result.answer or _NO_ANSWER
        matching = _UNMATCHED
        kind = gold_kind(case.gold, plan.settings.gold_by)
    # `line_scan` reads progress and single cases without parsing the line, and counts on the order of its fields.
    record: dict[str, Any] = {"schema": SCHEMA, "case_key": result.key}
    record |= case_fields(case, plan, kind)
    record |= {
        "gold": kind,
        "outcome": result.outcome,
        "reason": text.reason(result) if result.reason is not None else None,
        "question": text(case.question),
        "reference_answers": text.all(case.gold.answers),
    }
    record |= _answer_fields(answer, matching, text)
    record |= {
        "config": config_hash,
        "indexing_coverage": answer.indexing_coverage,
        "latency": _latency(result.timings, answer),
        "operations": operations_of_case(obs, result.scores, plan) if obs else {},
        "retrieval_metrics": _flat_scores(result.scores, plan.settings.k),
    }
    record |= _score_fields(result, answer, plan, text)
    record |= {
        "verdict": verdict_record(result, overall or result),
        "error": error_record(result.error, text),
        "skipped_metrics": result.skipped_metrics,
        "metric_errors": {name: text.message(why) for name, why in result.metric_errors.items()},
    }
    record |= matching_fields(result, plan.place_rules)
    record |= {
        **reported_fields(answer, matching, text),
        "unread": misplaced_fields(answer) if answer.extra else [],
        "trial": result.trial,
        "attempts": result.attempts,
        "requests": result.timings.requests,
    }
    if answer.repeats_credential:
        record[REPEATS_CREDENTIAL] = True
    record |= attempt_fields(result, overall or result)
    record |= rewrite_fields(result, plan, text)
    return with_cause(record)


def _answer_fields(answer: Answer, matching: Matching, text: RecordTexts) -> dict[str, Any]:
    """Return what the system answered and retrieved, and what a file of answers says of itself."""
    # Most members of most answers are empty: their functions are called for the others alone.
    extra = answer.extra
    references = [
        {"chunk_id": cited.chunk_id, "rel_path": cited.rel_path, "heading_path": cited.heading_path}
        for cited in answer.references or ()
    ]
    return {
        "answer": text(answer.text),
        "references": references,
        "retrieved_chunks": _chunks(answer.chunks, matching, text) if answer.chunks else (),
        "folder_selection": _selection(answer, text),
        "model_name": extra.get("model_name"),
        "timestamp": extra.get("timestamp"),
        "meta": text.tree(extra["meta"]) if "meta" in extra else None,
    }


def _latency(timings: Timings, answer: Answer) -> dict[str, Any]:
    """Return the times as we measured them; the phases, and the total if nothing was called, as the system says."""
    phases = answer.latency
    total = timings.ask_ms
    if total is None:
        total = phases.get("total_ms")
    return {
        "total_ms": total,
        "queue_ms": timings.queue_ms,
        **{phase: phases.get(phase) for phase in PHASES},
        "judge_ms": timings.judge_ms,
        "retry_wait_ms": timings.retry_wait_ms,
        **({} if timings.ttft_ms is None else {"ttft_ms": timings.ttft_ms}),
    }


def operations_of_case(obs: Observation, scores: Mapping[str, float], plan: Plan) -> dict[str, float]:
    """Return what asking took by the names of the metrics of operations, whether or not the run scores these."""
    operations: dict[str, float] = {}
    for operation in plan.operations:
        amount = scores.get(operation.name)
        if amount is None:
            measured = operation.score(obs)
            if not isinstance(measured, float):
                continue
            amount = measured
        operations[operation.name] = amount
    return operations


def _flat_scores(scores: Mapping[str, float], k: int) -> dict[str, Any]:
    """Return the retrieval scores by their flat legacy names, those of yes and no as booleans."""
    flat = legacy_names(scores, k)
    for name in YES_OR_NO:
        if flat[name] is not None:
            flat[name] = bool(flat[name])
    return flat


def _score_fields(result: CaseResult, answer: Answer, plan: Plan, text: RecordTexts) -> dict[str, Any]:
    """Return judgements, abstention and scores, with what they were made from and what they cost."""
    obs = result.observation
    scores = result.scores
    abstained = None
    usage = None
    if obs is not None:
        usage = answer.usage or None
        if answer.text is not None:
            abstained = _abstention(obs, scores, text, plan)
    judged: Mapping[str, Any] = UNJUDGED
    shown = None
    cost = NO_COST
    if obs is not None and obs.judgements:
        judged = judged_fields(obs, text)
        shown = judge_input(obs, plan.settings.k, text)
    judgements = judgements_of_case(obs)
    if judgements:
        cost = judge_cost(judgements)
    return {
        **judged,
        "abstention": abstained,
        "layers": plan.registry.by_layer(scores),
        "scores": scores,
        "score_details": {name: text.detail(detail) for name, detail in result.details.items()},
        "trace": text.trace(answer.trace) if answer.trace is not None else None,
        "judge_input": shown,
        "cost": {**cost, "target_usage": usage},
    }


_NO_ANSWER = Answer()
_UNMATCHED = Matching()
YES_OR_NO = ("scope_miss", "attribution_hit")
"""Retrieval metrics that are booleans under their flat names."""


def case_fields(case: EvalCase, plan: Plan, kind: GoldKind | None = None) -> dict[str, Any]:
    """Return the fields of the case in its record: enough for every breakdown without the case file."""
    kind = kind or gold_kind(case.gold, plan.settings.gold_by)
    return {
        "test_case_id": case.id,
        **turn_fields(case),
        "content_hash": content_hash(case),
        "decision_hash": decision_hash(case, kind, plan),
        "answerable": case.answerable,
        **descriptions_of(case),
        "tags": case.tags,
        "requires_kg": case.requires_kg,
        "has_groups": bool(case.gold.support_groups),
        "gold_answer": sorted(answer_kinds(case.gold)),
        "source": {"file": case.source.file, "line": case.source.line},
    }


def verdict_record(result: CaseResult, overall: CaseResult) -> dict[str, Any]:
    """Return the verdict of the gates on a case, and whether this trial alone passes them."""
    is_gold_examined: bool | None = None
    if overall.is_gold_examined:
        is_gold_examined = True
    elif overall.observation is not None and (not overall.case.answerable or not overall.case.gold.is_empty):
        # None without gold or without an observation: then there was nothing to examine.
        is_gold_examined = False
    # Written only where a gate is missing: such cases are few, and a line is written for each case.
    reservations = {}
    if overall.has_ungated_facts:
        reservations["facts_examined"] = False
    if overall.has_ungated_answer:
        reservations["answer_compared"] = False
    return {
        "passed": not overall.failed_gates and overall.error is None,
        "gates_held": overall.passed_gates,
        "failed_gates": [gate._asdict() for gate in overall.failed_gates],
        "gold_examined": is_gold_examined,
        "unexamined": overall.unexamined,
        **reservations,
        **decided_fields(overall),
        "unobserved": result.unobserved,
        "trial_passed": not result.failed_gates and result.error is None,
    }


def _chunks(chunks: Sequence[Chunk], matching: Matching, text: RecordTexts) -> list[dict[str, Any]]:
    """Return the retrieved chunks in rank order, each with the golds that it matches and how."""
    written: list[dict[str, Any]] = []
    for chunk, golds in zip_longest(chunks, matching.hits or ()):
        written.append(
            {
                "chunk_id": chunk.chunk_id,
                "rel_path": chunk.rel_path,
                "heading_path": chunk.heading_path,
                "rank": len(written) + 1,
                "score_vector": chunk.score_vector,
                "score_lexical": chunk.score_lexical,
                "score_final": chunk.score_final,
                "text": text(chunk.text),
                "token_count": chunk.token_count,
                "matches": sorted(golds) if golds else (),
            }
        )
    for match in matching.loose:
        written[match.at]["match"] = match.kind
    return written


def _selection(answer: Answer, text: RecordTexts) -> dict[str, Any] | None:
    selection = answer.folder_selection
    if selection is None:
        return None
    return {
        "folders": selection.folders,
        "reasoning": text(selection.reasoning),
        "fallback": selection.fallback,
        "extra": text.tree(selection.extra) or {},
    }


def _abstention(obs: Observation, scores: Mapping[str, float], text: RecordTexts, plan: Plan) -> dict[str, Any] | None:
    is_blank = obs.answer.text is None or not obs.answer.text.strip()
    is_decided_by_wording = obs.answer.abstained is None and not is_blank
    # Reading the wording takes a third of the time of a recorded case.
    if is_decided_by_wording and not plan.scores_answers:
        return None
    try:
        abstained = abstention(obs)
    except FailedJudgement:
        return None
    is_hallucinated: bool | None = None
    if "hallucinated" in scores:
        is_hallucinated = scores["hallucinated"] > 0
    elif obs.case.answerable:
        # By definition only an unanswerable question is answered by a hallucination.
        is_hallucinated = False
    recorded: dict[str, Any] = {
        "abstained": abstained.value,
        "hallucinated": is_hallucinated,
        "decided_by": abstained.decided_by,
        "reason": text(obs.answer.abstain_reason),
    }
    if abstained.value is None:
        recorded["undecided"] = True
    if abstained.decided_by == "phrasing":
        language = untrained_language(obs.answer.text or "")
        if language is not None:
            recorded["untrained_language"] = language
    return recorded


# ── lines ─────────────────────────────────────────────────────────────────────────────────────────────────────


class RecordLine(NamedTuple):
    """A line of results.jsonl and its record, so that the process that wrote the line need not parse it."""

    data: bytes
    record: Mapping[str, Any]

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> RecordLine:
        """Write a record; raise ValueError or TypeError if strict JSON cannot hold it."""
        return cls(sealed_line(record), record)

    @property
    def text(self) -> str:
        """Return the line as text, to send between processes."""
        return self.data.decode()


def to_line(record: Mapping[str, Any]) -> str:
    """Return the record as a line with its checksum; raise ValueError or TypeError if it has no such form."""
    return RecordLine.of(record).text


def record_lines(evaluation: Evaluation, plan: Plan, config_hash: str) -> list[RecordLine]:
    """Return a line for each trial, without credentials."""
    return [
        RecordLine.of(plan.mask.value(result_record(result, plan, config_hash, evaluation.overall)))
        for result in evaluation.trials
    ]


# ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────


def result_of(record: Mapping[str, Any], case: EvalCase, observation: Observation | None) -> CaseResult:
    """Return the result in a line of results.jsonl, without what only the observation holds."""
    verdict = record["verdict"]
    problem = None
    if record["error"]:
        problem = Problem(record["error"]["kind"], record["error"]["message"] or "")
    return CaseResult(
        case,
        record["outcome"],
        observation=observation,
        scores=record["scores"],
        details=record["score_details"],
        skipped_metrics=record["skipped_metrics"],
        passed_gates=verdict["gates_held"],
        failed_gates=tuple(FailedGate(**gate) for gate in verdict["failed_gates"]),
        error=problem,
        reason=record["reason"],
        timings=_read_timings(record),
        trial=record["trial"],
        attempts=record["attempts"],
        # Records of older runs have no further fields.
        unobserved=tuple(verdict.get("unobserved", ())),
        unexamined=tuple(verdict.get("unexamined", ())),
        is_gold_examined=bool(verdict.get("gold_examined")),
        has_ungated_facts=verdict.get("facts_examined") is False,
        has_ungated_answer=verdict.get("answer_compared") is False,
        metric_errors=record.get("metric_errors", {}),
        **attempts_in(record),
    )


def _read_timings(record: Mapping[str, Any]) -> Timings:
    latency = record["latency"]
    return Timings(
        latency["queue_ms"],
        latency["total_ms"],
        latency["judge_ms"],
        latency.get("retry_wait_ms"),
        record.get("requests"),
        latency.get("ttft_ms"),
    )
