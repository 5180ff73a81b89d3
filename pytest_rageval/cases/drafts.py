"""Drafts of cases in files `X.drafts.jsonl`: not reviewed yet; no run evaluates them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from pytest_rageval.cases.loading import load_file
from pytest_rageval.errors import CaseError, SettingsError
from pytest_rageval.io.atomic import write_lines
from pytest_rageval.io.lines import read_lines
from pytest_rageval.io.messages import Report
from pytest_rageval.language.words import fold
from pytest_rageval.model import EvalCase, Json

ENDING = ".drafts.jsonl"
_PLACE = ("rel_path", "heading_path")
LONGEST_LINE = 2**26
"""Bytes of a draft."""


def check_is_drafts(path: Path) -> None:
    """Raise SettingsError if a name is not one of a file of drafts."""
    if not path.name.endswith(ENDING) or path.name == ENDING:
        raise SettingsError(f"{path}: drafts stand in a file whose name ends with {ENDING}, which no run asks")


def draft_id(question: str) -> str:
    """Return the id of the draft with this question; white space and case do not change it."""
    return f"draft-{hashlib.sha256(fold(question).encode()).hexdigest()[:12]}"


def drafts_in(path: Path) -> Sequence[EvalCase]:
    """Read the drafts of a file, if it exists; raise CaseError if some cannot be read, so that none is lost."""
    if not path.exists():
        return ()
    loaded = load_file(path, path.parent)
    if loaded.problems and (loaded.cases or path.read_bytes().strip()):
        raise CaseError(*loaded.problems)
    return loaded.cases


def add_drafts(path: Path, drafts: Iterable[Mapping[str, Json]]) -> int:
    """Append drafts to a file, without those whose questions or id it already has; return the number of new ones.

    The same question after other turns is another one. A draft may be a conversation, with `turns`.
    """
    there = drafts_in(path)
    talks = set(_talks_of(there))
    ids = {case.conversation or case.id for case in there}
    lines = []
    for draft in drafts:
        asked = [turn["question"] for turn in draft["turns"]] if "turns" in draft else [draft["question"]]
        talk = _folded(asked), _folded([turn["text"] for turn in draft.get("history") or ()])
        if talk not in talks and draft["id"] not in ids:
            lines.append(json.dumps(draft, ensure_ascii=False))
            talks.add(talk)
            ids.add(draft["id"])
    if lines:
        before = []
        if path.exists():
            before = [line.text.rstrip("\r\n") for line in read_lines(path, Report(path.name), LONGEST_LINE)]
        write_lines(path, [*before, *lines])
    return len(lines)


_Talk = tuple[tuple[str, ...], tuple[str, ...]]
"""All questions of a draft, and what was said before them."""


def _talks_of(cases: Iterable[EvalCase]) -> Iterator[_Talk]:
    """Yield the talk of each case that is no turn, and of each conversation."""
    for case in cases:
        if case.turn is None or case.is_last:
            asked = [*(turn.question for turn in case.earlier), case.question]
            yield _folded(asked), _folded([turn.text for turn in case.history or ()])


def _folded(texts: Iterable[str]) -> tuple[str, ...]:
    """Return texts whatever their case and spaces."""
    return tuple(map(fold, texts))


def answer_draft(record: Mapping[str, Any], line: Mapping[str, Any] | None, run_id: str) -> dict[str, Json] | None:
    """Draft a case from a record, with question and answer in full if `line` of observations.jsonl has them.

    The draft has no gold: a bad answer does not contain the right one. None if the run stores no question.
    """
    full_question = line["case"].get("question") if line else None
    question = full_question or record["question"]
    if not question:
        return None
    full_answer = (line["answer"] or {}).get("answer") if line else None
    passages = record["references"] or record["retrieved_chunks"]
    # A place outlives the next indexing; the id serves if the system reports no place.
    places = [{name: passage[name] for name in _PLACE if passage.get(name)} for passage in passages]
    cited = [place or {"chunk_id": passage.get("chunk_id")} for place, passage in zip(places, passages, strict=True)]
    answer = record["answer"] if full_answer is None else full_answer
    origin: dict[str, Json] = {"run": run_id, "case": record["case_key"], "answer": answer}
    if cited:
        origin["cited"] = cited
    return {"id": draft_id(question), "question": question, "tags": ["draft"], "metadata": {"draft": origin}}


def drafts_file_of(record: Mapping[str, Any]) -> str:
    """Return the file of drafts next to the file of a record's case, as a path from the project's root."""
    file = (record.get("source") or {}).get("file") or "evalcases/cases.jsonl"
    return str(PurePosixPath(file).with_suffix(ENDING))
