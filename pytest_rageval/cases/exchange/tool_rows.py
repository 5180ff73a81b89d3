"""Test sets of other tools (Ragas, DeepEval, promptfoo, SQuAD) as records of our case files.

Fields that match a part of a case are renamed to it, a system's output becomes a record of an answers file, and the
rest goes into `metadata`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_rageval.cases.conversion import ANSWER, CONTEXTS, OF_SYSTEM, OTHER_NAMES, QUESTION, case_from_record
from pytest_rageval.cases.exchange.exchange import EXTRA_PARTS, OtherTestSet, with_extra_parts
from pytest_rageval.cases.exchange.row_files import PASSAGES, SEPARATORS, PlacedRow, RowReport, tool_file_rows
from pytest_rageval.errors import CaseError
from pytest_rageval.io.messages import Finding, Unsound, describe
from pytest_rageval.io.strict_json import StrictJsonError, parse
from pytest_rageval.model import NOWHERE, Json


def read_tool_rows(path: Path, name: str) -> OtherTestSet:
    """Read another tool's file; raise CaseError with every problem, one line each. `name` stands for it in messages."""
    report = RowReport(name, has_lines=path.suffix.lower() in SEPARATORS)
    return other_test_set(tool_file_rows(path, report), report)


def other_test_set(rows: Iterable[PlacedRow], report: RowReport) -> OtherTestSet:
    """Read another tool's rows; raise CaseError with every problem, one line each."""
    cases: dict[str, dict[str, Json]] = {}
    answers: list[dict[str, Json]] = []
    repeated = unused = 0
    for place, row in rows:
        reading = RowReading(row)
        try:
            case_id = case_from_record(reading.case, NOWHERE)[0].id
        except Unsound as unsound:
            report.add_row(place, map(reading.as_written, unsound.findings.first), reading.case.get("id"))
            if len(report) >= MOST_PROBLEMS:  # checking a million broken rows takes minutes
                report.add_whole(f"what stands behind row {place} was not read")
                break
            continue
        record = {"id": case_id} | reading.case
        if case_id in cases:
            if cases[case_id] != record:
                twice = Finding((), "id already used by an earlier row for another case; ids are unique in a file")
                report.add_row(place, [twice], case_id)
            repeated += 1
            continue
        cases[case_id], unused = record, unused + reading.unused
        if reading.answer:
            answers.append({"id": case_id} | reading.answer)
    if not cases and not len(report):
        report.add_whole("holds no case")
    if len(report):
        raise CaseError(*report.problems)
    return OtherTestSet(list(cases.values()), answers, repeated=repeated, unused=unused)


def is_squad(document: Json) -> bool:
    """Return True if this JSON document has the structure of SQuAD."""
    data = document.get("data") if isinstance(document, dict) else None
    return isinstance(data, list) and bool(data) and isinstance(data[0], dict) and "paragraphs" in data[0]


def squad_rows(document: Json, report: RowReport) -> Iterator[PlacedRow]:
    """Yield the questions of SQuAD v1.1 or v2.0 as rows, each with its context and title."""
    for at, article in _members(document, "data", "", report):
        for within, paragraph in _members(article, "paragraphs", at, report):
            for place, entry in _members(paragraph, "qas", within, report):
                yield place, squad_row(entry, article.get("title"), paragraph.get("context"))


def squad_row(entry: Mapping[str, Json], title: Json, context: Json) -> dict[str, Json]:
    """Return a question of SQuAD with its title and context."""
    return {**entry, "title": title, "context": context if str(context or "").strip() else None}


def _members(above: Mapping[str, Json], key: str, at: str, report: RowReport) -> Iterator[tuple[str, Any]]:
    """Yield the objects of a list with their paths; report other members."""
    place = f"{at}.{key}" if at else key
    if not isinstance(listed := above.get(key), list):
        report.add_whole(f"{place} is {describe(listed)}, expected a list")
        return
    for number, member in enumerate(listed):
        if isinstance(member, dict):
            yield f"{place}[{number}]", member
        else:
            report.add_whole(f"{place}[{number}] is {describe(member)}, expected an object")


MOST_PROBLEMS = 1_000
"""Number of problems after which reading stops."""
_OURS = ("description", "name", "source_file")
"""Fields that our own exports fill in; ignored on import."""
_LABELS = (
    "id",
    "question",
    "query",
    "reference",
    "answerable",
    "category",
    "difficulty",
    "domain",
    "tags",
    "tag",
    "contexts",
)


