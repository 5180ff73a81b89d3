"""Assertions as they are written in a case, read and written; each problem with its place."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_rageval.assertions.assertion_type import AssertionType
from pytest_rageval.assertions.registry import TYPES, UNSUPPORTED, WRITTEN
from pytest_rageval.io.messages import Finding, Findings, Path, describe, shown_value
from pytest_rageval.io.suggestions import did_you_mean, suggestion
from pytest_rageval.model import Json
from pytest_rageval.model.assertion import GROUPS, NEGATION, Assertion

MOST_ASSERTIONS = 100
"""Assertions of a case, those in groups included."""
_METRIC = re.compile(r"[a-z][a-z0-9_]{0,59}")
_BESIDE = ("threshold", "metric")
"""Keys beside a type in the short form."""
_LONG = ("type", "value", *_BESIDE)
_OF_PROMPTFOO = {
    "weight": "each assertion counts once; leave it out",
    "provider": "the judge is chosen for the whole run; leave it out",
    "transform": "code in data is never run; leave it out",
    "rubricPrompt": "the prompt is the project's; leave it out",
    "assert": "write {'all': […]} or {'any': […]}",
}


def read_assertions(written: Sequence[Any], findings: Findings, path: Path = ("assert",)) -> tuple[Assertion, ...]:
    """Return the assertions of a case that can be read, and add the problems of the others."""
    read = tuple(_read_each(written, findings, path, may_nest=True))
    count = sum(max(1, len(assertion.members)) for assertion in read)
    if count > MOST_ASSERTIONS:
        findings.add(path, f"has {count} assertions, more than {MOST_ASSERTIONS}; split the case")
    return read


def _read_each(written: Sequence[Any], findings: Findings, path: Path, *, may_nest: bool) -> Iterator[Assertion]:
    for number, item in enumerate(written):
        place = (*path, number)
        if not isinstance(item, Mapping):
            findings.add(place, f"is {describe(item)}, expected an object such as {{'icontains': '4 euros'}}")
            continue
        given = {key: value for key, value in item.items() if value is not None}
        before = len(findings.first) + findings.more
        assertion = _read_one(given, findings, place, may_nest=may_nest)
        is_sound = len(findings.first) + findings.more == before
        if is_sound and assertion is not None:
            yield assertion


def _read_one(given: Mapping[str, Any], findings: Findings, path: Path, *, may_nest: bool) -> Assertion | None:
    group = next((name for name in GROUPS if name in given), None)
    if group is not None:
        return _read_group(group, given, findings, path, may_nest=may_nest)
    if "type" in given:
        return _read_long(given, findings, path)
    return _read_short(given, findings, path)


def _read_group(
    group: str, given: Mapping[str, Any], findings: Findings, path: Path, *, may_nest: bool
) -> Assertion | None:
    _check_keys(given, (group, "metric"), findings, path)
    members = given[group]
    if not may_nest:
        findings.add((*path, group), "stands within another any or all; one level is known")
        return None
    if not isinstance(members, list | tuple):
        findings.add((*path, group), f"is {describe(members)}, expected a list of assertions")
        return None
    if not members:
        findings.add((*path, group), "is empty; name at least one assertion")
        return None
    metric = _metric_of(given, findings, path)
    read = tuple(_read_each(members, findings, (*path, group), may_nest=False))
    for number, member in enumerate(read):
        if member.metric is not None:
            findings.add((*path, group, number, "metric"), f"stands within {group}; write it beside {group!r}")
    return Assertion(group, metric=metric, members=read)


def _read_long(given: Mapping[str, Any], findings: Findings, path: Path) -> Assertion | None:
    _check_keys(given, _LONG, findings, path)
    written = given["type"]
    kind = _type_of(written)
    if kind is None:
        findings.add((*path, "type"), f"is {shown_value(written)}, {_unknown_type(written)}")
        return None
    if "value" in given and kind.value is None:
        remedy = "write threshold" if kind.threshold is not None else "leave it out"
        findings.add((*path, "value"), f"is not known for {kind.name}; {remedy}")
    return _of_type(kind, written, given, given.get("value"), findings, path, at="value")


def _read_short(given: Mapping[str, Any], findings: Findings, path: Path) -> Assertion | None:
    types = [key for key in given if _type_of(key) is not None]
    if len(types) > 1:
        findings.add(path, f"has the types {' and '.join(map(repr, types))}; write an object for each")
        return None
    if not types:
        unknown = [key for key in given if key not in (*_BESIDE, "value")]
        for key in unknown:
            _add_unknown(key, WRITTEN, findings, path)
        if not unknown:
            findings.add(path, "has no type; write {'type': 'icontains', 'value': …} or {'icontains': …}")
        return None
    written = types[0]
    kind = TYPES[written.removeprefix(NEGATION)]
    _check_keys(given, (written, *_BESIDE), findings, path)
    value = given[written]
    if kind.value is None and kind.threshold is not None:
        if "threshold" in given:
            findings.add((*path, "threshold"), f"is written twice; {written!r} has it already")
        given = {**given, "threshold": value}
        return _of_type(kind, written, given, None, findings, path, at=written, threshold_at=written)
    if value is True and (kind.value is None or kind.value.is_optional):
        value = None
    elif kind.value is None:
        findings.add((*path, written), f"is {describe(value)}, expected true: {kind.name} has no value")
        return None
    return _of_type(kind, written, given, value, findings, path, at=written)


def _of_type(
    kind: AssertionType,
    written: str,
    given: Mapping[str, Any],
    value: Any,
    findings: Findings,
    path: Path,
    *,
    at: str,
    threshold_at: str = "threshold",
) -> Assertion:
    """Return the assertion, and add what is wrong with its value, threshold and metric."""
    if kind.value is not None:
        if value is not None:
            problem = kind.value.problem(value)
            if problem is not None:
                findings.add((*path, at), problem)
        elif not kind.value.is_optional:
            findings.add(path, f"has no value, which {kind.name} needs")
    threshold = _threshold_of(kind, given, findings, path, threshold_at)
    return Assertion(written, _plain(value), threshold, _metric_of(given, findings, path))


def _plain(value: Any) -> Any:
    """Return lists as they are in JSON: readers of records give tuples."""
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value


def _threshold_of(
    kind: AssertionType, given: Mapping[str, Any], findings: Findings, path: Path, at: str
) -> float | None:
    rule = kind.threshold
    threshold = given.get("threshold")
    if threshold is None:
        if rule is not None and rule.default is None:
            findings.add(path, f"has no threshold, which {kind.name} needs: {rule.about}")
        return None
    if rule is None:
        findings.add((*path, at), f"is not known for {kind.name}, which has none; leave it out")
        return None
    is_number = isinstance(threshold, int | float) and not isinstance(threshold, bool)
    number = "a whole number" if rule.is_whole else "a number"
    if not is_number or not rule.low <= threshold <= rule.high or (rule.is_whole and threshold != int(threshold)):
        limits = f"of {rule.low:g} or more" if rule.high >= 1e12 else f"from {rule.low:g} to {rule.high:g}"
        findings.add((*path, at), f"is {shown_value(threshold)}, expected {number} {limits}: {rule.about}")
        return None
    return float(threshold)


def is_metric_of_assertions(name: str) -> bool:
    """Return True if an assertion can have a metric of this name."""
    return _METRIC.fullmatch(name) is not None


def _metric_of(given: Mapping[str, Any], findings: Findings, path: Path) -> str | None:
    metric = given.get("metric")
    if metric is None:
        return None
    if not isinstance(metric, str) or _METRIC.fullmatch(metric) is None:
        expected = "expected lower-case letters, digits and underscores, as in 'prices'"
        findings.add((*path, "metric"), f"is {shown_value(metric)}, {expected}")
        return None
    return metric


def _type_of(written: Any) -> AssertionType | None:
    return TYPES.get(written.removeprefix(NEGATION)) if isinstance(written, str) else None


def _unknown_type(written: Any) -> str:
    """Return why a type is none, with a remedy."""
    if not isinstance(written, str):
        return "expected the name of a type such as 'icontains'"
    instead = UNSUPPORTED.get(written.removeprefix(NEGATION))
    if instead is not None:
        return f"which is not supported: it {instead}"
    remedy = did_you_mean(written, WRITTEN, f"; types: {', '.join(TYPES)}, each with not-")
    return f"which is no type of assertion{remedy}"


def _check_keys(given: Mapping[str, Any], known: Sequence[str], findings: Findings, path: Path) -> None:
    for key in given:
        if key not in known:
            _add_unknown(key, known, findings, path)


def _add_unknown(key: str, known: Sequence[str], findings: Findings, path: Path) -> None:
    instead = UNSUPPORTED.get(key.removeprefix(NEGATION)) or _OF_PROMPTFOO.get(key)
    if instead is None:
        close = suggestion(key, known)
        instead = f"did you mean {close!r}?" if close else ""
        if not instead:
            listed = ", ".join(TYPES) + ", each with not-" if len(known) > len(TYPES) else ", ".join(known)
            instead = f"known here: {listed}"
    elif key.removeprefix(NEGATION) in UNSUPPORTED:
        instead = f"it {instead}"
    findings.include((), Findings(Finding((*path, key), f"is not a known key; {instead}", at_key=True)))


def written_assertion(assertion: Assertion) -> dict[str, Json]:
    """Return an assertion as it is written in a case, in the long form."""
    written: dict[str, Json] = {}
    if assertion.is_group:
        written[assertion.type] = [written_assertion(member) for member in assertion.members]
    else:
        written["type"] = assertion.type
        if assertion.value is not None:
            written["value"] = assertion.value
        if assertion.threshold is not None:
            written["threshold"] = assertion.threshold
    if assertion.metric is not None:
        written["metric"] = assertion.metric
    return written


SINGLE = "single_assertion"
"""The definition of the JSON Schema to which that of groups refers."""


def assertion_schemas() -> dict[str, Json]:
    """Return the JSON Schemas of an assertion, in both forms, and of one that may be a group, by definition."""
    metric = {"type": ["string", "null"], "pattern": f"^{_METRIC.pattern}$", "description": "The name of its average."}
    threshold = {"type": ["number", "null"], "description": "The limit of types that have one."}
    value = {"description": "What the answer is compared with."}
    beside: dict[str, Json] = {"threshold": threshold, "metric": metric}
    short: dict[str, Json] = {}
    for written in WRITTEN:
        kind = TYPES[written.removeprefix(NEGATION)]
        if kind.value is not None:
            about: dict[str, Json] = dict(kind.value.schema)
            if kind.value.is_optional:
                about = {"anyOf": [about, {"type": "boolean"}]}
        elif kind.threshold is not None:
            about = {"type": "number"}
        else:
            about = {"const": True}
        short[written] = {**about, "description": kind.about}
    long = {
        "type": "object",
        "required": ["type"],
        "additionalProperties": False,
        "properties": {"type": {"enum": [*WRITTEN]}, "value": value, **beside},
    }
    brief = {
        "type": "object",
        "minProperties": 1,
        "additionalProperties": False,
        "properties": {**short, **beside},
    }
    single = {"$ref": f"#/$defs/{SINGLE}"}
    forms: list[Json] = [single]
    for name in GROUPS:
        members = {"type": "array", "minItems": 1, "items": single}
        properties = {name: members, "metric": metric}
        forms.append({"type": "object", "required": [name], "additionalProperties": False, "properties": properties})
    return {"assertion": {"anyOf": forms}, SINGLE: {"anyOf": [long, brief]}}
