"""The hash of what a case asks and what decides about it, by which two runs are comparable in it."""

from __future__ import annotations

from pytest_rageval.matching import gold_kind
from pytest_rageval.model import EvalCase
from pytest_rageval.plan import Plan


def decision_hash(case: EvalCase, asked: str, plan: Plan) -> str:
    """Of what is asked, what is right and which gates decide: two runs must share it to be compared in a case.

    Two hashes, joined by a hyphen: of question, scope and gold, and of the gates in effect for the case. Another id,
    category, tag or other label alone leaves it as it is, unless a gate is for cases of that label. `asked`: the case's
    `asked_hash`.
    """
    kind = gold_kind(case.gold, plan.settings.gold_by)
    return f"{asked[:40]}-{plan.gates_in_effect.hash(case, kind)[:16]}"


def asked_part(decision: str | None) -> str:
    """The hash of what is asked and what is right, as far as it is kept; '' where it is not known."""
    return (decision or "").partition("-")[0]


def gated_part(decision: str | None) -> str:
    """The hash of the gates in effect; '' where it is not known."""
    return (decision or "").partition("-")[2]
