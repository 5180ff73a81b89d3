"""Calibration of a judge against people's labels: agreement, thresholds, pass rates and notes on their limits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pytest_rageval.check.judged_labels import JudgedLabel, ScoredLabel, UnscoredLabel
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
from pytest_rageval.stats.design_effect import Effect, design_effect, independent, kappa_influences, widened
from pytest_rageval.stats.intervals import FEWEST, wilson
from pytest_rageval.stats.pass_rate import corrected_pass_rate
from pytest_rageval.stats.thresholds import Aim, Threshold, best_threshold
from pytest_rageval.text import counted

BETTER = (">=", ">")
FEW = 30
"""Labels below which every figure is little more than a hint."""


@dataclass(frozen=True, slots=True)
class UnlabelledCases:
    """A judge's results for the unlabelled cases of a stored run: by case, the share of its trials that pass.

    `without_score`: cases without a score, errors included; `left_out`: labelled cases, which count among the labels;
    `conversations`: of each of these cases, or its own key; empty if none depends on another.
    """

    run_id: str
    passing: tuple[float, ...]
    without_score: int = 0
    left_out: int = 0
    models: frozenset[str] = frozenset()
    conversations: tuple[str, ...] = ()

    def effect(self, values: Sequence[float]) -> float | None:
        """Return the design effect of the conversations on a value for each of these cases."""
        return design_effect(values, self.conversations) if self.conversations else 1.0

    @classmethod
    def of(cls, run: StoredRun, gate: Gate, labelled: Iterable[str]) -> UnlabelledCases:
        """Return the judge's results of a stored run, without the cases whose keys are `labelled`."""
        passing: dict[str, list[bool]] = {}
        models: set[str] = set()
        conversations: dict[str, str] = {}
        for record in run.records():
            scores = passing.setdefault(record["case_key"], [])
            score = record["scores"].get(gate.name)
            if score is not None:
                scores.append(gate.holds(score))
                if record["judge"]:
                    models.add(record["judge"]["model"])
                if record.get("conversation") is not None:
                    file = record["case_key"].partition("::")[0]
                    conversations[record["case_key"]] = f"{file}::{record['conversation']}"
        left_out = set(labelled) & passing.keys()
        unlabelled = {key: passes for key, passes in passing.items() if key not in left_out}
        scored = {key: passes for key, passes in unlabelled.items() if passes}
        shares = [sum(passes) / len(passes) for passes in scored.values()]
        return cls(
            run_id=run.run_id,
            passing=tuple(shares),
            without_score=len(unlabelled) - len(scored),
            left_out=len(left_out),
            models=frozenset(models),
            conversations=tuple([conversations.get(key, key) for key in scored]),
        )


