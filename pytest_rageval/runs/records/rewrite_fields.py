"""What a record says of a follow-up that was asked once more as its rewrite."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

from pytest_rageval.cases.conversations import is_rewritten_follow_up
from pytest_rageval.model import CaseResult, Observation, Problem, RewrittenScores
from pytest_rageval.run.plan import Plan
from pytest_rageval.runs.records.record_texts import RecordTexts, error_record

NOT_ASKED = Problem("not_asked", "the case itself ended in an error, so it is compared with nothing")


def rewrite_fields(result: CaseResult, plan: Plan, text: RecordTexts) -> dict[str, Any]:
    """Return the member `rewrite` of a record; empty unless the run asks this case as its rewrite, too."""
    if not plan.settings.rewrites or result.confirms or not is_rewritten_follow_up(result.case):
        return {}
    obs = result.observation
    if obs is None and result.error is None:
        return {}  # skipped: nothing was asked
    written: dict[str, Any] = {"question": text(result.case.rewrite), "answer": None, "retrieved_chunks": []}
    rewritten = None if obs is None else obs.rewritten
    error: Problem | None = None
    if isinstance(rewritten, Observation):
        written["answer"] = text(rewritten.answer.text)
        written["retrieved_chunks"] = list(_places(rewritten))
    if result.error is not None or rewritten is None:
        error = NOT_ASKED
    elif isinstance(rewritten, Problem):
        error = rewritten
    scored = result.rewritten or RewrittenScores()
    written["scores"] = scored.scores
    written["metric_errors"] = {name: text.message(why) for name, why in scored.metric_errors.items()}
    written["error"] = error_record(error, text)
    return {"rewrite": written}


def _places(obs: Observation) -> Iterator[dict[str, Any]]:
    """Yield the place of each retrieved chunk in rank order, with the golds that it matches."""
    for chunk, golds in zip_longest(obs.answer.chunks or (), obs.matching.hits or ()):
        yield {
            "chunk_id": chunk.chunk_id,
            "rel_path": chunk.rel_path,
            "heading_path": chunk.heading_path,
            "matches": sorted(golds) if golds else (),
        }
