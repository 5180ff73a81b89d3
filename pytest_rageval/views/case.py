"""One case as every face shows it: why it failed, texts, chunks with golds, claims, gates, scores, trials, trace."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from pytest_rageval.cases.canonical import case_from_mapping
from pytest_rageval.comparison.case_diff import CaseLines, representative_trial
from pytest_rageval.comparison.case_list import case_id, place_text
from pytest_rageval.errors import RagevalError
from pytest_rageval.gates.verdict import GatedTrial, looks_at
from pytest_rageval.matching.dialects import MISSED
from pytest_rageval.metrics.registry import Registry, is_described
from pytest_rageval.model import Observation
from pytest_rageval.model.case_fields import CATEGORY, OTHER_DESCRIPTIVE_NAMES
from pytest_rageval.run.plan import Plan
from pytest_rageval.runs.observations import observation_of
from pytest_rageval.runs.row import IS_BAD
from pytest_rageval.text import duration, score_text, short
from pytest_rageval.views.case_claims import CheckedClaim, checked_claims
from pytest_rageval.views.case_parts import (
    ChunkRow,
    DraftLine,
    KeyFact,
    case_comparison,
    chunk_rows,
    draft_line,
    gold_labels,
    key_facts,
    limited,
    no_chunks,
    trial_answers,
)
from pytest_rageval.views.text_diff import DiffPiece, word_diff

T = TypeVar("T")

LONGEST_TRACE = 6_000
OUTCOMES = {
    "passed": ("✔", "passed"),
    "failed": ("✘", "FAILED"),
    "error": ("!", "ERROR"),
    "xfailed": ("✘", "known failure"),
    "skipped": ("–", "skipped"),
}
CHANGES = {
    "worse": "new: passed before",
    "fixed": "fixed: failed before",
    "same": "",
    "new": "new, or another case than before",
    "unmeasured": "had scores before",
}


class JudgementRow(NamedTuple):
    """A judge's score and reasoning; `is_defined`: it is a metric of the run, with a definition."""

    metric: str
    score: str
    model: str
    reasoning: str | None
    is_heuristic: bool
    is_defined: bool


class ScoreRow(NamedTuple):
    """A score with its arithmetic, and with the end of its scale if that is not 1."""

    metric: str
    value: str
    terms: str


@dataclass(frozen=True, slots=True)
class CaseContext:
    """The context shared by the views of all cases.

    names   metrics of the other run → their names in this one
    plan    of the run, for a view that shows each gate, and the arithmetic of cases that pass too
    """

    run_id: str
    config: Mapping[str, Any]
    metrics: Mapping[str, Mapping[str, Any]]
    registry: Registry
    names: Mapping[str, str]
    other: str | None = None
    plan: Plan | None = None

    def top(self, name: str) -> str:
        """Return the end of a metric's scale as ` of 5`; '' if it is 1."""
        scale = self.metrics.get(name, {}).get("scale", [0, 1])
        return "" if scale[1] == 1 else f" of {scale[1]:g}"


@dataclass(frozen=True, slots=True)
class CaseView:
    """One case in the order in which it is shown. Nothing in it is escaped.

    symbol, word  of the outcome
    why           why it failed, a line each
    no_answer     the note in place of an answer; is_cut: the run kept only its beginning
    diff          the expected answer against the given one; () without either
    scores        each with its arithmetic; top_score: the largest of a chunk
    labels        what the case expects, by name
    errors        that of the case or those of its metrics; doubts: about the judge's replies, by rubric
    every_gate    gates that examined the case: gate, value, verdict; empty without a plan
    skipped       reasons why metrics do not apply, with the metrics
    comparison    the case before and after; None without another run
    other         the id of the run before
    """

    key: str
    id: str
    place: str
    outcome: str
    symbol: str
    word: str
    change: str
    facts: Sequence[str]
    latency: str
    why: Sequence[str]
    question: str | None
    answerable: bool
    expected: Sequence[str]
    stated: Sequence[KeyFact]
    answer: str | None
    no_answer: str
    is_cut: bool
    abstention: str
    diff: Sequence[DiffPiece]
    trials: Mapping[str, Any] | None
    k: int | None
    chunks: Sequence[ChunkRow]
    no_chunks: str
    top_score: float
    claims: Sequence[CheckedClaim]
    judgements: Sequence[JudgementRow]
    gates: Sequence[Mapping[str, Any]]
    gates_held: int
    scores: Sequence[ScoreRow]
    skipped: Sequence[tuple[str, list[str]]]
    trace: str | None
    comparison: Mapping[str, Any] | None
    other: str | None
    rerun: str
    explain: str
    draft: DraftLine | None
    has_observation: bool
    labels: Sequence[tuple[str, str]]
    errors: Sequence[str]
    doubts: Sequence[tuple[str, str]]
    flags: Sequence[str]
    every_gate: Sequence[tuple[str, str, str]]


