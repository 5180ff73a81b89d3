"""The line of a file of drafts that a case's page offers for copying, and the command that stores it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any, NamedTuple

from pytest_rageval.text import printable
from pytest_rageval.workbench.answer_draft import answer_draft, drafts_file_of


class DraftLine(NamedTuple):
    """A bad answer as a draft of a case: its JSON line, the file that it belongs to, the command that adds it there."""

    json: str
    file: str
    command: str


def draft_line(record: Mapping[str, Any], line: Mapping[str, Any] | None, run_id: str) -> DraftLine | None:
    """None where the run keeps no texts. What a page would show otherwise than it is, is escaped as JSON escapes it."""
    draft = answer_draft(record, line, run_id)
    if draft is None:
        return None
    command = f"rageval cases draft {shlex.quote(run_id)} {shlex.quote(record['case_key'])}"
    return DraftLine(_copyable(draft), drafts_file_of(record), command)


def _copyable(draft: Mapping[str, Any]) -> str:
    text = json.dumps(draft, ensure_ascii=False)
    return text if printable(text) == text else json.dumps(draft).replace("##", "#\\u0023")
