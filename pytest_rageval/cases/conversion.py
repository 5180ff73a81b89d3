"""Conversion of one record of a case file into a case: pydantic reads the keys, then each fills its part."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from pytest_rageval.assertions.reading import read_assertions
from pytest_rageval.cases.answerability import is_unanswerable_kind
from pytest_rageval.cases.canonical import case_to_mapping, written_small
from pytest_rageval.cases.keys import CONVERSATION, IN_GOLD, KEYS, LIFTED, Key, Line, spelling_of
from pytest_rageval.cases.names import QUESTION, field_of, key_hint
from pytest_rageval.cases.tool_keys import check_expected_tools
from pytest_rageval.io.messages import Finding, Findings, Path, Unsound, format_path, shown_value
from pytest_rageval.io.records import RecordReader
from pytest_rageval.io.strict_json import MAX_BITS, holds_keys_once
from pytest_rageval.model import NOTHING, Anchor, EvalCase, Gold, Json, Source, Turn
from pytest_rageval.model.assertion import Assertion

Converted = tuple[EvalCase, tuple[str, ...]]
"""A case with the formats that its line combines."""
UNANSWERABLE_CATEGORIES = frozenset({"general", "negative"})
"""Categories whose cases the corpus cannot answer unless they say otherwise or name where the answer stands."""


def case_from_record(record: dict[str, Json], source: Source, text: str | None = None) -> Converted:
    """Read one record of a case file; raise Unsound with all of its problems. `text`: the record as JSON, if known.

    A record with turns is no single case: see `cases.conversations`.
    """
    if (key := next(filter(CONVERSATION.__contains__, record), None)) is not None and record[key] is not None:
        raise Unsound(Findings(Finding((key,), "makes it a conversation, where one question is expected", at_key=True)))
    try:
        line = LINES.read(record, text=text)
    except Unsound as unsound:
        readable, unread = _readable(record)
        # A conversation's keys are null here: other values were refused above.
        line = {name: value for name, value in readable.items() if name not in CONVERSATION}
        return _converted(record, line, source, unsound.findings, unread)
    return _converted(record, line, source, Findings())


def usual_case(text: str, source: Source) -> Converted | None:
    """Read a line without any problem, at half of the time of `case_from_record`; None for all others."""
    line = LINES.usual(text)
    if line is None or not CONVERSATION.keys().isdisjoint(line) or not holds_keys_once(text, _keys_of(line)):
        return None
    try:
        return _converted(line, line, source, Findings())
    except Unsound:
        return None


def _keys_of(line: Mapping[str, Any]) -> int:
    """Return how many different keys a line has at least, in all of its objects; -1 for one with an odd number."""
    keys = 0
    # Grows while it is gone through: no recursion into what a file nests.
    values: list[Any] = [line]
    for value in values:
        kind = value.__class__
        if kind is dict:
            keys += len(value)
            values += value.values()
        elif kind is tuple or kind is list:
            values += value
        elif kind is Anchor:
            keys += 1 + bool(value.heading_path) + bool(value.snippets) + (value.date is not None)
        elif kind is Turn:
            keys += 2
        elif (kind is float and not math.isfinite(value)) or (kind is int and value.bit_length() > MAX_BITS):
            return -1
    return keys


def _converted(
    record: Mapping[str, Json],
    line: Mapping[str, Any],
    source: Source,
    findings: Findings,
    unread: Collection[Path] = (),
) -> Converted:
    """Return the case of a record whose keys were read, except those `unread`; raise Unsound with its problems."""
    values = _FieldValues(record, line)
    broken = {_part_at(path) for path in unread}
    if "assertions" in values.case:
        values.case["assertions"] = read_assertions(values.case["assertions"], findings)
    if values.case.get("expected_tools"):
        check_expected_tools(values.case["expected_tools"], findings)
    given = tuple(line)
    if unread:
        given += tuple(str(path[0]) for path in unread if path[0] != "answerable")
    spelling = spelling_of(given, tuple(line.get("gold", ())))
    for path in values.contested:
        first = format_path(values.origin(_part_at(path)))
        findings.add(path, f"differs from {first}, which says the same thing; keep one")
    has_question = "question" in values.case or "question" in broken
    if not has_question:  # then a key with another tool's name for it is the problem that is reported
        has_question = any(field_of(key, is_exact=True) == QUESTION for key in record if key not in KEYS)
    # So that the other problems of the line are found, too.
    values.case.setdefault("question", "?")
    case = _case(values, given, spelling, source)
    for (part, *steps), message in contradictions(case, given, broken):
        findings.add((*values.origin(str(part)), *steps), message)
    if not has_question:
        findings.add((), "question is missing")
    if findings:
        raise Unsound(findings)
    return case, spelling


def _meaning(path: Path) -> str:
    """Return the remedy for an unknown key with a meaning elsewhere; empty for others."""
    *above, key = path
    if above == ["gold"] and key in KEYS:
        return f"write {key} outside of gold"
    if above:
        return "did you mean 'supports'?" if path == ("gold", "anchors") else ""
    return "it is filled in while the file is read; leave it out" if key == "source" else key_hint(str(key))


LINES: RecordReader[dict[str, Any]] = RecordReader(
    Line,
    "put what is your own into 'metadata'",
    _meaning,
    [f"gold.{key}" for key in IN_GOLD],
    repeats_texts=True,
)


_OBJECTS: Mapping[Path, Mapping[str, Key]] = {(): KEYS, ("gold",): IN_GOLD, ("metadata",): LIFTED}
"""The objects of a record whose keys give parts, by path."""


def _part_at(path: Path) -> str:
    """Return the part of a case that the key at this path gives."""
    *above, name = path
    return _OBJECTS[tuple(above)][str(name)].part


def _readable(record: dict[str, Json]) -> tuple[dict[str, Any], set[Path]]:
    """Return the readable keys of an invalid record, and the paths of the others."""
    unread: set[Path] = set()
    known = {key: value for key, value in record.items() if key in KEYS}
    if isinstance(gold := known.get("gold"), dict):
        known["gold"] = {key: value for key, value in gold.items() if key in IN_GOLD}
    # Dropping one wrong key can reveal another problem, such as one of a whole object.
    while True:
        try:
            return LINES.read(known), unread
        except Unsound as unsound:
            paths = {_key_path(finding.path) for finding in unsound.findings.first}
            for path in paths:
                unread.add(path)
                _drop(known, path)


def _key_path(path: Path) -> Path:
    """Return the path of the key within which a finding is: `gold.answer` of `gold.answer[0]`."""
    is_within_object = path[:1] in _OBJECTS
    return path[:2] if is_within_object else path[:1]


def _drop(record: dict[str, Json], path: Path) -> None:
    """Remove a key from a record without changing the caller's inner objects."""
    key, *inner = map(str, path)
    if inner:
        record[key] = {name: value for name, value in record[key].items() if [name] != inner}
    else:
        record[key] = None


