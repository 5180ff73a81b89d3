"""Runs as they are kept, written by what writes them in earnest: configuration, records, observations, aggregates."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pytest_rageval.config.settings import Settings
from pytest_rageval.finish import Extent, finish
from pytest_rageval.matching.places import observe
from pytest_rageval.metrics import load_registry
from pytest_rageval.model import Anchor, Answer, CaseResult, Chunk, EvalCase, Gold, Problem, Source, Timings, Trial
from pytest_rageval.plan import make_plan
from pytest_rageval.runs.config import run_config
from pytest_rageval.runs.records import observation_record, result_record, to_line
from pytest_rageval.runs.results_file import Keeper

REGISTRY = load_registry()
DAY = "2026-03-01T12:00:00+00:00"


def a_result(id: str = "q1", answer: str = "At 100 degrees.", recall: float = 1.0, **fields: Any) -> CaseResult:
    """A case that was answered from one chunk; `fields` are of CaseResult, or `question`, `chunk`, `category`."""
    case = EvalCase(
        id,
        fields.pop("question", "When does water boil?"),
        category=fields.pop("category", "factual"),
        gold=Gold(supports=(Anchor("water.md"),)),
        source=Source("evalcases/a.jsonl", 1),
    )
    chunk = Chunk("c1", rel_path="water.md", heading_path="# Water", text=fields.pop("chunk", "Water boils."))
    found = Answer(answer, chunks=(chunk,), versions={"llm": "parrot"})
    told: dict[str, Any] = {"outcome": "passed", "trial": 0, "timings": Timings(ask_ms=12.5)} | fields
    observation = observe(case, found, timings=told["timings"], trial=told["trial"])
    scores = {"recall_any@5": recall, "mrr": 0.5, **told.pop("scores", {})}
    skipped = {"groundedness": "nothing was judged"}
    return CaseResult(case, observation=observation, scores=scores, skipped_metrics=skipped, **told)


def an_error(id: str, message: str) -> CaseResult:
    """A case of which asking failed."""
    case = EvalCase(id, "Why?", source=Source("evalcases/a.jsonl", 2))
    return CaseResult(case, "error", error=Problem("timeout", message))


def a_run(
    reports: Path,
    run_id: str,
    *results: CaseResult,
    ended: str = DAY,
    missing: Iterable[str] = (),
    is_finished: bool = True,
    changed: Mapping[str, Any] | None = None,
    **settings: Any,
) -> Path:
    """The folder of a run. `missing`: keys of cases that were not selected; `changed`: keys of config.json."""
    results = results or (a_result(),)
    told = Settings(run_id=run_id, enabled=("recall_any@k", "mrr", "groundedness", "error_rate"), **settings)
    plan = make_plan(told, REGISTRY)
    cases = {result.key: result.case for result in results}
    config = run_config(plan, cases.values(), (), reports, "bot:answer", {"model": "lexical/1", "heuristic": True})
    keeper = Keeper.new(reports, plan, config | dict(changed or {}))
    for result in results:
        keeper.take(to_line(result_record(result, plan, config["config_hash"])))
        if result.observation is not None and not told.redact:
            line = observation_record(Trial(result.case, result.trial), result.observation, told)
            keeper.folder.append("observations.jsonl", to_line(line))
    if is_finished:
        finish(keeper, plan, Extent({*cases, *missing}, {*cases}), None, reports / "baseline.json")
        rewrite(keeper.folder.path / "metrics.json", lambda metrics: metrics["volatile"].update(timestamp=ended))
    keeper.folder.close()
    return keeper.folder.path


def rewrite(path: Path, change: Any) -> None:
    """Change a JSON file in place."""
    content = json.loads(path.read_text(encoding="utf-8"))
    change(content)
    path.write_text(json.dumps(content), encoding="utf-8")


def at(hour: int) -> str:
    """An hour of a day."""
    return f"2026-03-01T{hour:02}:00:00+00:00"
