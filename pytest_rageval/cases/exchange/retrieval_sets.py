"""Retrieval test sets. TREC: topics (`id<TAB>question`, or `<top>` blocks), qrels, runs. BEIR: a folder of these.

Source of BEIR: its GenericDataLoader. Each line of `queries.jsonl` has `_id` and `text`; `qrels/SPLIT.tsv` is separated
by tabs, with a header `query-id corpus-id score` and integer scores, 0 for irrelevant; `corpus.jsonl` holds texts.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import quote, unquote

from pytest_rageval.cases.exchange.exchange import (
    EXTRA_PARTS,
    Answers,
    OtherTestSet,
    ToolFiles,
    extra_parts,
    unplaced,
    with_extra_parts,
)
from pytest_rageval.cases.names import QUESTION, field_of
from pytest_rageval.errors import CaseError
from pytest_rageval.io.encodings import decoded
from pytest_rageval.io.lines import FileLine, json_rows, read_lines
from pytest_rageval.io.messages import Report, shown_value
from pytest_rageval.model import EvalCase, Json
from pytest_rageval.text import counted

LONGEST_LINE = 2**24
"""Bytes."""
TAG = "rageval"


def read_trec(topics: Path, name: str, qrels: Path | None, run: Path | None) -> OtherTestSet:
    """Read the topics with the gold of the qrels, and the documents of a run as answers without text."""
    report = Report(name)
    questions = _questions(topics, report)
    grades = grades_of(qrels, qrels.as_posix(), report) if qrels is not None else {}
    retrieved = _retrieved(run, report) if run is not None else {}
    for what, ids in (("qrels", grades), ("run", retrieved)):
        if missing := [query for query in ids if query not in questions]:
            report.add_whole(f"lacks {counted(len(missing), 'topic')} that the {what} names: {missing[0]!r} first")
    if not questions and not len(report):
        report.add_whole("holds no topic; expected lines of 'id<TAB>question', or <top> blocks")
    if len(report):
        raise CaseError(*report.problems)
    cases: list[dict[str, Json]] = []
    for query, question in questions.items():
        judged = _unquoted(grades.get(query, {}))
        cases.append({"id": plain_id(query), "question": question, **relevance_parts(judged)})
    answers: list[dict[str, Json]] = [
        {"id": plain_id(query), "retrieved_chunks": chunks} for query, chunks in retrieved.items()
    ]
    return OtherTestSet(cases, answers)


def is_topics(path: Path) -> bool:
    """Return True if a file holds topics: `<top>` blocks, or a table by tabs whose first line names no question."""
    with path.open("rb") as file:
        head = file.read(4096)
    end = b"\0\n" if head.startswith(b"\xfe\xff") else b"\n"  # big-endian
    header = (decoded(head.partition(end)[0])[1] or "").rstrip("\r").split("\t")
    is_table = any(field_of(cell, is_exact=True) == QUESTION for cell in header)
    return b"<top>" in head or (path.suffix.lower() in (".tsv", ".topics") and not is_table)


def _unquoted(judged: dict[str, float]) -> dict[str, float]:
    return {plain_id(document): grade for document, grade in judged.items()}


def _questions(path: Path, report: Report) -> dict[str, str]:
    questions: dict[str, str] = {}
    lines = list(read_lines(path, report, LONGEST_LINE))
    is_of_blocks = any("<top>" in line.text for line in lines[:50])
    rows = _blocks(lines) if is_of_blocks else _table_rows(lines)
    for number, query, question in rows:
        if not query.strip() or not question.strip():
            report.add(number, 1, "is no topic; expected 'id<TAB>question'")
        elif query in questions:
            report.add(number, 1, f"topic {shown_value(query)} stands twice")
        else:
            questions[query.strip()] = question.strip()
    return questions


def _table_rows(lines: Iterable[FileLine]) -> Iterator[tuple[int, str, str]]:
    """Yield number, query and question of each line that is not blank."""
    for number, line, *_ in lines:
        if line.strip():
            query, _, question = line.rstrip("\r\n").partition("\t")
            yield number, query, question


_FIELD = re.compile(r"<(num|title|desc|narr)>\s*(?:Number:|Topic:|Description:|Narrative:)?", re.IGNORECASE)


def _blocks(lines: Sequence[FileLine]) -> Iterator[tuple[int, str, str]]:
    """Yield line, number and title of each `<top>` block."""
    start = 0
    block = ""
    for number, line, *_ in lines:
        if "<top>" in line:
            start = number
            block = ""
        block += line
        if "</top>" in line:
            # What is before the first field, then the fields' names and texts by turns.
            _, *parts = _FIELD.split(re.sub(r"</\w+>", "", block))
            names = [name.lower() for name in parts[::2]]
            texts = [" ".join(text.split()) for text in parts[1::2]]
            values = dict(zip(names, texts, strict=True))
            yield start, values.get("num", ""), values.get("title", "") or values.get("desc", "")


def _retrieved(path: Path, report: Report) -> dict[str, list[dict[str, Json]]]:
    """Return chunks by query, ranked by score as in trec_eval."""
    own = Report(path.as_posix())
    scored: dict[str, list[tuple[float, str]]] = {}
    for number, line, is_sound, _ in read_lines(path, own, LONGEST_LINE):
        cells = line.split()
        if not is_sound or not cells:
            continue
        try:
            query, _, document, _, score, _ = cells
            scored.setdefault(query, []).append((float(score), document))
        except ValueError:
            own.add(number, 1, f"is {shown_value(line.rstrip())}, expected 'query Q0 document rank score tag'")
    report.include(own)
    return {query: _ranked_chunks(entries) for query, entries in scored.items()}


def _ranked_chunks(entries: Iterable[tuple[float, str]]) -> list[dict[str, Json]]:
    """Return scored documents as chunks; equal scores stay in the order of the file."""
    # By score: trec_eval ignores the rank that stands in the line.
    best_first = sorted(entries, key=lambda entry: -entry[0])
    return [
        {"chunk_id": plain_id(document), "rank": rank, "score_final": score}
        for rank, (score, document) in enumerate(best_first, start=1)
    ]


def write_trec(cases: Sequence[EvalCase], answers: Answers) -> ToolFiles:
    """Write topics.tsv, qrels.txt and, given answers, run.txt; white space in ids is percent-encoded."""
    topics = []
    qrels = []
    for case in cases:
        query = trec_id(case.id)
        topics.append(f"{query}\t{' '.join(case.question.split())}")
        qrels += [f"{query} 0 {trec_id(chunk_id)} {grade}" for chunk_id, grade in whole_grades(case).items()]
    files = {"topics.tsv": topics, "qrels.txt": qrels}
    if answers:
        run: list[str] = []
        for case in cases:
            if case.id in answers:
                run += _run_lines(case.id, answers)
        files["run.txt"] = run
    with_places = [case.id for case in cases if case.gold.supports]
    with_answers = [case.id for case in cases if case.gold.answers or case.gold.key_facts]
    notes = [*unplaced("TREC", "gold places", with_places), *unplaced("TREC", "right answers", with_answers)]
    return ToolFiles(files, tuple(notes))


def _run_lines(case_id: str, answers: Answers) -> Iterator[str]:
    names = [chunk.chunk_id or chunk.doc_id for chunk in answers[case_id].chunks or ()]
    yield from run_lines(case_id, [name for name in dict.fromkeys(names) if name])


def run_lines(query: str, documents: Sequence[str], tag: str = TAG) -> Iterator[str]:
    """Yield the lines of a run. Scores fall with the ranks, because trec_eval sorts by score and ignores ranks."""
    for rank, document in enumerate(documents, start=1):
        score = len(documents) - rank + 1
        yield f"{trec_id(query)} Q0 {trec_id(document)} {rank} {score} {tag}"


def trec_id(name: str) -> str:
    """Percent-encode white space and percent signs in a name."""
    return re.sub(r"[\s%]", lambda blank: quote(blank[0], safe=""), name)


def plain_id(name: str) -> str:
    """Decode a name that `trec_id` encoded; other sequences stay unchanged."""
    return re.sub(r"(?:%[0-9A-F]{2})+", lambda code: _decoded(code[0]), name)


def _decoded(code: str) -> str:
    text = unquote(code)
    return text if all(character == "%" or character.isspace() for character in text) else code


# ── judgements ──────────────────────────────────────────────────────────────────────────────────────────────────


Grades = dict[str, dict[str, float]]
"""Grades by query, then by document."""
_HEADER = "query-id"


def grades_of(path: Path, name: str, report: Report) -> Grades:
    """Read grades: `query 0 document grade` (TREC), `query document score` (BEIR). Report problems under `name`."""
    own = Report(name)
    grades: Grades = {}
    for number, line, is_sound, _ in read_lines(path, own, LONGEST_LINE):
        if not is_sound or not line.strip():
            continue
        separator = "\t" if "\t" in line.strip() else None
        cells = [cell.strip() for cell in line.split(separator)]
        query = cells[0]
        if number == 1 and query.lower() in (_HEADER, "query_id", "qid"):
            continue
        grade = _grade(cells[-1])
        document = cells[-2] if len(cells) in (3, 4) else ""
        if not query or not document or grade is None:
            own.add(number, 1, f"is {shown_value(line.rstrip())}, expected 'query 0 document grade'")
        elif document in grades.setdefault(query, {}):
            own.add(number, 1, f"document {shown_value(document)} is judged twice for query {shown_value(query)}")
        else:
            grades[query][document] = grade
    if not grades and not len(own):
        own.add_whole("holds no judgement")
    report.include(own)
    return grades


def _grade(cell: str) -> float | None:
    try:
        grade = float(cell)
    except ValueError:
        return None
    # Whole numbers alone, as trec_eval reads them; a score of a run is none.
    return grade if grade in range(-9, 1000) else None


def relevance_parts(judged: Mapping[str, float]) -> dict[str, Json]:
    """Return a query's gold as parts of a record: ids if all grades are 1, else grades; below 0 (TREC's spam) is 0."""
    if not judged:
        return {}
    if set(judged.values()) == {1.0}:
        return {"gold": {"chunk_ids": list(judged)}}
    grades = {document: max(grade, 0.0) for document, grade in judged.items()}
    return {"requires_kg": False, "gold": {"relevance": grades}}


def whole_grades(case: EvalCase) -> dict[str, int]:
    """Return a case's grades as integers by chunk id, rounded up; 1 if relevant without a grade, 0 if irrelevant."""
    gold = case.gold
    grades = {chunk_id: math.ceil(grade) for chunk_id, grade in (gold.relevance or {}).items()}
    for chunk_id in gold.chunk_ids or ():
        grades.setdefault(chunk_id, 1)
    for chunk_id in gold.irrelevant_ids or ():
        grades.setdefault(chunk_id, 0)
    return grades