def case_view(lines: CaseLines, before: CaseLines | None, change: str, run: CaseContext) -> CaseView:
    """Return the view of a case from its records. `change`: how it differs from the other run."""
    record = representative_trial(lines.records)
    line, key, outcome = lines.observations.get(record["trial"]), record["case_key"], record["outcome"]
    observation, scored = None, line["answer"] if line else None
    if scored is not None and (outcome in IS_BAD or outcome == "error" or change == "worse" or run.plan):
        observation = _read_or_none(observation_of, line, run.config)
    labelled = observation.case if observation else _read_or_none(case_from_mapping, line["case"]) if line else None
    earlier = representative_trial(before.records) if before else None
    chunks = list(chunk_rows(record, labelled, earlier, run.config.get("k")))
    answer, question = _texts(record, line)
    whole = record["answer"] if scored is None else scored.get("answer")
    is_whole = scored is not None or (whole is not None and not whole.endswith("…"))
    expected = list(labelled.gold.answers or ()) if labelled else []
    facts = (labelled.gold.key_facts or ()) if labelled else ()
    symbol, word = OUTCOMES[outcome]
    comparison = None
    if run.other is not None:
        was = _texts(earlier, before.observations.get(earlier["trial"]))[0] if before and earlier else None
        comparison = case_comparison(record, earlier, answer, was, run.names)
    return CaseView(
        key=key,
        id=case_id(key),
        place=place_text(record),
        outcome=outcome,
        symbol=symbol,
        word=word,
        change=CHANGES[change],
        facts=list(_facts(record)),
        latency=latency_words(record),
        why=list(_why(record, observation, chunks, run)),
        question=question,
        answerable=record.get("answerable", True),
        expected=expected,
        stated=key_facts(facts, record, whole if is_whole else None),
        answer=answer,
        no_answer="none: the case ended in an error" if answer is None and record["error"] else "",
        is_cut=answer is not None and answer.endswith("…") and line is None,
        abstention=_abstention(record),
        diff=word_diff(expected[0], answer) if expected and expected[0] and answer else (),
        trials=trial_answers(lines.records, lines.observations, record),
        k=run.config.get("k"),
        chunks=chunks,
        no_chunks=no_chunks(record),
        top_score=max((chunk.score or 0 for chunk in chunks), default=0),
        claims=list(checked_claims(record, line)),
        judgements=list(_judgements(record)),
        gates=record["verdict"]["failed_gates"],
        gates_held=record["verdict"].get("gates_held", 0),
        scores=list(_scores(record, observation, run)),
        skipped=_skipped(record),
        trace=_trace(record),
        comparison=comparison,
        other=run.other,
        # A run of the web app has its cases in a folder of its own: no command reruns one.
        rerun="" if run.config.get("origin") else f"pytest {shlex.quote(key)}",
        explain=f"rageval explain {shlex.quote(run.run_id)} {shlex.quote(key)}",
        draft=draft_line(record, line, run.run_id) if answer is not None else None,
        has_observation=line is not None,
        labels=list(gold_labels(labelled.gold)) if labelled else [],
        errors=list(_errors(record)),
        doubts=[(name, flag) for name, flags in (record["judge"] or {}).get("flags", {}).items() for flag in flags],
        flags=record.get("flags", ()),
        every_gate=list(_every_gate(record, observation, run.plan)) if observation and run.plan else [],
    )


def _read_or_none(read: Callable[..., T | None], *arguments: Any) -> T | None:
    try:
        return read(*arguments)
    except (RagevalError, KeyError, TypeError, ValueError):  # a damaged line costs its details, not the report
        return None


def _texts(record: Mapping[str, Any], line: Mapping[str, Any] | None) -> tuple[str | None, str | None]:
    """Return answer and question, in full if the run keeps observations."""
    answer = (line["answer"] or {}).get("answer") if line else None
    question = line["case"].get("question") if line else None
    return limited(answer if answer is not None else record["answer"]), limited(question or record["question"])


def _abstention(record: Mapping[str, Any]) -> str:
    """Return whether the system abstained, in words; empty if it did not, or if nobody looked."""
    seen = record["abstention"] or {}
    if seen.get("undecided"):
        return "undecided whether it abstained"
    return "abstained" if seen.get("abstained") else ""


def _facts(record: Mapping[str, Any]) -> Iterator[str]:
    yield from (str(record[name]) for name in (*OTHER_DESCRIPTIVE_NAMES, CATEGORY) if record.get(name))
    yield from ["requires_kg"] * bool(record.get("requires_kg"))
    yield from ["unanswerable"] * (not record.get("answerable", True))
    yield from map(str, filter(None, record.get("tags", ())))


