"""Labelled answers as the judge scores them: each judged as a run would judge it, or as a run did."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from pytest_rageval.check.labels import Label
from pytest_rageval.config.settings import Settings
from pytest_rageval.errors import CaseError, JudgeError, SettingsError
from pytest_rageval.gates.gate import Gate
from pytest_rageval.io.bounded_map import at_once
from pytest_rageval.io.sealed_lines import Place
from pytest_rageval.judges.judge import BaseJudge, identity_of, recorded_identity
from pytest_rageval.judges.judging import judge_answer
from pytest_rageval.matching.passages import contexts
from pytest_rageval.matching.places import observe
from pytest_rageval.metrics.judged import NO_CONTEXT, NOT_JUDGED
from pytest_rageval.model import Answer, EvalCase, Judgement, NotApplicable, Observation, Rubric
from pytest_rageval.runs.reader import StoredRun
from pytest_rageval.runs.records.observation_line import observation_of
from pytest_rageval.runs.records.record_files import record_at
from pytest_rageval.text import excerpt


@dataclass(frozen=True, slots=True)
class ScoredLabel:
    """An answer that both a person and the judge scored, on the metric's scale.

    human        a person's score; None if they said only pass or fail
    passes       a person's verdict; without one, whether their score passes the gate
    observation  None for a label without texts
    judgement    None where the label brought its judge's score along
    judge        the identity of the judge, its server included; None if it is not known
    """

    label: Label
    passes: bool
    human: float | None
    score: float
    observation: Observation | None = None
    judgement: Judgement | None = None
    judge: str | None = None


@dataclass(frozen=True, slots=True)
class UnscoredLabel:
    """A labelled answer without a judge's score, as a stored run or the label's own texts give it.

    reason  why there is none; empty before it is judged
    error   the kind of error that is why; with a run, of the error in place of the observation
    judge   the identity of the run's judge
    """

    label: Label
    observation: Observation | None = None
    reason: str = ""
    error: str | None = None
    judge: str | None = None

    @classmethod
    def of_texts(cls, label: Label) -> UnscoredLabel:
        """Return the answer in the label's own texts."""
        case = EvalCase(label.id, label.question or "", contexts=label.contexts, source=label.source)
        return cls(label, observe(case, Answer(text=label.answer), k=max(1, len(label.contexts))))


JudgedLabel = ScoredLabel | UnscoredLabel


class Examination(NamedTuple):
    """The gate on the labelled metric, its rubric, and the project's settings."""

    gate: Gate
    rubric: Rubric
    settings: Settings

    def known(self, answer: UnscoredLabel, *, is_judged_again: bool) -> JudgedLabel:
        """Return the label with its recorded score or the result of its run; unchanged if it is to be judged.

        is_judged_again  scores of runs do not count; their errors do
        """
        label = answer.label
        obs = answer.observation
        if label.judge_score is not None:
            return self._scored(answer, self._on_scale(label.judge_score))
        if obs is None or label.case_key is None or is_judged_again:
            return answer
        return self.scored(answer, obs, answer.judge)

    def scored(self, answer: UnscoredLabel, obs: Observation, judge: str | None) -> JudgedLabel:
        """Return the label with the score of the observation's judgements by the measure, as a gate sees them."""
        assert self.gate.measure is not None  # resolved
        scored = self.gate.measure(obs)
        if isinstance(scored, NotApplicable):
            # Hardly a rubric applies without contexts, and the measure sees only that nothing was judged.
            if scored == NOT_JUDGED and not contexts(obs.case, obs.answer, obs.k):
                scored = NO_CONTEXT
            return replace(answer, reason=scored.reason)
        judgement = obs.judged(self.gate.name) or next(iter(obs.judgements.values()), None)
        labelled = self._scored(answer, scored.value)
        return replace(labelled, judgement=judgement, judge=judge if judgement is not None else None)

    def _scored(self, answer: UnscoredLabel, score: float) -> ScoredLabel:
        label = answer.label
        human = None if label.human_score is None else self._on_scale(label.human_score)
        passes = label.human_pass
        if passes is None:
            assert human is not None  # every label has one of the two
            passes = self.gate.holds(human)
        return ScoredLabel(label, passes, human, score, answer.observation)

    def _on_scale(self, score: float) -> float:
        """Convert a score from the rubric's scale to the metric's."""
        assert self.gate.measure is not None
        low, high = self.gate.measure.metric.scale
        lowest, highest = self.rubric.scale
        return low + (score - lowest) * (high - low) / (highest - lowest)


def labelled_answers(
    labels: Iterable[Label], open_run: Callable[[str], StoredRun], run: str | None
) -> list[UnscoredLabel]:
    """Return the labels with their answers; of a case's trials in a stored run, the first one counts.

    `run` is meant if a label names a case and no run. A CaseError names every label whose run or case is missing.
    """
    answers: list[UnscoredLabel] = []
    problems: list[str] = []
    runs: dict[str, tuple[StoredRun, Mapping[str, Place]]] = {}
    for label in labels:
        if label.case_key is None:
            answers.append(UnscoredLabel.of_texts(label))
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
    """Return the place of the first trial's observation, by case."""
    places = run.observation_places()
    if not places:
        raise SettingsError(f"run {run.run_id} keeps no observations: label answers of another run, or their texts")
    first: dict[str, Place] = {}
    for key, trial in sorted(places, key=lambda case_and_trial: case_and_trial[1]):
        first.setdefault(key, places[key, trial])
    return first


def _recorded(label: Label, case_key: str, run: StoredRun, places: Mapping[str, Place]) -> UnscoredLabel:
    if case_key not in places:
        raise SettingsError(f"run {run.run_id} has no case {case_key!r}")
    record = record_at(places[case_key])
    observation = observation_of(record, run.config) if record["answer"] is not None else None
    if observation is not None:
        return UnscoredLabel(label, observation, judge=recorded_identity(run.config.get("judge")))
    kind = (record.get("error") or {}).get("kind") or "not recorded"
    return UnscoredLabel(label, None, f"the case ended in an error: {kind}", kind)


def judge_labels(
    answers: Sequence[UnscoredLabel], judge: BaseJudge, how: Examination, watch: Callable[[int], None] = lambda _: None
) -> Iterator[JudgedLabel]:
    """Yield each label with the judge's score of its answer, in their order, and close the judge.

    As many at once as the settings let judges work. An error belongs to its label alone.
    """
    settings = how.settings

    async def judged(answer: UnscoredLabel) -> JudgedLabel:
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
                dialogue=obs.dialogue,
            )
            return how.scored(answer, replace(obs, judgements=judgements), identity_of(judge))
        except JudgeError as error:
            kind = error.kind
            message = str(error)
        except Exception as error:  # noqa: BLE001  a user's own judge may raise anything; it is this answer's error
            kind = "exception"
            message = f"{type(error).__name__}: {error}"
        return replace(answer, reason=excerpt(message, 300), error=kind)

    return at_once(judged, answers, settings.judge_concurrency, close=judge.aclose, watch=watch)
