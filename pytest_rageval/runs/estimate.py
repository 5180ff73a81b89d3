"""The estimated cost of judging, one line before a paid run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_rageval.judges.judge import Judge
from pytest_rageval.plan import Plan
from pytest_rageval.text import counted

if TYPE_CHECKING:
    from pytest_rageval.llm.prices import Tariff


def estimate(judge: Judge | None, plan: Plan, cases: int) -> str | None:
    """What judging so many cases may cost; None where nothing is paid, or nobody knows the price."""
    return estimate_at(getattr(judge, "tariff", None), plan, cases)


def estimate_at(tariff: Tariff | None, plan: Plan, cases: int) -> str | None:
    """What judging so many cases may cost at these prices; None where nothing is paid, or nobody knows the price."""
    settings = plan.settings
    if tariff is None or settings.judge_cache == "replay" or settings.retrieval_only:
        return None
    times = cases * settings.repeat * settings.judge_repeats
    dollars = tariff.estimate([wording.prompt for wording in plan.wordings.values()], settings.k, times)
    if dollars is None:
        return None
    most = counted(times * len(plan.wordings), "judgement")
    return (
        f"judge {tariff.model}: up to {most}, about ${dollars:.2f} by list prices "
        f"({counted(settings.k, 'passage')} of usual length each); what the judge cache holds costs nothing"
    )
