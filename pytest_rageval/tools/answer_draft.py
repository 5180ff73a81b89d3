"""A draft of a case from a bad answer that a run recorded: the question, the answer, what it cited, and no gold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_rageval.cases.drafts import ENDING, draft_id
from pytest_rageval.model import Json

PLACE = ("rel_path", "heading_path")


def answer_draft(record: Mapping[str, Any], line: Mapping[str, Any] | None, run_id: str) -> dict[str, Json] | None:
    """The draft of a record, with question and answer in full where `line` of observations.jsonl holds them.

    There is no gold in it: a bad answer does not hold the right one. None where the run keeps no question.
    """
    question = (line["case"].get("question") if line else None) or record["question"]
    if not question:
        return None
    answer = (line["answer"] or {}).get("answer") if line else None
    source = record["references"] or record["retrieved_chunks"]
    cited = [_cited(passage) for passage in source]
    origin: dict[str, Json] = {"run": run_id, "case": record["case_key"]}
    origin["answer"] = answer if answer is not None else record["answer"]
    if cited:
        origin["cited"] = cited
    return {"id": draft_id(question), "question": question, "tags": ["draft"], "metadata": {"draft": origin}}


def _cited(passage: Mapping[str, Any]) -> dict[str, Json]:
    """Where a passage stands, which outlives the next indexing; its id where the system tells no place."""
    return {name: passage[name] for name in PLACE if passage.get(name)} or {"chunk_id": passage.get("chunk_id")}


def drafts_file_of(record: Mapping[str, Any]) -> str:
    """The file of drafts beside the file of a record's case, as a path from the project's root."""
    folder, slash, name = ((record.get("source") or {}).get("file") or "evalcases/cases.jsonl").rpartition("/")
    return f"{folder}{slash}{name.rpartition('.')[0] or name}{ENDING}"
