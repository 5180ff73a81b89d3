"""The part of summary.md that says what fails now: gates of the run, new failures, errors, all failures by tag."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pytest_rageval.compare.gate_lines import gate_line
from pytest_rageval.report.markdown_text import escaped, folded

ADVICE = {
    "L1_": "the system misreads questions: look at entity linking and concept mapping in the traces of",
    "L2_doc_retrieval_fail": "the right passages do not come: look at chunking, k and the query of",
    "L2_multi_hop_fail": "not all passages of a multi-hop question come: try a larger k, or split the question, for",
    "L2_specificity_fail": "look-alikes come instead: look at the ranking of",
    "L2_negative_fail": "something comes where nothing should: raise the retrieval threshold; see",
    "L2_recency_fail": "the older of two conflicting sources is cited, or the conflict hidden: look at dates for",
    "L3_": "the graph gives the wrong entities or edges: look at the graph and its query for",
    "L4_": "inferences break the ontology: look at the traces of",
    "L5_wrong_answer": "answers differ from the reference: read answer and reference of",
    "L5_": "the judge finds answers wanting: read the judgements of",
    "abstention_fail": "the system answers what its documents do not hold: raise the abstention threshold; see",
    "over_abstention_fail": "the system refuses what it could answer: lower the abstention threshold; see",
}
PLACE = "metrics.json names all"


def failures(metrics: Mapping[str, Any]) -> Iterator[str]:
    """Nothing where nothing fails."""
    tags = sorted(metrics["failure_tags"].items(), key=lambda item: (-len(item[1]), item[0]))
    new = (metrics.get("comparison") or {}).get("flipped_to_fail", [])
    gates = [gate for gate in metrics["gates"] if gate["passed"] is False]
    errors = metrics["outcomes"]["error"]
    if not (tags or new or gates or errors):
        return
    yield "## What fails now"
    yield ""
    yield from (f"- gate of the run: {escaped(gate_line(gate))}" for gate in gates)
    if errors:
        yield f"- {'1 case ends in an error' if errors == 1 else f'{errors:,} cases end in errors'}: see run.log"
    if new:
        yield from folded("**Fail now, did not in the baseline**", new, PLACE)
    for tag, keys in tags:
        yield from folded(f"**{escaped(tag)}**", keys, PLACE)
    yield ""
    yield from _advice(tags)


def _advice(tags: list[tuple[str, list[str]]]) -> Iterator[str]:
    if not tags:
        return
    yield "What to look at first:"
    yield ""
    for tag, keys in tags[:3]:
        advice = next((text for start, text in ADVICE.items() if tag.startswith(start)), "look at")
        yield f"- {advice[0].upper()}{advice[1:]} {', '.join(map(escaped, keys[:3]))}."
    yield ""
