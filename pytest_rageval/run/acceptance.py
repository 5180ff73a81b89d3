"""Whether a run can become the baseline, and why not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pytest_rageval.io.suggestions import listed
from pytest_rageval.run.extent import Extent
from pytest_rageval.run.plan import Plan
from pytest_rageval.runs.judge_notes import failure_note
from pytest_rageval.text import counted


def refusal_of_baseline(plan: Plan, extent: Extent, metrics: Mapping[str, Any]) -> str | None:
    """Return why this run cannot become the baseline. A partial run never can; errors can be forced."""
    if extent.uncounted:
        return "baseline not updated: pytest did not count all verdicts (rageval-gates::verdicts)"
    if metrics["partial"]:
        return "baseline not updated: the run is partial: some cases have no result; run them all"
    if plan.settings.force:
        return None
    errors = metrics["outcomes"]["error"]
    unknown = not_measured(metrics)
    unjudged = failure_note(metrics["judge_errors"])
    if errors:
        why = f"{counted(errors, 'case')} ended in errors"
    elif unjudged:
        why = unjudged
    elif plan.settings.retrieval_only:
        why = "the run is retrieval-only, so that no gate of an answer was measured"
    elif unknown:
        failed = counted(len(unknown), "case that failed was", "cases that failed were")
        why = f"{failed} not measured: {listed(unknown)}"
    else:
        return None
    return f"baseline not updated: {why}; --rageval-force accepts it all the same"


def not_measured(metrics: Mapping[str, Any]) -> Sequence[str]:
    """Return the cases that failed in the baseline by gates that this run did not measure."""
    return list((metrics["comparison"] or {}).get("not_measured", ()))
