"""Spot checks of a judge: a second judge scores some answers of a run again."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from pytest_rageval.errors import SettingsError
from pytest_rageval.gates.verdict import GatedTrial, looks_at
from pytest_rageval.judges.judge import BaseJudge, identity_of
from pytest_rageval.model import Judgement, Observation
from pytest_rageval.rescore.rejudge import Rejudge
from pytest_rageval.rescore.relabel import Line
from pytest_rageval.run.plan import Plan
from pytest_rageval.runs.reader import StoredRun
from pytest_rageval.runs.records.observation_line import observed_of
from pytest_rageval.runs.records.record_files import record_at

FEWEST_ANSWERS = 20
SHARE = 0.05
"""The default number of answers to check: this many, or this share of a large run."""
APART = 0.2
"""The tolerated difference of two scores as a share of their scale (a point of five); more is a disagreement."""
TOO_OFTEN = 0.2
"""Disagreement rate beyond which a judge should not be relied on."""
ROUNDING = 1e-9


class JudgementPair(NamedTuple):
    """One score of one answer by both judges, as shares of their scales, 0 to 1; `gate`: a gate between them."""

    case_key: str
    trial: int
    rubric: str
    score: str
    first: float
    second: float
    gate: str | None = None

    @property
    def answer(self) -> tuple[str, int]:
        """Return the case and the trial that tell one answer from another."""
        return self.case_key, self.trial

    @property
    def disagrees(self) -> bool:
        return abs(self.first - self.second) > APART + ROUNDING or self.gate is not None


class SpotCheck(NamedTuple):
    """The result of a spot check.

    figures      what metrics.json holds of it, without texts: `spot_check_n` answers have a score by both, and the
                 `disagreement_rate` is the share of them with at least one disagreement; of `failed` others the second
                 judge gave none; `by_rubric` counts scores, of which some rubrics give several an answer
    problem      the first error of the second judge
    served       models that the servers of both report; a second opinion of the same model is none
    """

    figures: Mapping[str, Any]
    disagreeing: Sequence[JudgementPair]
    problem: str | None
    served: frozenset[str]


def check_by_second_judge(
    run: StoredRun, first: Plan, second: Plan, judge: BaseJudge, n: int | None, watch: Callable[[int], None]
) -> SpotCheck:
    """Let another judge score `n` of the run's judged answers, or the same one with another plan's prompts.

    Which ones follows from the run's configuration: the same every time. `first` is the run's own plan, whose gates
    count. A SettingsError where nothing can be compared.
    """
    if _is_same_judge(run, first, second, judge):
        raise SettingsError(
            f"judge {identity_of(judge)!r} is the run's own, with the same rubrics; a spot check needs another judge "
            "(--second-judge), or rubrics of other wording (--rubrics)"
        )
    lines = _drawn_lines(run, n)
    if not lines:
        raise SettingsError(f"run {run.run_id} has no judgements to check; `rageval judge {run.run_id}` makes some")
    again = Rejudge(run, second, judge, watch)
    rejudged = list(again.lines(iter(lines)))
    pairs: list[JudgementPair] = []
    for line, rejudged_line in zip(lines, rejudged, strict=True):
        pairs += _pairs(line, rejudged_line, run, first)
    if not pairs:
        raise SettingsError(f"judge {judge.model!r} cannot be compared: it gives none of the scores that the run has")
    disagreeing = [pair for pair in pairs if pair.disagrees]
    answers = {pair.answer for pair in pairs}
    disagreeing_answers = {pair.answer for pair in disagreeing}
    judgements = _judgements_of(lines)
    models = {judgement["model"] for judgement in judgements}
    figures = {
        "disagreement_rate": len(disagreeing_answers) / len(answers),
        "spot_check_n": len(answers),
        "judge": ", ".join(sorted(models)),
        "second_judge": judge.model,
        "failed": again.failed,
        "by_rubric": _agreement_by_rubric(pairs),
        "disagreements": [pair._asdict() for pair in disagreeing],
    }
    problem = None if again.problem is None else f"{again.problem.kind}: {again.problem.message}"
    served_by_both = _served_models(judgements) & _served_models(_judgements_of(rejudged))
    return SpotCheck(figures, disagreeing, problem, served_by_both)


def _drawn_lines(run: StoredRun, n: int | None) -> list[Line]:
    """Draw judged observations: `n`, or by default a share of the run."""
    places = run.observation_places()
    judged = sorted(key for key, place in places.items() if record_at(place)["judgements"])
    usual = max(FEWEST_ANSWERS, math.ceil(SHARE * len(judged)))
    size = min(len(judged), n or usual)
    draw = random.Random(f"spot check of {run.config['config_hash']}")  # noqa: S311 because it is to be the same again
    return [record_at(places[key]) for key in sorted(draw.sample(judged, size))]


def _judgements_of(lines: Iterable[Line]) -> list[Mapping[str, Any]]:
    return list(chain.from_iterable(line["judgements"].values() for line in lines))


def _served_models(judgements: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    models = (judgement.get("extra", {}).get("served_model") for judgement in judgements)
    return frozenset(model for model in models if model)


def _agreement_by_rubric(pairs: Sequence[JudgementPair]) -> dict[str, dict[str, float]]:
    by_rubric: dict[str, list[JudgementPair]] = {}
    for pair in pairs:
        by_rubric.setdefault(pair.rubric, []).append(pair)
    return {rubric: _agreement_of(by_rubric[rubric]) for rubric in sorted(by_rubric)}


def _agreement_of(scores: Sequence[JudgementPair]) -> dict[str, float]:
    n = len(scores)
    disagreeing = sum(pair.disagrees for pair in scores)
    differences = [abs(pair.first - pair.second) for pair in scores]
    return {
        "n": n,
        "disagreeing": disagreeing,
        "disagreement_rate": disagreeing / n,
        "mean_difference": math.fsum(differences) / n,
    }


def _is_same_judge(run: StoredRun, first: Plan, second: Plan, judge: BaseJudge) -> bool:
    """Return True if the second judge has the same identity and the same prompts as the first."""
    configured = run.config["judge"] or {}
    if "identity" in configured:
        is_same = configured["identity"] == identity_of(judge)
    else:  # without an identity, as of a fixture's judge, only the model is known
        if "fixture" in configured:
            models = {record["judge"]["model"] for record in run.records() if record["judge"]}
        else:
            models = {configured.get("model")}
        is_same = judge.model in models
    return is_same and _prompt_versions(first) == _prompt_versions(second)


def _prompt_versions(plan: Plan) -> dict[str, str]:
    return {name: wording.prompt_version for name, wording in plan.wordings.items()}


def _pairs(line: Line, rejudged: Line, run: StoredRun, plan: Plan) -> Iterator[JudgementPair]:
    obs = observed_of(line, run.config)
    again = observed_of(rejudged, run.config)
    if not isinstance(obs, Observation) or not isinstance(again, Observation):
        return
    for rubric, judgement in obs.judgements.items():
        if rubric not in again.judgements:
            continue
        second_judgement = again.judgements[rubric]
        for name in sorted(judgement.scores.keys() & second_judgement.scores.keys()):
            first = _share_of_scale(judgement, name)
            second = _share_of_scale(second_judgement, name)
            gate = _gate_between(name, first, second, obs, plan)
            yield JudgementPair(line["case_key"], line["trial"], rubric, name, first, second, gate)


def _share_of_scale(judgement: Judgement, name: str) -> float:
    low, high = judgement.scale
    return (judgement.scores[name] - low) / (high - low)


def _gate_between(name: str, first: float, second: float, obs: Observation, plan: Plan) -> str | None:
    """Return the gate that only one of two scores passes, which are shares of the scale."""
    for gate in plan.case_gates:
        if gate.measure is None or gate.measure.metric.name != name:
            continue
        low, high = gate.measure.metric.scale
        first_passes = gate.holds(low + first * (high - low))
        second_passes = gate.holds(low + second * (high - low))
        if first_passes != second_passes and looks_at(gate, GatedTrial(obs, {gate.name: first})):
            return str(gate)
    return None
