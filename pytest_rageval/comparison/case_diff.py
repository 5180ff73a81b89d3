"""Differences of one case between two runs: golds found or lost, ranks, chunks and answers on both sides."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import Any, NamedTuple

from pytest_rageval.io.lines import BUFFER
from pytest_rageval.io.sealed_lines import DamagedLineError, record_in

Record = Mapping[str, Any]
SHOWN_CHUNKS = 10
READ = frozenset(["case_key", "trial", "question", "answer", "retrieved_chunks", "abstention", "verdict", "error"])
"""The fields of a record that this module needs."""
_KEY = re.compile(rb'\{"schema":\d+,"case_key":("(?:[^"\\]|\\.)*")')
"""The beginning of a record."""
_NAME, _FURTHEST, _END = b'"case_key":', 40, b'",'


class CaseLines(NamedTuple):
    """The records of a case by trial, and the observations if the run stores them."""

    records: Mapping[int, Record]
    observations: Mapping[int, Record]


def records_of(path: Path, keys: Set[str]) -> dict[str, Record]:
    """Read the records of some cases from a file of any length; of several trials, the one that shows the outcome.

    Decode only the lines of these cases. Return {} without a file.
    """
    return {key: representative_trial(trials) for key, trials in trials_of(path, keys).items()}


def trials_of(path: Path, keys: Set[str], fields: Set[str] = READ) -> dict[str, dict[int, Record]]:
    """Return the records of some cases by case and trial; each must have these fields."""
    if not keys or not path.is_file():
        return {}
    named = {json.dumps(key, ensure_ascii=False).encode("utf-8", "surrogatepass") for key in keys}
    # Compare keys up to the first `",`, which is the end of most: that takes a quarter of the time of matching the
    # beginning of each line.
    beginnings = {(key + b",").partition(_END)[0] for key in named}
    trials: dict[str, dict[int, Record]] = {}

    def check(record: Record) -> None:
        _check(record, fields)

    with path.open("rb", buffering=BUFFER) as file:
        for number, line in enumerate(file, start=1):
            start = line.find(_NAME, 0, _FURTHEST) + len(_NAME)
            if line[start : line.find(_END, start)] not in beginnings:
                continue
            beginning = _KEY.match(line)
            if beginning and beginning[1] in named and line.endswith(b"\n"):
                record = record_in(line, f"{path}:{number}", check)
                trials.setdefault(record["case_key"], {})[record["trial"]] = record
    return trials


def _check(record: Record, fields: Set[str]) -> None:
    if not fields <= record.keys():
        missing = fields - record.keys()
        raise DamagedLineError(f"is not a record: it has no {', '.join(sorted(missing))}")


def representative_trial(trials: Mapping[int, Record]) -> Record:
    """Return the first trial with the same verdict as the case."""
    in_order = [trials[number] for number in sorted(trials)]
    same = (trial for trial in in_order if trial["verdict"].get("trial_passed") == trial["verdict"]["passed"])
    return next(same, in_order[0])


def detail(before: Record | None, after: Record | None) -> dict[str, Any] | None:
    """Return question, answers, golds and chunks of a case on both sides; None if neither has a record."""
    record = after or before
    if record is None:
        return None
    was, now = (side["retrieved_chunks"] if side else () for side in (before, after))
    sides = {"before": _of_side(before, now), "after": _of_side(after, was)}
    return {
        "question": record["question"],
        "golds": _golds(was, now) if before and after else [],
        **{f"{name}_{side}": value for side, facts in sides.items() for name, value in facts.items()},
    }


def _of_side(record: Record | None, others: Sequence[Record]) -> dict[str, Any]:
    if record is None:
        return {**dict.fromkeys(("answer", "abstained", "chunks", "error")), "failed_gates": []}
    abstention, error = record["abstention"], record["error"]
    gates = record["verdict"]["failed_gates"]
    return {
        "answer": record["answer"],
        "abstained": bool(abstention["abstained"]) if abstention else None,
        "chunks": [_placed(chunk, others) for chunk in record["retrieved_chunks"][:SHOWN_CHUNKS]],
        "failed_gates": [{name: gate[name] for name in ("metric", "value", "threshold", "tag")} for gate in gates],
        "error": {"kind": error["kind"], "message": error["message"]} if error else None,
    }


def place_of(chunk: Mapping[str, Any]) -> str:
    """Return the place of a chunk, as far as the system reports it."""
    path, heading = chunk["rel_path"], chunk["heading_path"]
    place: str = f"{path} > {heading}" if path and heading else path or heading or chunk["chunk_id"] or "?"
    return place


def has_same_id(chunk: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return True if both have one id and no different paths: some systems number the chunks of each answer from 1."""
    paths = {chunk["rel_path"], other["rel_path"]} - {None}
    return chunk["chunk_id"] is not None and chunk["chunk_id"] == other["chunk_id"] and len(paths) < 2


def _placed(chunk: Record, others: Sequence[Record]) -> dict[str, Any]:
    """Return a chunk with its golds, counted from 1, and its rank on the other side."""
    id, place = chunk["chunk_id"], place_of(chunk)
    same_id = (other for other in others if has_same_id(chunk, other))
    same_place = (other for other in others if other["rel_path"] and place_of(other) == place)
    twin = next(same_id, None) or next(same_place, None)
    return {
        "rank": chunk["rank"],
        "place": place,
        "chunk_id": id,
        "score": chunk["score_final"],
        "golds": [gold + 1 for gold in chunk["matches"]],
        "other_rank": twin["rank"] if twin else None,
    }


def _golds(was: Sequence[Mapping[str, Any]], now: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return each gold retrieved on either side, with the best rank and place of a matching chunk."""
    before, after = best_chunks(was), best_chunks(now)
    return [
        {
            "gold": gold + 1,
            "place": place_of(after[gold] if gold in after else before[gold]),
            "rank_before": before[gold]["rank"] if gold in before else None,
            "rank_after": after[gold]["rank"] if gold in after else None,
        }
        for gold in sorted(before.keys() | after.keys())
    ]


def best_chunks(chunks: Sequence[Record]) -> dict[int, Record]:
    """Return the first chunk that matches each gold."""
    matches = ((gold, chunk) for chunk in reversed(chunks) for gold in chunk["matches"])
    return dict(matches)