class RowReading:
    """One converted row: the case, the system's answer, and the number of checks without a counterpart."""

    def __init__(self, row: Mapping[str, Json]) -> None:
        self.case: dict[str, Json] = {}
        self.answer: dict[str, Json] = {}
        self._metadata: dict[str, Json] = {}
        self._names: dict[str, str] = {}
        """The row's names of the case's keys."""
        self._retrieved_ids: list[str] = []
        if _is_case(row):
            self.case, self.unused = dict(row), 0
            return
        row, checks = _flat(row)
        extra = row.pop(EXTRA_PARTS, None)
        parts = {name: OTHER_NAMES.get(name.lower()) for name in row}
        self._has_reference = "reference" in row or ANSWER in parts.values() or bool(checks)
        for name, value in row.items():
            if value is not None and value != "" and value != []:
                self._take(name, parts[name], value, has_answer="answer" in row)
        self.unused = _take_checks(checks, self.case, self._metadata)
        if (extra := _as_object(self._metadata.pop(EXTRA_PARTS, extra))) is not None:
            self._metadata = {name: value for name, value in self._metadata.items() if name not in _OURS}
        if self._metadata:
            self.case["metadata"] = self._metadata
        self._name_chunks()
        self.case = with_extra_parts(self.case, extra)

    def _take(self, name: str, part: str | None, value: Json, *, has_answer: bool) -> None:
        if name == "answer":
            part = OF_SYSTEM if self._has_reference else ANSWER
        elif name == "contexts" and has_answer and self._has_reference:  # Ragas's former name for retrieved texts
            part, name = OF_SYSTEM, "retrieved_contexts"
        if part == QUESTION and isinstance(value, list):
            keys, answer = _conversation(value)
            self._name(name, keys)
            self.answer |= answer
        elif part == QUESTION:
            self._name(name, {"question": value})
        elif part == ANSWER:
            self._name(name, _reference(value))
        elif part == CONTEXTS:
            self._name(name, {"contexts": [value] if isinstance(value, str) else value})
        elif part == OF_SYSTEM:
            self.answer |= _given(name, value)
        else:
            self._take_other(name, value)

    def _take_other(self, name: str, value: Json) -> None:
        """Convert a field that is neither question, answer nor context: labels, passage ids, metadata."""
        if name in _LABELS:
            self.case[name] = str(value) if name == "id" and isinstance(value, int) else value
        elif name == "answers" and (texts := _answer_texts(value)) is not None:
            self._name(name, _reference(texts) if texts else {"answerable": False})
        elif name == "is_impossible" and isinstance(value, bool):
            self.case |= {"answerable": False} if value else {}
        elif name == "reference_context_ids" and isinstance(value, list):
            self.case["gold"] = {"chunk_ids": [str(chunk_id) for chunk_id in value]}
        elif name == "retrieved_context_ids" and isinstance(value, list):
            self._retrieved_ids = [str(chunk_id) for chunk_id in value]
        elif name in ("metadata", "additional_metadata") and isinstance(value, dict):
            self._metadata |= value
        else:
            self._metadata[name] = value

    def _name_chunks(self) -> None:
        """Assign ids to the retrieved texts; ids alone become chunks without text."""
        if not self._retrieved_ids:
            return
        ranks = range(1, len(self._retrieved_ids) + 1)
        chunks = self.answer.get("retrieved_chunks") or [{"rank": rank} for rank in ranks]
        for chunk, chunk_id in zip(chunks, self._retrieved_ids, strict=False):
            chunk["chunk_id"] = chunk_id
        self.answer["retrieved_chunks"] = chunks

    def _name(self, name: str, keys: Mapping[str, Json]) -> None:
        self.case |= keys
        self._names |= dict.fromkeys(keys, name)

    def as_written(self, finding: Finding) -> Finding:
        """Return the problem with the row's own name of the key."""
        first = finding.path[0] if finding.path else None
        if first is None or first not in self._names:
            return finding
        return finding._replace(path=(self._names[str(first)], *finding.path[1:]))


def _is_case(row: Mapping[str, Json]) -> bool:
    """Return True if the row is a line of our own case format without extra parts."""
    try:
        case = case_from_record(dict(row), NOWHERE)[0]
    except Unsound:
        return False
    return EXTRA_PARTS not in case.metadata


def _answer_texts(value: Json) -> list[str] | None:
    """Return right answers from a list of texts or SQuAD spans, or from an object of texts and starts.

    Empty texts with empty starts mean that the question is unanswerable.
    """
    texts = value.get("text") if isinstance(value, dict) and "answer_start" in value else value
    if isinstance(texts, list):
        texts = [text.get("text") if isinstance(text, dict) else text for text in texts]
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        return None
    return list(dict.fromkeys(texts))


def _as_object(extra: Json) -> Json:
    """Return the extra parts; a CSV cell contains them as JSON."""
    if not isinstance(extra, str):
        return extra
    try:
        return parse(extra)
    except StrictJsonError:
        return None


