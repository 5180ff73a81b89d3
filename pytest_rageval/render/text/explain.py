"""One case in full: question, expected and retrieved chunks, matches, each metric's arithmetic, each gate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from rich.cells import cell_len

from pytest_rageval.gates.verdict import GatedTrial, looks_at
from pytest_rageval.io.suggestions import and_more
from pytest_rageval.metrics.registry import is_described
from pytest_rageval.model import Gold, Observation
from pytest_rageval.plan import Plan
from pytest_rageval.render.text.columns import aligned, last_wrapped, shortened, wrapped
from pytest_rageval.text import printable, score_text, short
from pytest_rageval.views.case import CaseView, ChunkRow

TEXT = 300
"""Characters of a text that are shown."""
FOLDED = 3
"""Lines of a chunk that are shown."""
LEAST = 20
"""Minimum width of a text, even in a narrower terminal."""
NOTHING_RETRIEVED = ChunkRow(None, "other", "", "", None, None)


class Form(NamedTuple):
    """The columns of the terminal, and whether texts are shown in full."""

    width: int = 120
    is_full: bool = False


def explanation(
    case: CaseView,
    record: Mapping[str, Any],
    obs: Observation | None,
    plan: Plan,
    form: Form = Form(),  # noqa: B008 it is frozen
) -> Iterator[str]:
    """Return the lines of a case. `obs` is None if asking or judging failed, or no observation was kept."""
    return map(printable, _lines(case, record, obs, plan, form))


def _lines(case: CaseView, record: Mapping[str, Any], obs: Observation | None, plan: Plan, form: Form) -> Iterator[str]:
    yield f"{record['case_key']}   {record['outcome']}"
    yield f"written at {record['source']['file']}:{record['source']['line']}"
    if (record.get("requests") or 0) > 1:
        yield f"latency: {case.latency}"
    yield ""
    if obs is None:
        error = record["error"]
        message = printable(error["message"] or "its message is left out") if error else ""
        yield f"error      {error['kind']}: {message}" if error else "no observation was kept"
        yield from _as_recorded(record)
        yield from _retrieved(case, None, form)
        yield from _section(
            "scores as recorded",
            [[name, score_text(value)] for name, value in record["scores"].items()],
            form.width,
        )
        return
    yield from _question(obs, form)
    yield from _gold(obs.gold, form)
    yield from _retrieved(case, obs, form)
    yield from (f"  note: {flag}" for flag in obs.matching.flags)
    yield from _claims(case, form)
    yield from _metrics(record, obs, plan, form)
    doubts = [[judgement.rubric, flag] for judgement in obs.judgements.values() for flag in judgement.flags]
    error = record["error"]
    errors = {error["kind"]: error["message"] or ""} if error else record.get("metric_errors", {})
    yield from _section("errors", [[name, why] for name, why in errors.items()], form.width)
    yield from _section("doubts about the judge's replies", doubts, form.width)
    yield from _gates(record, obs, plan, form)
    reasons: dict[str, list[str]] = {}
    for name, reason in record["skipped_metrics"].items():
        reasons.setdefault(reason, []).append(name)
    yield from _section(
        "not applicable", [[f"{reason}: {', '.join(names)}"] for reason, names in reasons.items()], form.width
    )


def _as_recorded(record: Mapping[str, Any]) -> Iterator[str]:
    """Yield the texts of a case without its observation, as far as results.jsonl keeps them."""
    for name in ("question", "answer"):
        if record[name]:
            yield f"{name:<10} {_text(record[name])}"


def _question(obs: Observation, form: Form) -> Iterator[str]:
    for name, text in (("question", obs.case.question), ("answer", obs.answer.text)):
        if text is not None:
            shown = printable(text) if form.is_full else _text(text)
            lines = wrapped(shown, max(form.width - 11, LEAST))
            yield from (f"{name if not number else '':<10} {line}".rstrip() for number, line in enumerate(lines))
    if obs.answer.abstained is not None:
        reason = f" ({obs.answer.abstain_reason})" if obs.answer.abstain_reason else ""
        yield f"abstained  {'yes' if obs.answer.abstained else 'no'}{reason}"


def _gold(gold: Gold, form: Form) -> Iterator[str]:
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
    yield from _section("expected", rows, form.width)


def _retrieved(case: CaseView, obs: Observation | None, form: Form) -> Iterator[str]:
    """Yield the chunks by rank, each with its text, then the golds that were not retrieved."""
    chunks: Sequence[ChunkRow] = case.chunks
    rows = [
        [str(chunk.rank or "–"), printable(chunk.place), score_text(chunk.score), _mark_of(chunk)] for chunk in chunks
    ]
    width = sum(max(map(cell_len, column)) + 2 for column in zip(*([row[0], *row[2:]] for row in rows), strict=True))
    room = min(max(form.width - len("  ") - width, LEAST // 2), 70)
    rows = [[rank, shortened(place, room), *others] for rank, place, *others in rows]
    if not any(chunk.rank for chunk in chunks) and (obs is None or obs.answer.chunks is not None):
        rows.insert(0, ["–", "nothing was retrieved", "", ""])
        chunks = [NOTHING_RETRIEVED, *chunks]
    lines = ["", "came", *aligned(rows, indent="  ", to_the_left=True)] if rows else []
    yield from lines[:2]
    for line, chunk in zip(lines[2:], chunks, strict=True):
        yield line
        yield from _chunk_text(chunk, obs, form)


def _mark_of(chunk: ChunkRow) -> str:
    if chunk.kind == "other":
        return ""
    return f"{chunk.mark}{' was not retrieved' if chunk.rank is None else ''}"


def _chunk_text(chunk: ChunkRow, obs: Observation | None, form: Form) -> Iterator[str]:
    """Yield the text of a chunk under its row, in full as far as the run keeps it."""
    recorded = obs.answer.chunks[chunk.rank - 1].text if obs and obs.answer.chunks and chunk.rank else None
    text = recorded or chunk.text
    if not text:
        return
    lines = wrapped(printable(text.strip()), max(form.width - 7, LEAST))
    shown = lines if form.is_full or len(lines) <= FOLDED + 1 else lines[:FOLDED]
    yield from (f"       {line}".rstrip() for line in shown)
    if len(shown) < len(lines):
        yield f"       {and_more(len(lines) - len(shown), 'lines')}: --full shows them"


def _claims(case: CaseView, form: Form) -> Iterator[str]:
    """Yield the judge's verdict on each claim of the answer, and the chunk nearest to it."""
    rows = []
    for claim in case.claims:
        mark, verdict = ("✔", "supported") if claim.is_supported else ("✘", "unsupported")
        near = f"chunk {claim.chunk}" if claim.chunk else ""
        rows.append([mark, verdict, near, shortened(printable(claim.text), max(form.width - 28, LEAST))])
    yield from _section("claims", rows, form.width)