class Calibration:
    """The agreement of a judge with people.

    judged      all labelled answers; of them, `cases` are the answers that both scored
    gate        resolved, on a metric of which more is better, and `scale` that metric's
    unscored, errors
                how many the judge did not score by reason, and how many could not be judged by kind of error
    messages    the messages of the errors, each once
    of_scores   the agreement with what people scored
    curve       points of the ROC, see `roc`
    thresholds  by aim the limit that serves best, or why none is named
    rates       the shares that pass: of the labelled answers, and of a run's unlabelled ones; `corrected` is what the
                judge's share comes to by people, see `corrected_pass_rate`
    verdict     the agreement in words: `substantial agreement`
    disagreements
                answers that judge and people put on different sides of the gate, the widest apart first
    """

    def __init__(
        self, judged: Sequence[JudgedLabel], gate: Gate, rubric: str, unlabelled: UnlabelledCases | None = None
    ) -> None:
        assert gate.measure is not None
        self.judged = judged
        self.gate = gate
        self.rubric = rubric
        self.unlabelled = unlabelled
        self.scale = gate.measure.metric.scale
        self.cases = tuple(label for label in judged if isinstance(label, ScoredLabel))

        without_score = [label for label in judged if isinstance(label, UnscoredLabel)]
        failed = [label for label in without_score if label.error is not None]
        self.unscored = _counted(label.reason for label in without_score if label.error is None)
        self.errors = _counted(label.error for label in failed if label.error is not None)
        self.messages = tuple(dict.fromkeys(label.reason for label in failed))

        judgements = [case.judgement for case in self.cases if case.judgement]
        prompt_versions = {judgement.prompt_version for judgement in judgements if judgement.prompt_version}
        self.models = tuple(sorted({judgement.model for judgement in judgements}))
        self.heuristic = any(judgement.heuristic for judgement in judgements)
        self.prompt_versions = tuple(sorted(prompt_versions))

        pairs = [LabelPair(case.passes, case.score) for case in self.cases]
        decided = [(gate.holds(case.score), case.passes) for case in self.cases]
        self._units = [_unit_of(case) for case in self.cases]
        self.confusion = Confusion.of(decided)
        self.agreement = self._agreement(decided)
        self.kappa = self._kappa(decided)
        self.of_scores = self._agreement_of_scores()
        self.auroc = auroc(pairs, self._effect)
        self.curve = tuple(roc(pairs))
        self.thresholds = self._best_thresholds(pairs)
        self.rates = _pass_rates(decided, unlabelled, self._effect)
        kappa = self.kappa
        self.verdict = "agreement cannot be told" if kappa is None else f"{in_words(kappa.value)} agreement"
        self.disagreements = self._disagreements()
        self.notes = tuple(self._notes())

    def _effect(self, values: Sequence[float]) -> float | None:
        """Return the design effect of the turns of conversations on a value for each answer."""
        return design_effect(values, self._units)

    def _agreement(self, decided: Sequence[tuple[bool, bool]]) -> Estimate | None:
        if not decided:
            return None
        return _share([judge == people for judge, people in decided], self._effect)

    def _kappa(self, decided: Sequence[tuple[bool, bool]]) -> Estimate | None:
        kappa = self.confusion.kappa
        if kappa is None:
            return None
        effect = self._effect(kappa_influences(decided))
        return Estimate(kappa.value, widened(kappa.value, kappa.interval, effect, (-1.0, 1.0)))

    def _agreement_of_scores(self) -> Mapping[str, float | None]:
        scores = [(case.human, case.score) for case in self.cases if case.human is not None]
        return {
            "n_scored_by_people": len(scores),
            "linear_kappa": weighted_kappa(scores, self.scale),
            "quadratic_kappa": weighted_kappa(scores, self.scale, squared=True),
            "spearman": spearman(scores),
        }

    def _best_thresholds(self, pairs: Sequence[LabelPair]) -> Mapping[str, Threshold | str]:
        gate = self.gate
        aims: tuple[Aim, ...] = ("youden", "agreement")
        effect = self._effect([float(gate.holds(pair.score) == pair.passes) for pair in pairs])
        if effect is None:
            return dict.fromkeys(aims, "too few conversations: at least five are needed")
        thresholds: dict[str, Threshold | str] = {}
        for aim in aims:
            thresholds[aim] = best_threshold(pairs, self.scale, gate.holds, gate.threshold, aim, effect)
        return thresholds

    def _disagreements(self) -> list[ScoredLabel]:
        gate = self.gate

        def widest_apart_first(case: ScoredLabel) -> tuple[float, str]:
            by_people = gate.threshold if case.human is None else case.human
            return -abs(case.score - by_people), case.label.id

        disagreeing = [case for case in self.cases if gate.holds(case.score) is not case.passes]
        return sorted(disagreeing, key=widest_apart_first)

    def _notes(self) -> Iterator[str]:
        """Yield what a reader must know before trusting these figures."""
        yield from self._notes_on_labels()
        yield from self._notes_on_judges()
        if self.unlabelled is not None:
            yield from self._notes_on_run(self.unlabelled)

    @property
    def _has_scores_of_labels(self) -> bool:
        """Return True if any score came with its label: its judge is not known."""
        return any(case.judgement is None for case in self.cases)

    def _notes_on_labels(self) -> Iterator[str]:
        gate = self.gate
        cases = self.cases
        if len(cases) < FEW:
            answers = counted(len(cases), "answer is", "answers are")
            yield f"{answers} few: the figures are hints; label {FEW} or more, drawn at random"
        if len({case.passes for case in cases}) == 1:
            yield "people said the same of all answers: nothing tells how the judge treats the other kind"
        if note := _note_on_turns(self._units, "labelled answers"):
            yield note
        torn = sum(case.human is not None and gate.holds(case.human) is not case.passes for case in cases)
        if torn:
            labels = counted(torn, "label has", "labels have")
            yield f"{labels} a human_score on the other side of {gate} than the human_pass, which counts"

    def _notes_on_judges(self) -> Iterator[str]:
        names = list(self.models)
        if self._has_scores_of_labels:
            names.append("scores that came with the labels")
        if self.models and len(names) > 1:
            yield f"several judges are mixed here, and no figure is that of one of them: {', '.join(names)}"
        if len(self.prompt_versions) > 1:
            yield f"scores by several versions of the rubric {self.rubric} are mixed here"

    def _notes_on_run(self, unlabelled: UnlabelledCases) -> Iterator[str]:
        run_id = unlabelled.run_id
        if self.models and unlabelled.models and set(self.models) != unlabelled.models:
            by = ", ".join(sorted(unlabelled.models))
            yield f"run {run_id} was judged by {by}, whose errors are not those measured here"
        if self._has_scores_of_labels:
            yield f"it cannot be seen whether the judge of run {run_id} is the one that scored the labels"
        if note := _note_on_turns(unlabelled.conversations, f"unlabelled answers of run {run_id}"):
            yield note
        if not unlabelled.passing:
            yield f"run {run_id} has no unlabelled case with a score for {self.gate.name}: no pass rate for it"

    def as_mapping(self) -> dict[str, Any]:
        """Return everything but texts as values for JSON, None for missing figures."""
        return {
            "metric": self.gate.name,
            "scale": self.scale,
            "gate": str(self.gate),
            "judge": {
                "models": self.models,
                "heuristic": self.heuristic,
                "prompt_versions": self.prompt_versions,
            },
            "n_labelled": len(self.judged),
            "n_scored": len(self.cases),
            "unscored": self.unscored,
            "errors": self.errors,
            "verdict": self.verdict,
            **self._agreement_content(),
            "thresholds": {aim: _threshold(threshold) for aim, threshold in self.thresholds.items()},
            "pass_rate": self._pass_rate_content(),
            "disagreements": [_disagreement(case) for case in self.disagreements],
            "notes": self.notes,
        }

    def _agreement_content(self) -> dict[str, Any]:
        counts = ("tp", "fp", "fn", "tn", "precision", "recall", "specificity", "youden")
        return {
            "agreement": _plain(self.agreement),
            "cohens_kappa": _plain(self.kappa),
            **self.of_scores,
            "auroc": _plain(self.auroc),
            "confusion": {name: getattr(self.confusion, name) for name in counts},
        }

    def _pass_rate_content(self) -> dict[str, Any]:
        unlabelled: dict[str, Any] | None = None
        if self.unlabelled is not None:
            unlabelled = {
                "run_id": self.unlabelled.run_id,
                "n": len(self.unlabelled.passing),
                "n_without_score": self.unlabelled.without_score,
                "n_labelled": self.unlabelled.left_out,
                "by_judge": _plain(self.rates["unlabelled"]),
                "corrected": _plain(self.rates["corrected"]),
            }
        return {
            "by_people": _plain(self.rates["by_people"]),
            "by_judge": _plain(self.rates["by_judge"]),
            "unlabelled": unlabelled,
        }


