"""Parts of a case's view: texts with marked quotations, chunks, key facts, trials, draft, comparison."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pytest_rageval.cases.drafts import answer_draft, drafts_file_of
from pytest_rageval.comparison.case_diff import AlignedChunk, aligned_chunks, best_chunks, place_of
from pytest_rageval.metrics.answer import stated_facts
from pytest_rageval.model import EvalCase, Gold
from pytest_rageval.text import NO_VALUE, change, printable, score_text, short
from pytest_rageval.views.text_diff import word_diff

LONGEST_TEXT = 4_000
"""Characters of a question or an answer; chunks are as long as in results.jsonl."""
FACT_METRIC = "key_fact_recall"


def limited(text: str | None) -> str | None:
    """Cut a text to the length that is shown."""
    return text if text is None or len(text) <= LONGEST_TEXT else text[:LONGEST_TEXT] + "…"


class TextPart(NamedTuple):
    """A part of a text, marked if it is a quotation."""

    is_marked: bool
    text: str


def marked_text(text: str, snippets: Iterable[str]) -> Sequence[TextPart]:
    """Mark the first occurrence of each snippet, whatever its white space and case; () if there is none."""
    spans = sorted(span for snippet in snippets if (span := _span(text, snippet)) is not None)
    parts: list[TextPart] = []
    end = 0
    for start, stop in spans:
        if stop <= end:
            continue
        start = max(start, end)
        parts += [TextPart(is_marked=False, text=text[end:start])] * (start > end)
        parts.append(TextPart(is_marked=True, text=text[start:stop]))
        end = stop
    if parts and end < len(text):
        parts.append(TextPart(is_marked=False, text=text[end:]))
    return parts


def _span(text: str, snippet: str) -> tuple[int, int] | None:
    words = snippet.split()
    if words and (at := text.find(snippet)) >= 0:
        return at, at + len(snippet)
    # Compiled only if the plain search fails: it takes longer than the rest of a chunk's row.
    match = re.search(r"\s+".join(map(re.escape, words)), text, re.IGNORECASE) if words else None
    return match.span() if match else None


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


def chunk_rows(
    record: Mapping[str, Any], case: EvalCase | None, earlier: Mapping[str, Any] | None, k: int | None
) -> Iterator[ChunkRow]:
    """Yield the retrieved chunks by rank, then the golds that were not retrieved."""
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
    before = best_chunks(earlier["retrieved_chunks"]) if earlier else {}
    for number, name in enumerate(golds):
        if number not in matched:
            note = f"; it stood at rank {before[number]['rank']} before" if number in before else ""
            yield ChunkRow(None, "missed", f"gold {number + 1} of {len(golds)}", name, None, None, note)


def no_chunks(record: Mapping[str, Any]) -> str:
    """Return why there are no chunks; '' if there are some."""
    if record["retrieved_chunks"]:
        return ""
    if record["error"]:
        return "no chunks were recorded: the case ended in an error"
    reported = record.get("reported")
    is_silent = reported is not None and "chunks" not in reported
    return "the system reports no chunks" if is_silent else "no chunks were retrieved"


def _snippets(case: EvalCase | None, record: Mapping[str, Any], golds: Sequence[int]) -> list[str]:
    """Return the snippets of some golds; none if retrieval was measured by ids."""
    supports = (case.gold.supports or ()) if case and record.get("gold") != "ids" else ()
    return [snippet for gold in golds if gold < len(supports) for snippet in supports[gold].snippets]


def _gold_names(case: EvalCase | None) -> list[str]:
    if case is None:
        return []
    if case.gold.supports:
        return [str(anchor) for anchor in case.gold.supports]
    return list(case.gold.chunk_ids or ())


def gold_labels(gold: Gold) -> Iterator[tuple[str, str]]:
    """Yield what a case expects, by name."""
    yield from ((f"answer {number}", answer) for number, answer in enumerate(gold.answers or (), start=1))
    yield from ((f"gold {number}", str(name)) for number, name in enumerate(gold.supports or gold.chunk_ids or (), 1))
    if gold.support_groups:
        yield "groups", " or ".join(str([index + 1 for index in group]) for group in gold.support_groups)
    for name in ("key_facts", "concepts", "constraints", "kg_entities", "kg_edges"):
        if (values := getattr(gold, name)) is not None:
            yield name, "; ".join(map(str, values)) or "nothing is expected"


class DraftLine(NamedTuple):
    """A bad answer as a draft of a case: its JSON line, its file, the command that adds it there."""

    json: str
    file: str
    command: str


def draft_line(record: Mapping[str, Any], line: Mapping[str, Any] | None, run_id: str) -> DraftLine | None:
    """Return the draft of a case; None if the run keeps no texts. Invisible characters are escaped as in JSON."""
    draft = answer_draft(record, line, run_id)
    if draft is None:
        return None
    command = f"rageval cases draft {shlex.quote(run_id)} {shlex.quote(record['case_key'])}"
    text = json.dumps(draft, ensure_ascii=False)
    copyable = text if printable(text) == text else json.dumps(draft).replace("##", "#\\u0023")
    return DraftLine(copyable, drafts_file_of(record), command)


class KeyFact(NamedTuple):
    """A key fact; `is_stated` is None if no metric scored it."""

    text: str
    is_stated: bool | None


def key_facts(facts: Sequence[str], record: Mapping[str, Any], answer: str | None) -> list[KeyFact]:
    """Return the facts as `key_fact_recall` found them in the whole answer.

    `is_stated` is None if the metric did not score, or if its score then differs from what it finds now.
    """
    unknown = [KeyFact(fact, None) for fact in facts]
    recall = record.get("scores", {}).get(FACT_METRIC)
    if recall is None or answer is None:
        return unknown
    written = [fact for fact in facts if fact.strip()]
    stated = stated_facts(answer, written)
    if not written or abs(sum(stated) / len(written) - recall) > 1e-9:
        return unknown
    return [KeyFact(fact, is_stated) for fact, is_stated in zip(written, stated, strict=True)]


class TrialAnswer(NamedTuple):
    """One trial: its number from 1; `scores` of the metrics with failed gates; `error` if it ended in one."""

    number: int
    has_passed: bool
    answer: str | None
    scores: list[tuple[str, str]]
    error: str | None
    is_shown: bool


def trial_answers(
    records: Mapping[int, Mapping[str, Any]], lines: Mapping[int, Mapping[str, Any]], shown: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Return the number of passed trials and each answer; None for a single trial. `shown`: the trial of the view."""
    if len(records) < 2:
        return None
    each = [
        _answer(records[number], lines.get(number), is_shown=records[number] is shown) for number in sorted(records)
    ]
    return {"passed": sum(trial.has_passed for trial in each), "each": each}