class _FieldValues:
    """The values that a record's keys give for the fields of EvalCase and Gold.

    contested  paths of keys that contradict an earlier key for the same part
    """

    def __init__(self, record: Mapping[str, Json], line: Mapping[str, Any]) -> None:
        self._objects: list[tuple[Path, Mapping[str, Json], Mapping[str, Any]]] = [((), record, line)]
        if line.get("gold"):
            self._objects.append((("gold",), record["gold"], line["gold"]))
        if is_lifted := not LIFTED.keys().isdisjoint(line.get("metadata") or ()):
            self._objects.append((("metadata",), record["metadata"], line["metadata"]))
        self.case: dict[str, Any] = {}
        self.gold: dict[str, Any] = {}
        self.contested: list[Path] = []
        for above, written, members in self._objects:
            self._take(above, written, members)
        case = self.case
        if "in_gold" in case:
            del case["in_gold"]
        if is_lifted:
            case["metadata"] = {key: value for key, value in case["metadata"].items() if key not in LIFTED}
        if "tag" in case:
            tag = case.pop("tag")
            tags = case.get("tags", ())
            case["tags"] = tags if tag in tags else (*tags, tag)

    def _take(self, above: Path, written: Mapping[str, Json], members: Mapping[str, Any]) -> None:
        """Assign an object's members to their parts, in the order of the record; `above` is the object's path."""
        case = self.case
        gold = self.gold
        keys = _OBJECTS[above]
        for name in written:
            value = members.get(name)
            if value is None or name not in keys:
                continue
            key = keys[name]
            part = key.part
            into = gold if key.is_gold else case
            if part not in into:
                into[part] = value
            elif not _agree(part, into[part], value):
                self.contested.append((*above, name))
            elif part == "answers" and len(value) > len(into[part]):
                into[part] = value

    def origin(self, part: str) -> Path:
        """Return the path of the first key that gives this part."""
        for above, written, members in self._objects:
            keys = _OBJECTS[above]
            for name in written:
                if members.get(name) is not None and name in keys and keys[name].part == part:
                    return (*above, name)
        raise AssertionError(part)


def _agree(part: str, first: Any, second: Any) -> bool:
    """Return True if two keys give a part the same value, or one repeats a single answer of the other's list."""
    if first == second:
        return True
    if part != "answers":
        return False
    fewer, more = sorted((first, second), key=len)
    return len(fewer) == 1 and fewer[0] in more


_PREFIXES = frozenset({"relevant_ids", "irrelevant_ids"})


