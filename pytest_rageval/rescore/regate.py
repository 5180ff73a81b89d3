"""Other gates for a stored run: its recorded scores are judged again, nothing is re-scored or written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_rageval.comparison.baseline import Side
from pytest_rageval.comparison.outcomes import ending_from_records
from pytest_rageval.config.settings import Settings
from pytest_rageval.errors import SettingsError
from pytest_rageval.gates.gate import Gate, parse_gate, too_few_cases, unknown_values
from pytest_rageval.gates.regression import RegressionGate
from pytest_rageval.judges.rubrics import load_rubric, rubric_names
from pytest_rageval.model import (
    NOWHERE,
    Answer,
    CaseResult,
    EvalCase,
    Judgement,
    Matching,
    Observation,
    Problem,
    Source,
)
from pytest_rageval.model.case_fields import DESCRIPTIVE_NAMES, descriptions_in
from pytest_rageval.rescore.attempts_again import decided_again
from pytest_rageval.rescore.relabel import Line
from pytest_rageval.rescore.rescore import same_extent, stored_run_scores
from pytest_rageval.run.finish import FinishedRun, conclude
from pytest_rageval.run.plan import Plan
from pytest_rageval.run.scoring import overall_result
from pytest_rageval.runs.case_place import own_test
from pytest_rageval.runs.causes import with_cause
from pytest_rageval.runs.decision_hash import labelled_gold, regated_hash
from pytest_rageval.runs.folder import RunFolder
from pytest_rageval.runs.reader import StoredRun
from pytest_rageval.runs.records.result_line import verdict_record
from pytest_rageval.runs.results_file import RunWriter
from pytest_rageval.runs.stored_plan import plan_of, settings_of


def plan_of_gates(run: StoredRun, current: Settings, root: Path) -> Plan:
    """Return the run's own plan with the project's current gates and those of the command line.

    Raise SettingsError for a written gate on a metric that the run has not scored, and for one of the command line on
    cases that the run does not have.
    """
    current_gates = {
        "gates": current.gates,
        "gate": current.gate,
        "description": run.finished_metrics["description"],
        "update_baseline": False,
    }
    settings = settings_of(run, current).model_copy(update=current_gates)
    plan = plan_of(run, settings, root)
    scored = set(run.config["metrics"])
    gates: list[Gate | RegressionGate] = [*plan.case_gates, *plan.run_gates, *plan.regressions]
    problems = []
    for gate in gates:
        if not gate.is_default and (measure := gate.measure) is not None and gate.name not in scored:
            verb = "judge" if measure.metric.rubrics and measure.metric.layer == "L5" else "score"
            remedy = f"`rageval {verb} {run.run_id} --metrics {measure.name}` does"
            problems.append(f"gate '{gate}': run {run.run_id} has not scored {measure.name}; {remedy}")
    if current.gate:
        written = [parse_gate(text, "--gate") for text in current.gate]
        cases = [_case(records[0]) for records in run.cases()]
        problems += unknown_values(written, cases)
        problems += too_few_cases([gate for gate in plan.run_gates if gate in written], len(cases))
    if problems:
        raise SettingsError(*dict.fromkeys(problems))
    return plan


def regate(run: StoredRun, plan: Plan, baseline: Side | None) -> FinishedRun:
    """Return the result of the run under the plan's gates."""
    earlier = run.finished_metrics
    plan = replace(plan, stored_run_scores=stored_run_scores(plan, earlier))
    writer = RunWriter(RunFolder(run.path), plan, run.config)
    for records in run.cases():
        for record in _gated(records, plan, baseline):
            writer.note(record)
    extent = replace(same_extent(writer, earlier), damage=run.undecidable)
    return conclude(writer, plan, extent, baseline)


