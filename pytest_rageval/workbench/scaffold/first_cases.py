"""The first cases of a project: for the demo some that it answers, else some about headings of the project's notes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from pytest_rageval.errors import SettingsError

FROM_NOTES = 3
LOOKED_AT = 200
"""Notes that are read at most, until enough of them have a heading."""
UNANSWERABLE = {"id": "not-in-the-notes", "question": "Who won the 2087 election?", "answerable": False}
QUESTION = {"id": "first-question", "question": "Write a question here that your documents answer."}
_HEADING = re.compile(r"(#{1,6})\s+(.*?)(?:\s+#+)?\s*$")
_FENCE = re.compile(r"\s{0,3}(```|~~~)")


class Heading(NamedTuple):
    """A heading of a note: `# Water > ## Boiling`, and its own words."""

    path: str
    title: str

    @property
    def question(self) -> str:
        """Not the heading itself where it asks: that is a draft of `rageval generate`, which knows the answer, too."""
        return f"What is there to know about {self.title.rstrip('?？؟ ')}?"


def cases_about(notes: Path | None) -> list[dict[str, Any]]:
    """Cases to be rewritten: about headings of the notes where there are some, and one that no note answers."""
    about = list(_about(notes)) if notes is not None else []
    return [*(about or [QUESTION]), UNANSWERABLE]


def check_notes(notes: Path) -> None:
    """SettingsError where this is no folder."""
    if not notes.is_dir():
        raise SettingsError(f"--notes: {notes} is not a folder; name the one that your system answers from")


def as_lines(cases: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(case, ensure_ascii=False) + "\n" for case in cases)


def _about(notes: Path) -> Iterator[dict[str, Any]]:
    number = 0
    for path in sorted(notes.rglob("*.md"))[:LOOKED_AT]:
        heading = _deepest_early(path)
        if heading is None or number == FROM_NOTES:
            continue
        number += 1
        yield {
            "id": f"note-{number}",
            "question": heading.question,
            "gold_supports": [{"rel_path": path.relative_to(notes).as_posix(), "heading_path": heading.path}],
        }


def _deepest_early(path: Path) -> Heading | None:
    """Of a note's first headings the last before one of the same level or above: it has a text of its own."""
    above: list[str] = []
    title = ""
    is_code = False
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    for line in lines:
        is_code ^= _FENCE.match(line) is not None
        heading = None if is_code else _HEADING.match(line)
        if heading is None:
            continue
        level = len(heading[1])
        if above and level <= len(above[-1].split(" ", 1)[0]):
            break
        above.append(f"{heading[1]} {heading[2]}")
        title = heading[2]
    return Heading(" > ".join(above), title) if title else None
