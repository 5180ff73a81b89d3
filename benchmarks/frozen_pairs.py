"""Frozen scenarios of a small project: ten pairs of runs that are compared, and filters of a run's cases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from frozen_scenario import Scenario, jsonl, of_run

BOTS = """
WATER = "Water boils at 100 degrees at sea level."
CHUNK = {"chunk_id": "c1", "rel_path": "notes/water.md", "heading_path": "# Water > ## Boiling", "text": WATER}


def good(question):
    if "won" in question:
        return {"answer": "", "abstained": True, "retrieved_chunks": []}
    return {"answer": WATER, "references": [{"chunk_id": "c1"}], "retrieved_chunks": [CHUNK]}


def without_chunks(question, *words):
    answer = good(question)
    return answer | {"retrieved_chunks": []} if any(word in question for word in words) else answer


def lost(question):
    return without_chunks(question, "first", "second")


def moved(question):
    return without_chunks(question, "second", "third")


def wrong(question):
    return good(question) | ({"answer": "Nobody ever measured such a thing at all."} if "first" in question else {})


def broken(question):
    if "third" in question:
        raise RuntimeError("out of order")
    return good(question)
"""
WATER = "Water boils at 100 degrees at sea level."
NAMES = ("first", "second", "third", "fourth", "fifth", "sixth")


def a_case(name: str, **fields: Any) -> dict[str, Any]:
    return {
        "id": name,
        "question": f"At what temperature does water boil, {name}?",
        "category": "factual",
        "gold": {"answer": WATER},
        "gold_supports": [{"rel_path": "notes/water.md", "heading_path": "# Water > ## Boiling"}],
        **fields,
    }


def answers(names: Sequence[str], lost: Sequence[str] = (), wrong: Sequence[str] = ()) -> str:
    """Return an answers file; its latencies are given, so that no measured time stands in the outputs."""
    chunk = {"chunk_id": "c1", "rel_path": "notes/water.md", "heading_path": "# Water > ## Boiling", "text": WATER}
    return jsonl(
        {
            "id": name,
            "answer": "Nobody ever measured such a thing at all." if name in wrong else WATER,
            "references": [{"chunk_id": "c1"}],
            "retrieved_chunks": [] if name in lost else [chunk],
            "latency": {"total_ms": 20.5 + 7 * number},
        }
        for number, name in enumerate(names)
    )


OTHERS = [f"other-{name}" for name in NAMES]
PROJECT = {
    "bots.py": BOTS,
    "evalcases/a.jsonl": jsonl(a_case(name) for name in NAMES),
    "other.jsonl": jsonl(a_case(name) for name in OTHERS),
    "good.jsonl": answers(NAMES),
    "lost.jsonl": answers(NAMES, lost=("first", "second")),
    "moved.jsonl": answers(NAMES, lost=("second", "third")),
    "wrong.jsonl": answers(NAMES, wrong=("first",)),
    "others.jsonl": answers(OTHERS),
}
RATCHET = "--rageval-known-failures ratchet"
GATES = "--rageval-gate 'mrr >= 0.5' --rageval-gate 'token_f1 off' --rageval-gate 'run recall_any@5 >= 0.85'"


class Pair(NamedTuple):
    """The targets and options of two runs, and the cases of the second."""

    before: str
    after: str
    cases: str = ""


PAIRS = {
    "better": Pair("answers:lost.jsonl", "answers:good.jsonl"),
    "worse": Pair("answers:good.jsonl", "answers:lost.jsonl"),
    "mixed": Pair("answers:lost.jsonl", "answers:moved.jsonl"),
    "gates-changed": Pair("answers:good.jsonl", f"answers:good.jsonl {GATES}"),
    "partial": Pair("answers:good.jsonl", "answers:lost.jsonl -k 'first or third'"),
    "retrieval-only": Pair("answers:wrong.jsonl", "answers:good.jsonl --rageval-retrieval-only"),
    "other-source": Pair("bots:good", "answers:good.jsonl"),
    "errors": Pair("bots:good", "bots:broken"),
    "no-shared-case": Pair("answers:good.jsonl", "answers:others.jsonl", "other.jsonl"),
    "known-failures": Pair(f"answers:lost.jsonl {RATCHET}", f"answers:lost.jsonl {RATCHET}"),
    "equal": Pair("answers:good.jsonl", "answers:good.jsonl"),
}


def a_comparison(name: str, pair: Pair) -> Scenario:
    """Run both, the second against the first, and show the comparison in each form."""
    steps = [
        f"pytest -q --rageval-run-id a --rageval-target {pair.before}",
        *([f"cp {pair.cases} evalcases/a.jsonl"] if pair.cases else []),
        f"pytest -q --rageval-run-id b --rageval-baseline run:a --junitxml junit.xml --rageval-target {pair.after}",
        "rageval compare a b",
        "rageval compare a b --format markdown",
        "rageval compare a b --json",
        "rageval compare a b --format html --output compared.html --exit-zero",
        "rageval comment b",
    ]
    pages = () if "bots" in pair.before + pair.after else ("compared.html", *of_run("b", "report.html"))
    kept = ("junit.xml", *of_run("b", "summary.md", "metrics.json"), *pages)
    digests = ("compared.html",) if name == "mixed" else ("junit.xml", *kept[2:])
    return Scenario(f"pair-{name}", PROJECT, steps, kept, digests)


FILTERED = [
    a_case("first", tags=["slow", "cold"], difficulty="easy"),
    a_case("second", category="multi_hop", domain="brand"),
    a_case("third", tags=["slow"]),
    a_case("남산", category="general"),
    {"id": "unknown", "question": 'Who "won"?', "answerable": False, "category": "general"},
]
FILTERS = (
    "outcome:failed", "outcome:passed,failed", "-outcome:passed", "changed:worse", "changed:fixed", "changed:same",
    "-changed:same", "tag:slow", "tag:slow,cold", "-tag:slow", "category:factual tag:slow", "category:multi_hop",
    "difficulty:easy", "domain:brand", "file:evalcases/a.jsonl", "id:s", "id:남산", "layer:L2", "mrr<0.5", "mrr>=1",
    "recall_any=0", "recall_any@5<1", "-mrr<0.5", "fell:mrr", "fell:recall_any", "drop>0.1", "level>0", "latency_ms>=0",
    '"temperature does water"', "water", "-water", '"Who \\"won"', "outcome:fialed", "tag:nothing", "category:",
    "mrr:1", "mrr<x", "mr<0.5", "fell:nothing", "changed:odd", '"', "mrr<1e-1", "LAYER:L2", "",
)  # fmt: skip
FILTER_SCENARIOS = (
    Scenario(
        "filters",
        {"bots.py": BOTS, "evalcases/a.jsonl": jsonl(FILTERED)},
        (
            "rageval run --run-id a --target bots:moved",
            "rageval run --run-id b --target bots:lost --baseline run:a",
            *(f"rageval run --target bots:lost --judge none --only={quoted} --from b --run-id f{number} --baseline none"
              for number, quoted in enumerate("'" + text + "'" for text in FILTERS)),
            "rageval run --target bots:lost --only changed:worse --from a --run-id none",
        ),
        ("reports/runs/f*/results.jsonl",),
        ("reports/runs/f*/results.jsonl",),
    ),
)  # fmt: skip
PAIR_SCENARIOS = (*(a_comparison(name, pair) for name, pair in PAIRS.items()), *FILTER_SCENARIOS)
