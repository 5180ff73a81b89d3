"""Relevance judgements by query: lines of TREC and of BEIR read, and what they say of a case."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pytest_rageval.io.lines import read_lines
from pytest_rageval.io.messages import Report, shown_value
from pytest_rageval.model import EvalCase, Json

Grades = dict[str, dict[str, float]]
"""Grades by query, then by document."""
LONGEST_LINE = 2**16
_HEADER = "query-id"


def grades_of(path: Path, name: str, report: Report) -> Grades:
    """The judgements of a file: `query 0 document grade` (TREC), or `query document score`, with or without a header
    (BEIR). What is wrong goes into the report, under the name of the file."""
    own = Report(name)
    grades: Grades = {}
    for number, line, is_sound in read_lines(path, own, LONGEST_LINE):
        cells = line.split("\t") if "\t" in line.strip() else line.split()
        cells = [cell.strip() for cell in cells]
        if not is_sound or not line.strip() or (number == 1 and cells[0].lower() in (_HEADER, "query_id", "qid")):
            continue
        grade = _grade(cells[-1])
        if len(cells) not in (3, 4) or grade is None or not cells[0] or not cells[-2]:
            own.add(number, 1, f"is {shown_value(line.rstrip())}, expected 'query 0 document grade'")
        elif cells[-2] in grades.setdefault(cells[0], {}):
            own.add(number, 1, f"document {shown_value(cells[-2])} is judged twice for query {shown_value(cells[0])}")
        else:
            grades[cells[0]][cells[-2]] = grade
    if not grades and not len(own):
        own.add_whole("holds no judgement")
    report.include(own)
    return grades


def _grade(cell: str) -> float | None:
    try:
        grade = float(cell)
    except ValueError:
        return None
    return grade if grade in range(-9, 1000) else None


def relevance_parts(judged: Mapping[str, float]) -> dict[str, Json]:
    """The gold of one query as parts of a record: ids where all are simply relevant, else grades; those below 0, which
    TREC gives to spam, are 0."""
    if not judged:
        return {}
    if set(judged.values()) == {1.0}:
        return {"gold": {"chunk_ids": list(judged)}}
    grades = {document: max(grade, 0.0) for document, grade in judged.items()}
    return {"requires_kg": False, "gold": {"relevance": grades}}


def whole_grades(case: EvalCase) -> dict[str, int]:
    """A case's grades as whole numbers, by id of the chunk: what is relevant without a grade has 1, what must not come
    has 0, and a grade between two numbers is the one above."""
    gold = case.gold
    grades = {chunk_id: -int(-grade // 1) for chunk_id, grade in (gold.relevance or {}).items()}
    for chunk_id in gold.chunk_ids or ():
        grades.setdefault(chunk_id, 1)
    for chunk_id in gold.irrelevant_ids or ():
        grades.setdefault(chunk_id, 0)
    return grades