def _unit_of(case: ScoredLabel) -> str:
    """Return the key of the conversation of a turn, else that of the label alone."""
    observation = case.observation
    if observation is None or not observation.case.turn:
        return f"label {case.label.id} at {case.label.source}"
    return observation.case.unit


def _note_on_turns(units: Sequence[str], answers: str) -> str | None:
    """Return how many conversations the turns count as; None if no two answers are of one conversation."""
    sizes = [size for size in Counter(units).values() if size > 1]
    if not sizes:
        return None
    turns = f"{sum(sizes)} of the {answers} are turns of {counted(len(sizes), 'conversation')}"
    if len(set(units)) < FEWEST:
        return f"{turns}: too few for an interval, at least {FEWEST} are needed"
    return f"{turns}: intervals are as wide as those allow"


def _pass_rates(
    decided: Sequence[tuple[bool, bool]], unlabelled: UnlabelledCases | None, effect: Effect
) -> Mapping[str, Estimate | None]:
    """Return the pass rates of the labelled answers, decided by judge and people, and of the unlabelled ones."""
    corrected: Estimate | None = None
    passing: Sequence[float] = ()
    effect_of_run: Effect = independent
    if unlabelled is not None:
        passing = unlabelled.passing
        effect_of_run = unlabelled.effect
        corrected = corrected_pass_rate(decided, passing, effect, effect_of_run)
    return {
        "by_people": _share([people for _, people in decided], effect),
        "by_judge": _share([judge for judge, _ in decided], effect),
        "unlabelled": _share(passing, effect_of_run),
        "corrected": corrected,
    }


def _disagreement(case: ScoredLabel) -> dict[str, Any]:
    return {
        "id": case.label.id,
        "place": str(case.label.source),
        "passes": case.passes,
        "human": case.human,
        "score": case.score,
    }


def _plain(estimate: Estimate | None) -> dict[str, Any] | None:
    return None if estimate is None else estimate._asdict()


def _threshold(threshold: Threshold | str) -> dict[str, Any]:
    if isinstance(threshold, str):
        return {"limit": None, "reason": threshold}
    values = asdict(threshold) | {"is_clearly_better": threshold.is_clearly_better}
    return {name: value for name, value in values.items() if name != "aim"}


def _counted(names: Iterable[str]) -> dict[str, int]:
    """Count, most frequent first."""
    return dict(sorted(Counter(names).items(), key=lambda item: (-item[1], item[0])))


def _share(values: Sequence[float], effect_of: Effect) -> Estimate | None:
    if not values:
        return None
    mean = sum(values) / len(values)
    effect = effect_of(values)
    if effect is None:
        return Estimate(mean, None)
    return Estimate(mean, wilson(mean, len(values) / effect))
