"""The difference of two versions of a dataset: cases that came, went, and changed, each field by field."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from pytest_rageval.cases import case_to_mapping
from pytest_rageval.model import EvalCase
from pytest_rageval.text import counted
from pytest_rageval.web.versions.value_changes import ValueChange, value_changes


class ChangedCase(NamedTuple):
    """A case that both versions hold, and what differs."""

    case: EvalCase
    changes: list[ValueChange]


class DatasetChanges(NamedTuple):
    """What differs between two versions, cases known by their ids."""

    added: list[EvalCase]
    removed: list[EvalCase]
    changed: list[ChangedCase]

    def __str__(self) -> str:
        numbers = {"added": len(self.added), "removed": len(self.removed), "changed": len(self.changed)}
        words = [f"{counted(number, 'case')} {verb}" for verb, number in numbers.items() if number]
        return ", ".join(words) or "no case differs"


def dataset_changes(before: Sequence[EvalCase], after: Sequence[EvalCase]) -> DatasetChanges:
    """Compare two versions; a case with another id is another case."""
    earlier = {case.id: case for case in before}
    later = {case.id for case in after}
    kept = (ChangedCase(case, case_changes(earlier[case.id], case)) for case in after if case.id in earlier)
    return DatasetChanges(
        added=[case for case in after if case.id not in earlier],
        removed=[case for case in before if case.id not in later],
        changed=[case for case in kept if case.changes],
    )


def case_changes(before: EvalCase, after: EvalCase) -> list[ValueChange]:
    """What differs between two cases, but for where they are written."""
    return list(value_changes(_values(before), _values(after)))


def _values(case: EvalCase) -> dict[str, Any]:
    mapping = case_to_mapping(case)
    del mapping["source"]
    return mapping
