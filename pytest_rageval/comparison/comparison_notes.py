"""What else one should know of a comparison: what differs between the two sides, and what is not compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pytest_rageval.comparison.changes import JUDGED_OTHERWISE, OVERALL
from pytest_rageval.comparison.layer_table import layer_notes
from pytest_rageval.comparison.verdict_sentence import alike_line
from pytest_rageval.io.suggestions import listed
from pytest_rageval.runs.comparable import relabelled_note


def comparison_notes(content: Mapping[str, Any], cases: int) -> Iterator[str]:
    """Yield the notes on a comparison as metrics.json or a pair holds it. `cases`: of the run."""
    yield from content["differences"]
    if unlike := sorted(name for name, metric in content["metrics"].items() if metric["why"] == JUDGED_OTHERWISE):
        yield f"not compared, since judged otherwise: {listed(unlike)}; --ignore-invariants compares them all the same"
    if changes := content["gate_changes"]:
        yield f"gates changed, and those of now decide about both runs: {', '.join(changes)}"
    if content["changed_cases"]:
        yield f"{alike_line(content, cases)}: {listed(content['changed_cases'])}"
    if content["relabelled"]:
        yield relabelled_note(content["relabelled"])
    if (why := content["metrics"].get(OVERALL, {}).get("why")) and content["compared"]:
        yield f"overall score: no change is shown, {why}"
    if content["compared"]:
        yield from layer_notes(content)