# ── why ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _why(
    record: Mapping[str, Any], observation: Observation | None, chunks: Sequence[ChunkRow], run: CaseContext
) -> Iterator[str]:
    """Yield why the case failed: the error, or each gate with its arithmetic; then the golds that are missing."""
    yield from _errors(record)
    gates = record["verdict"]["failed_gates"]
    for gate in gates:
        terms = _terms(gate["metric"], observation, run)
        tag = f" ({gate['tag']})" if gate["tag"] else ""
        needs = f"{gate['metric']} = {short(gate['value'])}, needs {gate['threshold']}{tag}"
        yield f"{needs}: {terms}" if terms else needs
    if any(run.metrics.get(gate["metric"], {}).get("layer") in ("L2", "L3") for gate in gates):
        yield from (f"{chunk.mark} “{chunk.place}” was not retrieved{chunk.note}" for chunk in chunks if not chunk.rank)
        late = (chunk for chunk in chunks if chunk.rank and chunk.note)
        yield from (f"{chunk.mark} “{chunk.place}” stands at rank {chunk.rank}{chunk.note}" for chunk in late)
    yield from (flag for flag in record.get("flags", ()) if gates and MISSED in flag)
    if not gates and not record["error"] and record.get("reason"):
        yield str(record["reason"])


def _errors(record: Mapping[str, Any]) -> Iterator[str]:
    """Yield the error of the case, and those of its metrics."""
    if error := record["error"]:
        yield f"{error['kind']}: {error['message'] or 'its message is left out'}"
    yield from (f"{name} has no score: {why}" for name, why in record.get("metric_errors", {}).items())


def _every_gate(record: Mapping[str, Any], observation: Observation, plan: Plan) -> Iterator[tuple[str, str, str]]:
    for gate in plan.case_gates:
        if looks_at(gate, GatedTrial(observation, record["scores"])):
            value = record["scores"][gate.name]
            verdict = "holds" if gate.holds(value) else f"fails{f' ({gate.tag})' if gate.tag else ''}"
            yield str(gate), f"is {short(value)}", verdict


def _terms(name: str, observation: Observation | None, run: CaseContext) -> str:
    if observation is None:
        return ""
    try:
        measure = run.registry.measure(name, observation.k)
        return "" if is_described(measure.metric) else measure.arithmetic(observation)
    except RagevalError:  # a metric that is no longer registered
        return ""


# ── figures ───────────────────────────────────────────────────────────────────────────────────────────────────


def _judgements(record: Mapping[str, Any]) -> Iterator[JudgementRow]:
    # Older records hold only these two judgements.
    judgements = {name: record.get(name) for name in ("groundedness", "correctness")} | (record.get("judgements") or {})
    scored = {name.partition("@")[0] for name in record.get("scores", ())}
    for name, judgement in judgements.items():
        if judgement:
            model, reasoning = judgement.get("model") or "?", judgement.get("reasoning")
            is_heuristic = bool(judgement.get("heuristic"))
            yield JudgementRow(name, short(judgement["score"]), model, reasoning, is_heuristic, name in scored)


def _scores(record: Mapping[str, Any], observation: Observation | None, run: CaseContext) -> Iterator[ScoreRow]:
    for name, value in record.get("scores", {}).items():
        terms = [_terms(name, observation, run)] if observation else []
        if run.plan:
            details = record["score_details"].get(name, {}).items()
            terms += [f"{detail.replace('_', ' ')}: {found}" for detail, found in details if detail != "decided_by"]
        yield ScoreRow(name, score_text(value) + run.top(name), "; ".join(filter(None, terms)))


def _skipped(record: Mapping[str, Any]) -> list[tuple[str, list[str]]]:
    """Return the reasons why metrics do not apply, each with its metrics."""
    names: dict[str, list[str]] = {}
    for name, reason in (record.get("skipped_metrics") or {}).items():
        names.setdefault(reason, []).append(name)
    return sorted(names.items())


def _trace(record: Mapping[str, Any]) -> str | None:
    if not record.get("trace"):
        return None
    text = json.dumps(record["trace"], ensure_ascii=False, indent=1)
    return text if len(text) <= LONGEST_TRACE else text[:LONGEST_TRACE] + "\n…"


def latency_words(record: Mapping[str, Any]) -> str:
    """Return the time that asking and judging took, phase by phase, and the number of requests if several."""
    phases = ((name.removesuffix("_ms"), value) for name, value in (record.get("latency") or {}).items())
    parts = [f"{name.replace('_', ' ')} {duration(value)}" for name, value in phases if value and value >= 1]
    if (requests := record.get("requests") or 0) > 1:
        parts.append(f"{requests} requests")
    return " · ".join(parts)