def _answer(record: Mapping[str, Any], line: Mapping[str, Any] | None, *, is_shown: bool) -> TrialAnswer:
    error, failed = record["error"], record["verdict"]["failed_gates"]
    full = ((line or {}).get("answer") or {}).get("answer")
    scores = record.get("scores", {})
    return TrialAnswer(
        record["trial"] + 1,
        bool(record["verdict"].get("trial_passed")),
        limited(full if full is not None else record["answer"]),
        [(gate["metric"], short(scores[gate["metric"]])) for gate in failed if gate["metric"] in scores],
        f"{error['kind']}: {error['message'] or 'its message is left out'}" if error else None,
        is_shown,
    )


class MovedScore(NamedTuple):
    """A score on both sides."""

    metric: str
    before: str
    after: str
    delta: str


def case_comparison(
    record: Mapping[str, Any],
    earlier: Mapping[str, Any] | None,
    answer: str | None,
    answer_before: str | None,
    names: Mapping[str, str],
) -> dict[str, Any]:
    """Return the case before and after; `earlier` is None if the other run keeps no record of it."""
    if earlier is None:
        return {"is_known": False}
    scores = _moved(record.get("scores", {}), earlier.get("scores", {}), names)
    chunks = aligned_chunks(earlier["retrieved_chunks"], record["retrieved_chunks"])
    if answer == answer_before and not scores and all(chunk.state == "equal" for chunk in chunks):
        return {"is_known": True, "is_equal": True}
    return {
        "is_known": True,
        "is_equal": False,
        "outcome_before": earlier.get("outcome"),
        "diff": word_diff(answer_before or "", answer or "") if answer != answer_before else [],
        "answer_before": answer_before,
        "answer_after": answer,
        "moved": scores,
        "equal": len(record.get("scores", {})) - len(scores),
        "chunks": [_aligned_cells(chunk) for chunk in chunks],
        "equal_chunks": sum(chunk.state == "equal" for chunk in chunks),
    }


def _aligned_cells(chunk: AlignedChunk) -> tuple[str, ...]:
    """Return kind, ranks, golds, place and state of a chunk on both sides."""
    golds = f"✔ gold {', '.join(map(str, chunk.golds))}" if chunk.golds else "·"
    ranks = (str(rank or NO_VALUE) for rank in (chunk.rank_before, chunk.rank_after))
    return "same" if chunk.state == "equal" else chunk.state, *ranks, golds, chunk.place, chunk.state


def _moved(now: Mapping[str, float], before: Mapping[str, float], names: Mapping[str, str]) -> list[MovedScore]:
    """Return the scores of both sides that differ, the furthest first."""
    earlier = {names.get(name, name): value for name, value in before.items()}
    moved = [(name, earlier[name], value) for name, value in now.items() if earlier.get(name, value) != value]
    return [
        MovedScore(
            name.partition("@")[0] if name in names.values() else name,
            score_text(old),
            score_text(new),
            change(new - old),
        )
        for name, old, new in sorted(moved, key=lambda row: (-abs(row[2] - row[1]), row[0]))
    ]
