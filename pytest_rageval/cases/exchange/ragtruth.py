"""RAGTruth: `source_info.jsonl` with questions and contexts, `response.jsonl` with the answers of six models.

Source: the README of ParticleMedia/RAGTruth. Annotators marked unsupported spans in each response; a response
without one passes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pytest_rageval.cases.exchange.exchange import OtherTestSet
from pytest_rageval.errors import CaseError
from pytest_rageval.io.lines import json_rows, read_lines
from pytest_rageval.io.messages import Report, shown_value
from pytest_rageval.model import Json
from pytest_rageval.text import counted

T = TypeVar("T")
SOURCES = "source_info.jsonl"
RESPONSES = "response.jsonl"
LONGEST = 2**24
"""Bytes of a line."""


def is_ragtruth(folder: Path) -> bool:
    """Return True if the folder contains the two files of RAGTruth."""
    return (folder / SOURCES).is_file() and (folder / RESPONSES).is_file()


def read_ragtruth(folder: Path, name: str, split: str | None = None) -> OtherTestSet:
    """Read a case for each source with a response in the split; answers by model, and a label for each.

    Without `split` all responses count. CaseError names every problem of both files, one line each.
    """
    report = Report(f"{name}/{SOURCES}")
    own = Report(f"{name}/{RESPONSES}")
    sources: dict[str, dict[str, Json]] = {}
    for line, case in _read(folder / SOURCES, report, "source", _case):
        if sources.setdefault(case["id"], case) is not case:
            report.add(line, 1, f"source_id {shown_value(case['id'])} stands twice")

    def read(response: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]] | None:
        is_wanted = split is None or response["split"] == split
        return (_answer(response), _label(response, sources)) if is_wanted else None

    judged = [row for _, row in _read(folder / RESPONSES, own, "response", read) if row]
    answers = {(answer["id"], answer["system"]): answer for answer, _ in judged}
    labels = {label["id"]: label for _, label in judged}
    report.include(own)
    if not answers and not len(report):
        report.add_whole(f"{RESPONSES} holds no response" + (f" of the split {shown_value(split)}" if split else ""))
    if len(report):
        raise CaseError(*report.problems)
    asked = {case_id for case_id, _ in answers}
    systems = sorted({system for _, system in answers})
    note = f"{counted(len(systems), 'system')}: answers:FILE#{systems[0]}" + (" and so on" if len(systems) > 1 else "")
    cases = [case for case_id, case in sources.items() if case_id in asked]
    return OtherTestSet(cases, list(answers.values()), labels=list(labels.values()), notes=(note,))


def _read(path: Path, report: Report, kind: str, read: Callable[[Mapping[str, Any]], T]) -> Iterator[tuple[int, T]]:
    """Yield each row of a file, converted by `read`, with its line; report rows that cannot be read."""
    for row in json_rows(read_lines(path, report, LONGEST), report):
        try:
            yield row.line, read(row.record)
        except (KeyError, TypeError, AttributeError) as error:
            reason = f"{error} is missing or unknown" if isinstance(error, KeyError) else str(error)
            report.add(row.line, 1, f"is no {kind} of RAGTruth: {reason}")


def _case(source: Mapping[str, Any]) -> dict[str, Any]:
    """Return question and passages. Tasks without a question (summaries, data) give the instruction and the text."""
    material = source["source_info"]
    prompt = source["prompt"]
    if source["task_type"] == "QA":
        passages = re.split(r"(?:^|\n)passage \d+:", material["passages"])
        question = material["question"]
        contexts = [text.strip() for text in passages if text.strip()]
    else:
        # The prompt contains data as Python prints them.
        written = material.strip() if isinstance(material, str) else str(material)
        before = prompt.partition(written)[0] if written in prompt else prompt.partition("\n")[0]
        question = before.strip()
        contexts = [material if isinstance(material, str) else json.dumps(material, ensure_ascii=False)]
    return {
        "id": str(source["source_id"]),
        "question": question,
        "contexts": contexts,
        "tags": [str(source["task_type"])],
        "metadata": {"source": source.get("source")},
    }


def _answer(response: Mapping[str, Any]) -> dict[str, Any]:
    origin = {name: response.get(name) for name in ("temperature", "split", "quality", "labels")}
    return {
        "id": str(response["source_id"]),
        "system": str(response["model"]),
        "answer": response["response"],
        "model_name": str(response["model"]),
        "meta": {"response_id": str(response["id"]), **origin},
    }


def _label(response: Mapping[str, Any], sources: Mapping[str, Mapping[str, Json]]) -> dict[str, Any]:
    """Return the annotators' label of the response, as `rageval calibrate` reads it."""
    case = sources[str(response["source_id"])]
    return {
        "id": str(response["id"]),
        "question": case["question"],
        "answer": response["response"],
        "contexts": case["contexts"],
        "human_pass": not response["labels"],
    }
