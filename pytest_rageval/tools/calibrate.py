"""Calibration of a judge against people's labels: agreement, thresholds, pass rates and notes on their limits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from pytest_rageval.gates.gate import Gate
from pytest_rageval.runs.reader import StoredRun
from pytest_rageval.stats.agreement import (
    Confusion,
    Estimate,
    LabelPair,
    auroc,
    in_words,
    roc,
    spearman,
    weighted_kappa,
)
from pytest_rageval.stats.intervals import wilson
from pytest_rageval.stats.pass_rate import corrected_pass_rate
from pytest_rageval.stats.thresholds import Threshold, best_threshold
from pytest_rageval.text import counted
from pytest_rageval.tools.judged_labels import JudgedLabel

BETTER = (">=", ">")
FEW = 30
"""Labels below which every figure is little more than a hint."""


@dataclass(frozen=True, slots=True)
class Case:
    """One answer that both people and the judge scored; scores on the metric's scale."""

    id: str
    place: str
    passes: bool
    human: float | None
    score: float
    question: str
    answer: str
    reasoning: str


@dataclass(frozen=True, slots=True)
class UnlabelledCases:
    """A judge's results for the unlabelled cases of a stored run: by case, the share of its trials that pass.

    `without_score`: cases without a score, errors included; `left_out`: labelled cases, which count among the labels.
    """

    run_id: str
    passing: tuple[float, ...]
    without_score: int = 0
    left_out: int = 0
    models: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Calibration:
    """The agreement of a judge with people, over the answers that both scored.

    cases        these answers
    unscored     of the labelled answers without a judge's score, how many by reason; errors are not among them
    errors       how many could not be judged, by kind of error
    messages     what these errors said, each once
    curve        of the ROC, see `roc`
    thresholds   by aim, the limit that serves best, or why none is named
    human_rate   share of the labelled answers that people pass; `judge_rate` that the judge passes
    judge_rate_unlabelled, corrected_rate
                 share of the unlabelled cases that the judge passes, and what that comes to by people; see
                 `corrected_pass_rate`. None without a run
    notes        what a reader must know before trusting these figures
    """

    metric: str
    scale: tuple[float, float]
    gate: Gate
    models: tuple[str, ...]
    heuristic: bool
    prompt_versions: tuple[str, ...]
    labelled: int
    cases: tuple[Case, ...]
    unscored: Mapping[str, int]
    errors: Mapping[str, int]
    messages: tuple[str, ...]
    confusion: Confusion
    linear_kappa: float | None
    quadratic_kappa: float | None
    scored_by_people: int
    spearman: float | None
    auroc: Estimate | None
    curve: tuple[tuple[float, float], ...]
    thresholds: Mapping[str, Threshold | str]
    human_rate: Estimate | None
    judge_rate: Estimate | None
    unlabelled: UnlabelledCases | None
    judge_rate_unlabelled: Estimate | None
    corrected_rate: Estimate | None
    notes: tuple[str, ...]

    @property
    def verdict(self) -> str:
        """Return the agreement in words: `substantial agreement`; say so if the labels do not tell."""
        kappa = self.confusion.kappa
        return "agreement cannot be told" if kappa is None else f"{in_words(kappa.value)} agreement"

    @property
    def disagreements(self) -> list[Case]:
        """Return the answers that judge and people put on different sides of the gate, the widest apart first."""

        def apart(case: Case) -> float:
            return abs(case.score - (self.gate.threshold if case.human is None else case.human))

        cases = [case for case in self.cases if self.gate.holds(case.score) is not case.passes]
        return sorted(cases, key=lambda case: (-apart(case), case.id))

    def as_mapping(self) -> dict[str, Any]:
        """Return everything but texts as plain values for JSON, None for missing figures."""
        confusion, kappa, agreement = self.confusion, self.confusion.kappa, self.confusion.agreement
        return {
            "metric": self.metric,
            "scale": list(self.scale),
            "gate": str(self.gate),
            "judge": {
                "models": list(self.models),
                "heuristic": self.heuristic,
                "prompt_versions": list(self.prompt_versions),
            },
            "n_labelled": self.labelled,
            "n_scored": len(self.cases),
            "unscored": dict(self.unscored),
            "errors": dict(self.errors),
            "verdict": self.verdict,
            "agreement": _estimate(agreement),
            "cohens_kappa": _estimate(kappa),
            "n_scored_by_people": self.scored_by_people,
            "linear_kappa": self.linear_kappa,
            "quadratic_kappa": self.quadratic_kappa,
            "spearman": self.spearman,
            "auroc": _estimate(self.auroc),
            "confusion": {name: getattr(confusion, name) for name in ("tp", "fp", "fn", "tn")}
            | {name: getattr(confusion, name) for name in ("precision", "recall", "specificity", "youden")},
            "thresholds": {aim: _threshold(threshold) for aim, threshold in self.thresholds.items()},
            "pass_rate": {
                "by_people": _estimate(self.human_rate),
                "by_judge": _estimate(self.judge_rate),
                "unlabelled": self._unlabelled(),
            },
            "disagreements": [
                {"id": case.id, "place": case.place, "passes": case.passes, "human": case.human, "score": case.score}
                for case in self.disagreements
            ],
            "notes": list(self.notes),
        }

    def _unlabelled(self) -> dict[str, Any] | None:
        if self.unlabelled is None:
            return None
        return {
            "run_id": self.unlabelled.run_id,
            "n": len(self.unlabelled.passing),
            "n_without_score": self.unlabelled.without_score,
            "n_labelled": self.unlabelled.left_out,
            "by_judge": _estimate(self.judge_rate_unlabelled),
            "corrected": _estimate(self.corrected_rate),
        }


