"""One case in full: what was asked and expected, what came and what it matched, each metric's arithmetic, each gate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_rageval.gates import GatedTrial, looks_at
from pytest_rageval.metrics.described import is_described
from pytest_rageval.metrics.reference.arithmetic import arithmetic
from pytest_rageval.model import Gold, Observation
from pytest_rageval.numbers import score_text, short
from pytest_rageval.plan import Plan
from pytest_rageval.report.columns import aligned, shortened
from pytest_rageval.text import printable

TEXT = 300
"""Characters of a text that are shown."""


def explanation(record: Mapping[str, Any], obs: Observation | None, plan: Plan) -> Iterator[str]:
    """The lines for one record; `obs` is None where asking or judging failed, or where no observation was kept."""
    return map(printable, _lines(record, obs, plan))


def _lines(record: Mapping[str, Any], obs: Observation | None, plan: Plan) -> Iterator[str]:
    yield f"{record['case_key']}   {record['outcome']}"
    yield f"written at {record['source']['file']}:{record['source']['line']}"
    yield ""
    if obs is None:
        error = record["error"]
        message = printable(error["message"] or "its message is left out") if error else ""
        yield f"error      {error['kind']}: {message}" if error else "no observation was kept"
        yield from _as_recorded(record)
        yield from _section(
            "scores as recorded", [[name, score_text(value)] for name, value in record["scores"].items()]
        )
        return
    yield from _asked(obs)
    yield from _gold(obs.gold)
    yield from _came(obs)
    yield from _metrics(record, obs, plan)
    doubts = [[judgement.rubric, flag] for judgement in obs.judgements.values() for flag in judgement.flags]
    yield from _section("doubts about the judge's replies", doubts)
    yield from _gates(record, obs, plan)
    reasons: dict[str, list[str]] = {}
    for name, reason in record["skipped_metrics"].items():
        reasons.setdefault(reason, []).append(name)
    yield from _section("not applicable", [[reason + ":", ", ".join(names)] for reason, names in reasons.items()])


def _as_recorded(record: Mapping[str, Any]) -> Iterator[str]:
    """What is known of a case without its observation: texts as far as results.jsonl keeps them."""
    for name in ("question", "answer"):
        if record[name]:
            yield f"{name:<10} {_text(record[name])}"
    rows = []
    for chunk in record["retrieved_chunks"]:
        place = " > ".join(part for part in (chunk["rel_path"], chunk["heading_path"]) if part)
        rows.append([str(chunk["rank"]), shortened(printable(place or chunk["chunk_id"] or "?"), 70)])
    yield from _section("came", rows)


def _asked(obs: Observation) -> Iterator[str]:
    yield f"question   {_text(obs.case.question)}"
    if obs.answer.text is not None:
        yield f"answer     {_text(obs.answer.text)}"
    if obs.answer.abstained is not None:
        reason = f" ({obs.answer.abstain_reason})" if obs.answer.abstain_reason else ""
        yield f"abstained  {'yes' if obs.answer.abstained else 'no'}{reason}"


def _gold(gold: Gold) -> Iterator[str]:
    rows = [[f"answer {n}", _text(answer)] for n, answer in enumerate(gold.answers or (), 1)]
    rows += [[f"gold {n}", _text(str(anchor))] for n, anchor in enumerate(gold.supports or (), 1)]
    if not gold.supports:
        rows += [[f"gold {n}", _text(chunk_id)] for n, chunk_id in enumerate(gold.chunk_ids or (), 1)]
    if gold.support_groups:
        rows.append(["groups", " or ".join(str([index + 1 for index in group]) for group in gold.support_groups)])
    for name in ("key_facts", "concepts", "constraints", "kg_entities", "kg_edges"):
        values = getattr(gold, name)
        if values is not None:
            rows.append([name, _text("; ".join(map(str, values)) or "nothing is expected")])
    yield from _section("expected", rows)


def _came(obs: Observation) -> Iterator[str]:
    rows = []
    for rank, chunk in enumerate(obs.answer.chunks or (), start=1):
        golds = sorted(gold + 1 for gold in obs.hits[rank - 1]) if rank <= len(obs.hits) else []
        place = " > ".join(part for part in (chunk.rel_path, chunk.heading_path) if part)
        matched = "gold " + ", ".join(map(str, golds)) if golds else ""
        name = printable(place or chunk.chunk_id or chunk.doc_id or "?")
        rows.append([str(rank), shortened(name, 70), score_text(chunk.score_final), matched])
    if obs.answer.chunks is not None:
        yield from _section("came", rows or [["nothing was retrieved"]])
    yield from (f"  note: {flag}" for flag in obs.matching.flags)


def _metrics(record: Mapping[str, Any], obs: Observation, plan: Plan) -> Iterator[str]:
    rows = []
    for name, value in record["scores"].items():
        measure = plan.registry.measure(name, obs.k)
        if is_described(measure.metric):
            rows.append([name, score_text(value), "a metric of the project's own"])
            continue
        terms = [arithmetic(measure, obs), *_details(record["score_details"].get(name, {}))]
        scale = "" if measure.metric.scale == (0, 1) else f" of {measure.metric.scale[1]:g}"
        details = "; ".join(term for term in terms if term)
        rows.append([name, score_text(value) + scale, shortened(printable(details), 110)])
    yield from _section("metrics", rows)


def _details(detail: Mapping[str, Any]) -> Iterator[str]:
    return (f"{name.replace('_', ' ')}: {value}" for name, value in detail.items() if name != "decided_by")


def _gates(record: Mapping[str, Any], obs: Observation, plan: Plan) -> Iterator[str]:
    rows: dict[tuple[str, ...], None] = {}
    for gate in plan.case_gates:
        if looks_at(gate, GatedTrial(obs, record["scores"])):
            value = record["scores"][gate.name]
            verdict = "holds" if gate.holds(value) else f"fails{f' ({gate.tag})' if gate.tag else ''}"
            rows[str(gate), f"is {short(value)}", verdict] = (
                None  # two gates may say the same under different conditions
            )
    yield from _section("gates", [*rows] or [["no gate examined this case"]])


def _section(title: str, rows: Sequence[Sequence[str]]) -> Iterator[str]:
    if rows:
        yield ""
        yield title
        yield from aligned(rows, indent="  ", to_the_left=True)


def _text(text: str) -> str:
    return shortened(printable(text), TEXT)
