"""The section of the HTML report on the judge: who judged, and how far that judge can be trusted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from pytest_rageval.check.calibration_record import CalibrationRecord
from pytest_rageval.render.html.metric_rows import interval_text
from pytest_rageval.render.html.page_run import PageRun
from pytest_rageval.runs.judge_notes import failure_note
from pytest_rageval.text import counted, percent, score_text


class JudgeRow(NamedTuple):
    """A fact about the judge."""

    name: str
    value: str
    remedy: str = ""
    """The command that measures it, if it is not known."""


def judge_rows(page: PageRun) -> list[JudgeRow]:
    """Return rows on who judged, and on how far that judge can be trusted."""
    judge = page.metrics.get("judge")
    if not judge:
        return []
    kind = "a model"
    if judge["heuristic"]:
        kind = "a heuristic without a model: its scores gate only where a gate was written"
    rows = [JudgeRow("judge", judge["model"]), JudgeRow("kind", kind)]
    failures = failure_note(page.metrics.get("judge_errors") or ())
    if failures:
        rows.append(JudgeRow("failed judgements", failures))
    prompts = ", ".join(f"{name} {version}" for name, version in judge["prompt_versions"].items())
    rows.append(JudgeRow("prompts", prompts or "–"))
    for record in page.calibrations:
        agreement = _agreement(record, judge["prompt_versions"])
        rows.append(JudgeRow(f"agreement with people: {record.metric}", agreement))
    if not page.calibrations:
        rows.append(JudgeRow("agreement with people", "not measured", "rageval calibrate measures it"))
    rows.append(_spot_check_row(page))
    # None without a cache, which is no rate of 0.
    hits = page.metrics["volatile"].get("cache_hit_rate")
    rows.append(JudgeRow("judgements from the cache", "–" if hits is None else percent(hits)))
    return rows


def _spot_check_row(page: PageRun) -> JudgeRow:
    name = "spot check by a second judge"
    reliability = (page.metrics.get("aggregate_metrics") or {}).get("judge_reliability")
    if not reliability:
        return JudgeRow(name, "not made", "rageval judge --spot-check makes one")
    share = score_text(reliability["disagreement_rate"])
    judgements = counted(reliability["spot_check_n"], "judgement")
    return JudgeRow(name, f"disagrees with {share} of {judgements}")


def _agreement(record: CalibrationRecord, prompts: Mapping[str, str]) -> str:
    """Return how far the judge agreed with people when that was last measured."""
    share = f"{record.agreement:.2f} ({interval_text(record.interval)}) of {counted(record.answers, 'answer')}"
    kappa = "" if record.cohens_kappa is None else f", kappa {record.cohens_kappa:.2f}"
    prompt = prompts.get(record.metric)
    # Agreement was measured with a prompt; with another one it is not known.
    is_other_prompt = prompt is not None and record.prompt_versions and prompt not in record.prompt_versions
    caution = "; the rubric was worded otherwise then" if is_other_prompt else ""
    when = f"{record.labels}, {record.calibrated:%Y-%m-%d}"
    return f"{share} on the same side of {record.gate}{kappa}: {record.verdict} ({when}){caution}"
