"""Labelled answers as the judge scores them: each judged as a run would judge it, or as a run did."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pytest_rageval.config.settings import Settings
from pytest_rageval.errors import CaseError, JudgeError, SettingsError
from pytest_rageval.io.sealed_lines import Place, record_at
from pytest_rageval.judges.judge import Judge
from pytest_rageval.judges.judging import judge_answer
from pytest_rageval.matching.passages import contexts
from pytest_rageval.matching.places import observe
from pytest_rageval.metrics.judged import NO_CONTEXT, NOT_JUDGED
from pytest_rageval.metrics.registry import Measure
from pytest_rageval.model import Answer, EvalCase, NotApplicable, Observation, Rubric
from pytest_rageval.runs.reader import StoredRun, observation_of
from pytest_rageval.text import excerpt
from pytest_rageval.tools.labels import Label


@dataclass(frozen=True, slots=True)
class JudgedLabel:
    """A label and the judge's score of the same answer, on the metric's scale.

    human      what a person scored, None where only pass or fail was said
    score      what the judge scored; None where it gave none
    why_not    why not, in one line
    error      the kind of error, where that is why
    model, prompt_version
               who judged; None where the label brought its judge's score along
    """

    label: Label
    human: float | None = None
    score: float | None = None
    why_not: str | None = None
    error: str | None = None
    reasoning: str = ""
    question: str = ""
    answer: str = ""
    model: str | None = None
    prompt_version: str | None = None
    heuristic: bool = False


@dataclass(frozen=True, slots=True)
class Examination:
    """The measure that gates read, its rubric, and the project's settings."""

    measure: Measure
    rubric: Rubric
    settings: Settings

    def on_scale(self, score: float | None) -> float | None:
        """Convert a score from the rubric's scale to the metric's."""
        if score is None:
            return None
        (low, high), (from_low, from_high) = self.measure.metric.scale, self.rubric.scale
        return low + (score - from_low) * (high - low) / (from_high - from_low)


# ── answers of stored runs ────────────────────────────────────────────────────────────────────────────────────

Recorded = Observation | JudgedLabel
"""A run's observation of a labelled case; for an error, the label with its kind."""


def observations_of(
    labels: Iterable[Label], open_run: Callable[[str], StoredRun], run: str | None
) -> dict[str, Recorded]:
    """Return, by the label's id, the recorded first trial of its answer in a stored run.

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
            recorded[label.id] = _observation(label, *runs[wanted])
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


def _observation(label: Label, run: StoredRun, places: Mapping[str, Place]) -> Recorded:
    place = places.get(label.case_key or "")
    if place is None:
        raise SettingsError(f"run {run.run_id} has no case {label.case_key!r}")
    record = record_at(place)
    observation = observation_of(record, run.config) if record["answer"] is not None else None
    if observation is not None:
        return observation
    kind = (record.get("error") or {}).get("kind") or "not recorded"
    question = str(record["case"].get("question", ""))
    return JudgedLabel(label, why_not=f"the case ended in an error: {kind}", error=kind, question=question)


# ── judging ───────────────────────────────────────────────────────────────────────────────────────────────────


def as_recorded(
    labels: Iterable[Label], recorded: Mapping[str, Recorded], how: Examination, *, is_judged_again: bool
) -> dict[str, JudgedLabel]:
    """Return, by id, the labels whose result is known: the score beside them, or what their run recorded.

    is_judged_again  scores of runs do not count; their errors do
    """
    known: dict[str, JudgedLabel] = {}
    for label in labels:
        there, human = recorded.get(label.id), how.on_scale(label.human_score)
        if label.judge_score is not None:
            score = how.on_scale(label.judge_score)
            known[label.id] = JudgedLabel(label, human, score, question=label.question or "", answer=label.answer or "")
        elif isinstance(there, JudgedLabel):
            known[label.id] = replace(there, human=human)
        elif there is not None and not is_judged_again:
            known[label.id] = _scored(label, there, how)
    return known


async def judge_labels(
    labels: Sequence[Label],
    judge: Judge,
    recorded: Mapping[str, Recorded],
    how: Examination,
    *,
    tell: Callable[[], None] = lambda: None,
) -> dict[str, JudgedLabel]:
    """Return, by id, each label with the judge's score of its answer; call `tell` after each.

    As many at once as the settings let judges work. An error belongs to its label alone.
    """
    judged: dict[str, JudgedLabel] = {}
    waiting = iter(labels)

    async def work() -> None:
        for label in waiting:
            there = recorded.get(label.id)
            observation = there if isinstance(there, Observation) else _observed(label)
            judged[label.id] = await _judged(label, observation, judge, how)
            tell()

    await asyncio.gather(*(work() for _ in range(how.settings.judge_concurrency)))
    return judged


def _observed(label: Label) -> Observation:
    case = EvalCase(label.id, label.question or "", contexts=label.contexts, source=label.source)
    return observe(case, Answer(text=label.answer), k=max(1, len(label.contexts)))


async def _judged(label: Label, obs: Observation, judge: Judge, how: Examination) -> JudgedLabel:
    rubric, settings = how.rubric, how.settings
    try:
        judgements = await judge_answer(
            judge,
            obs.case,
            obs.answer,
            [rubric.name],
            obs.k,
            wordings={rubric.name: rubric},
            repeats=settings.judge_repeats,
            phrases=settings.abstention.phrases,
        )
        return _scored(label, replace(obs, judgements=judgements), how)
    except JudgeError as error:
        kind, message = error.kind, str(error)
    except Exception as error:  # noqa: BLE001  a user's own judge may raise anything; it is this answer's error
        kind, message = "exception", f"{type(error).__name__}: {error}"
    return replace(_about(label, obs, how), why_not=excerpt(message, 300), error=kind)


def _scored(label: Label, obs: Observation, how: Examination) -> JudgedLabel:
    """Score the judgements by the measure, as a gate sees them."""
    about = _about(label, obs, how)
    scored = how.measure(obs)
    if isinstance(scored, NotApplicable):
        # Hardly a rubric applies without contexts, and the measure sees only that nothing was judged.
        is_bare = scored == NOT_JUDGED and not contexts(obs.case, obs.answer, obs.k)
        return replace(about, why_not=(NO_CONTEXT if is_bare else scored).reason)
    judgement = obs.judged(how.measure.metric.name) or next(iter(obs.judgements.values()), None)
    if judgement is None:
        return replace(about, score=scored.value)
    return replace(
        about,
        score=scored.value,
        reasoning=judgement.reasoning,
        model=judgement.model,
        prompt_version=judgement.prompt_version,
        heuristic=judgement.heuristic,
    )


def _about(label: Label, obs: Observation, how: Examination) -> JudgedLabel:
    return JudgedLabel(label, how.on_scale(label.human_score), question=obs.case.question, answer=obs.answer.text or "")
