"""A case as plain data that reads back equal: for records, hashes and conversion, not for case files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from json.encoder import encode_basestring_ascii
from operator import attrgetter
from typing import Annotated, Any

from pytest_rageval.assertions.reading import read_assertions, written_assertion
from pytest_rageval.errors import CaseError
from pytest_rageval.io.expected import Expects
from pytest_rageval.io.messages import Finding, Findings, Unsound
from pytest_rageval.io.records import RecordReader
from pytest_rageval.model import Anchor, EarlierTurn, EvalCase, Gold, Json
from pytest_rageval.model.case_fields import DESCRIPTIVE_NAMES
from pytest_rageval.model.expected_tool import ExpectedTool


def case_to_mapping(case: EvalCase) -> dict[str, Json]:
    """Convert the case to its canonical JSON object, without absent parts; empty parts stay.

    `answerable`, `requires_kg` and `source` are always set; `metadata` is shared with the case, not copied.
    """
    mapping: dict[str, Json] = {"id": case.id, "question": case.question, "answerable": case.answerable}
    for name in DESCRIPTIVE_NAMES:
        if (text := getattr(case, name)) is not None:
            mapping[name] = text
    for name in ("tags", "vaults", "folders"):
        if texts := getattr(case, name):
            mapping[name] = list(texts)
    mapping["requires_kg"] = case.requires_kg
    if gold := _gold_to_mapping(case.gold):
        mapping["gold"] = gold
    if case.history is not None:
        mapping["history"] = [turn._asdict() for turn in case.history]
    if case.contexts is not None:
        mapping["contexts"] = list(case.contexts)
    if case.assertions:
        mapping["assert"] = [written_assertion(assertion) for assertion in case.assertions]
    mapping |= _tools_to_mapping(case)
    if case.metadata:
        mapping["metadata"] = dict(case.metadata)
    for name in ("rewrite", "conversational", "expected_outcome"):
        if value := getattr(case, name):
            mapping[name] = value
    if case.turn is not None:
        mapping["conversation"] = case.conversation
        mapping["turn"] = case.turn
        if case.is_last:
            mapping[IS_LAST] = True
        mapping["earlier"] = [_earlier_turn(turn) for turn in case.earlier]
    if case.pass_rule is not None:
        mapping["pass_rule"] = case.pass_rule
    mapping["source"] = case.source._asdict()
    return mapping


def _earlier_turn(turn: EarlierTurn) -> dict[str, Json]:
    return {name: value for name, value in turn._asdict().items() if value}


def case_content(case: EvalCase) -> dict[str, Json]:
    """Return the canonical JSON object without the place of the case, to be compared or written into a file."""
    mapping = case_to_mapping(case)
    del mapping["source"]
    return mapping


def case_from_mapping(record: Mapping[str, Json]) -> EvalCase:
    """Rebuild the case: `case_from_mapping(case_to_mapping(case)) == case`.

    Raises CaseError naming each value that `case_to_mapping` would not write.
    """
    try:
        return _RECORDED.read(_with_assertions(_with_answers(record)))
    except Unsound as unsound:
        raise CaseError(*(f"recorded case: {_as_written(finding)}" for finding in unsound.findings.first)) from None


def content_hash(case: EvalCase) -> str:
    """Return the SHA-256 (64 hex digits) of everything but the source; equal cases have equal hashes."""
    return _hashes(case)[0]


def asked_hash(case: EvalCase) -> str:
    """Return the SHA-256 (64 hex digits) of question, history, scope, contexts, gold, `answerable`, `requires_kg`."""
    return _hashes(case)[1]


def _hashes(case: EvalCase) -> tuple[str, str]:
    """Return both hashes, computed once for each case; each of its parts is encoded once."""
    # Kept in the case, since each record, comparison and baseline needs both.
    if case.hashes is not None:
        return case.hashes
    mapping = case_content(case)
    mapping.pop(IS_LAST, None)  # a turn that is added does not change the one before it
    content = [f'"{name}":{_written(mapping[name])}' for name in sorted(mapping)]
    # The last turn is the one that is judged by the outcome.
    not_deciding = _NOT_DECIDING if case.is_last else _NOT_DECIDING | {"expected_outcome"}
    asked = [part for name, part in zip(sorted(mapping), content, strict=True) if name not in not_deciding]
    hashes = _sha256(",".join(content)), _sha256(",".join(asked))
    object.__setattr__(case, "hashes", hashes)
    return hashes


def _sha256(members: str) -> str:
    return hashlib.sha256(f"{{{members}}}".encode()).hexdigest()


def _written(part: Json) -> str:
    # Most parts are a text or a flag, for which the encoder need not be set up.
    if part.__class__ is str:
        return encode_basestring_ascii(part)
    if part.__class__ is bool:
        return "true" if part else "false"
    return _CANONICAL.encode(part)


IS_LAST = "is_last"
"""The key of a record's case that is the last turn of its conversation."""
_NOT_DECIDING = frozenset(
    {"id", *DESCRIPTIVE_NAMES, "tags", "metadata", "pass_rule", "rewrite", "conversation", "turn"}
)
"""Keys that are neither sent nor used for scoring, except by gates limited to some cases."""


