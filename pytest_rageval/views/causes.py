"""Why some cases of a run fail, by the causes in its metrics.json."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple


class CauseView(NamedTuple):
    """A cause with the keys of the cases that it made fail."""

    kind: str
    text: str
    keys: Sequence[str]

    @property
    def title(self) -> str:
        """Return `101 × nothing was retrieved`."""
        return f"{len(self.keys):,} × {self.text}"


def causes_of(metrics: Mapping[str, Any], keys: Sequence[str]) -> list[CauseView]:
    """Return the causes of some cases, the most frequent first, each with its cases in the given order."""
    causes: list[CauseView] = []
    for cause in metrics.get("causes", ()):
        of_cause = set(cause["cases"])
        of_these = [key for key in keys if key in of_cause]
        if of_these:
            causes.append(CauseView(cause["kind"], cause["text"], of_these))
    return sorted(causes, key=lambda cause: -len(cause.keys))
