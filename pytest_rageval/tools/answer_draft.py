"""A draft of a case from a bad answer that a run recorded: the question, the answer, what it cited, and no gold."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from pytest_rageval.cases.drafts import ENDING, draft_id
from pytest_rageval.model import Json

PLACE = ("rel_path", "heading_path")


def answer_draft(record: Mapping[str, Any], line: Mapping[str, Any] | None, run_id: str) -> dict[str, Json] | None:
    """Draft a case from a record, with question and answer in full if `line` of observations.jsonl has them.

    The draft has no gold: a bad answer does not contain the right one. None if the run stores no question.
    """
    question = (line["case"].get("question") if line else None) or record["question"]
    if not question:
        return None
    answer = (line["answer"] or {}).get("answer") if line else None
    passages = record["references"] or record["retrieved_chunks"]
    # A place outlives the next indexing; the id serves if the system reports no place.
    places = [{name: passage[name] for name in PLACE if passage.get(name)} for passage in passages]
    cited = [place or {"chunk_id": passage.get("chunk_id")} for place, passage in zip(places, passages, strict=True)]
    origin: dict[str, Json] = {"run": run_id, "case": record["case_key"]}
    origin["answer"] = answer if answer is not None else record["answer"]
    if cited:
        origin["cited"] = cited
    return {"id": draft_id(question), "question": question, "tags": ["draft"], "metadata": {"draft": origin}}


def drafts_file_of(record: Mapping[str, Any]) -> str:
    """Return the file of drafts next to the file of a record's case, as a path from the project's root."""
    file = (record.get("source") or {}).get("file") or "evalcases/cases.jsonl"
    return str(PurePosixPath(file).with_suffix(ENDING))
