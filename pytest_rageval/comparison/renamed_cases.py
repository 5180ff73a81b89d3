"""Cases that were renamed since the other run: another id or file, and the same question and gold."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pytest_rageval.runs.columns import CaseColumns
from pytest_rageval.runs.decision_hash import asked_part
from pytest_rageval.text import counted

RENAMED = "renamed"
"""The key of the renamed cases in a comparison, new key → old key; absent without any."""
STILL_FAILING = "renamed_failing"
"""The key of the renamed cases that fail now and failed before; absent without any."""
ADVICE = (
    "Cases were renamed, which makes new cases of them: give them their old ids and files, or accept the new ones with "
    "--rageval-update-baseline."
)


def renamed_content(
    before: CaseColumns, after: CaseColumns, removed: Sequence[str], added: Sequence[str]
) -> dict[str, Any]:
    """Return the renamed cases for the comparison in metrics.json; empty if none is found.

    removed, added  keys of the cases that only one side has
    """
    renamed = _renamed(before, after, removed, added)
    if not renamed:
        return {}
    content: dict[str, Any] = {RENAMED: renamed}
    still_failing = [new for new, old in renamed.items() if after[new].is_bad and before[old].is_bad]
    if still_failing:
        content[STILL_FAILING] = still_failing
    return content


def _renamed(before: CaseColumns, after: CaseColumns, removed: Sequence[str], added: Sequence[str]) -> dict[str, str]:
    """Return the old key of each added case that has the question and the gold of a removed one."""
    asked_before = _asked(before, removed)
    asked_now = _asked(after, added)
    if not asked_before or not asked_now:
        return {}
    # A baseline stores the beginning of the hash.
    length = min(map(len, [*asked_before.values(), *asked_now.values()]))
    old_keys: defaultdict[str, list[str]] = defaultdict(list)
    for key in sorted(asked_before, reverse=True):
        old_keys[asked_before[key][:length]].append(key)
    renamed: dict[str, str] = {}
    # Of several cases that ask the same, the first of both sides belong together.
    for key in sorted(asked_now):
        candidates = old_keys[asked_now[key][:length]]
        if candidates:
            renamed[key] = candidates.pop()
    return renamed


def _asked(side: CaseColumns, keys: Collection[str]) -> dict[str, str]:
    """Return the hash of question and gold of each of these cases that has one."""
    if not side.decision_hashes:
        return {}
    hashes = {key: asked_part(side.decision_hashes[side.places[key]]) for key in keys}
    return {key: asked for key, asked in hashes.items() if asked}


def renamed_of(comparison: Mapping[str, Any] | None) -> Mapping[str, str]:
    """Return the old key of each renamed case."""
    renamed: Mapping[str, str] = (comparison or {}).get(RENAMED, {})
    return renamed


def renamed_words(comparison: Mapping[str, Any] | None) -> str:
    """Return `42 cases were renamed (same question and gold)`; '' if none was."""
    number = len(renamed_of(comparison))
    if not number:
        return ""
    return counted(number, "case was", "cases were") + " renamed (same question and gold)"
