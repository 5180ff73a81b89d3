"""Golds against what there is: the notes, the chunks of an index, and what stored runs retrieved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from pytest_rageval.cases import content_hash
from pytest_rageval.cases.note_versions import changed_notes
from pytest_rageval.cases.notes.gold_places import cannot_be_won, lost_places
from pytest_rageval.cases.notes.note_folder import NoteFolder
from pytest_rageval.errors import SettingsError
from pytest_rageval.io.messages import shown_value
from pytest_rageval.matching.places import GoldBy, match
from pytest_rageval.model import Answer, Chunk, EvalCase
from pytest_rageval.runs.reader import StoredRun
from pytest_rageval.runs.run_ref import in_time
from pytest_rageval.text import counted
from pytest_rageval.tools.audit.label_findings import AuditFinding

MOST_RUNS = 20
"""The newest runs are looked at for what they retrieved."""


def findings_in_notes(cases: Sequence[EvalCase], folder: Path) -> Iterator[AuditFinding]:
    """Golds whose file, heading or snippet no note holds, and those whose note is another one than when labelled."""
    notes = NoteFolder(folder)
    for case in cases:
        lost = lost_places(case, notes)
        is_unwinnable = cannot_be_won(case, {place.gold for place in lost}, len(case.gold.supports or ()))
        for place in lost:
            message = f"gold_supports[{place.gold}].{place.message}"
            yield AuditFinding(f"lost_{place.kind}", case, message, place.remedy, is_unwinnable)
        gone = {(case.gold.supports or ())[place.gold].rel_path for place in lost if place.kind == "file"}
        for rel_path in changed_notes(case, folder):
            if rel_path not in gone:
                message = f"{shown_value(rel_path)} changed since it was labelled"
                yield AuditFinding(
                    "note_changed", case, message, "look at the gold again and save it with rageval label"
                )


def findings_in_index(cases: Sequence[EvalCase], chunks: Sequence[Chunk], gold_by: GoldBy) -> Iterator[AuditFinding]:
    """Golds that match no chunk of the index, whatever is asked of it."""
    index = Answer(chunks=tuple(chunk for chunk in chunks))
    for case in cases:
        matching = match(case, index, gold_by)
        matched = frozenset[int]().union(*(matching.hits or ()))
        lost = [gold for gold in range(matching.golds) if gold not in matched]
        for gold in lost:
            message = (
                f"{gold_name(case, gold, matching.kind)} matches none of {counted(len(chunks), 'chunk')} of the index"
            )
            remedy = "index the note, or label what the index holds"
            yield AuditFinding("not_indexed", case, message, remedy, cannot_be_won(case, lost, matching.golds))


def findings_in_runs(cases: Sequence[EvalCase], reports: Path) -> Iterator[AuditFinding]:
    """Golds that no stored run retrieved, though it asked the case as it is now."""
    hashes = {case.key: content_hash(case) for case in cases}
    matched: dict[str, set[int]] = {}
    asked: dict[str, int] = {}
    kinds: dict[str, str] = {}
    for run in in_time(reports / "runs")[-MOST_RUNS:] if (reports / "runs").is_dir() else ():
        try:
            for record in StoredRun(run).records():
                key = record["case_key"]
                if hashes.get(key) == record["content_hash"] and record["retrieved_chunks"] and not record["error"]:
                    asked[key], kinds[key] = asked.get(key, 0) + 1, record["gold"]
                    matched.setdefault(key, set()).update(*(chunk["matches"] for chunk in record["retrieved_chunks"]))
        except (SettingsError, OSError, KeyError, TypeError):
            continue  # a damaged run says nothing of the labels; `rageval runs list` says that it is damaged
    for case in cases:
        golds = (case.gold.supports if kinds.get(case.key) == "anchors" else case.gold.chunk_ids) or ()
        for gold in range(len(golds)):
            if case.key in asked and gold not in matched[case.key]:
                many = counted(asked[case.key], "record")
                message = f"{gold_name(case, gold, kinds[case.key])} was retrieved in none of {many}"
                yield AuditFinding("never_retrieved", case, message, "check the gold, or the index")


def gold_name(case: EvalCase, gold: int, kind: str) -> str:
    """The gold as a message names it: its key, and the place or the id."""
    if kind == "anchors":
        return f"gold_supports[{gold}] {shown_value(str((case.gold.supports or ())[gold]))}"
    ids = list(dict.fromkeys([*(case.gold.chunk_ids or ()), *(case.gold.relevance or ())]))
    return f"gold id {shown_value(ids[gold])}"
