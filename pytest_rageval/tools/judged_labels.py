"""Labelled answers as the judge scores them: each judged as a run would judge it, or as a run did."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
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


class RecordedAnswer(NamedTuple):
    """A run's observation of a labelled case, and the identity of the run's judge."""

    observation: Observation
    judge: str | None


class Examination(NamedTuple):
    """The gate on the labelled metric, its rubric, and the project's settings."""

    gate: Gate
    rubric: Rubric
    settings: Settings

    @property
    def measure(self) -> Measure:
        assert self.gate.measure is not None  # resolved
        return self.gate.measure

    def scored(self, label: Label, score: float, **known: object) -> ScoredLabel:
        """Return the label with a judge's score on the metric's scale."""
        human = None if label.human_score is None else self.on_scale(label.human_score)
        passes = label.human_pass
        if passes is None:
            assert human is not None  # every label has one of the two
            passes = self.gate.holds(human)
        return ScoredLabel(label, passes, human, score, **known)  # type: ignore[arg-type]

    def on_scale(self, score: float) -> float:
        """Convert a score from the rubric's scale to the metric's."""
        (low, high), (from_low, from_high) = self.measure.metric.scale, self.rubric.scale
        return low + (score - from_low) * (high - low) / (from_high - from_low)


# ── answers of stored runs ────────────────────────────────────────────────────────────────────────────────────

Recorded = RecordedAnswer | UnscoredLabel


def observations_of(
    labels: Iterable[Label], open_run: Callable[[str], StoredRun], run: str | None
) -> dict[str, Recorded]:
    """Return, by the label's id, the recorded first trial of its answer in a stored run, or the error there.

    `run` is meant if a label names a case and no run. A CaseError names every label whose run or case is missing.
    """
    recorded: dict[str, Recorded] = {}
    problems: list[str] = []
    runs: dict[str, tuple[StoredRun, Mapping[str, Place]]] = {}
    for label in labels:
        if label.case_key is None:
            continue
        wanted = label.run or run
        if wanted is None:
            problems.append(f"{label.source}: 'run' is missing: which run is case {label.case_key!r} of? Or give --run")
            continue
        try:
            if wanted not in runs:
                stored = open_run(wanted)
                runs[wanted] = stored, _first_trials(stored)
            recorded[label.id] = _recorded(label, label.case_key, *runs[wanted])
        except SettingsError as error:
            problems += [f"{label.source}: {problem}" for problem in error.problems]
    if problems:
        raise CaseError(*problems)
    return recorded


def _first_trials(run: StoredRun) -> dict[str, Place]:
    places = run.observation_places()
    if not places:
        raise SettingsError(f"run {run.run_id} keeps no observations: label answers of another run, or their texts")
    return {key: places[key, trial] for key, trial in sorted(places, key=lambda one: -one[1])}


def _recorded(label: Label, case_key: str, run: StoredRun, places: Mapping[str, Place]) -> Recorded:
    if case_key not in places:
        raise SettingsError(f"run {run.run_id} has no case {case_key!r}")
    record = record_at(places[case_key])
    observation = observation_of(record, run.config) if record["answer"] is not None else None
    if observation is not None:
        return RecordedAnswer(observation, recorded_identity(run.config.get("judge")))
    kind = (record.get("error") or {}).get("kind") or "not recorded"
    return UnscoredLabel(label, f"the case ended in an error: {kind}", kind)


# ── judging ───────────────────────────────────────────────────────────────────────────────────────────────────


def as_recorded(
    labels: Iterable[Label], recorded: Mapping[str, Recorded], how: Examination, *, is_judged_again: bool
) -> dict[str, JudgedLabel]:
    """Return, by id, the labels whose result is known: the score beside them, or what their run recorded.

    is_judged_again  scores of runs do not count; their errors do
    """
    known: dict[str, JudgedLabel] = {}
    for label in labels:
        there = recorded.get(label.id)
        if label.judge_score is not None:
            score = how.on_scale(label.judge_score)
            known[label.id] = how.scored(label, score, question=label.question or "", answer=label.answer or "")
        elif isinstance(there, UnscoredLabel):
            known[label.id] = there
        elif there is not None and not is_judged_again:
            known[label.id] = _scored(label, there.observation, how, there.judge)
    return known


def judge_labels(
    labels: Sequence[Label],
    judge: Judge,
    recorded: Mapping[str, Recorded],
    how: Examination,
    watch: Callable[[int], None] = lambda _: None,
) -> dict[str, JudgedLabel]:
    """Return, by id, each label with the judge's score of its answer, and close the judge.

    As many at once as the settings let judges work. An error belongs to its label alone.
    """
    settings = how.settings

    async def judged(label: Label) -> JudgedLabel:
        there = recorded.get(label.id)
        obs = there.observation if isinstance(there, RecordedAnswer) else _observed(label)
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
            return _scored(label, replace(obs, judgements=judgements), how, identity_of(judge))
        except JudgeError as error:
            kind, message = error.kind, str(error)
        except Exception as error:  # noqa: BLE001  a user's own judge may raise anything; it is this answer's error
            kind, message = "exception", f"{type(error).__name__}: {error}"
        return UnscoredLabel(label, excerpt(message, 300), kind)

    results = at_once(judged, labels, settings.judge_concurrency, close=judge.aclose, watch=watch)
    return {result.label.id: result for result in results}


def _observed(label: Label) -> Observation:
    case = EvalCase(label.id, label.question or "", contexts=label.contexts, source=label.source)
    return observe(case, Answer(text=label.answer), k=max(1, len(label.contexts)))


def _scored(label: Label, obs: Observation, how: Examination, judge: str | None) -> JudgedLabel:
    """Score the judgements by the measure, as a gate sees them."""
    scored = how.measure(obs)
    if isinstance(scored, NotApplicable):
        # Hardly a rubric applies without contexts, and the measure sees only that nothing was judged.
        is_bare = scored == NOT_JUDGED and not contexts(obs.case, obs.answer, obs.k)
        return UnscoredLabel(label, (NO_CONTEXT if is_bare else scored).reason)
    judgement = obs.judged(how.measure.metric.name) or next(iter(obs.judgements.values()), None)
    return how.scored(
        label,
        scored.value,
        question=obs.case.question,
        answer=obs.answer.text or "",
        judgement=judgement,
        judge=judge if judgement is not None else None,
    )
