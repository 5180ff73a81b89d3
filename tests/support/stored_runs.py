"""Stored runs, written by what writes them in earnest: rows or results become records, metrics and scores."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from zlib import crc32

from pytest_rageval.comparison.baseline import Side, open_side, write_baseline
from pytest_rageval.comparison.compared_sides import Comparison, compare_with_baseline
from pytest_rageval.comparison.pairing import ComparisonReport, build_comparison
from pytest_rageval.config.settings import Settings
from pytest_rageval.config.tables import Regression
from pytest_rageval.io.atomic import write_json
from pytest_rageval.matching.places import observe
from pytest_rageval.metrics import load_registry
from pytest_rageval.model import Anchor, Answer, CaseResult, Chunk, EvalCase, Gold, Problem, Source, Timings, Trial
from pytest_rageval.run.extent import Extent
from pytest_rageval.run.finish import finish
from pytest_rageval.run.plan import Plan, make_plan
from pytest_rageval.runs.aggregate import RunInfo, aggregate
from pytest_rageval.runs.columns import CaseColumns, write_scores
from pytest_rageval.runs.config import dataset_hash_of, run_config
from pytest_rageval.runs.records.line_form import SCHEMA
from pytest_rageval.runs.records.observation_line import observation_line
from pytest_rageval.runs.records.result_line import result_record, to_line
from pytest_rageval.runs.results_file import RunWriter
from pytest_rageval.runs.row import CaseScores, Row, cases_of

REGISTRY = load_registry()


def sealed(text: str) -> str:
    """A JSON object, or what is left of one, with its checksum."""
    body = text[:-1]
    return f'{body},"checksum":"{crc32(body.encode()):08x}"}}'


def a_plan(*enabled: str, regression: Sequence[Regression] = (), **settings: Any) -> Plan:
    """A plan of some metrics, of all those on by default where none is named."""
    return make_plan(Settings(enabled=enabled or None, regression=tuple(regression), **settings), REGISTRY)


def a_row(key: str, trial: int = 0, **fields: Any) -> Row:
    """A case that passed. `fields` are those of a row, or scores with `_at_` for the @ of their names."""
    known: dict[str, Any] = {
        "outcome": "passed", "content_hash": "hash", "not_applicable": frozenset(), "failed": (), "gates_examined": 1,
        "error_kind": None, "message": None, "is_blank": False, "trial_passed": True, "latency": {}, "judge": None,
        "groups": {"category": ("a",), "tag": (), "difficulty": (), "domain": (), "answerable": ("answerable",)},
        "cost": {"judge_tokens": None, "judge_cost_usd": None, "target_usage": None, "judgements": 0,
                 "judgements_cached": 0},
    }  # fmt: skip
    total_ms = fields.get("latency", {}).get("total_ms")
    known["operations"] = {} if total_ms is None else {"latency_ms": total_ms}
    told = {name: fields.pop(name) for name in list(fields) if name in known}
    scores = {name.replace("_at_", "@"): value for name, value in fields.items()}
    return Row(key=key, trial=trial, scores=scores, **(known | told))


def some_rows(metric: str, scores: Iterable[float], **fields: Any) -> list[Row]:
    """A case for each score."""
    return [a_row(f"q{number:04}", **({metric: score} | fields)) for number, score in enumerate(scores)]


def metrics_of(rows: Sequence[Row], plan: Plan, **changed: Any) -> dict[str, Any]:
    """What metrics.json of a run with these rows holds."""
    return aggregate(rows, plan, RunInfo("hash", None, len(rows), False, None, {"run_id": "before"})) | changed


def a_baseline(rows: Sequence[Row], metrics: Mapping[str, Any]) -> Side:
    """A run, taken as the baseline."""
    cases = {row.key: CaseScores(row.content_hash, row.outcome, row.scores) for row in cases_of(rows)}
    return Side("baseline.json", metrics, CaseColumns.of(cases))


def compared(before: Sequence[Row], after: Sequence[Row], plan: Plan) -> Comparison:
    """One run against an earlier one."""
    return compare_with_baseline(
        metrics_of(after, plan), after, a_baseline(before, metrics_of(before, plan)), plan, None
    )


PLAN = a_plan("recall_any", "mrr")


def a_chunk(rank: int, place: str = "a.md", golds: Sequence[int] = (), **fields: Any) -> dict[str, Any]:
    """A retrieved chunk as records hold it."""
    known = {"chunk_id": None, "rel_path": place, "heading_path": None, "rank": rank, "score_vector": None,
             "score_lexical": None, "score_final": None, "text": None, "token_count": None}  # fmt: skip
    return known | {"matches": list(golds)} | fields


def a_record(row: Row, **fields: Any) -> dict[str, Any]:
    """A line of results.jsonl, as much of it as a comparison and a report read."""
    failed = [{"metric": metric, "value": 0.0, "threshold": ">= 1", "tag": tag} for metric, tag in row.failed]
    return {
        "schema": SCHEMA, "case_key": row.key, "test_case_id": row.key.partition("::")[2], "trial": row.trial,
        "question": f"What is {row.key}?", "answer": "An answer.",
        "retrieved_chunks": [], "abstention": {"abstained": False}, "error": None,
        "verdict": {"passed": not failed, "failed_gates": failed, "trial_passed": not failed, "gates_held": 1},
        "outcome": row.outcome, "content_hash": row.content_hash, "category": row.groups["category"][0], "reason": None,
        "tags": list(row.groups["tag"]), "difficulty": None, "domain": None, "answerable": True, "judge": row.judge,
        "scores": dict(row.scores), "skipped_metrics": {}, "latency": dict(row.latency), "cost": dict(row.cost),
        "operations": dict(row.operations),
        "requires_kg": False, "gold": "anchors", "references": [], "indexing_coverage": None, "versions": None,
        "groundedness": None, "correctness": None, "judge_input": None, "score_details": {}, "attempts": 1,
        "source": {"file": row.key.partition("::")[0], "line": 1},
    } | fields  # fmt: skip


def a_config(rows: Sequence[Row], **fields: Any) -> dict[str, Any]:
    """The config.json of a run, as much of it as a comparison reads."""
    settings = {"judge_temperature": 0.0} | fields.pop("settings", {})
    dataset = dataset_hash_of((row.key, row.content_hash) for row in cases_of(rows))
    return {"k": 5, "dataset_hash": dataset, "dataset_version": f"content:{dataset}", "index_build_version": "i1",
            "retriever_version": "r1", "answerer_version": "a1", "settings": settings} | fields  # fmt: skip


def store(
    reports: Path,
    run_id: str,
    rows: Sequence[Row],
    *,
    plan: Plan = PLAN,
    config: Mapping[str, Any] | None = None,
    records: Mapping[str, Mapping[str, Any]] | None = None,
    **metrics: Any,
) -> Path:
    """Write a run. `config` and `metrics` override what follows from the rows; `records`: lines by key."""
    folder = reports / "runs" / run_id
    folder.mkdir(parents=True)
    content = metrics_of(rows, plan, **metrics)
    content["volatile"] = content["volatile"] | {"run_id": run_id}
    write_json(folder / "metrics.json", content)
    write_json(folder / "config.json", a_config(rows, **(config or {})))
    write_scores(folder, CaseColumns.of_rows(cases_of(rows)))
    if records is not None:
        lines = (to_line(a_record(row, **records.get(row.key, {}))) + "\n" for row in rows)
        (folder / "results.jsonl").write_text("".join(lines), encoding="utf-8")
    return folder


def accept(reports: Path, folder: Path, rows: Sequence[Row]) -> Path:
    """Make a stored run the baseline."""
    path = reports / "baseline.json"
    metrics, config = (
        json.loads((folder / name).read_text(encoding="utf-8")) for name in ("metrics.json", "config.json")
    )
    write_baseline(path, metrics, rows, config, folder)
    return path


def compared_runs(reports: Path, before: str, after: str, *, ignore: bool = False, **settings: Any) -> ComparisonReport:
    """Two of them side by side."""
    sides = [open_side(reports, reports / "baseline.json", one) for one in (before, after)]
    return build_comparison(sides[0], sides[1], Settings(**settings), ignore_invariants=ignore)


PAGE_PLAN = a_plan("recall_any", "mrr", "token_f1", "context_recall", "groundedness", "overall_score")
CASES = 40
LONG = "which-of-the-two-warehouses-in-the-northern-region-keeps-the-winter-stock"
CATEGORIES = ("factual", "multi_hop", "a category with a long name")


def some_cases(failing: int = 0, outcome: str = "failed", cases: int = CASES, **fields: Any) -> list[Row]:
    """Cases of which the first ones fail in what is not gated over the run, or with another outcome."""
    return [a_case_row(number, number < failing, outcome, **fields) for number in range(cases)]


def a_case_row(
    number: int, is_failing: bool, outcome: str, failing_scores: Mapping[str, float] | None = None, **fields: Any
) -> Row:
    scores = {"recall_any@5": 1.0, "context_recall@5": 1.0, "mrr": 1.0, "token_f1": 0.9 - number / 100}
    if is_failing:
        scores |= {"mrr": 0.5, "token_f1": 0.2} | dict(failing_scores or {})
    groups = {
        "category": (CATEGORIES[number % 3],), "tag": ("nightly",), "difficulty": ("hard",), "domain": ("stock",),
        "answerable": ("answerable",),
    }  # fmt: skip
    row = a_row(f"evalcases/warehouse.jsonl::{LONG}-{number}", groups=groups, latency={"total_ms": 120.0 + number})
    changed: dict[str, Any] = {"scores": scores}
    if is_failing:
        changed |= {"outcome": outcome, "failed": (("token_f1", "L5_wrong_answer"),), "trial_passed": False}
        if outcome == "error":
            changed |= {"scores": {}, "failed": (), "error_kind": "timeout", "message": "no answer within 120 s"}
    return replace(row, **changed | fields)


def records_of_rows(rows: Sequence[Row]) -> dict[str, dict[str, Any]]:
    """Records with texts and chunks for these rows."""
    return {row.key: a_full_record(row) for row in rows}


def a_full_record(row: Row, **fields: Any) -> dict[str, Any]:
    error = {"kind": row.error_kind, "message": row.message, "raw": None} if row.error_kind else None
    return {
        "test_case_id": row.key.partition("::")[2], "question": "Where is the winter stock kept, and since when?",
        "answer": "In the northern one. [1] Since 2019, when the other was closed.",
        "retrieved_chunks": [a_chunk(1, "stock/north.md", [0], heading_path="# North", text="The stock of winter."),
                             a_chunk(2, "stock/south.md", text="Closed in 2019.")],
        "error": error, "reason": None if row.outcome == "passed" else "token_f1 is 0.2, gate >= 0.5",
        "verdict": {"passed": not row.failed, "trial_passed": row.trial_passed, "gates_held": 3, "failed_gates": [
            {"metric": metric, "value": 0.2, "threshold": ">= 0.5", "tag": tag} for metric, tag in row.failed]},
        "groundedness": {"score": 4.0, "reasoning": "one claim has no source", "model": "lexical/4", "heuristic": True,
                         "supported_claims": ["It is kept in the northern one."],
                         "unsupported_claims": ["Since 2019."]},
    } | fields  # fmt: skip


QUESTION = "Where is the winter stock kept, and since when?"


def an_observation(row: Row, question: str = QUESTION, **gold: Any) -> dict[str, Any]:
    """A line of observations.jsonl, as much of it as a page reads."""
    known = {
        "answer": "In the northern warehouse, since 2019.",
        "supports": [{"rel_path": "stock/north.md"}, {"rel_path": "stock/since.md", "heading_path": "# Since"}],
    }
    case = {"id": row.key.partition("::")[2], "question": question,
            "gold": known | gold, "source": [row.key.partition("::")[0], 1]}  # fmt: skip
    return {"schema": 1, "case_key": row.key, "trial": row.trial, "case": case, "answer": None}


def store_full(reports: Path, run_id: str, rows: Sequence[Row], **metrics: Any) -> Path:
    """A run with records and observations."""
    folder = store(reports, run_id, rows, plan=PAGE_PLAN, records=records_of_rows(rows), **metrics)
    lines = (to_line(an_observation(row)) + "\n" for row in rows)
    (folder / "observations.jsonl").write_text("".join(lines), encoding="utf-8")
    return folder


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
    writer = RunWriter.new(reports, plan, config | dict(changed or {}))
    for result in results:
        writer.take(to_line(result_record(result, plan, config["config_hash"])).encode())
        if result.observation is not None and not told.redact:
            line = observation_line(Trial(result.case, result.trial), result.observation, told)
            writer.folder.append("observations.jsonl", line)
    if is_finished:
        finish(writer, plan, Extent({*cases, *missing}, {*cases}), None)
        rewrite(writer.folder.path / "metrics.json", lambda metrics: metrics["volatile"].update(timestamp=ended))
    writer.folder.close()
    return writer.folder.path


def rewrite(path: Path, change: Any) -> None:
    """Change a JSON file in place."""
    content = json.loads(path.read_text(encoding="utf-8"))
    change(content)
    path.write_text(json.dumps(content), encoding="utf-8")


def at(hour: int) -> str:
    """An hour of a day."""
    return f"2026-03-01T{hour:02}:00:00+00:00"


def updated(**changed: Any) -> Callable[[dict[str, Any]], None]:
    return lambda content: content.update(changed)


def origin(agent: str, version: int, dataset: str = "products", source: str = "connector") -> Mapping[str, Any]:
    return {"agent": agent, "agent_version": version, "dataset": dataset, "dataset_version": 2, "source": source}


def store_project(root: Path) -> Path:
    """Runs of two agents and of pytest, in every state; the folder of reports."""
    reports = root / "reports"
    for number in range(3):
        folder = store_full(reports, f"shop-{number}", some_cases(2 * number), description=f"try {number}")
        rewrite(folder / "config.json", updated(begun=at(number), origin=origin("shop-bot", number + 1), k=5 - number))
        rewrite(folder / "metrics.json", lambda metrics, n=number: metrics["volatile"].update(timestamp=at(n)))
    a_run(
        reports,
        "faq-0",
        a_result("a"),
        changed={"begun": at(4), "origin": origin("faq-bot", 1, "faq", "uploaded answers")},
        ended=at(5),
    )
    a_run(reports, "plain", a_result("a"), an_error("b", "no answer"), changed={"begun": at(6)}, ended=at(7))
    a_run(reports, "stopped", a_result("a"), is_finished=False, changed={"begun": at(8)})
    broken = a_run(reports, "broken", changed={"begun": at(9)})
    (broken / "metrics.json").write_text("{")
    return reports


OF_THE_CLOCK = ("latency", "operations", "checksum", "cost")


def records_of(run: Path) -> dict[str, dict[str, Any]]:
    """Lines of results.jsonl by key, without what the clock decides."""
    lines = (run / "results.jsonl").read_text(encoding="utf-8").rstrip("\n").split("\n")
    records = [json.loads(line) for line in lines]
    stable = ({name: value for name, value in record.items() if name not in OF_THE_CLOCK} for record in records)
    return {record["case_key"]: record for record in stable}


def stable_bytes(run: Path) -> bytes:
    """metrics.json without `volatile`, as it would be written."""
    metrics = json.loads((run / "metrics.json").read_text(encoding="utf-8"))
    del metrics["volatile"]
    return json.dumps(metrics, ensure_ascii=False).encode()


SEAL = re.compile(r',"checksum":"[0-9a-f]{8}"\}$')


def change_lines(path: Path, change: Callable[[str], str]) -> None:
    """Change each line of a file, without its checksum, and seal it again."""
    lines = path.read_text(encoding="utf-8").rstrip("\n").split("\n")
    path.write_text("".join(sealed(change(SEAL.sub("}", line))) + "\n" for line in lines), encoding="utf-8")
