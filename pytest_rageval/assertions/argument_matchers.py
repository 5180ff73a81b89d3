"""Expected arguments of tool calls: JSON values, or assertions about them such as `{"icontains": "jeju"}`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from pytest_rageval.assertions import json_types, text_types
from pytest_rageval.assertions.assertion_type import CheckedAnswer
from pytest_rageval.assertions.checking import check_assertions
from pytest_rageval.assertions.edit_distance import edit_distance
from pytest_rageval.assertions.json_types import equal_json
from pytest_rageval.assertions.reading import read_assertions
from pytest_rageval.assertions.registry import TYPES
from pytest_rageval.io.messages import Findings, Path
from pytest_rageval.model import Answer, NotApplicable
from pytest_rageval.model.assertion import GROUPS, NEGATION, Assertion

OF_ARGUMENTS = frozenset(kind.name for module in (text_types, json_types) for kind in module.TYPES)
"""The types that say something of a value; the others are about an answer."""
LONGEST_ARGUMENT = 10_000
"""Characters of an argument that are looked at."""
_OF_MATCHERS = frozenset({*OF_ARGUMENTS, *(f"{NEGATION}{name}" for name in OF_ARGUMENTS)})
_JUDGED = frozenset(name for name, kind in TYPES.items() if kind.judged_by is not None)
_UNKNOWN = NotApplicable("an argument has neither time nor cost")


def check_arguments(args: Mapping[str, Any], findings: Findings, path: Path) -> None:
    """Add what is wrong with the expected arguments of a call."""
    for name, value in args.items():
        _check(value, findings, (*path, name))


def _check(value: Any, findings: Findings, path: Path) -> None:
    if is_matcher(value):
        found = Findings()
        read_assertions([value], found, path=())
        for finding in found.first:  # their paths begin with the position in that list
            findings.include(path, Findings(finding._replace(path=finding.path[1:])))
    elif isinstance(value, Mapping):
        if len(value) == 1:
            _check_only_key(str(next(iter(value))), findings, path)
        for name, member in value.items():
            _check(member, findings, (*path, name))
    elif isinstance(value, list | tuple):
        for number, member in enumerate(value):
            _check(member, findings, (*path, number))


def _check_only_key(key: str, findings: Findings, path: Path) -> None:
    """Add that an object looks like a matcher, and is none."""
    if key.removeprefix(NEGATION) in _JUDGED:
        findings.add((*path, key), "is decided by a judge, which reads answers only; write icontains or regex")
        return
    if key in TYPES or len(key) < 4:
        return  # {"language": "en"} is an object: this type is about answers
    distances: list[tuple[int, str]] = []
    for name in _OF_MATCHERS:
        distance = edit_distance(key, name, most=2)
        if distance is not None:
            distances.append((distance, name))
    if distances:
        _, nearest = min(distances)
        literal = "an argument that is this object is written {'equals': {…}}"
        findings.add((*path, key), f"is no matcher; did you mean {nearest!r}? ({literal})")


def is_matcher(value: Any) -> bool:
    """Check whether an expected argument is an assertion: `{"icontains": "jeju"}`, and not a value."""
    if not isinstance(value, Mapping):
        return False
    keys = value.keys() - {"threshold"}
    if keys == {"type", "value"} or keys == {"type"}:
        return value["type"] in _OF_MATCHERS if isinstance(value["type"], str) else False
    if len(keys) != 1:
        return False
    (key,) = keys
    if key in GROUPS:
        members = value[key]
        return isinstance(members, list | tuple) and bool(members) and all(map(is_matcher, members))
    return key in _OF_MATCHERS


def matches_argument(expected: Any, found: Any) -> bool:
    """Check whether an argument is as expected; in objects and lists, each member is compared."""
    if is_matcher(expected):
        return _holds(_matcher(json.dumps(expected, sort_keys=True)), found)
    if isinstance(expected, Mapping):
        if not isinstance(found, Mapping) or found.keys() != expected.keys():
            return False
        return all(matches_argument(value, found[name]) for name, value in expected.items())
    if isinstance(expected, list | tuple):
        if not isinstance(found, list | tuple) or len(found) != len(expected):
            return False
        return all(matches_argument(one, other) for one, other in zip(expected, found, strict=True))
    return equal_json(found, expected)


@lru_cache(maxsize=1024)
def _matcher(written: str) -> Assertion:
    (assertion,) = read_assertions([json.loads(written)], Findings())
    return assertion


def _holds(matcher: Assertion, found: Any) -> bool:
    text = found if isinstance(found, str) else json.dumps(found, ensure_ascii=False, default=str)
    answer = CheckedAnswer(
        text=text[:LONGEST_ARGUMENT],
        answer=Answer(text),
        latency_ms=_UNKNOWN,
        cost_usd=_UNKNOWN,
        abstained=None,
        judgements={},
    )
    (outcome,) = check_assertions([matcher], answer)
    return outcome.holds is True