def _reference(value: Json) -> dict[str, Json]:
    if isinstance(value, list):
        return {"reference": value[0]} if len(value) == 1 else {"expected_answers": value}
    return {"reference": value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}


def _given(name: str, value: Json) -> dict[str, Json]:
    """Return a system's output as a key of an answers file."""
    if name.lower() in PASSAGES:
        texts = value if isinstance(value, list) else [value]
        return {"retrieved_chunks": [{"text": str(text), "rank": rank} for rank, text in enumerate(texts, start=1)]}
    return {"answer": value}


# ── promptfoo ─────────────────────────────────────────────────────────────────────────────────────────────────────────

_CHECK = re.compile(r"(?P<type>(?:not-)?[a-z][a-z-]+)(?:\([\d.]+\))?:\s*(?P<value>.*)", re.DOTALL)
_OF_ANSWER = ("equals", "similar", "factuality", "model-graded-factuality", "answer-correctness", "rouge-n", "bleu")
_OF_FACTS = ("contains", "icontains", "contains-all", "icontains-all")


def _flat(row: Mapping[str, Json]) -> tuple[dict[str, Json], list[dict[str, Json]]]:
    """Flatten a test of promptfoo into a row and its checks; other rows stay unchanged."""
    variables, checks = row.get("vars"), row.get("assert")
    flat = {name: value for name, value in row.items() if name not in ("vars", "assert")}
    written = [flat.pop(name) for name in list(flat) if re.fullmatch(r"__expected\d*", name)]
    for name in [name for name in flat if name.startswith("__")]:
        flat[name.strip("_").removeprefix("metadata:")] = flat.pop(name)
    if isinstance(variables, dict):
        is_alone = len(variables) == 1 and not {*variables} & {"question", "query", *OTHER_NAMES}
        flat |= {"question": next(iter(variables.values()))} if is_alone else variables
    listed = list(_single_checks(checks))
    return flat, [*listed, *(_check(text) for text in written if isinstance(text, str))]


def _single_checks(checks: Json) -> Iterator[dict[str, Json]]:
    """Yield the checks of a list, including those in nested sets."""
    for check in checks if isinstance(checks, list) else ():
        if isinstance(check, dict) and check.get("type") == "assert-set":
            yield from _single_checks(check.get("assert"))
        elif isinstance(check, dict):
            yield check


def _check(text: str) -> dict[str, Json]:
    """Parse promptfoo's CSV syntax for a check: `icontains: 30 days`; plain text means `equals`."""
    match = _CHECK.fullmatch(text)
    return {"type": match["type"], "value": match["value"]} if match else {"type": "equals", "value": text}


def _take_checks(checks: Sequence[Mapping[str, Any]], case: dict[str, Json], metadata: dict[str, Json]) -> int:
    """Convert checks to gold of the case; move the others into the metadata and return their number."""
    answers, facts = list(_values(checks, _OF_ANSWER)), list(_values(checks, _OF_FACTS))
    unused = [dict(check) for check in checks if check.get("type") not in (*_OF_ANSWER, *_OF_FACTS)]
    if answers:
        case |= _reference(answers)
    if facts:
        case["expected_key_facts"] = facts
    if unused:
        metadata["assert"] = unused
    return len(unused)


def _values(checks: Iterable[Mapping[str, Any]], types: Sequence[str]) -> Iterator[str]:
    for check in checks:
        value = check.get("value")
        if check.get("type") not in types:
            continue
        if isinstance(value, str) and str(check["type"]).endswith("-all"):
            value = value.split(",")
        yield from (str(item).strip() for item in (value if isinstance(value, list) else [value]))


_ROLES = {"human": "user", "user": "user", "ai": "assistant", "assistant": "assistant"}


def _conversation(messages: Sequence[Json]) -> tuple[dict[str, Json], dict[str, Json]]:
    """Return keys of the case and of the answer: the last user message is the question, earlier ones the history.

    The last text after the question is the answer. Tool calls and their results are left out. Without a user message
    the list itself becomes the question, which is then reported as no text.
    """
    turns = [
        {"role": role, "text": message["content"]}
        for message in messages
        if isinstance(message, dict)
        and (role := _ROLES.get(str(message.get("type") or message.get("role")).lower()))
        and isinstance(message.get("content"), str)
        and message["content"].strip()
    ]
    asked = next((at for at in reversed(range(len(turns))) if turns[at]["role"] == "user"), None)
    if asked is None:
        return {"question": list(messages)}, {}
    keys: dict[str, Json] = {"question": turns[asked]["text"]}
    if asked:
        keys["history"] = turns[:asked]
    return keys, ({"answer": turns[-1]["text"]} if asked + 1 < len(turns) else {})
