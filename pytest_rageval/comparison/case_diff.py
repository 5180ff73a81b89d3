"""Differences of one case between two runs: golds found or lost, ranks, chunks and answers on both sides."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any, NamedTuple

from pytest_rageval.runs.records.line_scan import trials_of

Record = Mapping[str, Any]
SHOWN_CHUNKS = 20
READ = frozenset(["case_key", "trial", "question", "answer", "retrieved_chunks", "abstention", "verdict", "error"])
"""The fields of a record that this module needs."""


class CaseLines(NamedTuple):
    """The records of a case by trial, and the observations if the run stores them."""

    records: Mapping[int, Record]
    observations: Mapping[int, Record]


def records_of(path: Path, keys: Set[str]) -> dict[str, Record]:
    """Read the records of some cases from a file of any length; of several trials, the one that shows the outcome.

    Decode only the lines of these cases. Return {} without a file.
    """
    return {key: representative_trial(trials) for key, trials in trials_of(path, keys, READ).items()}


def representative_trial(trials: Mapping[int, Record]) -> Record:
    """Return the trial that stands for a case: the first with an error, else the first with the verdict of the case."""
    # Attempts that confirm a new failure have decided about the case, and stand for none: its scores are the first's.
    first = [number for number, record in trials.items() if not record.get("confirms")]
    number = min(first or trials, key=lambda each: (trial_rank(trials[each]), each))
    return trials[number]


def trial_rank(record: Record) -> int:
    """Return the sort key of a trial among those of its case: the first in order stands for the case."""
    if record["error"]:
        return 0
    verdict = record["verdict"]
    return 1 if verdict.get("trial_passed") == verdict["passed"] else 2


def detail(before: Record | None, after: Record | None) -> dict[str, Any] | None:
    """Return question, answers, golds and chunks of a case on both sides; None if neither has a record."""
    record = after or before
    if record is None:
        return None
    was = before["retrieved_chunks"] if before else ()
    now = after["retrieved_chunks"] if after else ()
    golds = []
    if before and after:
        golds = _golds(was, now)
    chunks = aligned_chunks(was, now)[:SHOWN_CHUNKS]
    content = {
        "question": record["question"],
        "golds": golds,
        "chunks": [chunk._asdict() for chunk in chunks],
    }
    for side, facts in (("before", _of_side(before)), ("after", _of_side(after))):
        content |= {f"{name}_{side}": value for name, value in facts.items()}
    return content


def _of_side(record: Record | None) -> dict[str, Any]:
    if record is None:
        return {
            "has_record": False,
            "answer": None,
            "abstained": None,
            "undecided": False,
            "error": None,
            "failed_gates": [],
        }
    abstained = None
    is_undecided = False
    if record["abstention"]:
        abstained = record["abstention"]["abstained"]
        is_undecided = bool(record["abstention"].get("undecided"))
    error = None
    if record["error"]:
        error = {name: record["error"][name] for name in ("kind", "message")}
    return {
        "has_record": True,
        "answer": record["answer"],
        "abstained": abstained,
        "undecided": is_undecided,
        "error": error,
        "failed_gates": [_failed_gate(gate) for gate in record["verdict"]["failed_gates"]],
    }


def _failed_gate(gate: Mapping[str, Any]) -> dict[str, Any]:
    return {name: gate[name] for name in ("metric", "value", "threshold", "tag")}


def place_of(chunk: Mapping[str, Any]) -> str:
    """Return the place of a chunk, as far as the system reports it."""
    path = chunk["rel_path"]
    heading = chunk["heading_path"]
    if path and heading:
        return f"{path} > {heading}"
    if path or heading:
        return str(path or heading)
    return named_chunk(str(chunk["chunk_id"] or "?"))


def named_chunk(chunk_id: str) -> str:
    """Return an id as people are shown it: beside a rank or a score, a bare number would read as another figure."""
    return f"chunk {chunk_id}" if chunk_id.isdecimal() else chunk_id


class AlignedChunk(NamedTuple):
    """A chunk with its rank on both sides, None if absent, and the numbers of the golds that it matches, from 1.

    `state`: equal, moved, new or gone.
    """

    rank_before: int | None
    rank_after: int | None
    golds: list[int]
    place: str
    chunk_id: str | None
    state: str


def aligned_chunks(before: Sequence[Record], after: Sequence[Record]) -> list[AlignedChunk]:
    """Merge both lists in the order of the ranks after; chunks that are gone keep their rank before."""

    def order(chunk: AlignedChunk) -> tuple[int, bool]:
        return chunk.rank_after or chunk.rank_before or 0, chunk.rank_after is None

    return sorted(_aligned(before, after), key=order)


def _aligned(before: Sequence[Record], after: Sequence[Record]) -> Iterator[AlignedChunk]:
    remaining = list(before)
    for chunk in after:
        rank = chunk["rank"]
        twin = next((other for other in remaining if _is_same(other, chunk)), None)
        if twin is None:
            yield _aligned_chunk(chunk, None, rank, "new")
            continue
        remaining.remove(twin)
        state = "equal" if twin["rank"] == rank else "moved"
        yield _aligned_chunk(chunk, twin["rank"], rank, state)
    for chunk in remaining:
        yield _aligned_chunk(chunk, chunk["rank"], None, "gone")


def _aligned_chunk(chunk: Record, before: int | None, after: int | None, state: str) -> AlignedChunk:
    golds = [gold + 1 for gold in chunk["matches"]]
    return AlignedChunk(before, after, golds, place_of(chunk), chunk["chunk_id"], state)


def _is_same(chunk: Record, other: Record) -> bool:
    """Return True if both have one id and no different paths: some systems number the chunks of each answer from 1.

    Without ids, their places count.
    """
    if chunk["chunk_id"] is None or other["chunk_id"] is None:
        return bool(chunk["rel_path"]) and place_of(chunk) == place_of(other)
    known_paths = {chunk["rel_path"], other["rel_path"]} - {None}
    return chunk["chunk_id"] == other["chunk_id"] and len(known_paths) < 2


def _golds(was: Sequence[Mapping[str, Any]], now: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return each gold retrieved on either side, with the best rank and place of a matching chunk."""
    before = best_chunks(was)
    after = best_chunks(now)
    golds: list[dict[str, Any]] = []
    for gold in sorted(before.keys() | after.keys()):
        shown = after[gold] if gold in after else before[gold]
        rank_before = before[gold]["rank"] if gold in before else None
        rank_after = after[gold]["rank"] if gold in after else None
        place = place_of(shown)
        golds.append({"gold": gold + 1, "place": place, "rank_before": rank_before, "rank_after": rank_after})
    return golds


def best_chunks(chunks: Sequence[Record]) -> dict[int, Record]:
    """Return the first chunk that matches each gold."""
    best: dict[int, Record] = {}
    for chunk in chunks:
        for gold in chunk["matches"]:
            best.setdefault(gold, chunk)
    return best
