"""Why some cases of a run fail, by the causes in its metrics.json, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pytest_rageval.comparison.renamed_cases import ADVICE as RENAMED_ADVICE
from pytest_rageval.comparison.renamed_cases import renamed_of
from pytest_rageval.views.shared_traits import FOLLOW_UPS_ADVICE

ADVICE = {
    "system_error": "The system gives no answer: mend that first (`rageval doctor`, and run.log), then run again.",
    "blocked": "Conversations break: mend the error of the turn that is named, and the turns after it are asked.",
    "judge_error": "The judge gives no scores: check its address, key and limits, then run `rageval judge`.",
    "evaluation_error": "The evaluation itself fails: read the error, and mend the case, the metric or the hook.",
    "empty_answer": "The system sends an empty answer with `abstained: false`: look at the step that writes it, "
    "its limits and errors; if it means to decline, let it send `abstained: true`.",
    "answered_unanswerable": "The system answers what its documents do not hold: raise the abstention threshold.",
    "reference_not_resolved": "The rewrite alone passes: the system does not resolve the reference. Look at the "
    "history that it gets, and at how it rewrites questions.",
    "nothing_retrieved": "Nothing is retrieved: lower the score threshold, check filters, folders and the index, "
    "and whether the system refuses these questions before it searches.",
    "no_paths": "Chunks name no path, which golds need: report rel_path, or correct its expression in target.mapping.",
    "gold_elsewhere": "The passages are retrieved, but not under the paths or ids of the golds: set path_prefix, "
    "or correct the golds (`rageval cases audit` names them).",
    "snippet_not_retrieved": "The right places are retrieved, without the gold's text: the chunker cut it, or the "
    "index is older than the document; chunk and index again, or correct the snippet.",
    "gold_not_retrieved": "The right passages are not retrieved: look at chunking, the query and k.",
    "gold_partly_retrieved": "Only a part of the passages is retrieved: try a larger k, or split the question.",
    "gold_ranked_low": "The passages are retrieved, but stand too far down: look at the ranking (scores, reranker).",
    "refused": "The system refuses what it could answer: lower the abstention threshold.",
    "wrong_quantity": "Answers give other figures than the gold: compare them with the retrieved passages.",
    "not_in_answer": "The passages are retrieved, but not used: look at the prompt and the length of the context.",
    "wrong_answer": "Answers differ from the reference: read both side by side.",
    "not_grounded": "Answers say more than the passages: tell the model to keep to them, and read the claims.",
    "broken_assertion": "An assertion of the case is broken: read what the answer has in place of what it asks for.",
    "tool_missed": "An expected tool is not called, or called otherwise: compare its description with the calls.",
    "tool_forbidden": "A forbidden tool is called: take it from the agent, or tell it when not to use it.",
    "too_many_tool_calls": "The agent makes more calls than the case allows: look for repeated searches.",
    "own_test": "Assertions of your own tests fail: read their messages.",
    "unmeasured": "Metrics that the baseline has were not measured: check what the system reports.",
    "gate": "Gates fail: look at the scores and traces of these cases.",
}
"""What to do by the kind of cause."""


EXPLAINED_BY_THEMSELVES = frozenset(
    {"system_error", "blocked", "judge_error", "evaluation_error", "reference_not_resolved"}
)
"""Kinds of causes that say more than that only later turns fail."""


class CauseView(NamedTuple):
    """A cause with the keys of the cases that it made fail."""

    kind: str
    text: str
    keys: Sequence[str]

    @property
    def title(self) -> str:
        """Return `101 × nothing was retrieved`."""
        return f"{len(self.keys):,} × {self.text}"


def causes_of(metrics: Mapping[str, Any], keys: Sequence[str]) -> list[CauseView]:
    """Return the causes of some cases, the most frequent first, each with its cases in the given order."""
    causes: list[CauseView] = []
    for cause in metrics.get("causes", ()):
        of_cause = set(cause["cases"])
        of_these = [key for key in keys if key in of_cause]
        if of_these:
            causes.append(CauseView(cause["kind"], cause["text"], of_these))
    # Sorting is stable: equally frequent causes stay in the order of metrics.json.
    return sorted(causes, key=lambda cause: -len(cause.keys))


def advice_on_run(metrics: Mapping[str, Any], causes: Sequence[CauseView], *, has_only_follow_ups: bool = False) -> str:
    """Return what to do about a run whose cases fail for these causes; '' if nothing fails."""
    if causes and renamed_of(metrics.get("comparison")):
        # A known failure under another name fails for no cause of its own.
        return RENAMED_ADVICE
    if has_only_follow_ups and causes and causes[0].kind not in EXPLAINED_BY_THEMSELVES:
        return FOLLOW_UPS_ADVICE
    return advice_on(causes)


def advice_on(causes: Sequence[CauseView]) -> str:
    """Return what to do about the most frequent cause; '' without one."""
    return ADVICE.get(causes[0].kind, "") if causes else ""
