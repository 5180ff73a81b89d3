"""Labelled answers as the judge scores them: each judged as a run would judge it, or as a run did."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from pytest_rageval.config.settings import Settings
from pytest_rageval.errors import CaseError, JudgeError, SettingsError
from pytest_rageval.gates.gate import Gate
from pytest_rageval.io.bounded_map import at_once
from pytest_rageval.io.sealed_lines import Place, record_at
from pytest_rageval.judges.judge import Judge, identity_of, recorded_identity
from pytest_rageval.judges.judging import judge_answer
from pytest_rageval.matching.passages import contexts
from pytest_rageval.matching.places import observe
from pytest_rageval.metrics.judged import NO_CONTEXT, NOT_JUDGED
from pytest_rageval.metrics.registry import Measure
from pytest_rageval.model import Answer, EvalCase, Judgement, NotApplicable, Observation, Rubric
from pytest_rageval.runs.observations import observation_of
from pytest_rageval.runs.reader import StoredRun
from pytest_rageval.text import excerpt
from pytest_rageval.tools.labels import Label


@dataclass(frozen=True, slots=True)
class ScoredLabel:
    """An answer that both a person and the judge scored, on the metric's scale.

    human      what a person scored, None where only pass or fail was said
    passes     a person's verdict; without one, whether their score passes the gate
    judgement  None where the label brought its judge's score along
    judge      the identity of the judge, its server included; None if it is not known
    """

    label: Label
    passes: bool
    human: float | None
    score: float
    question: str = ""
    answer: str = ""
    judgement: Judgement | None = None
    judge: str | None = None


class UnscoredLabel(NamedTuple):
    """A labelled answer without a judge's score: why, and the kind of error where that is why."""

    label: Label
    reason: str
    error: str | None = None


JudgedLabel = ScoredLabel | UnscoredLabel


class LabelledAnswer(NamedTuple):
    """A labelled answer as it was observed: by a stored run, or from the texts beside the label.

    error  the kind of the error that the run recorded in its place
    judge  the identity of the run's judge
    """

    label: Label
    observation: Observation | None
    error: str | None = None
    judge: str | None = None

    @classmethod
    def beside(cls, label: Label) -> LabelledAnswer:
        """Return the answer that stands beside its label."""
        case = EvalCase(label.id, label.question or "", contexts=label.contexts, source=label.source)
        return cls(label, observe(case, Answer(text=label.answer), k=max(1, len(label.contexts))))


class Examination(NamedTuple):
    """The gate on the labelled metric, its rubric, and the project's settings."""

    gate: Gate
    rubric: Rubric
    settings: Settings

    def known(self, answer: LabelledAnswer, *, is_judged_again: bool) -> JudgedLabel | None:
        """Return the label with the score beside it or the result of its run; None if its answer is to be judged.

        is_judged_again  scores of runs do not count; their errors do
        """
        label, obs = answer.label, answer.observation
        if label.judge_score is not None:
            return self._scored(label, self._on_scale(label.judge_score), obs)
        if obs is None:
            return UnscoredLabel(label, f"the case ended in an error: {answer.error}", answer.error)
        return None if label.case_key is None or is_judged_again else self.scored(label, obs, answer.judge)

    def scored(self, label: Label, obs: Observation, judge: str | None) -> JudgedLabel:
        """Return the label with the score of the observation's judgements by the measure, as a gate sees them."""
        measure = self._measure
        scored = measure(obs)
        if isinstance(scored, NotApplicable):
            # Hardly a rubric applies without contexts, and the measure sees only that nothing was judged.
            is_bare = scored == NOT_JUDGED and not contexts(obs.case, obs.answer, obs.k)
            return UnscoredLabel(label, (NO_CONTEXT if is_bare else scored).reason)
        judgement = obs.judged(measure.metric.name) or next(iter(obs.judgements.values()), None)
        labelled = self._scored(label, scored.value, obs)
        return replace(labelled, judgement=judgement, judge=judge if judgement is not None else None)

    @property
    def _measure(self) -> Measure:
        assert self.gate.measure is not None  # resolved
        return self.gate.measure

    def _scored(self, label: Label, score: float, obs: Observation | None) -> ScoredLabel:
        human = None if label.human_score is None else self._on_scale(label.human_score)
        passes = label.human_pass
        if passes is None:
            assert human is not None  # every label has one of the two
            passes = self.gate.holds(human)
        texts = ("", "") if obs is None else (obs.case.question, obs.answer.text or "")
        return ScoredLabel(label, passes, human, score, *texts)

    def _on_scale(self, score: float) -> float:
        """Convert a score from the rubric's scale to the metric's."""
        (low, high), (from_low, from_high) = self._measure.metric.scale, self.rubric.scale
        return low + (score - from_low) * (high - low) / (from_high - from_low)