# ── BEIR ────────────────────────────────────────────────────────────────────────────────────────────────────────


SPLITS = ("test", "dev", "train")


def read_beir(folder: Path, name: str, split: str | None = None) -> OtherTestSet:
    """Read the queries that the split judges; `split` defaults to the first existing of test, dev and train."""
    qrels = _qrels_file(folder, name, split)
    report = Report(f"{name}/queries.jsonl")
    grades = grades_of(qrels, f"{name}/qrels/{qrels.name}", report)
    cases = []
    seen: set[str] = set()
    for row in json_rows(read_lines(folder / "queries.jsonl", report, LONGEST_LINE), report):
        query_id = row.record.get("_id", row.record.get("id"))
        text = row.record.get("text")
        if not isinstance(query_id, str) or not isinstance(text, str) or not text.strip():
            report.add(row.line, 1, "has no '_id' or no 'text'; a query of BEIR is {\"_id\": …, \"text\": …}")
        elif query_id in seen:
            report.add(row.line, 1, f"_id {shown_value(query_id)} stands twice")
        elif query_id in grades or EXTRA_PARTS in (row.record.get("metadata") or ()):
            # Queries without a judgement belong to another split, unless we wrote them: a case may have no ids.
            seen.add(query_id)
            cases.append(_beir_case(query_id, text, grades.get(query_id, {}), row.record.get("metadata")))
    if len(report):
        raise CaseError(*report.problems)
    if unknown := [f"{name}: {line}" for line in _unknown(grades, seen)]:
        raise CaseError(*unknown)
    return OtherTestSet(cases)


