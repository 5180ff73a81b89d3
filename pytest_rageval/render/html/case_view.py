"""One case as its page shows it: why it failed, texts, chunks with golds, claims, gates, scores, trials, trace."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pytest_rageval.comparison.case_diff import place_of, representative_trial
from pytest_rageval.errors import RagevalError
from pytest_rageval.metrics.arithmetic import arithmetic
from pytest_rageval.metrics.registry import Registry, is_described
from pytest_rageval.model import EvalCase, Observation
from pytest_rageval.render.html.case_parts import (
    TextPart,
    case_comparison,
    checked_claims,
    draft_line,
    key_facts,
    limited,
    marked_text,
    trial_answers,
)
from pytest_rageval.render.html.page_run import PageRun
from pytest_rageval.render.html.run_cases import CaseLines, ListedCase, read_answers, read_case_lines
from pytest_rageval.render.html.text_diff import word_diff
from pytest_rageval.runs.reader import observation_of, recorded_case
from pytest_rageval.text import duration, score_text, short

LONGEST_TRACE = 6_000
OUTCOMES = {
    "passed": ("✔", "passed"),
    "failed": ("✘", "FAILED"),
    "error": ("!", "ERROR"),
    "xfailed": ("✘", "known failure"),
    "skipped": ("–", "skipped"),
}
CHANGES = {"worse": "new: passed before", "fixed": "fixed: failed before", "same": "",
           "new": "new, or another case than before", "unmeasured": "had scores before"}  # fmt: skip


class ChunkRow(NamedTuple):
    """A retrieved chunk, or a gold that was not retrieved (`rank` None); `parts`: its text, where a gold is quoted."""

    rank: int | None
    kind: str
    mark: str
    place: str
    score: float | None
    text: str | None
    note: str = ""
    parts: Sequence[TextPart] = ()


class JudgementRow(NamedTuple):
    """What a judge scored, and why; `is_defined`: it is a metric of the run, whose definition can be looked up."""

    metric: str
    score: str
    model: str
    reasoning: str | None
    is_heuristic: bool
    is_defined: bool


class ScoreRow(NamedTuple):
    """A score, with the end of its scale where that is not 1, and its arithmetic."""

    metric: str
    value: str
    terms: str


@dataclass(frozen=True, slots=True)
class CaseContext:
    """What the pages of all cases share.

    names   metrics of the other run → what they are called in this one
    """

    run_id: str
    config: Mapping[str, Any]
    metrics: Mapping[str, Mapping[str, Any]]
    registry: Registry
    names: Mapping[str, str]
    other: str | None = None

    def top(self, name: str) -> str:
        """` of 5`: the end of a metric's scale; '' where it is 1."""
        scale = self.metrics.get(name, {}).get("scale", [0, 1])
        return "" if scale[1] == 1 else f" of {scale[1]:g}"


def case_view(case: ListedCase, lines: CaseLines, before: CaseLines | None, run: CaseContext) -> dict[str, Any]:
    """The content of a case's page: names and values for the template, nothing escaped."""
    record = representative_trial(lines.records)
    line = lines.observations.get(record["trial"])
    observation = _observation(line, run) if case.is_failing or case.change == "worse" else None
    labelled = observation.case if observation else _case(line)
    earlier = representative_trial(before.records) if before else None
    chunks = list(_chunks(record, labelled, earlier, run.config.get("k")))
    answer, question = _texts(record, line)
    expected = labelled.gold.answers[0] if labelled and labelled.gold.answers else None
    facts = (labelled.gold.key_facts or ()) if labelled else ()
    symbol, word = OUTCOMES[case.row.outcome]
    return {
        "key": case.key, "id": case.id, "place": case.texts.place, "symbol": symbol, "word": word,
        "outcome": case.row.outcome, "change": CHANGES[case.change], "facts": _facts(record),
        "why": list(_why(record, observation, chunks, run)), "question": question, "answer": answer,
        "no_answer": "none: the case ended in an error" if answer is None and record["error"] else "",
        "is_cut": answer is not None and answer.endswith("…") and line is None,
        "abstained": bool(record["abstention"] and record["abstention"]["abstained"]),
        "expected": list(labelled.gold.answers or ()) if labelled else [],
        "answerable": record.get("answerable", True),
        "key_facts": list(facts), "stated": key_facts(facts, record, _whole_answer(record, line)),
        "diff": word_diff(expected, answer) if expected and answer else [],
        "k": run.config.get("k"), "chunks": chunks, "no_chunks": _no_chunks(record),
        "top_score": max((c.score or 0 for c in chunks), default=0),
        "claims": list(checked_claims(record, line)), "judgements": list(_judgements(record)),
        "gates": record["verdict"]["failed_gates"], "gates_held": record["verdict"].get("gates_held", 0),
        "scores": list(_scores(record, observation, run)), "skipped": _skipped(record),
        "trials": trial_answers(lines.records, lines.observations, record), "trace": _trace(record),
        "latency": latency_words(record),
        "has_observation": line is not None, "rerun": _rerun(case, run),
        "explain": f"rageval explain {shlex.quote(run.run_id)} {shlex.quote(case.key)}",
        "comparison": _comparison(record, before, answer, run),
        "other": run.other, "draft": draft_line(record, line, run.run_id) if answer is not None else None,
    }  # fmt: skip


