"""SQuAD v1.1 and v2.0: articles, paragraphs with a context, questions with spans of it as answers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_rageval.cases.exchange.exchange import (
    KEPT,
    Answers,
    OtherTestSet,
    ToolFiles,
    kept_parts,
    reference_of,
    with_kept_parts,
)
from pytest_rageval.errors import CaseError
from pytest_rageval.io.messages import found
from pytest_rageval.model import EvalCase, Json
from pytest_rageval.text import counted


def is_squad(document: Json) -> bool:
    """Is this JSON document one of SQuAD's?"""
    data = document.get("data") if isinstance(document, dict) else None
    return isinstance(data, list) and bool(data) and isinstance(data[0], dict) and "paragraphs" in data[0]


def read_squad(document: Mapping[str, Json], name: str) -> OtherTestSet:
    """A case for each question, with its paragraph as context; a question that repeats an id is a problem."""
    problems: list[str] = []
    cases: dict[str, dict[str, Json]] = {}
    for path, title, context, entry in _questions(document, problems):
        try:
            record = _case(entry, context, title)
        except (KeyError, TypeError, AttributeError) as error:
            problems.append(f"{path} is no question of SQuAD: {error!r}; it has id, question and answers")
            continue
        if record["id"] in cases:
            problems.append(f"{path}: id {record['id']!r} stands twice")
        cases[record["id"]] = record
    if not cases and not problems:
        problems.append("holds no question")
    if problems:
        raise CaseError(*(f"{name}: {problem}" for problem in problems))
    return OtherTestSet(list(cases.values()))


def _questions(document: Mapping[str, Json], problems: list[str]) -> Iterator[tuple[str, Json, Json, Any]]:
    for number, article in enumerate(document["data"]):
        paragraphs = article.get("paragraphs") if isinstance(article, dict) else None
        if not isinstance(paragraphs, list):
            problems.append(f"data[{number}].paragraphs is {found(paragraphs)}, expected a list")
            continue
        for inner, paragraph in enumerate(paragraphs):
            entries = paragraph.get("qas") if isinstance(paragraph, dict) else None
            if not isinstance(entries, list):
                problems.append(f"data[{number}].paragraphs[{inner}].qas is {found(entries)}, expected a list")
                continue
            for innermost, entry in enumerate(entries):
                path = f"data[{number}].paragraphs[{inner}].qas[{innermost}]"
                yield path, article.get("title"), paragraph.get("context"), entry


def _case(entry: Mapping[str, Json], context: Json, title: Json) -> dict[str, Json]:
    record: dict[str, Json] = {"id": str(entry["id"]), "question": entry["question"]}
    texts = list(dict.fromkeys(answer["text"] for answer in entry.get("answers") or ()))
    if entry.get("is_impossible"):
        record["answerable"] = False
    if texts:
        record |= {"reference": texts[0]} if len(texts) == 1 else {"expected_answers": texts}
    if isinstance(context, str) and context.strip():
        record["contexts"] = [context]
    metadata: dict[str, Json] = {"title": title} if title else {}
    if plausible := entry.get("plausible_answers"):
        metadata["plausible_answers"] = plausible
    if metadata:
        record["metadata"] = metadata
    return with_kept_parts(record, entry.get(KEPT))


def write_squad(cases: Sequence[EvalCase], answers: Answers) -> ToolFiles:
    """squad.json (v2.0) and, where answers are given, predictions.json as the official script takes them."""
    paragraphs: dict[tuple[str, str], list[Json]] = {}
    outside = []
    for case in cases:
        context = case.contexts[0] if case.contexts and len(case.contexts) == 1 else "\n\n".join(case.contexts or ())
        entry = _entry(case, context)
        paragraphs.setdefault((str(case.metadata.get("title", "")), context), []).append(entry)
        if any(answer["answer_start"] < 0 for answer in entry["answers"]):
            outside.append(case.id)
    articles: dict[str, list[Json]] = {}
    for (title, context), entries in paragraphs.items():
        articles.setdefault(title, []).append({"context": context, "qas": entries})
    data = [{"title": title, "paragraphs": listed} for title, listed in articles.items()]
    files = {"squad.json": [json.dumps({"version": "v2.0", "data": data}, ensure_ascii=False)]}
    if answers:
        texts = {case.id: answers[case.id].text or "" for case in cases if case.id in answers}
        files["predictions.json"] = [json.dumps(texts, ensure_ascii=False)]
    notes = []
    if outside:
        many = counted(len(outside), "case")
        notes.append(f"{many} with an answer that is not in the context: answer_start is -1 ({outside[0]} …)")
    return ToolFiles(files, tuple(notes))


def _entry(case: EvalCase, context: str) -> dict[str, Any]:
    texts = (case.gold.answers or ()) if case.answerable else ()
    entry: dict[str, Any] = {
        "id": case.id,
        "question": case.question,
        "answers": [{"text": text, "answer_start": context.find(text)} for text in texts],
        "is_impossible": not case.answerable,
    }
    native: dict[str, Json] = {"question": case.question} | (reference_of(case) if texts else {})
    if not case.answerable:
        native["answerable"] = False
    if context.strip():
        native["contexts"] = [context]
    if title := case.metadata.get("title"):
        native["metadata"] = {"title": str(title)}
    if kept := kept_parts(case, native):
        entry[KEPT] = kept
    return entry