def _qrels_file(folder: Path, name: str, split: str | None) -> Path:
    for choice in (split,) if split else SPLITS:
        if (path := folder / "qrels" / f"{choice}.tsv").is_file():
            return path
    there = ", ".join(sorted(path.stem for path in folder.glob("qrels/*.tsv"))) or "none"
    wanted = f"qrels/{split}.tsv" if split else "qrels/test.tsv"
    raise CaseError(f"{name}: {wanted} does not exist (splits there: {there}); a folder of BEIR has queries and qrels")


def _unknown(grades: Grades, seen: Iterable[str]) -> Iterator[str]:
    if missing := sorted(grades.keys() - set(seen)):
        yield f"qrels judge {counted(len(missing), 'query', 'queries')} that queries.jsonl lacks: {missing[0]!r} first"


def _beir_case(query_id: str, text: str, judged: Mapping[str, float], metadata: Json) -> dict[str, Json]:
    record: dict[str, Json] = {"id": query_id, "question": text, **relevance_parts(judged)}
    metadata = dict(metadata) if isinstance(metadata, dict) else {}
    extra = metadata.pop(EXTRA_PARTS, None)
    if metadata:
        record["metadata"] = metadata
    return with_extra_parts(record, extra)


def write_beir(cases: Sequence[EvalCase], answers: Answers, split: str = "test") -> ToolFiles:
    """Write a folder of BEIR. The corpus has the texts of the retrieved chunks; without answers there is none."""
    queries = []
    qrels = ["query-id\tcorpus-id\tscore"]
    unjudged = []
    for case in cases:
        query_id = _one_line(case.id)
        judged = {_one_line(chunk_id): grade for chunk_id, grade in whole_grades(case).items()}
        extra = extra_parts(case, _beir_case(query_id, case.question, judged, None))
        metadata = {EXTRA_PARTS: extra} if extra or not judged else {}
        queries.append(json.dumps({"_id": query_id, "text": case.question, "metadata": metadata}, ensure_ascii=False))
        qrels += [f"{query_id}\t{chunk_id}\t{grade}" for chunk_id, grade in judged.items()]
        if not judged:
            unjudged.append(case.id)
    notes = []
    if unjudged:
        notes.append(
            f"{counted(len(unjudged), 'case')} without ids of chunks: in queries.jsonl, not in qrels ({unjudged[0]} …)"
        )
    files = {"queries.jsonl": queries, f"qrels/{split}.tsv": qrels}
    if corpus := _corpus(answers):
        files["corpus.jsonl"] = corpus
    else:
        notes.append("corpus.jsonl not written: no texts are known; --answers FILE brings those that were retrieved")
    return ToolFiles(files, tuple(notes))


def _one_line(name: str) -> str:
    return " ".join(name.split())


def _corpus(answers: Answers) -> list[str]:
    documents: dict[str, dict[str, Json]] = {}
    for answer in answers.values():
        for chunk in answer.chunks or ():
            if chunk.chunk_id and chunk.text:
                title = chunk.heading_path or ""
                documents[chunk.chunk_id] = {"_id": chunk.chunk_id, "title": title, "text": chunk.text}
    return [json.dumps(document, ensure_ascii=False) for document in documents.values()]
