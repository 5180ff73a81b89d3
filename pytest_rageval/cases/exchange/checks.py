"""promptfoo's checks as gold of a case; those without a counterpart are kept in the metadata and counted."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pytest_rageval.model import Json

_CHECK = re.compile(r"(?P<type>(?:not-)?[a-z][a-z-]+)(?:\([\d.]+\))?:\s*(?P<value>.*)", re.DOTALL)
_OF_ANSWER = ("equals", "similar", "factuality", "model-graded-factuality", "answer-correctness", "rouge-n", "bleu",
              "context-recall")  # fmt: skip
_OF_FACTS = ("contains", "icontains", "contains-all", "icontains-all")


def written_checks(row: dict[str, Json]) -> list[dict[str, Json]]:
    """Take the checks out of promptfoo's columns: `icontains: 30 days`; plain text means `equals`."""
    written = [row.pop(name) for name in list(row) if re.fullmatch(r"__expected\d*", name)]
    for name in [name for name in row if name.startswith("__")]:
        row[name.strip("_").removeprefix("metadata:")] = row.pop(name)
    matches = [(text, _CHECK.fullmatch(text)) for text in written if isinstance(text, str)]
    return [
        {"type": match["type"], "value": match["value"]} if match else {"type": "equals", "value": text}
        for text, match in matches
    ]


def single_checks(checks: Json, variables: Json = None) -> Iterator[dict[str, Json]]:
    """Yield the checks of a list, including those in nested sets, with `{{name}}` replaced by the test's variables."""
    for check in checks if isinstance(checks, list) else ():
        if isinstance(check, dict) and check.get("type") == "assert-set":
            yield from single_checks(check.get("assert"), variables)
        elif isinstance(check, dict):
            yield {name: _filled(value, variables) for name, value in check.items()}


def _filled(value: Json, variables: Json) -> Json:
    if not isinstance(value, str) or not isinstance(variables, dict):
        return value
    return re.sub(r"\{\{\s*(\w+)\s*\}\}", lambda name: str(variables.get(name[1], name[0])), value)


def gold_of_checks(checks: Iterable[Mapping[str, Any]]) -> tuple[list[str], list[str]]:
    """Return the right answers and the key facts that checks name."""
    return list(_values(checks, _OF_ANSWER)), list(_values(checks, _OF_FACTS))


def without_counterpart(checks: Iterable[Mapping[str, Any]]) -> list[dict[str, Json]]:
    """Return the checks that are no gold here."""
    return [dict(check) for check in checks if check.get("type") not in (*_OF_ANSWER, *_OF_FACTS)]


def _values(checks: Iterable[Mapping[str, Any]], types: Sequence[str]) -> Iterator[str]:
    for check in checks:
        value = check.get("value")
        if check.get("type") not in types:
            continue
        if isinstance(value, str) and str(check["type"]).endswith("-all"):
            value = value.split(",")
        yield from (str(item).strip() for item in (value if isinstance(value, list) else [value]))
