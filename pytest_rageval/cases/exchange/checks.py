"""promptfoo's checks as gold and assertions of a case; those without a counterpart are kept and counted."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pytest_rageval.assertions.registry import WRITTEN
from pytest_rageval.model import Json

_CHECK = re.compile(
    r"(?P<type>(?:not-)?[a-z][a-z-]+)(?:\((?P<threshold>\d{1,9}(?:\.\d{1,9})?)\))?(?P<colon>:\s*(?P<value>.*))?",
    re.DOTALL,
)
_OF_ANSWER = (
    "equals",
    "similar",
    "factuality",
    "model-graded-factuality",
    "answer-correctness",
    "rouge-n",
    "bleu",
    "context-recall",
    "contains-any",
    "icontains-any",
)
_OF_FACTS = ("contains", "icontains", "contains-all", "icontains-all")
OF_GOLD = (*_OF_ANSWER, *_OF_FACTS)
"""Types whose values are gold, whether or not they are assertions too."""


def written_checks(row: dict[str, Json]) -> list[dict[str, Json]]:
    """Take the checks out of promptfoo's columns: `icontains: 30 days`; plain text means `equals`."""
    special = [name for name in row if name.startswith("__")]
    if not special:
        return []
    written = [row.pop(name) for name in special if re.fullmatch(r"__expected\d*", name)]
    for name in [name for name in row if name.startswith("__")]:
        row[name.strip("_").removeprefix("metadata:")] = row.pop(name)
    return [_written_check(text) for text in written if isinstance(text, str)]


def _written_check(text: str) -> dict[str, Json]:
    match = _CHECK.fullmatch(text.strip())
    # Plain text without a colon is an answer, unless it is a type: `is-json`.
    if match is None or (match["colon"] is None and match["type"] not in WRITTEN):
        return {"type": "equals", "value": text}
    check: dict[str, Json] = {"type": match["type"]}
    if match["value"] is not None:
        check["value"] = match["value"]
    if match["threshold"] is not None:
        check["threshold"] = float(match["threshold"])
    return check


def single_checks(checks: Json, variables: Json = None) -> Iterator[dict[str, Json]]:
    """Yield the checks of a list, including those in nested sets, with `{{name}}` replaced by the test's variables."""
    if not isinstance(checks, list):
        return
    for check in checks:
        if not isinstance(check, dict):
            continue
        if check.get("type") == "assert-set":
            members = list(single_checks(check.get("assert"), variables))
            needed = _needed_of_set(check, len(members))
            for member in members:
                yield member if needed == "all" else {**member, SET: needed}
        else:
            yield {name: _filled(value, variables) for name, value in check.items()}


SET = " set"
"""The key of a member of a set of which not all are needed: a number for a set one of whose members is enough, else
None. No key of promptfoo begins with a blank."""


def _needed_of_set(check: Mapping[str, Json], members: int) -> Json:
    """Return 'all', or for a set with a threshold: its identity if one member is enough, else None."""
    threshold = check.get("threshold")
    if not isinstance(threshold, int | float) or isinstance(threshold, bool) or threshold >= 1:
        return "all"
    # Only then one member is enough; other thresholds have no counterpart here.
    return id(check) if threshold * members <= 1 else None


_MOST_LEVELS = 3
"""Variables within variables that are filled in: one that names itself has no end."""
_LONGEST_FILLED = 100_000


def filled_variables(variables: Mapping[str, Json]) -> dict[str, Json]:
    """Return variables with the variables within them filled in."""
    filled = dict(variables)
    for _ in range(_MOST_LEVELS):
        if not any(isinstance(value, str) and "{{" in value for value in filled.values()):
            break
        filled = {name: _within_bound(_filled(value, filled), value) for name, value in filled.items()}
    return filled


def _within_bound(filled: Json, written: Json) -> Json:
    is_too_long = isinstance(filled, str) and len(filled) > _LONGEST_FILLED
    return written if is_too_long else filled


def _filled(value: Json, variables: Json) -> Json:
    if not isinstance(value, str) or not isinstance(variables, dict):
        return value
    return re.sub(r"\{\{\s*(\w+)\s*\}\}", lambda name: str(variables.get(name[1], name[0])), value)


LONGEST_TEXT = 2**24
"""Bytes of a file that a variable names."""
_CODE = frozenset({".py", ".js", ".cjs", ".mjs", ".ts"})


def path_below(folder: Path, written: str) -> Path:
    """Return the file that `file://PATH` means; raise ValueError unless it is a text below the folder."""
    path = (folder / written.removeprefix("file://")).resolve()
    # Test sets are downloaded: one must not put another file of this machine into the cases.
    if not path.is_relative_to(folder.resolve()):
        raise ValueError("lies outside of the folder of the test set")
    if path.suffix in _CODE:
        raise ValueError("is code, which is never run")
    if not path.is_file():
        raise ValueError("is no file there")
    if path.stat().st_size > LONGEST_TEXT:
        raise ValueError(f"is longer than {LONGEST_TEXT:,} bytes")
    return path


def _text_of(written: str, folder: Path) -> str:
    return path_below(folder, written).read_text("utf-8", "replace")


def with_files(variables: Mapping[str, Json], folder: Path) -> tuple[dict[str, Json], dict[str, Json], list[str]]:
    """Replace each variable `file://PATH` by the text of its file.

    Return the variables, those whose file cannot be read, and why, a line each.
    """
    read = dict(variables)
    unread: dict[str, Json] = {}
    reasons: list[str] = []
    for name, value in variables.items():
        if isinstance(value, str) and value.startswith("file://"):
            try:
                read[name] = _text_of(value, folder)
            except (OSError, ValueError) as error:
                unread[name] = read.pop(name)
                reasons.append(f"{name}: {value} {error}: kept in metadata")
    return read, unread, reasons


class ReadChecks(NamedTuple):
    """promptfoo's checks as gold.

    unused   those without a counterpart here
    unread   those whose value is a file that cannot be read, and `reasons`, a line each
    """

    answers: list[str]
    facts: list[str]
    unused: list[dict[str, Json]]
    unread: list[dict[str, Json]]
    reasons: list[str]


def gold_of_checks(checks: Iterable[Mapping[str, Any]], folder: Path) -> ReadChecks:
    """Return the right answers and the key facts that checks name, those in files below the folder too."""
    read = ReadChecks([], [], [], [], [])
    for check in checks:
        # One of a set is no key fact, since not all of them must stand in an answer.
        is_one_of_set = SET in check and check.get("type") in _OF_FACTS
        if check.get("type") not in OF_GOLD or is_one_of_set:
            read.unused.append(_without_set(check))
            continue
        gold = read.answers if check["type"] in _OF_ANSWER else read.facts
        try:
            gold += _values(check, folder)
        except (OSError, ValueError) as error:
            read.unread.append(_without_set(check))
            read.reasons.append(f"assert: {check['value']} {error}: kept in metadata")
    return read


def _without_set(check: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in check.items() if name != SET}


def _values(check: Mapping[str, Any], folder: Path) -> list[str]:
    value = check.get("value")
    if isinstance(value, str) and str(check["type"]).endswith(("-all", "-any")):
        value = value.split(",")
    values = value if isinstance(value, list) else [value]
    items: list[str] = []
    for each in values:
        item = str(each).strip()
        if item.startswith("file://"):
            item = _text_of(item, folder).strip()
        items.append(item)
    return items
