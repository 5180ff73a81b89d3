"""Every line of an odd case file is a case, a problem with its place and remedy, or said not to be read."""

from __future__ import annotations

import csv
import io
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from odd_csv import CSV_FILES
from odd_files import OddFile, each_of
from odd_jsonl import JSONL_FILES, WRONG_TYPES, a_case
from project import Project

from pytest_rageval.cases.loading import CaseFile, load_file

LONGEST_PROBLEM = 420
LONGEST_S = 4.0
"""Processor time for one of these files, the largest of which has 5 MB; a quadratic reader takes minutes."""
COVERS_THE_REST = re.compile(
    "was not read|UTF-16, UTF-32|Git LFS|JSON over several lines|the file holds no case|more problems"
)
PLACE = re.compile(r"a\.(?:jsonl|csv):(?P<line>\d+):\d+: ")


def loaded(folder: Path, name: str, content: bytes) -> CaseFile:
    path = folder / name
    path.write_bytes(content)
    began = time.process_time()
    file = load_file(path, folder)
    assert time.process_time() - began < LONGEST_S
    return file


def lines_of_records(name: str, content: bytes) -> Iterator[int]:
    """By other means than the reader's: the lines on which something begins."""
    if name.endswith(".jsonl"):
        for number, line in enumerate(content.split(b"\n"), start=1):
            # Separators of the ASCII table are white space to Python: a line of them alone is blank.
            if line.strip(b" \t\r\x0b\x0c\x1c\x1d\x1e\x1f\xef\xbb\xbf"):
                yield number
        return
    text = content.decode(errors="replace")
    rows = csv.reader(io.StringIO(text.replace("\0", "?"), newline=""))
    before = csv.field_size_limit(2**26)
    start = 1
    try:
        for row in rows:
            # The header is no case.
            if any(cell.strip() for cell in row) and start > 1:
                yield start
            start = rows.line_num + 1
    finally:
        csv.field_size_limit(before)


def unaccounted(name: str, content: bytes, file: CaseFile) -> list[int]:
    """Lines that are neither cases nor problems, nor said not to be read."""
    covered = {case.source.line for case in file.cases}
    rest = None
    for problem in file.problems:
        place = PLACE.match(problem)
        assert place is not None, problem
        line = int(place["line"])
        covered.add(line)
        is_header = name.endswith(".csv") and line == 1
        if is_header or COVERS_THE_REST.search(problem):
            rest = line if rest is None else min(rest, line)
    found = [line for line in lines_of_records(name, content) if line not in covered]
    return [line for line in found if rest is None or line < rest]


def check(folder: Path, name: str, odd: OddFile) -> None:
    file = loaded(folder, name, odd.content)
    assert len(file.cases) == odd.cases
    assert bool(file.problems) == bool(odd.words)
    assert unaccounted(name, odd.content, file) == []
    for problem in file.problems:
        assert problem.isprintable()
        assert len(problem) <= LONGEST_PROBLEM
    if odd.words:
        said = re.sub(r"^case '[^']*': ", "", PLACE.sub("", file.problems[0], count=1))
        assert said.startswith(odd.words)


@pytest.mark.reliability("case files", "odd JSONL: encodings, line ends, ids, keys, nesting, numbers")
@each_of(JSONL_FILES)
def test_each_line_of_an_odd_file_is_accounted_for(tmp_path: Path, odd: OddFile):
    check(tmp_path, "a.jsonl", odd)


@pytest.mark.reliability("case files", "odd CSV: separators, quotes, headers, sizes")
@each_of(CSV_FILES)
def test_each_row_of_an_odd_table_is_accounted_for(tmp_path: Path, odd: OddFile):
    check(tmp_path, "a.csv", odd)


WRONG = [(key, value) for key, values in WRONG_TYPES.items() for value in values]


@pytest.mark.reliability("case files", "a value of a wrong type for each key")
@pytest.mark.parametrize(("key", "value"), WRONG, ids=[f"{key} is {value!r:.40}" for key, value in WRONG])
def test_a_value_of_a_wrong_type_is_named_by_its_key(tmp_path: Path, key: str, value: object):
    check(tmp_path, "a.jsonl", OddFile(key, f"{a_case(**{key: value})}\n".encode(), 0, key))


@pytest.mark.reliability("case files", "all odd files in one project", costs="false green")
def test_a_project_with_all_of_them_names_each_bad_file_and_no_other(project: Project, tally: Any):
    tables = [("jsonl", row) for row in JSONL_FILES] + [("csv", row) for row in CSV_FILES]
    tally.tried(len(tables))
    (project.path / "evalcases").mkdir()
    bad: list[str] = []
    good: list[str] = []
    for number, (suffix, (_, content, _, words)) in enumerate(tables):
        name = f"evalcases/{number:03}.{suffix}"
        (project.path / name).write_bytes(content)
        (bad if words else good).append(name)
    for result, code in ((project.rageval("cases", "validate"), 1), (project.run("-q"), 2)):
        shown = result.stdout.str() + result.stderr.str()
        assert result.ret == code
        assert [name for name in bad if f"{name}:" not in shown] == []
        assert [name for name in good if f"{name}:" in shown] == []
        assert "INTERNALERROR" not in shown
        assert "Traceback" not in shown