def _estimate(estimate: Estimate | None) -> dict[str, Any] | None:
    if estimate is None:
        return None
    return {"value": estimate.value, "interval": None if estimate.interval is None else list(estimate.interval)}


def _threshold(threshold: Threshold | str) -> dict[str, Any]:
    if isinstance(threshold, str):
        return {"limit": None, "reason": threshold}
    values = {field.name: getattr(threshold, field.name) for field in fields(threshold) if field.name != "aim"}
    plain = {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}
    return plain | {"is_clearly_better": threshold.is_clearly_better}


# ── computing ─────────────────────────────────────────────────────────────────────────────────────────────────


def calibrate(
    judged: Sequence[JudgedLabel], gate: Gate, rubric: str, unlabelled: UnlabelledCases | None = None
) -> Calibration:
    """Compute all figures from the scores of people and the judge. Pure.

    `gate`: resolved, on a metric of which more is better. A label without pass or fail passes where its score does.
    """
    assert gate.measure is not None
    scale = gate.measure.metric.scale
    cases = tuple(_case(label, label.score, gate) for label in judged if label.score is not None)
    pairs = [LabelPair(case.passes, case.score) for case in cases]
    decided = [(gate.holds(case.score), case.passes) for case in cases]
    scored = [(case.human, case.score) for case in cases if case.human is not None]
    people, judge = [human for _, human in decided], [judge for judge, _ in decided]
    failed = [label for label in judged if label.error is not None]
    models = tuple(sorted({label.model for label in judged if label.model}))
    return Calibration(
        metric=gate.measure.name,
        scale=scale,
        gate=gate,
        models=models,
        heuristic=any(label.heuristic for label in judged),
        prompt_versions=tuple(sorted({label.prompt_version for label in judged if label.prompt_version})),
        labelled=len(judged),
        cases=cases,
        unscored=_counted(label.why_not or "" for label in judged if label.score is None and label.error is None),
        errors=_counted(label.error or "" for label in failed),
        messages=tuple(dict.fromkeys(label.why_not or "" for label in failed)),
        confusion=Confusion.of(decided),
        linear_kappa=weighted_kappa(scored, scale),
        quadratic_kappa=weighted_kappa(scored, scale, squared=True),
        scored_by_people=len(scored),
        spearman=spearman(scored),
        auroc=auroc(pairs),
        curve=tuple(roc(pairs)),
        thresholds={
            "youden": best_threshold(pairs, scale, gate.holds, gate.threshold, "youden"),
            "agreement": best_threshold(pairs, scale, gate.holds, gate.threshold, "agreement"),
        },
        human_rate=_share(people),
        judge_rate=_share(judge),
        unlabelled=unlabelled,
        judge_rate_unlabelled=_share(unlabelled.passing) if unlabelled else None,
        corrected_rate=corrected_pass_rate(decided, unlabelled.passing) if unlabelled else None,
        notes=tuple(_notes(judged, cases, gate, models, rubric, unlabelled)),
    )