def written_small(mapping: Mapping[str, Json]) -> str:
    """Encode as canonical JSON: sorted keys, no white space, ASCII."""
    return _CANONICAL.encode(mapping)


# Not pydantic-core's writer, though it takes a quarter of the time: it writes 1e+16 as 1e16 and does not sort keys.
# Baselines hold hashes of this output.
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


def _tools_to_mapping(case: EvalCase) -> dict[str, Json]:
    mapping: dict[str, Json] = {}
    if case.expected_tools is not None:
        mapping["expected_tools"] = [_written_tool(tool) for tool in case.expected_tools]
    if case.tools_match is not None:
        mapping["tools_match"] = case.tools_match
    if case.forbidden_tools:
        mapping["forbidden_tools"] = list(case.forbidden_tools)
    if case.max_tool_calls is not None:
        mapping["max_tool_calls"] = case.max_tool_calls
    return mapping


def _written_tool(tool: ExpectedTool) -> dict[str, Json]:
    """Convert an expected call to plain data, without what has its default."""
    mapping: dict[str, Json] = {"name": tool.name}
    if tool.args:
        mapping["args"] = dict(tool.args)
    if tool.args_match != "subset":
        mapping["args_match"] = tool.args_match
    if tool.ignore:
        mapping["ignore"] = list(tool.ignore)
    if tool.optional:
        mapping["optional"] = True
    return mapping


def _gold_to_mapping(gold: Gold) -> dict[str, Json]:
    mapping: dict[str, Json] = {}
    if gold.answers is not None:
        mapping["answer"] = gold.answers[0] if len(gold.answers) == 1 else list(gold.answers)
    for (name, write), part in zip(_GOLD_WRITERS.items(), _gold_parts(gold), strict=True):
        if part is not None:
            mapping[name] = write(part)
    if gold.ids_are_prefixes:
        mapping["ids_are_prefixes"] = True
    return mapping


def _written_anchors(anchors: tuple[Anchor, ...]) -> list[Json]:
    return [written_anchor(anchor) for anchor in anchors]


def written_anchor(anchor: Anchor) -> dict[str, Json]:
    """Convert an anchor to plain data, without unset fields."""
    mapping: dict[str, Json] = {"rel_path": anchor.rel_path, "heading_path": anchor.heading_path}
    if anchor.snippets:
        mapping["snippets"] = list(anchor.snippets)
    if anchor.date is not None:
        mapping["date"] = anchor.date
    return mapping


_GOLD_WRITERS: Mapping[str, Callable[[Any], Json]] = {
    "key_facts": list,
    "supports": _written_anchors,
    "support_groups": lambda groups: [list(group) for group in groups],
    "irrelevant_supports": _written_anchors,
    "chunk_ids": list,
    "irrelevant_ids": list,
    "relevance": lambda grades: {chunk_id: float(grade) for chunk_id, grade in grades.items()},
    "concepts": list,
    "constraints": list,
    "kg_entities": list,
    "kg_edges": lambda edges: [edge._asdict() for edge in edges],
    "recency_conflict_rule": str,
}
_gold_parts = attrgetter(*_GOLD_WRITERS)


_RECORDED = RecordReader[EvalCase](Annotated[EvalCase, Expects("{id, question, …}")])


def _with_answers(record: Json) -> Json:
    """Rename `answer` in the record's gold to `answers`, its name in Gold."""
    gold = record.get("gold") if isinstance(record, Mapping) else None
    if not isinstance(gold, Mapping) or "answer" not in gold:
        return record
    answer = gold["answer"]
    answers = [answer] if isinstance(answer, str) else answer
    return {**record, "gold": {key: value for key, value in gold.items() if key != "answer"} | {"answers": answers}}


def _with_assertions(record: Json) -> Json:
    """Replace `assert` by the assertions themselves, under the name of their field."""
    if not isinstance(record, Mapping) or "assert" not in record:
        return record
    findings = Findings()
    written = record["assert"]
    if not isinstance(written, list | tuple):
        raise Unsound(Findings(Finding(("assert",), "is no list of assertions")))
    assertions = read_assertions(written, findings)
    if findings:
        raise Unsound(findings)
    return {**{key: value for key, value in record.items() if key != "assert"}, "assertions": assertions}


def _as_written(finding: Finding) -> Finding:
    is_answer = finding.path[:2] == ("gold", "answers")
    return finding._replace(path=("gold", "answer", *finding.path[2:])) if is_answer else finding
