"""One case in two runs: golds that went or came, ranks, chunks and answers on both sides."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from pathlib import Path
from typing import Any, NamedTuple

from pytest_rageval.io.sealed_lines import BUFFER, DamagedLineError, record_in

Record = Mapping[str, Any]
SHOWN_CHUNKS = 10
READ = frozenset(["case_key", "trial", "question", "answer", "retrieved_chunks", "abstention", "verdict", "error"])
"""Fields of a record that are read here, and that it must have."""
_KEY = re.compile(rb'\{"schema":\d+,"case_key":("(?:[^"\\]|\\.)*")')
"""How a record begins."""
_NAME, _FURTHEST, _END = b'"case_key":', 40, b'",'


class CaseLines(NamedTuple):
    """A case by trial: its records, and the observations if the run keeps them."""

    records: Mapping[int, Record]
    observations: Mapping[int, Record]


def records_of(path: Path, keys: Set[str]) -> dict[str, Record]:
    """The records of some cases, read from a file of any length; of several trials the one that shows the outcome.

    Only the lines of these cases are decoded. None where there is no file.
    """
    return {key: representative_trial(trials) for key, trials in trials_of(path, keys).items()}


def trials_of(path: Path, keys: Set[str], fields: Set[str] = READ) -> dict[str, dict[int, Record]]:
    """By case, the lines of a file of records by trial, of which each holds at least these fields."""
    if not keys or not path.is_file():
        return {}
    named = {json.dumps(key, ensure_ascii=False).encode("utf-8", "surrogatepass") for key in keys}
    # Up to the first quotation mark with a comma, which in most keys is the end: a look at that takes a quarter of the
    # time of matching the beginning of each line.
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
    """The first trial that came out as the case did."""
    in_order = [trials[number] for number in sorted(trials)]
    same = (trial for trial in in_order if trial["verdict"].get("trial_passed") == trial["verdict"]["passed"])
    return next(same, in_order[0])


def detail(before: Record | None, after: Record | None) -> dict[str, Any] | None:
    """Question, answers, golds and chunks of a case on both sides; None where neither kept a record."""
    record = after or before
    if record is None:
        return None
    was, now = _chunks(before), _chunks(after)
    return {
        "question": record["question"],
        "answer_before": before["answer"] if before else None,
        "answer_after": after["answer"] if after else None,
        "abstained_before": _abstained(before),
        "abstained_after": _abstained(after),
        "golds": _golds(was, now) if before and after else [],
        "chunks_before": [_placed(chunk, now) for chunk in was[:SHOWN_CHUNKS]] if before else None,
        "chunks_after": [_placed(chunk, was) for chunk in now[:SHOWN_CHUNKS]] if after else None,
        "failed_gates_before": _failed(before),
        "failed_gates_after": _failed(after),
        "error_before": _error(before),
        "error_after": _error(after),
    }


def _chunks(record: Record | None) -> Sequence[Mapping[str, Any]]:
    return record["retrieved_chunks"] if record else ()


def _abstained(record: Record | None) -> bool | None:
    abstention = record["abstention"] if record else None
    return bool(abstention["abstained"]) if abstention else None


def _failed(record: Record | None) -> list[dict[str, Any]]:
    gates = record["verdict"]["failed_gates"] if record else ()
    return [{name: gate[name] for name in ("metric", "value", "threshold", "tag")} for gate in gates]


def _error(record: Record | None) -> dict[str, Any] | None:
    error = record["error"] if record else None
    return {"kind": error["kind"], "message": error["message"]} if error else None


def place_of(chunk: Mapping[str, Any]) -> str:
    """Where a chunk stands, as far as the system says."""
    path, heading = chunk["rel_path"], chunk["heading_path"]
    place: str = f"{path} > {heading}" if path and heading else path or heading or chunk["chunk_id"] or "?"
    return place


def has_same_id(chunk: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """True if both have one id, of one document: some systems number the chunks of each answer from 1."""
    paths = {chunk["rel_path"], other["rel_path"]} - {None}
    return chunk["chunk_id"] is not None and chunk["chunk_id"] == other["chunk_id"] and len(paths) < 2


def _placed(chunk: Mapping[str, Any], others: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """A chunk with its golds, counted from 1, and its rank on the other side."""
    others = list(others)
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
    """Each gold that came on either side: the best rank of a chunk that matches it, and where that chunk stands."""
    before, after = _best(was), _best(now)
    return [
        {
            "gold": gold + 1,
            "place": place_of(after[gold] if gold in after else before[gold]),
            "rank_before": before[gold]["rank"] if gold in before else None,
            "rank_after": after[gold]["rank"] if gold in after else None,
        }
        for gold in sorted(before.keys() | after.keys())
    ]


def _best(chunks: Sequence[Mapping[str, Any]]) -> dict[int, Mapping[str, Any]]:
    chunk_by_gold: dict[int, Mapping[str, Any]] = {}
    for chunk in chunks:
        for gold in chunk["matches"]:
            chunk_by_gold.setdefault(gold, chunk)
    return chunk_by_gold
