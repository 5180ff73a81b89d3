"""Cases that fail now and did not before, or that the other run lacks: all reports count these as newly failing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from pytest_rageval.comparison.renamed_cases import STILL_FAILING


class FailureKind(NamedTuple):
    """A way in which a case newly fails.

    name   the list of the comparison that names such cases
    words  after their number, as in `2 fail a new gate`
    note   next to the id of a case; '' for one that simply fails and did not before
    """

    name: str
    words: str
    note: str


KINDS = (
    FailureKind("flipped_to_fail", "newly fail", ""),
    FailureKind("fails_new_gate", "fail another gate than before", "fails a new gate"),
    FailureKind("newly_gated", "fail a gate not measured before", "gate not measured before"),
    FailureKind(STILL_FAILING, "renamed, fail as before", "renamed"),
    FailureKind("added_failing", "added", "added"),
    FailureKind("changed_failing", "changed", "changed"),
)


def new_failures(comparison: Mapping[str, Any] | None) -> dict[str, FailureKind]:
    """Return in which way each case newly fails; empty if nothing is compared."""
    kinds: dict[str, FailureKind] = {}
    if comparison is None or not comparison.get("compared", True):
        return kinds
    for kind in KINDS:
        for case in comparison.get(kind.name, ()):
            # A comparison of two stored runs holds the whole case.
            key = case["case_key"] if isinstance(case, Mapping) else case
            kinds.setdefault(key, kind)
    return kinds


def counted_kinds(kinds: Iterable[FailureKind]) -> str:
    """Return `11 newly fail, 2 fail another gate than before`; '' if all simply newly fail."""
    counts = Counter(kinds)
    if counts.keys() <= {KINDS[0]}:
        return ""
    return ", ".join(f"{counts[kind]:,} {kind.words}" for kind in KINDS if counts[kind])
