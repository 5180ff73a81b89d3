"""Drafts of cases beside a case file, in `X.drafts.jsonl`: questions without labels, which no run takes for cases."""

from __future__ import annotations

import json
import os
from pathlib import Path

from pytest_rageval.cases.drafts import ENDING, draft_id
from pytest_rageval.errors import SettingsError


def drafts_beside(case_file: Path) -> Path:
    """The file of the drafts that belong to a case file."""
    return case_file.with_name(case_file.name.removesuffix(case_file.suffix) + ENDING)


def save_draft(path: Path, question: str) -> str:
    """Append a question as a draft; returns its id. SettingsError where it is there already, or cannot be written."""
    new_id = draft_id(question)
    record = {"id": new_id, "question": question, "tags": ["draft"]}
    try:
        before = path.read_bytes() if path.exists() else b""
        if json.dumps(new_id).encode() in before:
            raise SettingsError(f"{path}: this question is there already, as {new_id}")
        path.parent.mkdir(parents=True, exist_ok=True)
        line = json.dumps(record, ensure_ascii=False).encode() + b"\n"
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            os.write(descriptor, line if not before or before.endswith(b"\n") else b"\n" + line)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise SettingsError(f"{path} cannot be written: {error.strerror}") from None
    return new_id
