"""Cases of a script: files, folders, cases, or records as in a case file."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

from pytest_rageval.cases.discovery import find_case_files
from pytest_rageval.cases.loading import load_stream
from pytest_rageval.cases.project_cases import files_at, load_files, sound_cases
from pytest_rageval.config.project import Project, find_project
from pytest_rageval.errors import CaseError, SettingsError
from pytest_rageval.model import EvalCase
from pytest_rageval.text import counted

Cases = str | Path | Iterable[EvalCase | Mapping[str, Any]]
RECORDS = "cases.jsonl"
"""The file name in the source of a case that is in no file; the line is its number."""


def load_cases(*paths: str | Path) -> list[EvalCase]:
    """Load the cases of files and folders; without arguments, all cases of the project.

    Raise CaseError with every problem of the files, one line each.
    """
    return project_cases(find_project(), paths)


def project_cases(project: Project, paths: Iterable[str | Path]) -> list[EvalCase]:
    """Load the cases of these files and folders, of the project's globs without any; CaseError as in `load_cases`."""
    places = [Path.cwd() / path for path in paths]
    for place in places:
        if not place.exists():
            raise CaseError(f"{place}: there is no such file or folder")
    if places:
        files = files_at(places)
        where = ", ".join(map(str, places))
    else:
        globs = project.settings.cases
        files = find_case_files(project.root, globs)
        where = f"below {project.root}, where {', '.join(globs)} were looked for"
    if not files:
        raise CaseError(f"no case file: {where}; write evalcases/NAME.jsonl")
    return sound_cases(load_files(project, files))


def given_cases(cases: Cases, project: Project) -> list[EvalCase]:
    """Return the cases given to `evaluate`; raise CaseError for what is wrong with them, SettingsError without any."""
    if isinstance(cases, str | Path):
        return project_cases(project, [cases])
    given = list(cases)
    for number, case in enumerate(given):
        if not isinstance(case, EvalCase | Mapping):
            raise CaseError(f"cases[{number}]: is {type(case).__name__}, expected an EvalCase or a mapping")
    ready = [case for case in given if isinstance(case, EvalCase)]
    records = [dict(case) for case in given if isinstance(case, Mapping)]
    if ready and records:
        raise CaseError("cases: are EvalCase objects and mappings; give all of them in one form")
    ready = ready or _of_records(records, project)
    numbers = Counter(case.key for case in ready)
    doubled = sorted(key for key, number in numbers.items() if number > 1)
    if doubled:
        raise CaseError(f"cases: {counted(len(doubled), 'case')} given twice, the first {doubled[0]!r}; give each once")
    return ready


def _of_records(records: list[dict[str, Any]], project: Project) -> list[EvalCase]:
    """Read records as lines of a case file: the same checks, the same messages."""
    if not records:
        raise SettingsError("cases: there is none; give a path, or a list of cases")
    try:
        lines = [json.dumps(record, ensure_ascii=False, allow_nan=False) for record in records]
    except (TypeError, ValueError) as error:
        raise CaseError(f"cases: cannot be written as JSON: {error}") from None
    # A half of a surrogate pair becomes bytes that are no UTF-8, and a problem with its place.
    stream = BytesIO("\n".join(lines).encode("utf-8", "surrogatepass"))
    return sound_cases([load_stream(stream, RECORDS, max_line_bytes=project.settings.max_line_bytes)])
