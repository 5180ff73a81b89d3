"""What a run retrieved, as files of trec_eval and ir_measures."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_rageval.cases.exchange.retrieval_sets import run_lines, trec_id
from pytest_rageval.errors import SettingsError
from pytest_rageval.export.export_source import ExportSource
from pytest_rageval.model import Chunk, Observation
from pytest_rageval.runs.observation_check import check_observations
from pytest_rageval.runs.records.observation_line import observation_of
from pytest_rageval.runs.records.record_files import record_at


def trec_run_lines(source: ExportSource) -> Iterator[str]:
    """Yield `case Q0 chunk rank score run`, a line for each chunk of each case.

    A chunk is named by its id, else its document's id, else path and heading.
    """
    for obs in _observations(source):
        names = [_name(chunk, rank) for rank, chunk in enumerate(obs.answer.chunks or (), start=1)]
        distinct = list(dict.fromkeys(names))
        yield from run_lines(obs.case.key, distinct, trec_id(source.run.run_id))


def trec_qrels_lines(source: ExportSource) -> Iterator[str]:
    """Yield `case 0 chunk grade`: 1 for relevant, 0 for retrieved but irrelevant; nothing for cases without gold.

    Relevant are chunks that match a gold, and each unmatched gold under its own name: so recall is over the golds, if
    each chunk matches at most one.
    """
    for obs in _observations(source):
        for name, grade in _judged(obs).items():
            yield f"{trec_id(obs.case.key)} 0 {trec_id(name)} {grade}"


def _judged(obs: Observation) -> dict[str, int]:
    matching = obs.matching
    hits = matching.hits or ()
    judged: dict[str, int] = {}
    for rank, chunk in enumerate(obs.answer.chunks or (), start=1):
        if hits and hits[rank - 1]:
            judged[_name(chunk, rank)] = 1
        elif matching.irrelevant is not None and matching.irrelevant[rank - 1]:
            judged.setdefault(_name(chunk, rank), 0)
    matched = frozenset[int]().union(*hits)
    for gold, name in enumerate(_gold_names(obs)):
        if gold not in matched:
            judged.setdefault(name, 1)
    return judged


def _gold_names(obs: Observation) -> list[str]:
    gold = obs.case.gold
    if obs.matching.kind == "anchors":
        return [str(anchor) for anchor in gold.supports or ()]
    if obs.matching.kind == "ids":
        return list(gold.chunk_ids or ())
    return []


def _name(chunk: Chunk, rank: int) -> str:
    place = " > ".join(filter(None, (chunk.rel_path, chunk.heading_path)))
    return chunk.chunk_id or chunk.doc_id or place or f"chunk-{rank}"


def _observations(source: ExportSource) -> Iterator[Observation]:
    """Yield the observation of the first trial of each case, in key order."""
    places = source.run.observation_places()
    if not places:
        raise SettingsError(f"run {source.run.run_id} keeps no observations.jsonl, and so not what was retrieved")
    if source.run.metrics is not None:  # what is still being written is not held against its records
        check_observations(source.run.path)
    first_trials = sorted(key for key in source.places if key in places and key[1] == 0)
    for key in source.watch(first_trials):
        record = record_at(places[key])
        if record["answer"] is None:
            continue
        obs = observation_of(record, source.run.config)
        if obs is not None:
            yield obs
