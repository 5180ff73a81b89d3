"""Files of drafts, `X.drafts.jsonl`: cases that were not reviewed yet; no run evaluates them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from pytest_rageval.cases.loading import load_file
from pytest_rageval.errors import CaseError, SettingsError
from pytest_rageval.io.atomic import write_lines
from pytest_rageval.io.lines import read_lines
from pytest_rageval.io.messages import Report
from pytest_rageval.model import EvalCase, Json
from pytest_rageval.words import fold

ENDING = ".drafts.jsonl"


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
    """Append drafts to a file, without those whose question or id it already has; return the number of new ones."""
    there = drafts_in(path)
    questions, ids = {fold(case.question) for case in there}, {case.id for case in there}
    lines = []
    for draft in drafts:
        if fold(draft["question"]) not in questions and draft["id"] not in ids:
            lines.append(json.dumps(draft, ensure_ascii=False))
            questions.add(fold(draft["question"]))
            ids.add(draft["id"])
    if lines:
        report = Report(path.name)
        before = [line.text.rstrip("\r\n") for line in read_lines(path, report, 2**26)] if path.exists() else []
        write_lines(path, [*before, *lines])
    return len(lines)