def _rerun(case: ListedCase, run: CaseContext) -> str:
    """The command that asks the case again; none for a run of the web app, whose cases are in a folder of its own."""
    return "" if run.config.get("origin") else f"pytest {shlex.quote(case.key)}"


def _observation(line: Mapping[str, Any] | None, run: CaseContext) -> Observation | None:
    """The observation as it was scored; None where none was kept, or it cannot be read any more."""
    if line is None or line["answer"] is None:
        return None
    try:
        return observation_of(line, run.config)
    except (RagevalError, KeyError, TypeError, ValueError):  # a damaged line costs its details, not the report
        return None


def _case(line: Mapping[str, Any] | None) -> EvalCase | None:
    if line is None:
        return None
    try:
        return recorded_case(line)
    except (RagevalError, KeyError, TypeError, ValueError):  # as above
        return None


def _texts(record: Mapping[str, Any], line: Mapping[str, Any] | None) -> tuple[str | None, str | None]:
    """Answer and question: in full where the run keeps observations."""
    answer = (line["answer"] or {}).get("answer") if line else None
    question = line["case"].get("question") if line else None
    return limited(answer if answer is not None else record["answer"]), limited(question or record["question"])


def _whole_answer(record: Mapping[str, Any], line: Mapping[str, Any] | None) -> str | None:
    """The answer as it was scored; None where no file holds all of it."""
    if line is not None and line["answer"] is not None:
        answer: str | None = line["answer"].get("answer")
        return answer
    answer = record["answer"]
    return None if answer is None or answer.endswith("…") else answer


def _comparison(
    record: Mapping[str, Any], before: CaseLines | None, answer: str | None, run: CaseContext
) -> dict[str, Any] | None:
    """The case before and after; None where the page compares nothing."""
    if run.other is None:
        return None
    earlier = representative_trial(before.records) if before else None
    was = _texts(earlier, before.observations.get(earlier["trial"]))[0] if before and earlier else None
    return case_comparison(record, earlier, answer, was, run.names)


def _facts(record: Mapping[str, Any]) -> list[str]:
    facts = [record.get(name) for name in ("difficulty", "domain", "category")]
    facts += ["requires_kg"] * bool(record.get("requires_kg")) + ["unanswerable"] * (not record.get("answerable", True))
    return [str(fact) for fact in [*facts, *record.get("tags", ())] if fact]


# ── why ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _why(
    record: Mapping[str, Any], observation: Observation | None, chunks: Sequence[ChunkRow], run: CaseContext
) -> Iterator[str]:
    """Why the case failed: the error, or each gate with its arithmetic; then the golds that are missing."""
    if error := record["error"]:
        yield f"{error['kind']}: {error['message'] or 'its message is left out'}"
    yield from (f"{name} has no score: {why}" for name, why in record.get("metric_errors", {}).items())
    gates = record["verdict"]["failed_gates"]
    for gate in gates:
        terms = _terms(gate["metric"], observation, run)
        tag = f" ({gate['tag']})" if gate["tag"] else ""
        yield f"{gate['metric']} = {short(gate['value'])}, needs {gate['threshold']}{tag}" + (
            f": {terms}" if terms else ""
        )
    if any(run.metrics.get(gate["metric"], {}).get("layer") in ("L2", "L3") for gate in gates):
        yield from (f"{chunk.mark} “{chunk.place}” was not retrieved{chunk.note}" for chunk in chunks if not chunk.rank)
        late = (chunk for chunk in chunks if chunk.rank and chunk.note)
        yield from (f"{chunk.mark} “{chunk.place}” stands at rank {chunk.rank}{chunk.note}" for chunk in late)
    if not gates and not error and record.get("reason"):
        yield str(record["reason"])


def _terms(name: str, observation: Observation | None, run: CaseContext) -> str:
    if observation is None:
        return ""
    try:
        measure = run.registry.measure(name, observation.k)
        return "" if is_described(measure.metric) else arithmetic(measure, observation)
    except RagevalError:  # a metric that is not known here any more
        return ""


# ── chunks, judgements ────────────────────────────────────────────────────────────────────────────────────────────


