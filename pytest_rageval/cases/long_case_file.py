"""The cases of a long file of lines: the first are held, each other one is read again when it is asked for."""

from __future__ import annotations

import zlib
from array import array
from collections import Counter
from pathlib import Path

from pydantic_core import from_json

from pytest_rageval.cases.canonical import content_hash
from pytest_rageval.cases.conversion import case_from_record
from pytest_rageval.cases.discovery import is_of_questions
from pytest_rageval.cases.loading import (
    MAX_LINE_BYTES,
    CaseFile,
    converted_rows,
    file_problems,
    load_file,
    rows_of,
    shown_name,
)
from pytest_rageval.cases.selected_cases import NamedCases
from pytest_rageval.errors import CaseError
from pytest_rageval.io.collector import no_collection
from pytest_rageval.io.compact.columns import HashColumn, MadeSequence
from pytest_rageval.io.compact.file_lines import HELD, FileLines
from pytest_rageval.io.compact.texts import TextColumn, TextNumbers
from pytest_rageval.io.json_lines import JsonRow
from pytest_rageval.io.messages import Report, Unsound
from pytest_rageval.model import EvalCase, Source


def read_long_file(path: Path, root: Path, *, max_line_bytes: int = MAX_LINE_BYTES) -> CaseFile:
    """Read a case file as `load_file` does, but of a JSONL file without references beside it only some thousand cases
    are held in memory: the others are read again when they are asked for."""
    may_have_references = "questions." in path.name or is_of_questions(path)
    if may_have_references or path.suffix.lower() == ".csv":
        return load_file(path, root, max_line_bytes=max_line_bytes)
    report = Report(shown_name(path, root))
    cases, spellings = LongCaseFile(path, report.file), Counter[tuple[str, ...]]()
    with no_collection():
        for row, (case, spelling) in converted_rows(rows_of(path, report, max_line_bytes), report, None, TextNumbers()):
            assert isinstance(row, JsonRow)
            cases.add(case, row.text)
            spellings[spelling] += 1
    return CaseFile(path, cases, file_problems(report, len(cases)), spellings)


class ChangedCaseFile(CaseError):
    """A case file is no longer what it was when it was read first."""


class LongCaseFile(MadeSequence[EvalCase], NamedCases):
    """Cases in the order of their lines; ChangedCaseFile where a line is no longer what it was."""

    def __init__(self, path: Path, name: str) -> None:
        """`name`: how keys and messages name the file."""
        self._name = name
        self._texts = FileLines(path)
        self._held: list[EvalCase] = []
        # Of each case that is not held:
        self._ids, self._lines, self._checksums = TextColumn(), array("I"), array("I")
        self._content_hashes = HashColumn(64)

    def add(self, case: EvalCase, text: str) -> None:
        """Take the next case, and the line that it was read from."""
        if len(self._held) < HELD:
            self._held.append(case)
        else:
            self._ids.append(case.id)
            self._lines.append(case.source.line)
            self._checksums.append(_checksum(text))
            self._content_hashes.append(content_hash(case))

    def __len__(self) -> int:
        return len(self._held) + len(self._ids)

    def _at(self, place: int) -> EvalCase:
        return self._held[place] if place < len(self._held) else self._read_again(place - len(self._held))

    def names_at(self, place: int) -> tuple[str, str]:
        """Key and id of a case, without its line."""
        beyond = place - len(self._held)
        case_id = self._held[place].id if beyond < 0 else self._ids[beyond]
        return f"{self._name}::{case_id}", case_id

    def content_hash_at(self, place: int) -> str:
        """The content hash of a case, without its line where that is not held."""
        beyond = place - len(self._held)
        return content_hash(self._held[place]) if beyond < 0 else self._content_hashes[beyond] or ""

    def _read_again(self, place: int) -> EvalCase:
        line = self._lines[place]
        try:
            text = self._texts.text(line).rstrip()
            if _checksum(text) == self._checksums[place]:
                # The line has been read strictly before.
                return case_from_record(from_json(text, allow_inf_nan=False), Source(self._name, line))[0]
        except (OSError, ValueError, Unsound):
            pass
        raise ChangedCaseFile(
            f"{self._name}:{line}: has changed since the run began; put it back and finish the run with "
            "`rageval run --resume`, or begin another"
        )


def _checksum(text: str) -> int:
    return zlib.crc32(text.encode("utf-8", "surrogatepass"))
