"""The answers of two stored runs to the same questions, case by case, and why others have no counterpart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pytest_rageval.abstention.detector import declines
from pytest_rageval.cases.canonical import case_from_mapping
from pytest_rageval.comparison.baseline import Side
from pytest_rageval.errors import SettingsError
from pytest_rageval.io.sealed_lines import Place
from pytest_rageval.judges.judging import CLASSIFIER
from pytest_rageval.judges.pairwise_requests import AnsweredCase
from pytest_rageval.model import Answer, EvalCase
from pytest_rageval.runs.observation_check import check_observations
from pytest_rageval.runs.reader import StoredRun
from pytest_rageval.runs.records.line_form import OBSERVATIONS
from pytest_rageval.runs.records.observation_line import read_dialogue
from pytest_rageval.runs.records.record_files import record_at
from pytest_rageval.targets.native_contract import answer_from_line

USUAL_K = 5
"""Chunks to show of an answer whose run does not tell its cut-off."""
DECLINED = "(the system declined to answer)"
"""What the judge is shown of an abstention without words."""


@dataclass(frozen=True, slots=True)
class AnswerPair:
    """Two answers to one question."""

    case_key: str
    before: AnsweredCase
    after: AnsweredCase
    cluster: str
    """The conversation of the case; its own key without one."""
    has_abstained_before: bool
    has_abstained_after: bool

    @property
    def category(self) -> str | None:
        return self.after.case.category

    @property
    def is_equal(self) -> bool:
        """Return True if both answers are the same text, whatever their white space."""
        return _words(self.before) == _words(self.after)


@dataclass(slots=True)
class PairedAnswers:
    """The pairs of two runs, and the keys of the cases that are in none."""

    pairs: list[AnswerPair] = field(default_factory=list)
    only_before: list[str] = field(default_factory=list)
    only_after: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    """Cases that ask another question now, or ask it after other ones."""
    small_talk: list[str] = field(default_factory=list)
    """Turns such as thanks, about which no judge is asked."""
    unanswered_before: list[str] = field(default_factory=list)
    """Cases without an answer on the first side alone, as after an error."""
    unanswered_after: list[str] = field(default_factory=list)
    unanswered: list[str] = field(default_factory=list)
    """Cases without an answer on either side."""
    has_trials: bool = False
    """Cases were asked several times, and their first answers are compared."""


def paired_answers(before: Side, after: Side) -> PairedAnswers:
    """Pair the answers of two runs; raise SettingsError if a side has none stored, or no case is on both."""
    run_before = _run_with_answers(before)
    run_after = _run_with_answers(after)
    places_before = run_before.observation_places()
    places_after = run_after.observation_places()
    first_before = _first_trials(places_before)
    first_after = _first_trials(places_after)
    found = PairedAnswers()
    found.has_trials = len(places_before) > len(first_before) or len(places_after) > len(first_after)
    found.only_before = [key for key in first_before if key not in first_after]
    found.only_after = [key for key in first_after if key not in first_before]
    for key, place in first_before.items():
        if key in first_after:
            _add(found, key, _answered(place, run_before), _answered(first_after[key], run_after))
    if len(found.only_before) == len(first_before):
        raise SettingsError(f"{before.name} and {after.name} have no case in common: no two answers can be compared")
    return found


def _run_with_answers(side: Side) -> StoredRun:
    if side.run is None or not (side.run.path / OBSERVATIONS).is_file():
        remedy = f"--pairwise reads {OBSERVATIONS} of both runs; name a run whose folder is here"
        raise SettingsError(f"{side.name} holds no answers: {remedy}")
    side.run.check_records()
    check_observations(side.run.path)
    return side.run


def _first_trials(places: Mapping[tuple[str, int], Place]) -> dict[str, Place]:
    first: dict[str, Place] = {}
    for (key, _), place in sorted(places.items(), key=lambda item: item[0][1]):
        first.setdefault(key, place)
    return {key: first[key] for key, _ in places}


@dataclass(frozen=True, slots=True)
class _Stored:
    """One side of a pair, as it is stored."""

    line: Mapping[str, Any]
    answered: AnsweredCase


def _answered(place: Place, run: StoredRun) -> _Stored:
    line = record_at(place)
    try:
        case = case_from_mapping(line["case"])
        answer = Answer()
        if line["answer"] is not None:
            answer = answer_from_line(line["answer"], line["case_key"])
        dialogue = read_dialogue(line.get("dialogue"))
    except (KeyError, TypeError, ValueError, AttributeError):
        raise SettingsError(f"{place}: not an observation as a run writes it; was the file changed?") from None
    if answer.abstained and not (answer.text or "").strip():
        # A system that declines without words has answered: left out, it could not lose these cases.
        answer = replace(answer, text=DECLINED)
    return _Stored(line, AnsweredCase(case, answer, run.config.get("k") or USUAL_K, dialogue))


def _add(found: PairedAnswers, key: str, before: _Stored, after: _Stored) -> None:
    """Add a case of both runs to the pairs, or to the list that says why it is none."""
    if after.answered.case.conversational:
        found.small_talk.append(key)
        return
    if before.answered.said_by_person != after.answered.said_by_person:
        found.changed.append(key)
        return
    has_before = bool(_words(before.answered))
    has_after = bool(_words(after.answered))
    if has_before and has_after:
        found.pairs.append(
            AnswerPair(
                case_key=key,
                before=before.answered,
                after=after.answered,
                cluster=_cluster(key, after.answered.case),
                has_abstained_before=_abstains(before),
                has_abstained_after=_abstains(after),
            )
        )
    elif has_after:
        found.unanswered_before.append(key)
    elif has_before:
        found.unanswered_after.append(key)
    else:
        found.unanswered.append(key)


def _words(answered: AnsweredCase) -> list[str]:
    return (answered.answer.text or "").split()


def _cluster(key: str, case: EvalCase) -> str:
    """Return the conversation of a turn, since turns of one depend on each other; for other cases the key."""
    return key if case.conversation is None else case.unit


def _abstains(stored: _Stored) -> bool:
    """Return True if the answer is an abstention: by its system, by the run's judge, or by its wording."""
    answered = stored.answered
    case = answered.case
    answer = answered.answer
    if answer.abstained is not None:
        return answer.abstained
    judged = stored.line["judgements"].get(CLASSIFIER, {}).get("scores", {}).get("abstained")
    if judged is not None:
        return bool(judged >= 0.5)
    golds = case.gold.answers or () if case.answerable else ()
    declined = declines(answer.text or "", case.question, (), answered.passages(), golds)
    return declined.abstained is True


def abstentions_on_one_side(pairs: list[AnswerPair]) -> Iterator[tuple[str, bool]]:
    """Yield the key of each pair of which one answer abstains, and whether that is the one after."""
    for pair in pairs:
        if pair.has_abstained_before != pair.has_abstained_after:
            yield pair.case_key, pair.has_abstained_after
