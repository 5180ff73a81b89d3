"""Recommendations: what to do about the most frequent causes, with the cases to look at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pytest_rageval.io.suggestions import listed
from pytest_rageval.render.markdown.markdown_text import bounded
from pytest_rageval.views.run_digest import RunDigest

SHOWN = 4
SHOWN_NAMES = 3
ADVICE = {
    "system_error": "The system gives no answer: mend that first (`rageval doctor`, and run.log), then run again.",
    "blocked": "Conversations break: mend the error of the turn that is named, and the turns after it are asked.",
    "judge_error": "The judge gives no scores: check its address, key and limits, then run `rageval judge`.",
    "evaluation_error": "The evaluation itself fails: read the error, and mend the case, the metric or the hook.",
    "answered_unanswerable": "The system answers what its documents do not hold: raise the abstention threshold.",
    "nothing_retrieved": "Nothing is retrieved: lower the score threshold, and check filters, folders and the index.",
    "gold_not_retrieved": "The right passages are not retrieved: look at chunking, the query and k.",
    "gold_partly_retrieved": "Only a part of the passages is retrieved: try a larger k, or split the question.",
    "refused": "The system refuses what it could answer: lower the abstention threshold.",
    "wrong_quantity": "Answers give other figures than the gold: compare them with the retrieved passages.",
    "not_in_answer": "The passages are retrieved, but not used: look at the prompt and the length of the context.",
    "wrong_answer": "Answers differ from the reference: read both side by side.",
    "not_grounded": "Answers say more than the passages: tell the model to keep to them, and read the claims.",
    "own_test": "Assertions of your own tests fail: read their messages.",
    "unmeasured": "Metrics that the baseline has were not measured: check what the system reports.",
    "gate": "Gates fail: look at the scores and traces of these cases.",
}
"""What to do by the kind of cause."""


def recommendations(digest: RunDigest) -> list[str]:
    """Return what to do, for the most frequent kinds of causes first. A failing run is never to be accepted."""
    advice = list(_about_causes(digest))[:SHOWN]
    advice += _about_baseline(digest.metrics)
    return advice


def _about_causes(digest: RunDigest) -> Iterator[str]:
    told: set[str] = set()
    for cause in digest.causes or digest.known_causes:
        if cause.kind in told or cause.kind not in ADVICE:
            continue
        told.add(cause.kind)
        names = bounded(listed(cause.keys, SHOWN_NAMES), 400)
        yield f"{ADVICE[cause.kind]} See {names}."


def _about_baseline(metrics: Mapping[str, Any]) -> Iterator[str]:
    """Yield how to accept a run that passes."""
    verdict = metrics["verdict"]
    if not metrics["can_be_baseline"] or verdict.get("fails_build", verdict["tone"] == "red"):
        return
    comparison = metrics["comparison"]
    if comparison is None:
        yield "`pytest --rageval-update-baseline` makes this run the first baseline."
    elif comparison["flipped_to_pass"]:
        yield "`pytest --rageval-update-baseline` accepts the fixed cases, so that they may not fail again."
