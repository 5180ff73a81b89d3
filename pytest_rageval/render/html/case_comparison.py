"""One case in two runs: the word difference of its answers, scores that moved, chunks as one aligned list."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pytest_rageval.comparison.case_diff import has_same_id, place_of
from pytest_rageval.render.html.text_diff import word_diff
from pytest_rageval.text import change, score_text


class MovedScore(NamedTuple):
    """A score on both sides."""

    metric: str
    before: str
    after: str
    delta: str


class AlignedChunk(NamedTuple):
    """A chunk with its rank on both sides; None where it is not there. `state`: equal, moved, NEW or GONE."""

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
    """The case before and after; `earlier` is None where the other run keeps no record of it."""
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
    """Scores of both sides that differ, the furthest first."""
    earlier = {names.get(name, name): value for name, value in before.items()}
    moved = [(name, earlier[name], value) for name, value in now.items() if earlier.get(name, value) != value]
    return [
        MovedScore(
            name.partition("@")[0] if name in names.values() else name,
            score_text(old), score_text(new), change(new - old),
        )
        for name, old, new in sorted(moved, key=lambda row: (-abs(row[2] - row[1]), row[0]))
    ]  # fmt: skip


def aligned_chunks(before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]) -> list[AlignedChunk]:
    """Both lists as one: in the order of the ranks after, what is gone where it stood before."""
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
