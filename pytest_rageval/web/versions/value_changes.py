"""The differences of two versions of an agent or a dataset, value by value and word by word."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pytest_rageval.cases.canonical import case_content
from pytest_rageval.io.masking import MASK
from pytest_rageval.model import EvalCase
from pytest_rageval.text import counted, cut
from pytest_rageval.views.text_diff import DiffPiece, word_diff
from pytest_rageval.web.versions.agent import LONGEST_NOTE, Agent, default_prompt, editable_rubrics


class ValueChange(NamedTuple):
    """One changed value. An empty text stands for a missing value."""

    name: str
    before: str
    after: str

    @property
    def pieces(self) -> list[DiffPiece]:
        """Return the word-by-word difference of both texts."""
        return word_diff(self.before, self.after)


def value_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[ValueChange]:
    """Yield the differences of two tables in the order of the later one, nested tables key by key."""
    for name in dict.fromkeys([*after, *before]):
        one = before.get(name)
        other = after.get(name)
        if one == other:
            continue
        if isinstance(one, Mapping | None) and isinstance(other, Mapping | None):
            for change in value_changes(one or {}, other or {}):
                yield change._replace(name=f"{name}.{change.name}")
        else:
            yield ValueChange(name, compared_text(one), compared_text(other))


def compared_text(value: Any) -> str:
    """Return a value for display: text unchanged, lists of names one per line, anything else as JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if value and isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
        return "\n".join(value)
    return json.dumps(value, ensure_ascii=False, default=str)


def agent_changes(before: Agent, after: Agent) -> list[ValueChange]:
    """Return the differences in the order of the form. An agent without its own prompt has the shipped one."""
    # A prompt that one version lacks is compared with the shipped one, which it uses.
    own = {*before.prompts, *after.prompts}
    shown = value_changes(_agent_values(before.public, own), _agent_values(after.public, own))
    shown_by_name = {change.name: change for change in shown}
    names = [change.name for change in value_changes(_agent_values(before, own), _agent_values(after, own))]
    # Where only a key differs, nothing that may be shown does.
    return [shown_by_name.get(name, ValueChange(name, MASK, MASK)) for name in names]


def changed_in_words(changes: list[ValueChange]) -> str:
    """Return a note such as `threshold of reference_match 0.7 → 0.8, judge prompt of reference_match`."""
    return cut(", ".join(map(_in_words, changes)) or "nothing", LONGEST_NOTE)


def _agent_values(agent: Agent, own: set[str]) -> dict[str, Any]:
    values = agent.model_dump(exclude={"prompts", "more"})
    values["prompts"] = {name: agent.prompts.get(name) or _shipped_prompt(name) for name in sorted(own)}
    return {**values, "more": agent.more}


def _shipped_prompt(rubric: str) -> str:
    return default_prompt(rubric) if rubric in editable_rubrics() else ""


def _in_words(change: ValueChange) -> str:
    name = change.name
    kind, _, inner = name.partition(".")
    if kind == "prompts":
        return f"judge prompt of {inner}"
    name = f"threshold of {inner}" if kind == "thresholds" else name.replace("_", " ")
    is_short = max(len(change.before), len(change.after)) <= 30 and "\n" not in change.before + change.after
    return f"{name} {change.before or '–'} → {change.after or '–'}" if is_short else name


class ChangedCase(NamedTuple):
    """A case of both versions, with its differences."""

    case: EvalCase
    changes: list[ValueChange]


class DatasetChanges(NamedTuple):
    """The differences of two dataset versions, with cases matched by their ids."""

    added: list[EvalCase]
    removed: list[EvalCase]
    changed: list[ChangedCase]

    def __str__(self) -> str:
        numbers = {"added": len(self.added), "removed": len(self.removed), "changed": len(self.changed)}
        words = [f"{counted(number, 'case')} {verb}" for verb, number in numbers.items() if number]
        return ", ".join(words) or "no case differs"


def dataset_changes(before: Sequence[EvalCase], after: Sequence[EvalCase]) -> DatasetChanges:
    """Compare two versions. Cases are matched by their ids."""
    earlier = {case.id: case for case in before}
    later = {case.id for case in after}
    kept = (ChangedCase(case, case_changes(earlier[case.id], case)) for case in after if case.id in earlier)
    return DatasetChanges(
        added=[case for case in after if case.id not in earlier],
        removed=[case for case in before if case.id not in later],
        changed=[case for case in kept if case.changes],
    )


def case_changes(before: EvalCase, after: EvalCase) -> list[ValueChange]:
    """Return the differences of two cases, except for their places in files."""
    return list(value_changes(case_content(before), case_content(after)))