def _case(judged: JudgedLabel, score: float, gate: Gate) -> Case:
    passes = judged.label.human_pass
    if passes is None:
        assert judged.human is not None  # every label has one of the two
        passes = gate.holds(judged.human)
    label = judged.label
    return Case(
        label.id, str(label.source), passes, judged.human, score, judged.question, judged.answer, judged.reasoning
    )


def _counted(names: Iterable[str]) -> dict[str, int]:
    """Count, most frequent first."""
    return dict(sorted(Counter(names).items(), key=lambda item: (-item[1], item[0])))


def _share(values: Sequence[float]) -> Estimate | None:
    if not values:
        return None
    mean = sum(values) / len(values)
    return Estimate(mean, wilson(mean, len(values)))


def _notes(
    judged: Sequence[JudgedLabel],
    cases: Sequence[Case],
    gate: Gate,
    models: Sequence[str],
    rubric: str,
    unlabelled: UnlabelledCases | None,
) -> Iterator[str]:
    if len(cases) < FEW:
        answers = counted(len(cases), "answer is", "answers are")
        yield f"{answers} few: the figures are hints; label {FEW} or more, drawn at random"
    if len({case.passes for case in cases}) == 1:
        yield "people said the same of all answers: nothing tells how the judge treats the other kind"
    torn = sum(case.human is not None and gate.holds(case.human) is not case.passes for case in cases)
    if torn:
        labels = counted(torn, "label has", "labels have")
        yield f"{labels} a human_score on the other side of {gate} than the human_pass, which counts"
    brought = sum(label.model is None and label.score is not None for label in judged)
    if len(models) > 1 or (models and brought):
        names = [*models, *(["scores that came with the labels"] if brought else [])]
        yield f"several judges are mixed here, and no figure is that of one of them: {', '.join(names)}"
    if len({label.prompt_version for label in judged if label.prompt_version}) > 1:
        yield f"scores by several versions of the rubric {rubric} are mixed here"
    if unlabelled is None:
        return
    if models and unlabelled.models and set(models) != unlabelled.models:
        by = ", ".join(sorted(unlabelled.models))
        yield f"run {unlabelled.run_id} was judged by {by}, whose errors are not those measured here"
    if brought:
        yield f"it cannot be seen whether the judge of run {unlabelled.run_id} is the one that scored the labels"
    if not unlabelled.passing:
        yield f"run {unlabelled.run_id} has no unlabelled case with a score for {gate.name}: no pass rate for it"


def unlabelled_of(run: StoredRun, gate: Gate, labelled: Iterable[str]) -> UnlabelledCases:
    """Return the judge's results of a stored run, without the cases whose keys are `labelled`."""
    passing: dict[str, list[bool]] = {}
    models: set[str] = set()
    for record in run.records():
        scores = passing.setdefault(record["case_key"], [])
        score = record["scores"].get(gate.name)
        if score is not None:
            scores.append(gate.holds(score))
            if record["judge"]:
                models.add(record["judge"]["model"])
    keys = set(labelled) & passing.keys()
    shares = [sum(passes) / len(passes) for key, passes in passing.items() if passes and key not in keys]
    without = sum(not passes for key, passes in passing.items() if key not in keys)
    return UnlabelledCases(run.run_id, tuple(shares), without, len(keys), frozenset(models))
