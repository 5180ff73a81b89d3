"""The decision hash: of what a case asks and what decides about it, so that two runs can be compared in it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pytest_rageval.cases.canonical import asked_hash
from pytest_rageval.metrics.answer import MOST_WORDS
from pytest_rageval.model import EvalCase, Gold, GoldKind
from pytest_rageval.model.case_fields import DESCRIPTIVE_NAMES, UNCATEGORISED
from pytest_rageval.run.plan import Plan
from pytest_rageval.runs.row import Row


def decision_hash(case: EvalCase, kind: GoldKind, plan: Plan) -> str:
    """Return the hash of question and gold and the hash of the gates in effect, joined by a hyphen.

    Another id, category, tag or other label does not change it, unless a gate depends on that label.
    `kind`: the case's kind of gold.
    """
    return _joined(asked_hash(case)[:40], case, kind, plan)


def regated_hash(decision: str | None, case: EvalCase, kind: GoldKind, plan: Plan) -> str | None:
    """Return the hash of the same case under the gates of another plan."""
    return _joined(asked_part(decision), case, kind, plan) if decision else decision


def _joined(asked: str, case: EvalCase, kind: GoldKind, plan: Plan) -> str:
    return f"{asked}-{plan.gates_in_effect.of(case, kind).hash[:16]}"


def asked_part(decision: str | None) -> str:
    """Return the hash of question and gold, as far as it is stored; '' if it is not known."""
    return (decision or "").partition("-")[0]


def gated_part(decision: str | None) -> str:
    """Return the hash of the gates in effect; '' if it is not known."""
    return (decision or "").partition("-")[2]


def gates_in_effect(cases: Sequence[Row], plan: Plan) -> dict[str, list[str]]:
    """Return the texts of the gates in effect for the cases of a run, by the hash of each combination."""
    first_of_groups = {id(row.groups): row for row in reversed(cases)}  # rows share theirs
    gates: dict[str, list[str]] = {}
    for row in first_of_groups.values():
        case, kind = labelled_case(row.groups)
        gated = gated_part(row.decision_hash)
        # A record that was written before its case was matched to gold lacks the kind of gold.
        if gated == plan.gates_in_effect.of(case, kind).hash[:16]:
            gates[gated] = sorted(plan.gates_in_effect.of(case, kind).words)
    return dict(sorted(gates.items()))


def labelled_case(groups: Mapping[str, Sequence[str]]) -> tuple[EvalCase, GoldKind]:
    """Return a case with all that gate conditions read, from the groups of its row, and its kind of gold."""
    kind: GoldKind = groups["gold"][0]  # type: ignore[assignment]
    descriptions: dict[str, Any] = {name: _first(groups[name]) for name in DESCRIPTIVE_NAMES if name in groups}
    case = EvalCase(
        id="",
        question="",
        answerable="answerable" in groups["answerable"],
        **descriptions,
        tags=tuple(groups["tag"]),
        requires_kg="true" in groups["requires_kg"],
        gold=labelled_gold(groups["answer"], has_groups="true" in groups["groups"]),
    )
    return case, kind


def labelled_gold(answer: Collection[str], *, has_groups: bool) -> Gold:
    """Return gold that satisfies the same gate conditions as the recorded one; `answer` is its `answer_kinds`."""
    answers = None
    if "none" not in answer:
        # As long as gate conditions ask: at most MOST_WORDS, or more.
        answers = ("word" if "short" in answer else "word " * (MOST_WORDS + 1),)
    return Gold(
        answers=answers,
        support_groups=((),) if has_groups else None,
        concepts=() if "layered" in answer else None,
    )


def _first(values: Sequence[str]) -> str | None:
    return next((value for value in values if value != UNCATEGORISED), None)