def _gated(records: Sequence[Line], plan: Plan, baseline: Side | None) -> Iterator[Line]:
    """Yield the records of a case with the verdict of the plan's gates.

    Leave records unchanged if the case has an error, or is skipped for a reason other than unobserved gold.
    """
    is_skipped = records[0]["outcome"] == "skipped" and not any(map(_unobserved, records))
    has_error = records[0]["outcome"] == "error" or any(map(_is_error_of_case, records))
    if is_skipped or has_error:
        yield from records
        return
    results = [_recorded(record) for record in records]
    error = _failed_judgement(records, results[0], plan)
    if error is not None:
        for record in records:
            yield with_cause({**record, "outcome": "error", "error": error})
        return
    overall = decided_again(results, records, plan, baseline).overall
    outcome, reason = ending_from_records(overall, records, plan, baseline)
    first = records[0]
    decision = regated_hash(first.get("decision_hash"), _case(first), first["gold"] or "none", plan)
    for record, result in zip(records, results, strict=True):
        verdict = verdict_record(overall_result([result], plan), overall)
        decided = {"decision_hash": decision, "outcome": outcome, "reason": reason, "verdict": verdict}
        yield with_cause({**record, **decided})


def _is_error_of_case(record: Line) -> bool:
    """Return True for an error of the first attempt: one of an attempt that confirms is a failed attempt."""
    return record["error"] is not None and not record.get("confirms")


def _failed_judgement(records: Sequence[Line], first: CaseResult, plan: Plan) -> dict[str, str] | None:
    """Return the error of a case if a gate reads a metric whose judgement failed."""
    is_heuristic = any(record["judge"] and record["judge"]["heuristic"] for record in records)
    gates = plan.gates_reading(first.case, records[0]["gold"] or "none")
    # A default gate does not read a heuristic's scores, a written one does.
    read = {gate.name for gate in gates if not (gate.is_default and is_heuristic)}
    for record in records:
        if record.get("confirms"):
            continue
        for name, error in record.get("metric_errors", {}).items():
            if name in read:
                kind, _, message = error.partition(": ")
                return {"kind": kind, "message": message} if kind else None
    return None


def _recorded(record: Line) -> CaseResult:
    """Return the parts of a trial's result that gates read."""
    case = _case(record)
    return CaseResult(
        case,
        "passed",
        observation=_stand_in(record) if record["error"] is None else None,
        error=Problem(record["error"]["kind"], record["error"]["message"] or "") if record["error"] else None,
        scores=record["scores"],
        skipped_metrics=record["skipped_metrics"],
        unobserved=_unobserved(record),
        trial=record["trial"],
        attempts=record.get("attempts", 1),
        confirms=record.get("confirms", 0),
        records=record.get("records"),
        test=own_test(record["case_key"], case.key),
    )


def _unobserved(record: Line) -> tuple[str, ...]:
    return tuple(record["verdict"].get("unobserved", ()))


def _case(record: Line) -> EvalCase:
    """Return the parts of the case that gates read."""
    descriptions: dict[str, Any] = dict(zip(DESCRIPTIVE_NAMES, descriptions_in(record), strict=True))
    # Older records lack the kinds of gold answers and groups.
    gold = labelled_gold(record.get("gold_answer", ["none"]), has_groups=record.get("has_groups", False))
    source = Source(**record["source"]) if record["source"] else NOWHERE
    return EvalCase(
        id=record["test_case_id"],
        question="",
        answerable=record["answerable"],
        **descriptions,
        tags=tuple(record["tags"]),
        requires_kg=record["requires_kg"],
        gold=gold,
        pass_rule=record.get("pass_rule"),
        source=source,
    )


def _stand_in(record: Line) -> Observation:
    """Return the parts of the observation that gates read: the kind of gold, and the judged scores."""
    judge = record["judge"] or {"prompt_versions": {}}
    judgements = {}
    for rubric in judge["prompt_versions"]:
        # A rubric of the project's own scores the metric of its name.
        names = load_rubric(rubric).scores if rubric in rubric_names() else (rubric,)
        scores = {name: record["scores"][name] for name in names if name in record["scores"]}
        judgements[rubric] = Judgement(rubric, scores, heuristic=judge["heuristic"])
    return Observation(_case(record), Answer(), Matching(record["gold"] or "none"), judgements)
