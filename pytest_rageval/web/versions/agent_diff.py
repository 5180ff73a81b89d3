"""The difference of two versions of an agent: fields, thresholds, and the judge's prompts word by word."""

from __future__ import annotations

from typing import Any

from pytest_rageval.text import cut
from pytest_rageval.web.versions.agent import LONGEST_NOTE, Agent
from pytest_rageval.web.versions.judge_prompts import default_prompt, editable_rubrics
from pytest_rageval.web.versions.value_changes import ValueChange, value_changes


def agent_changes(before: Agent, after: Agent) -> list[ValueChange]:
    """What differs, in the order of the form. A prompt that only one of them has of its own is held against the
    shipped one, which the other used."""
    own = {*before.prompts, *after.prompts}
    return list(value_changes(_values(before, own), _values(after, own)))


def changed_in_words(changes: list[ValueChange]) -> str:
    """`threshold of reference_match 0.7 → 0.8, judge prompt of reference_match`: what a note may say."""
    return cut(", ".join(map(_in_words, changes)) or "nothing", LONGEST_NOTE)


def _values(agent: Agent, own: set[str]) -> dict[str, Any]:
    values = agent.model_dump(exclude={"prompts", "more"})
    values["prompts"] = {
        name: agent.prompts.get(name) or (default_prompt(name) if name in editable_rubrics() else "")
        for name in sorted(own)
    }
    return {**values, "more": agent.more}


def _in_words(change: ValueChange) -> str:
    name = change.name
    kind, _, inner = name.partition(".")
    if kind == "prompts":
        return f"judge prompt of {inner}"
    name = f"threshold of {inner}" if kind == "thresholds" else name.replace("_", " ")
    is_short = max(len(change.before), len(change.after)) <= 30 and "\n" not in change.before + change.after
    return f"{name} {change.before or '–'} → {change.after or '–'}" if is_short else name
