"""Builders: case files with good defaults, written where a test wants them, loaded as users load them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pytest_rageval.cases.loading import CaseFile, load_file
from pytest_rageval.model import EvalCase


def a_line(**keys: Any) -> str:
    """One line of JSONL: a sound case, but for what the test changes."""
    return json.dumps({"id": "q1", "question": "Why?", **keys}, ensure_ascii=False)


def loaded(folder: Path, content: str | bytes, name: str = "a.jsonl", **limits: int) -> CaseFile:
    """What a file of this content gives."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return load_file(path, folder, **limits)


def the_case(folder: Path, **keys: Any) -> EvalCase:
    """The case that one sound line gives; the keys are all that is on it, beside an id."""
    file = loaded(folder, json.dumps({"id": "q1", **keys}))
    assert file.problems == ()
    (case,) = file.cases
    return case
