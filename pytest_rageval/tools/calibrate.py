"""Calibration of a judge against people's labels: agreement, thresholds, pass rates and notes on their limits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
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
from pytest_rageval.tools.judged_labels import JudgedLabel, ScoredLabel, UnscoredLabel

BETTER = (">=", ">")
FEW = 30
"""Labels below which every figure is little more than a hint."""


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

    @classmethod
    def of(cls, run: StoredRun, gate: Gate, labelled: Iterable[str]) -> UnlabelledCases:
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
        return cls(run.run_id, tuple(shares), without, len(keys), frozenset(models))


@dataclass(frozen=True)
class Calibration:
    """The agreement of a judge with people, over the answers that both scored.

    `gate`: resolved, on a metric of which more is better.
    """

    judged: Sequence[JudgedLabel]
    gate: Gate
    rubric: str
    unlabelled: UnlabelledCases | None = None

    @property
    def scale(self) -> tuple[float, float]:
        assert self.gate.measure is not None
        return self.gate.measure.metric.scale

    @cached_property
    def cases(self) -> tuple[ScoredLabel, ...]:
        """Return the answers that both scored."""
        return tuple(label for label in self.judged if isinstance(label, ScoredLabel))

    @cached_property
    def _failed(self) -> list[UnscoredLabel]:
        return [label for label in self.judged if isinstance(label, UnscoredLabel) and label.error is not None]

    @property
    def unscored(self) -> Mapping[str, int]:
        """Return how many labelled answers the judge did not score, by reason; errors are not among them."""
        rest = (label for label in self.judged if isinstance(label, UnscoredLabel) and label.error is None)
        return _counted(label.reason for label in rest)

    @property
    def errors(self) -> Mapping[str, int]:
        """Return how many answers could not be judged, by kind of error."""
        return _counted(label.error or "" for label in self._failed)

    @property
    def messages(self) -> tuple[str, ...]:
        """Return what the errors said, each once."""
        return tuple(dict.fromkeys(label.reason for label in self._failed))

    @cached_property
    def models(self) -> tuple[str, ...]:
        return tuple(sorted({case.judgement.model for case in self.cases if case.judgement}))

    @property
    def heuristic(self) -> bool:
        return any(case.judgement is not None and case.judgement.heuristic for case in self.cases)

    @property
    def prompt_versions(self) -> tuple[str, ...]:
        versions = {case.judgement.prompt_version for case in self.cases if case.judgement}
        return tuple(sorted(filter(None, versions)))

    # ── figures ───────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def _decided(self) -> list[tuple[bool, bool]]:
        """Return who passes each answer: the judge, and people."""
        return [(self.gate.holds(case.score), case.passes) for case in self.cases]

    @property
    def _pairs(self) -> list[LabelPair]:
        return [LabelPair(case.passes, case.score) for case in self.cases]

    @cached_property
    def confusion(self) -> Confusion:
        return Confusion.of(self._decided)

    @cached_property
    def of_scores(self) -> Mapping[str, float | None]:
        """Return the agreement with what people scored."""
        scores = [(case.human, case.score) for case in self.cases if case.human is not None]
        return {
            "n_scored_by_people": len(scores),
            "linear_kappa": weighted_kappa(scores, self.scale),
            "quadratic_kappa": weighted_kappa(scores, self.scale, squared=True),
            "spearman": spearman(scores),
        }

    @cached_property
    def auroc(self) -> Estimate | None:
        return auroc(self._pairs)

    @property
    def curve(self) -> tuple[tuple[float, float], ...]:
        """Return the points of the ROC, see `roc`."""
        return tuple(roc(self._pairs))

    @cached_property
    def thresholds(self) -> Mapping[str, Threshold | str]:
        """Return by aim the limit that serves best, or why none is named."""
        gate = self.gate
        return {
            "youden": best_threshold(self._pairs, self.scale, gate.holds, gate.threshold, "youden"),
            "agreement": best_threshold(self._pairs, self.scale, gate.holds, gate.threshold, "agreement"),
        }

    @cached_property
    def rates(self) -> Mapping[str, Estimate | None]:
        """Return the shares that pass: of the labelled answers, and of a run's unlabelled ones.

        `corrected`: what the judge's share comes to by people, see `corrected_pass_rate`.
        """
        passing = self.unlabelled.passing if self.unlabelled else ()
        return {
            "by_people": _share([people for _, people in self._decided]),
            "by_judge": _share([judge for judge, _ in self._decided]),
            "unlabelled": _share(passing),
            "corrected": corrected_pass_rate(self._decided, passing) if self.unlabelled else None,
        }

    @property
    def verdict(self) -> str:
        """Return the agreement in words: `substantial agreement`; say so if the labels do not tell."""
        kappa = self.confusion.kappa
        return "agreement cannot be told" if kappa is None else f"{in_words(kappa.value)} agreement"

    @cached_property
    def disagreements(self) -> list[ScoredLabel]:
        """Return the answers that judge and people put on different sides of the gate, the widest apart first."""

        def apart(case: ScoredLabel) -> float:
            return abs(case.score - (self.gate.threshold if case.human is None else case.human))

        cases = [case for case in self.cases if self.gate.holds(case.score) is not case.passes]
        return sorted(cases, key=lambda case: (-apart(case), case.label.id))

    # ── for readers ───────────────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Return what a reader must know before trusting these figures."""
        return tuple(self._notes())

    def _notes(self) -> Iterator[str]:
        gate, cases, models, unlabelled = self.gate, self.cases, self.models, self.unlabelled
        if len(cases) < FEW:
            answers = counted(len(cases), "answer is", "answers are")
            yield f"{answers} few: the figures are hints; label {FEW} or more, drawn at random"
        if len({case.passes for case in cases}) == 1:
            yield "people said the same of all answers: nothing tells how the judge treats the other kind"
        torn = sum(case.human is not None and gate.holds(case.human) is not case.passes for case in cases)
        if torn:
            labels = counted(torn, "label has", "labels have")
            yield f"{labels} a human_score on the other side of {gate} than the human_pass, which counts"
        brought = any(case.judgement is None for case in cases)
        if len(models) > 1 or (models and brought):
            names = [*models, *(["scores that came with the labels"] if brought else [])]
            yield f"several judges are mixed here, and no figure is that of one of them: {', '.join(names)}"
        if len(self.prompt_versions) > 1:
            yield f"scores by several versions of the rubric {self.rubric} are mixed here"
        if unlabelled is None:
            return
        if models and unlabelled.models and set(models) != unlabelled.models:
            by = ", ".join(sorted(unlabelled.models))
            yield f"run {unlabelled.run_id} was judged by {by}, whose errors are not those measured here"
        if brought:
            yield f"it cannot be seen whether the judge of run {unlabelled.run_id} is the one that scored the labels"
        if not unlabelled.passing:
            yield f"run {unlabelled.run_id} has no unlabelled case with a score for {gate.name}: no pass rate for it"

    def as_mapping(self) -> dict[str, Any]:
        """Return everything but texts as values for JSON, None for missing figures."""
        confusion, unlabelled, rates = self.confusion, self.unlabelled, self.rates
        counts = ("tp", "fp", "fn", "tn", "precision", "recall", "specificity", "youden")
        return {
            "metric": self.gate.name,
            "scale": self.scale,
            "gate": str(self.gate),
            "judge": {name: getattr(self, name) for name in ("models", "heuristic", "prompt_versions")},
            "n_labelled": len(self.judged),
            "n_scored": len(self.cases),
            "unscored": self.unscored,
            "errors": self.errors,
            "verdict": self.verdict,
            "agreement": _plain(confusion.agreement),
            "cohens_kappa": _plain(confusion.kappa),
            **self.of_scores,
            "auroc": _plain(self.auroc),
            "confusion": {name: getattr(confusion, name) for name in counts},
            "thresholds": {aim: _threshold(threshold) for aim, threshold in self.thresholds.items()},
            "pass_rate": {
                "by_people": _plain(rates["by_people"]),
                "by_judge": _plain(rates["by_judge"]),
                "unlabelled": unlabelled
                and {
                    "run_id": unlabelled.run_id,
                    "n": len(unlabelled.passing),
                    "n_without_score": unlabelled.without_score,
                    "n_labelled": unlabelled.left_out,
                    "by_judge": _plain(rates["unlabelled"]),
                    "corrected": _plain(rates["corrected"]),
                },
            },
            "disagreements": [
                {
                    "id": case.label.id,
                    "place": str(case.label.source),
                    **{name: getattr(case, name) for name in ("passes", "human", "score")},
                }
                for case in self.disagreements
            ],
            "notes": self.notes,
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


def _share(values: Sequence[float]) -> Estimate | None:
    if not values:
        return None
    mean = sum(values) / len(values)
    return Estimate(mean, wilson(mean, len(values)))
