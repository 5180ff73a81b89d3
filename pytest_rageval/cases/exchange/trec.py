"""TREC files: topics (`id<TAB>question`, or `<top>` blocks), qrels, and runs (`query Q0 document rank score tag`)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import quote, unquote

from pytest_rageval.cases.exchange.exchange import Answers, OtherTestSet, ToolFiles, unplaced
from pytest_rageval.cases.exchange.qrels import grades_of, relevance_parts, whole_grades
from pytest_rageval.errors import CaseError
from pytest_rageval.io.lines import read_lines
from pytest_rageval.io.messages import Report, shown_value
from pytest_rageval.model import EvalCase, Json
from pytest_rageval.text import counted

LONGEST_LINE = 2**20
TAG = "rageval"


def read_trec(topics: Path, name: str, qrels: Path | None, run: Path | None) -> OtherTestSet:
    """The topics with the gold of the qrels, and the documents of a run as answers, which are texts for no one."""
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
    cases = [
        {"id": plain_id(query), "question": question, **relevance_parts(_unquoted(grades.get(query, {})))}
        for query, question in questions.items()
    ]
    answers: list[dict[str, Json]] = [
        {"id": plain_id(query), "retrieved_chunks": chunks} for query, chunks in retrieved.items()
    ]
    return OtherTestSet(cases, answers)


def _unquoted(judged: dict[str, float]) -> dict[str, float]:
    return {plain_id(document): grade for document, grade in judged.items()}


def _questions(path: Path, report: Report) -> dict[str, str]:
    questions: dict[str, str] = {}
    lines = list(read_lines(path, report, LONGEST_LINE))
    if any("<top>" in line for _, line, _ in lines[:50]):
        rows = _blocks(lines)
    else:
        rows = ((number, *line.rstrip("\r\n").partition("\t")[::2]) for number, line, _ in lines if line.strip())
    for number, query, question in rows:
        if not query.strip() or not question.strip():
            report.add(number, 1, "is no topic; expected 'id<TAB>question'")
        elif query in questions:
            report.add(number, 1, f"topic {shown_value(query)} stands twice")
        else:
            questions[query.strip()] = question.strip()
    return questions


_FIELD = re.compile(r"<(num|title|desc|narr)>\s*(?:Number:|Topic:|Description:|Narrative:)?", re.IGNORECASE)


def _blocks(lines: Sequence[tuple[int, str, bool]]) -> Iterator[tuple[int, str, str]]:
    """Line, number and title of each `<top>` block."""
    start, block = 0, ""
    for number, line, _ in lines:
        if "<top>" in line:
            start, block = number, ""
        block += line
        if "</top>" in line:
            fields = _FIELD.split(re.sub(r"</\w+>", "", block))
            values = {
                name.lower(): " ".join(text.split()) for name, text in zip(fields[1::2], fields[2::2], strict=False)
            }
            yield start, values.get("num", ""), values.get("title", "") or values.get("desc", "")


def _retrieved(path: Path, report: Report) -> dict[str, list[dict[str, Json]]]:
    """Chunks by query, in the order of their scores, as trec_eval ranks them."""
    own = Report(path.as_posix())
    scored: dict[str, list[tuple[float, str]]] = {}
    for number, line, is_sound in read_lines(path, own, LONGEST_LINE):
        cells = line.split()
        if not is_sound or not cells:
            continue
        try:
            query, _, document, _, score, _ = cells
            scored.setdefault(query, []).append((float(score), document))
        except ValueError:
            own.add(number, 1, f"is {shown_value(line.rstrip())}, expected 'query Q0 document rank score tag'")
    report.include(own)
    return {
        query: [
            {"chunk_id": plain_id(document), "rank": rank, "score_final": score}
            for rank, (score, document) in enumerate(sorted(entries, key=lambda entry: -entry[0]), start=1)
        ]
        for query, entries in scored.items()
    }


def write_trec(cases: Sequence[EvalCase], answers: Answers) -> ToolFiles:
    """topics.tsv, qrels.txt and, where answers are given, run.txt; white space in ids is percent-encoded."""
    topics, qrels = [], []
    for case in cases:
        query = trec_id(case.id)
        topics.append(f"{query}\t{' '.join(case.question.split())}")
        qrels += [f"{query} 0 {trec_id(chunk_id)} {grade}" for chunk_id, grade in whole_grades(case).items()]
    files = {"topics.tsv": topics, "qrels.txt": qrels}
    if answers:
        files["run.txt"] = [line for case in cases if case.id in answers for line in _run_lines(case.id, answers)]
    notes = [
        *unplaced("TREC", "gold places", [case.id for case in cases if case.gold.supports]),
        *unplaced("TREC", "right answers", [case.id for case in cases if case.gold.answers or case.gold.key_facts]),
    ]
    return ToolFiles(files, tuple(notes))


def _run_lines(case_id: str, answers: Answers) -> Iterator[str]:
    names = [chunk.chunk_id or chunk.doc_id for chunk in answers[case_id].chunks or ()]
    yield from run_lines(case_id, [name for name in dict.fromkeys(names) if name])


def run_lines(query: str, documents: Sequence[str], tag: str = TAG) -> Iterator[str]:
    """Lines of a run. The scores fall with the ranks, because trec_eval sorts by score and overlooks ranks."""
    for rank, document in enumerate(documents, start=1):
        yield f"{trec_id(query)} Q0 {trec_id(document)} {rank} {len(documents) - rank + 1} {tag}"


def trec_id(name: str) -> str:
    """A name without white space, which is percent-encoded, and so is the percent sign."""
    return re.sub(r"[\s%]", lambda blank: quote(blank[0], safe=""), name)


def plain_id(name: str) -> str:
    """The name that `trec_id` was given; sequences that it does not write stay as they are."""
    return re.sub(r"(?:%[0-9A-F]{2})+", lambda code: _decoded(code[0]), name)


def _decoded(code: str) -> str:
    text = unquote(code)
    return text if all(character == "%" or character.isspace() for character in text) else code
