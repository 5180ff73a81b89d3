"""promptfoo's checks as assertions of a case, as far as both have the same type."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pytest_rageval.assertions.reading import read_assertions
from pytest_rageval.assertions.registry import TYPES
from pytest_rageval.cases.exchange.checks import OF_GOLD, SET, path_below
from pytest_rageval.io.messages import Findings
from pytest_rageval.io.strict_json import StrictJsonError, parse
from pytest_rageval.model import Json
from pytest_rageval.model.assertion import NEGATION

_REFERENCES = frozenset({"equals", "similar"})
"""Types whose text is a right answer: it becomes the reference, which an answer in other words may state too."""
_KEYS = ("type", "value", "threshold", "metric")
_SCHEMAS = frozenset({"is-json", "contains-json"})
_LISTS = ("-all", "-any")
_TAKEN_NAMES = frozenset(
    (
        "assertions",
        "citation_accuracy",
        "claim_support",
        "composite",
        "correctness",
        "exact_match",
        "faithfulness",
        "groundedness",
        "hallucinated",
        "reference_match",
        "relevance",
        "synthesis",
    )
)
"""Names of metrics that people also give to their assertions."""


class AssertedChecks(NamedTuple):
    """The assertions of promptfoo's checks.

    taken    the checks that became assertions, as they were written
    reasons  why others with a type of ours did not, a line each
    """

    assertions: list[dict[str, Json]]
    taken: list[dict[str, Json]]
    reasons: list[str]


def assertions_of_checks(checks: Iterable[Mapping[str, Any]], folder: Path) -> AssertedChecks:
    """Return the checks as assertions; files that they name are read below the folder.

    A check whose text is a right answer is left to the gold.
    """
    read = AssertedChecks([], [], [])
    groups: dict[Any, dict[str, Json]] = {}
    for check in checks:
        written = {name: value for name, value in check.items() if name != SET}
        kind = str(check.get("type"))
        if check.get("weight") not in (None, 0, 1):
            read.reasons.append(f"assert: the weight of {kind} is not read, since every assertion must pass here")
        if kind.removeprefix(NEGATION) not in TYPES or (kind in _REFERENCES and _is_text(check)):
            continue
        problem = _problem_of_check(check)
        assertion: dict[str, Json] = {}
        if problem is None:
            try:
                assertion = _assertion(written, folder)
                problem = _first_problem(assertion)
            except (OSError, ValueError) as error:
                if kind in OF_GOLD:  # reported where its gold is read
                    continue
                problem = f"{check.get('value')} {error}"
        if problem is not None:
            read.reasons.append(f"assert: {kind} {problem}: kept in metadata")
            continue
        read.taken.append(written)
        if SET not in check:
            read.assertions.append(assertion)
        elif check[SET] in groups:
            groups[check[SET]]["any"].append(assertion)
        else:
            groups[check[SET]] = {"any": [assertion]}
            read.assertions.append(groups[check[SET]])
    return read


def unconverted(
    checks: Iterable[dict[str, Any]], asserted: AssertedChecks, *, is_own_export: bool
) -> list[dict[str, Any]]:
    """Return the checks that became no assertion; those that our own export wrote are in its extra parts."""
    left = [check for check in checks if check not in asserted.taken]
    if not is_own_export:
        return left
    return [check for check in left if str(check.get("type")).removeprefix(NEGATION) not in TYPES]


def _is_text(check: Mapping[str, Any]) -> bool:
    return not isinstance(check.get("value"), dict | list)


def _problem_of_check(check: Mapping[str, Any]) -> str | None:
    """Return why a check cannot be an assertion though its type is known."""
    if check.get(SET, "") is None:
        return "is in a set of which some are enough, which has no counterpart"
    if check.get("weight") == 0:
        return "has the weight 0, which measures without a verdict"
    if check.get("transform") is not None:
        return "has a transform, which is code and never run"
    return None


def _assertion(check: Mapping[str, Any], folder: Path) -> dict[str, Json]:
    """Return a check with the keys of an assertion; raise ValueError for a file that cannot be read."""
    assertion = {name: check[name] for name in _KEYS if check.get(name) is not None}
    kind = check["type"].removeprefix(NEGATION)
    value = assertion.get("value")
    if kind in _SCHEMAS and isinstance(value, str):
        assertion["value"] = _schema(value, folder)
    elif kind.endswith(_LISTS) and isinstance(value, str):
        assertion["value"] = [part.strip() for part in value.split(",") if part.strip()]
    elif kind == "word-count" and isinstance(value, str):
        assertion["value"] = json.loads(value)
    if isinstance(assertion.get("value"), str | list):
        assertion["value"] = _with_text(assertion["value"], folder)
    if TYPES[kind].value is None:
        assertion.pop("value", None)
    if TYPES[kind].threshold is None:
        assertion.pop("threshold", None)
    if "metric" in assertion:
        assertion["metric"] = _name_of_metric(str(assertion["metric"]))
    return assertion


def _with_text(value: Any, folder: Path) -> Any:
    """Replace texts that name a file by its content."""
    if isinstance(value, list):
        return [_with_text(each, folder) for each in value]
    if isinstance(value, str) and value.startswith("file://"):
        return path_below(folder, value).read_text("utf-8", "replace").strip()
    return value


def _schema(written: str, folder: Path) -> Json:
    """Read a schema that is written as text, or stands in a file; raise ValueError if that fails."""
    text = written
    if written.startswith("file://"):
        text = path_below(folder, written).read_text("utf-8", "replace")
    if not text.strip():
        return None
    try:
        return parse(text)
    except StrictJsonError as error:
        raise ValueError(f"is no JSON Schema in JSON: {error}") from None


def _name_of_metric(written: str) -> str:
    """Return a name of promptfoo in the form of our metrics: `Answer tone` is `answer_tone`."""
    name = re.sub(r"[^a-z0-9]+", "_", written[:50].lower()).strip("_")
    if not name[:1].isalpha():
        name = f"metric_{name}".rstrip("_")
    # One name for two metrics would mix their scores.
    return f"{name}_checks" if name in _TAKEN_NAMES else name


def _first_problem(assertion: Mapping[str, Json]) -> str | None:
    findings = Findings()
    read_assertions([assertion], findings)
    if not findings:
        return None
    first = findings.first[0]
    place = ".".join(str(step) for step in first.path[2:])
    return f"{place} {first.message}".strip()