def _case(values: _FieldValues, given: Collection[str], spelling: Collection[str], source: Source) -> EvalCase:
    """Build the case from its parts, and derive what they and their keys imply.

    A graded chunk is a relevant chunk. Cases of the categories `general`, `negative`, `unanswerable` and the like are
    unanswerable unless a key says otherwise or they name gold places or ids. An empty list of ids means that nothing
    may be retrieved in a negative case of the ids format; elsewhere it means nothing.
    """
    case = values.case
    gold = values.gold
    if "layers" in spelling and (gold.get("kg_entities") or gold.get("kg_edges")):
        case.setdefault("requires_kg", True)
    if not _PREFIXES.isdisjoint(given):
        gold["ids_are_prefixes"] = True
    chunk_ids = gold.get("chunk_ids", ())
    if "relevance" in gold:
        # A grade of 0 says that the chunk is not relevant.
        graded = [chunk_id for chunk_id, grade in gold["relevance"].items() if grade > 0]
        gold["chunk_ids"] = chunk_ids = tuple(dict.fromkeys((*chunk_ids, *graded)))
    if not chunk_ids:
        if not _is_negative_ids_case(case.get("category"), gold.get("ids_are_prefixes", False), given):
            gold.pop("chunk_ids", None)
        if "answerable" not in given and _is_unanswerable(case.get("category")) and "supports" not in gold:
            case["answerable"] = False
    if "answerable" not in given and not gold and _must_refuse(case.get("assertions", ())):
        case["answerable"] = False
    if gold:
        case["gold"] = Gold(**gold)
    if "id" not in case:  # a hash of the content alone: independent of the row's format and place
        content = written_small(case_to_mapping(EvalCase(id="", **case)))
        case["id"] = hashlib.sha256(content.encode()).hexdigest()[:12]
    case.setdefault("metadata", NOTHING)  # 64 bytes a case less than a dictionary of its own
    return EvalCase(source=source, **case)


def _must_refuse(assertions: Collection[Assertion]) -> bool:
    """Return True if an assertion of a case without gold says that the system has to decline."""
    return any(assertion.type == "is-refusal" for assertion in assertions)


def _is_unanswerable(category: str | None) -> bool:
    """Return True for a category whose cases have no answer unless they say otherwise."""
    return category is not None and (category in UNANSWERABLE_CATEGORIES or is_unanswerable_kind(category))


def contradictions(case: EvalCase, given: Collection[str], broken: Collection[str] = ()) -> Iterator[tuple[Path, str]]:
    """Yield the path and message of each contradiction between parts, ignoring `broken` parts."""
    gold = case.gold
    if case.tools_match is not None and case.expected_tools is None and "expected_tools" not in broken:
        yield ("tools_match",), "says how expected_tools are compared, and there are none; write them, or leave it out"
    if case.answerable and "answerable" not in given and case.category and is_unanswerable_kind(case.category):
        where = "supports" if gold.supports else "chunk_ids"
        category = shown_value(case.category)
        yield (
            (where,),
            f"say where the answer stands, but category {category} says that there is none; add 'answerable'",
        )
    if "chunk_ids" not in broken:
        if gold.relevance:
            for chunk_id in gold.chunk_ids or ():
                if (grade := gold.relevance.get(chunk_id, 1.0)) <= 0:
                    yield (
                        ("relevance", chunk_id),
                        f"is {grade:g}, which says irrelevant, but the chunk ids list it; keep one",
                    )
        if (
            case.answerable
            and not gold.chunk_ids
            and _is_negative_ids_case(case.category, gold.ids_are_prefixes, given)
        ):
            remedy = "but a negative case without relevant ids has no answer; leave"
            if "answerable" in given:
                yield ("answerable",), f"is true, {remedy} it out, or name the ids"
            else:  # only its supports make it answerable
                yield ("supports",), f"say where the answer stands, {remedy} them out, or name the ids"
    if "supports" not in broken and (gold.supports or gold.support_groups or gold.recency_conflict_rule):
        yield from _of_supports(case)


def _of_supports(case: EvalCase) -> Iterator[tuple[Path, str]]:
    supports = case.gold.supports or ()
    for position, group in enumerate(case.gold.support_groups or ()):
        for inner, index in enumerate(group):
            if not 0 <= index < len(supports):
                yield ("support_groups", position, inner), f"is {index}, out of range: {_how_many(len(supports))}"
    if supports and not case.answerable:
        yield (
            ("supports",),
            "contradicts 'answerable': false; leave the supports out, or make the case answerable",
        )
    if case.gold.recency_conflict_rule == "cite_newer" and len(supports) < 2:
        needs = "is 'cite_newer', which needs two supports or more"
        yield ("recency_conflict_rule",), f"{needs}; {_how_many(len(supports))}"


def _is_negative_ids_case(category: str | None, of_prefixes: bool, given: Collection[str]) -> bool:
    return category == "negative" and (of_prefixes or "query" in given)


def _how_many(supports: int) -> str:
    if not supports:
        return "the case has no supports"
    return "the case has one support, 0" if supports == 1 else f"the case has {supports} supports, 0 to {supports - 1}"
