"""Parts of a case's view: texts with marked quotations, key facts, claims, trials, draft, comparison."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from pytest_rageval.comparison.case_diff import has_same_id, place_of
from pytest_rageval.metrics.answer import stated_facts
from pytest_rageval.runs.records import CUT
from pytest_rageval.text import change, printable, score_text, short
from pytest_rageval.tools.answer_draft import answer_draft, drafts_file_of
from pytest_rageval.views.text_diff import word_diff, word_set

LONGEST_TEXT = 4_000
"""Characters of a question or an answer; chunks are as long as in results.jsonl."""
FACT_METRIC = "key_fact_recall"
CLAIM_METRICS = ("groundedness", "faithfulness", "claim_support")
"""Judgements that list claims, by preference."""


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
    return DraftLine(_copyable(draft), drafts_file_of(record), command)


def _copyable(draft: Mapping[str, Any]) -> str:
    text = json.dumps(draft, ensure_ascii=False)
    return text if printable(text) == text else json.dumps(draft).replace("##", "#\\u0023")


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


class CheckedClaim(NamedTuple):
    """A claim of the answer.

    chunk            the rank of the chunk that the judge names, else of the one with most of the claim's words
    is_named         the judge names the chunk
    is_contradicted  the judge finds that the chunk contradicts the claim
    sentence         the judge's quotation of the chunk
    """

    is_supported: bool
    text: str
    chunk: int | None
    is_named: bool = False
    is_contradicted: bool = False
    sentence: str | None = None


def checked_claims(record: Mapping[str, Any], line: Mapping[str, Any] | None) -> Iterator[CheckedClaim]:
    """Yield the claims that the judge separated, unsupported ones first.

    `line` of observations.jsonl may hold what the judge wrote on single claims: `extra["evidence"]` of its judgement.
    Without it a claim has only the list that it is in, and the chunk that is nearest in words.
    """
    judgements = {**(record.get("judgements") or {}), "groundedness": record.get("groundedness")}
    metric = next((name for name in CLAIM_METRICS if _lists_claims(judgements.get(name))), None)
    if metric is None:
        return
    evidence = _evidence(line, metric)
    chunks = record["retrieved_chunks"]
    ranks = _ranks_of_passages(chunks, line)
    words = _ChunkWords(chunks)
    for name, is_supported in (("unsupported_claims", False), ("supported_claims", True)):
        for text in judgements[metric].get(name) or ():
            if text is not None:
                yield _checked(text, evidence.get(text, {}), ranks, words, is_supported=is_supported)


def _lists_claims(judgement: Mapping[str, Any] | None) -> bool:
    return bool(judgement and (judgement.get("supported_claims") or judgement.get("unsupported_claims")))


def _checked(
    text: str,
    evidence: Mapping[str, Any],
    ranks: Sequence[int],
    words: _ChunkWords,
    *,
    is_supported: bool,
) -> CheckedClaim:
    sentence, named = evidence.get("sentence"), _named(evidence.get("passage"), ranks)
    is_contradicted = not is_supported and evidence.get("verdict") == "contradicted"
    chunk = words.nearest(text) if named is None else named
    quoted = sentence if isinstance(sentence, str) and sentence else None
    return CheckedClaim(is_supported, text, chunk, named is not None, is_contradicted, quoted)


def _named(passage: object, ranks: Sequence[int]) -> int | None:
    """Return the rank of the passage that a judge names by its number from 1; None for any other value."""
    if not isinstance(passage, int) or isinstance(passage, bool):
        return None
    return ranks[passage - 1] if 1 <= passage <= len(ranks) else None


def _evidence(line: Mapping[str, Any] | None, metric: str) -> dict[str, Mapping[str, Any]]:
    """Return the judgement's entry on each claim, as results.jsonl cuts the claim; any judge may have written it."""
    judgement = ((line or {}).get("judgements") or {}).get(metric) or {}
    entries = (judgement.get("extra") or {}).get("evidence")
    if not isinstance(entries, list):
        return {}
    whole = [entry for entry in entries if isinstance(entry, Mapping) and isinstance(entry.get("claim"), str)]
    return {text: entry for entry in whole for text in (entry["claim"], _as_recorded(entry["claim"]))}


def _as_recorded(claim: str) -> str:
    return claim if len(claim) <= CUT else claim[:CUT] + "…"


def _ranks_of_passages(chunks: Sequence[Mapping[str, Any]], line: Mapping[str, Any] | None) -> list[int]:
    """Return the ranks of the passages that the judge read: the top k chunks with a text; see `passages.contexts`."""
    k = (line or {}).get("k")
    return [chunk["rank"] for chunk in chunks[:k] if (chunk["text"] or "").strip()]


class _ChunkWords:
    """The words of the chunks, computed for the first claim that needs them: a judge may name all chunks itself."""

    def __init__(self, chunks: Sequence[Mapping[str, Any]]) -> None:
        self._chunks = chunks

    @cached_property
    def _words(self) -> list[frozenset[str]]:
        return [word_set(chunk["text"] or "") for chunk in self._chunks]

    def nearest(self, claim: str) -> int | None:
        """Return the rank of the chunk with most words of a claim, at least half of them."""
        words = word_set(claim)
        shared = [len(words & chunk) for chunk in self._words]
        most = max(shared, default=0)
        return shared.index(most) + 1 if most and most * 2 >= len(words) else None


class MovedScore(NamedTuple):
    """A score on both sides."""

    metric: str
    before: str
    after: str
    delta: str


class AlignedChunk(NamedTuple):
    """A chunk with its rank on both sides, None if absent. `state`: equal, moved, NEW or GONE."""

    before: int | None
    after: int | None
    golds: str
    place: str
    state: str


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
        "chunks": chunks,
        "equal_chunks": sum(chunk.state == "equal" for chunk in chunks),
    }


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


def aligned_chunks(before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]) -> list[AlignedChunk]:
    """Merge both lists in the order of the ranks after; chunks that are gone keep their rank before."""
    return sorted(_aligned(before, after), key=lambda row: (row.after or row.before or 0, row.after is None))


def _aligned(before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]) -> Iterator[AlignedChunk]:
    remaining = list(before)
    for chunk in after:
        twin = next((other for other in remaining if _is_same(other, chunk)), None)
        if twin is not None:
            remaining.remove(twin)
        rank, rank_before = chunk["rank"], twin["rank"] if twin else None
        state = "NEW" if rank_before is None else "equal" if rank_before == rank else "moved"
        yield AlignedChunk(rank_before, rank, _golds(chunk), place_of(chunk), state)
    yield from (AlignedChunk(chunk["rank"], None, _golds(chunk), place_of(chunk), "GONE") for chunk in remaining)


def _is_same(chunk: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    if chunk["chunk_id"] is not None and other["chunk_id"] is not None:
        return has_same_id(chunk, other)
    return bool(chunk["rel_path"]) and place_of(chunk) == place_of(other)


def _golds(chunk: Mapping[str, Any]) -> str:
    return "gold " + ", ".join(str(gold + 1) for gold in chunk["matches"]) if chunk["matches"] else ""