def _metrics(record: Mapping[str, Any], obs: Observation, plan: Plan, form: Form) -> Iterator[str]:
    rows = []
    for name, value in record["scores"].items():
        measure = plan.registry.measure(name, obs.k)
        if is_described(measure.metric):
            rows.append([name, score_text(value), "a metric of the project's own"])
            continue
        terms = [measure.arithmetic(obs), *_details(record["score_details"].get(name, {}))]
        scale = "" if measure.metric.scale == (0, 1) else f" of {measure.metric.scale[1]:g}"
        rows.append([name, score_text(value) + scale, _text("; ".join(term for term in terms if term))])
    yield from _section("metrics", rows, form.width)


def _details(detail: Mapping[str, Any]) -> Iterator[str]:
    return (f"{name.replace('_', ' ')}: {value}" for name, value in detail.items() if name != "decided_by")


def _gates(record: Mapping[str, Any], obs: Observation, plan: Plan, form: Form) -> Iterator[str]:
    rows: dict[tuple[str, ...], None] = {}
    for gate in plan.case_gates:
        if looks_at(gate, GatedTrial(obs, record["scores"])):
            value = record["scores"][gate.name]
            verdict = "holds" if gate.holds(value) else f"fails{f' ({gate.tag})' if gate.tag else ''}"
            rows[str(gate), f"is {short(value)}", verdict] = (
                None  # two gates may say the same under different conditions
            )
    yield from _section("gates", [*rows] or [["no gate examined this case"]], form.width)


def _section(title: str, rows: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    if rows:
        yield ""
        yield title
        yield from last_wrapped(rows, width, indent="  ")


def _text(text: str) -> str:
    return shortened(printable(text), TEXT)