def _chunks(
    record: Mapping[str, Any], case: EvalCase | None, earlier: Mapping[str, Any] | None, k: int | None
) -> Iterator[ChunkRow]:
    """What was retrieved, by rank, then the golds that were not."""
    golds = _gold_names(case)
    matched: set[int] = set()
    for chunk in record["retrieved_chunks"]:
        is_late = k is not None and chunk["rank"] > k and not matched.issuperset(chunk["matches"])
        matched.update(chunk["matches"])
        numbers = ", ".join(str(gold + 1) for gold in chunk["matches"])
        kind = "gold" if chunk["matches"] else "other"
        mark, note = (f"gold {numbers}" if numbers else "other"), (f", beyond k = {k}" if is_late else "")
        parts = marked_text(chunk["text"] or "", _snippets(case, record, chunk["matches"]))
        yield ChunkRow(chunk["rank"], kind, mark, place_of(chunk), chunk["score_final"], chunk["text"], note, parts)
    ranks_before = _ranks(earlier)
    for number, name in enumerate(golds):
        if number not in matched:
            rank = ranks_before.get(number)
            note = f"; it stood at rank {rank} before" if rank else ""
            yield ChunkRow(None, "missed", f"gold {number + 1} of {len(golds)}", name, None, None, note)


def _no_chunks(record: Mapping[str, Any]) -> str:
    """What is said in place of the chunks where there are none; '' where there are."""
    if record["retrieved_chunks"]:
        return ""
    if record["error"]:
        return "no chunks were recorded: the case ended in an error"
    reported = record.get("reported")
    return (
        "the system reports no chunks"
        if reported is not None and "chunks" not in reported
        else ("no chunks were retrieved")
    )


def _snippets(case: EvalCase | None, record: Mapping[str, Any], golds: Sequence[int]) -> list[str]:
    """The quotations of some golds; none where retrieval was measured by ids."""
    supports = (case.gold.supports or ()) if case and record.get("gold") != "ids" else ()
    return [snippet for gold in golds if gold < len(supports) for snippet in supports[gold].snippets]


def _gold_names(case: EvalCase | None) -> list[str]:
    if case is None:
        return []
    if case.gold.supports:
        return [str(anchor) for anchor in case.gold.supports]
    return list(case.gold.chunk_ids or ())


def _ranks(record: Mapping[str, Any] | None) -> dict[int, int]:
    ranks: dict[int, int] = {}
    for chunk in record["retrieved_chunks"] if record else ():
        for gold in chunk["matches"]:
            ranks.setdefault(gold, chunk["rank"])
    return ranks


def _judgements(record: Mapping[str, Any]) -> Iterator[JudgementRow]:
    # Records of before all were kept have these two alone.
    judgements = {name: record.get(name) for name in ("groundedness", "correctness")} | (record.get("judgements") or {})
    scored = {name.partition("@")[0] for name in record.get("scores", ())}
    for name, judgement in judgements.items():
        if judgement:
            yield JudgementRow(
                name, short(judgement["score"]), judgement.get("model") or "?", judgement.get("reasoning"),
                is_heuristic=bool(judgement.get("heuristic")), is_defined=name in scored,
            )  # fmt: skip


# ── figures ───────────────────────────────────────────────────────────────────────────────────────────────────


def _scores(record: Mapping[str, Any], observation: Observation | None, run: CaseContext) -> Iterator[ScoreRow]:
    for name, value in record.get("scores", {}).items():
        terms = _terms(name, observation, run) if observation else ""
        yield ScoreRow(name, score_text(value) + run.top(name), terms)


def _skipped(record: Mapping[str, Any]) -> list[tuple[str, list[str]]]:
    """Reasons for which metrics do not apply, with the metrics."""
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
    """Return how long asking and judging took, phase by phase, and how many requests were sent if several."""
    phases = ((name.removesuffix("_ms"), value) for name, value in (record.get("latency") or {}).items())
    parts = [f"{name.replace('_', ' ')} {duration(value)}" for name, value in phases if value and value >= 1]
    if (requests := record.get("requests") or 0) > 1:
        parts.append(f"{requests} requests")
    return " · ".join(parts)


def case_views(page: PageRun, cases: Sequence[ListedCase]) -> Iterator[dict[str, Any] | None]:
    """The content of the page of each of these cases; None of one without a record, none where no records are kept."""
    keys = {case.key for case in cases}
    lines = read_case_lines(page.side.run, keys, page.damages) if page.side.run and page.side.has_records else {}
    other = page.before if page.compared else None
    before = read_answers(other, keys, page.damages) if other else {}
    view = CaseContext(
        page.run_id,
        page.config,
        page.metrics["metrics"],
        page.registry,
        page.names,
        other.run_id if other else None,
    )
    for case in cases if lines else ():
        yield case_view(case, lines[case.key], before.get(case.key), view) if case.key in lines else None
