"""BEIR folders: `queries.jsonl`, `qrels/SPLIT.tsv` and `corpus.jsonl`.

Source: BEIR's GenericDataLoader. Each line of queries has `_id` and `text`; qrels are tab-separated with a header
`query-id corpus-id score`, scores whole numbers, 0 for irrelevant.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from pytest_rageval.cases.exchange.exchange import (
    KEPT,
    Answers,
    OtherTestSet,
    ToolFiles,
    kept_parts,
    with_kept_parts,
)
from pytest_rageval.cases.exchange.qrels import Grades, grades_of, relevance_parts, whole_grades
from pytest_rageval.errors import CaseError
from pytest_rageval.io.json_lines import json_rows
from pytest_rageval.io.lines import read_lines
from pytest_rageval.io.messages import Report, shown_value
from pytest_rageval.model import EvalCase, Json
from pytest_rageval.text import counted

LONGEST = 2**24
"""Bytes of a line."""
SPLITS = ("test", "dev", "train")


def read_beir(folder: Path, name: str, split: str | None = None) -> OtherTestSet:
    """The queries of a folder that the split judges; `split` is the first there is of test, dev and train."""
    qrels = _qrels_file(folder, name, split)
    report = Report(f"{name}/queries.jsonl")
    grades = grades_of(qrels, f"{name}/qrels/{qrels.name}", report)
    cases = []
    seen: set[str] = set()
    for row in json_rows(read_lines(folder / "queries.jsonl", report, LONGEST), report):
        query_id, text = row.record.get("_id", row.record.get("id")), row.record.get("text")
        if not isinstance(query_id, str) or not isinstance(text, str) or not text.strip():
            report.add(row.line, 1, "has no '_id' or no 'text'; a query of BEIR is {\"_id\": …, \"text\": …}")
        elif query_id in seen:
            report.add(row.line, 1, f"_id {shown_value(query_id)} stands twice")
        elif query_id in grades or KEPT in (row.record.get("metadata") or ()):
            # What no split judges belongs to another one, unless we wrote it: a case may have no ids.
            seen.add(query_id)
            cases.append(_case(query_id, text, grades.get(query_id, {}), row.record.get("metadata")))
    problems = (*report.problems, *(f"{name}: {line}" for line in _unknown(grades, seen) if not len(report)))
    if problems:
        raise CaseError(*problems)
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


def _case(query_id: str, text: str, judged: Mapping[str, float], metadata: Json) -> dict[str, Json]:
    record: dict[str, Json] = {"id": query_id, "question": text, **relevance_parts(judged)}
    metadata = dict(metadata) if isinstance(metadata, dict) else {}
    kept = metadata.pop(KEPT, None)
    if metadata:
        record["metadata"] = metadata
    return with_kept_parts(record, kept)


def write_beir(cases: Sequence[EvalCase], answers: Answers, split: str = "test") -> ToolFiles:
    """A folder of BEIR. Its corpus holds the texts that the answers retrieved; without answers there is none."""
    queries, qrels, unjudged = [], ["query-id\tcorpus-id\tscore"], []
    for case in cases:
        query_id = _one_line(case.id)
        judged = {_one_line(chunk_id): grade for chunk_id, grade in whole_grades(case).items()}
        kept = kept_parts(case, _case(query_id, case.question, judged, None))
        metadata = {KEPT: kept} if kept or not judged else {}
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
    """A name that a table of tabs and lines can hold."""
    return " ".join(name.split())


def _corpus(answers: Answers) -> list[str]:
    texts = {
        chunk.chunk_id: {"_id": chunk.chunk_id, "title": chunk.heading_path or "", "text": chunk.text}
        for answer in answers.values()
        for chunk in answer.chunks or ()
        if chunk.chunk_id and chunk.text
    }
    return [json.dumps(document, ensure_ascii=False) for document in texts.values()]