def labelled_answers(
    labels: Iterable[Label], open_run: Callable[[str], StoredRun], run: str | None
) -> list[LabelledAnswer]:
    """Return the labels with their answers; of a case's trials in a stored run, the first one counts.

    `run` is meant if a label names a case and no run. A CaseError names every label whose run or case is missing.
    """
    answers: list[LabelledAnswer] = []
    problems: list[str] = []
    runs: dict[str, tuple[StoredRun, Mapping[str, Place]]] = {}
    for label in labels:
        if label.case_key is None:
            answers.append(LabelledAnswer.beside(label))
            continue
        wanted = label.run or run
        if wanted is None:
            problems.append(f"{label.source}: 'run' is missing: which run is case {label.case_key!r} of? Or give --run")
            continue
        try:
            if wanted not in runs:
                stored = open_run(wanted)
                runs[wanted] = stored, _first_trials(stored)
            answers.append(_recorded(label, label.case_key, *runs[wanted]))
        except SettingsError as error:
            problems += [f"{label.source}: {problem}" for problem in error.problems]
    if problems:
        raise CaseError(*problems)
    return answers


def _first_trials(run: StoredRun) -> dict[str, Place]:
    places = run.observation_places()
    if not places:
        raise SettingsError(f"run {run.run_id} keeps no observations: label answers of another run, or their texts")
    return {key: places[key, trial] for key, trial in sorted(places, key=lambda one: -one[1])}


def _recorded(label: Label, case_key: str, run: StoredRun, places: Mapping[str, Place]) -> LabelledAnswer:
    if case_key not in places:
        raise SettingsError(f"run {run.run_id} has no case {case_key!r}")
    record = record_at(places[case_key])
    observation = observation_of(record, run.config) if record["answer"] is not None else None
    if observation is not None:
        return LabelledAnswer(label, observation, judge=recorded_identity(run.config.get("judge")))
    return LabelledAnswer(label, None, (record.get("error") or {}).get("kind") or "not recorded")


def judge_labels(
    answers: Sequence[LabelledAnswer], judge: Judge, how: Examination, watch: Callable[[int], None] = lambda _: None
) -> Iterator[JudgedLabel]:
    """Yield each label with the judge's score of its answer, in their order, and close the judge.

    As many at once as the settings let judges work. An error belongs to its label alone.
    """
    settings = how.settings

    async def judged(answer: LabelledAnswer) -> JudgedLabel:
        obs = answer.observation
        assert obs is not None
        try:
            judgements = await judge_answer(
                judge,
                obs.case,
                obs.answer,
                [how.rubric.name],
                obs.k,
                wordings={how.rubric.name: how.rubric},
                repeats=settings.judge_repeats,
                phrases=settings.abstention.phrases,
            )
            return how.scored(answer.label, replace(obs, judgements=judgements), identity_of(judge))
        except JudgeError as error:
            kind, message = error.kind, str(error)
        except Exception as error:  # noqa: BLE001  a user's own judge may raise anything; it is this answer's error
            kind, message = "exception", f"{type(error).__name__}: {error}"
        return UnscoredLabel(answer.label, excerpt(message, 300), kind)

    return at_once(judged, answers, settings.judge_concurrency, close=judge.aclose, watch=watch)
