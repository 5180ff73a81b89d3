"""Two runs of conversations with other histories: which later turns fail for what the system answered before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pytest_rageval.comparison.baseline import Side
from pytest_rageval.config.settings import defaults_of_younger_settings
from pytest_rageval.io.suggestions import listed
from pytest_rageval.model import turn_id
from pytest_rageval.runs.columns import CaseColumns
from pytest_rageval.text import counted

LIVE, GOLD = "live", "gold"


def carried_errors(before: Side, after: Side, content: Mapping[str, Any]) -> Iterator[str]:
    """Yield what errors carry over to later turns, if one run fed back the references in place of its answers.

    content  of the comparison, with the keys of the flipped cases
    """
    histories = (_history(before), _history(after))
    if set(histories) != {LIVE, GOLD} or not after.metrics.get("conversations") or not content["compared"]:
        return
    to_pass = _later_turns(content["flipped_to_pass"], after.cases)
    to_fail = _later_turns(content["flipped_to_fail"], after.cases)
    # Of two runs the first may be that with the references.
    spoiled, helped = (to_pass, to_fail) if histories == (LIVE, GOLD) else (to_fail, to_pass)
    if spoiled:
        turns = counted(len(spoiled), "later turn fails", "later turns fail")
        yield f"errors carry over: {turns} after the system's own answers alone: {listed(spoiled)}"
    else:
        yield "no error carries over: no later turn fails after the system's own answers alone"
    if helped:
        turns = counted(len(helped), "later turn fails", "later turns fail")
        yield f"{turns} after the references alone: {listed(helped)}"


def _history(side: Side) -> str | None:
    """Return what stood for earlier replies in a run; None if its configuration is not known."""
    if not side.config:
        return None
    settings = {**defaults_of_younger_settings(), **side.config.get("settings", {})}
    return str(settings["history"])


def _later_turns(keys: Iterable[str], cases: CaseColumns) -> Sequence[str]:
    """Return the ids of the turns among some cases that others precede."""
    later: list[str] = []
    for key in keys:
        conversation = cases[key].conversation
        # The test of the project's own that evaluates a turn stands behind its key.
        if conversation is not None and not key.startswith(turn_id(conversation, 1)):
            later.append(key.partition("::")[2])
    return later
