"""The whole comparison: on labels that people gave to real answers, and what a reader is told of its limits."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_rageval.check.calibrate import Calibration, UnlabelledCases
from pytest_rageval.check.judged_labels import (
    Examination,
    JudgedLabel,
    ScoredLabel,
    UnscoredLabel,
    judge_labels,
)
from pytest_rageval.check.labels import Label
from pytest_rageval.config.settings import Settings
from pytest_rageval.gates.gate import Gate, parse_gate, resolve
from pytest_rageval.judges.lexical_judge import LexicalJudge
from pytest_rageval.judges.rubrics import load_rubric
from pytest_rageval.matching.places import observe
from pytest_rageval.metrics import load_registry
from pytest_rageval.model import Answer, EvalCase, Judgement, Source

LABELLED = Path(__file__).parents[1] / "data" / "groundedness" / "labelled.jsonl"


def a_gate(written: str = "groundedness >= 3.5") -> Gate:
    return resolve(parse_gate(written, "here"), load_registry(), k=5)


def judged(id: str, passes: bool, score: float, *, model: str | None = "m/1") -> ScoredLabel:
    label = Label(id=id, source=Source("l.jsonl", 1), human_pass=passes)
    judgement = None if model is None else Judgement("groundedness", {"groundedness": score}, (0.0, 5.0), model=model)
    return ScoredLabel(label, passes, None, score, judgement=judgement)


def compare(*labels: JudgedLabel, unlabelled: UnlabelledCases | None = None) -> Calibration:
    return Calibration(labels, a_gate(), "groundedness", unlabelled)


@pytest.fixture(scope="module")
def real() -> Calibration:
    """The lexical judge against every fifth of the labelled answers."""
    records = [json.loads(line) for line in LABELLED.read_text(encoding="utf-8").splitlines()][::5]
    labels = [
        Label(
            id=one["id"],
            source=Source("labelled.jsonl", number),
            human_pass=not int(one["hallucinated"]),
            question=one["question"],
            answer=one["answer"],
            contexts=tuple(one["contexts"]),
        )
        for number, one in enumerate(records, start=1)
    ]
    how = Examination(a_gate(), load_rubric("groundedness"), Settings())
    found = [*judge_labels([*map(UnscoredLabel.of_texts, labels)], LexicalJudge(), how)]
    return Calibration(found, how.gate, "groundedness")


def test_the_lexical_judge_is_told_from_chance_by_real_labels(real: Calibration):
    assert real.heuristic
    assert real.models[0].startswith("lexical/")
    assert real.auroc is not None
    assert real.auroc.interval is not None
    assert real.auroc.interval[0] > 0.75
    assert real.confusion.kappa is not None
    assert real.confusion.kappa.value > 0.3


def test_every_real_label_is_in_the_figures_or_counted_apart(real: Calibration):
    assert len(real.cases) + sum(real.unscored.values()) + sum(real.errors.values()) == len(real.judged) == 134
    assert real.confusion.n == len(real.cases)
    assert real.errors == {}


def test_nothing_but_errors_gives_no_figure_and_no_crash():
    found = compare(UnscoredLabel(Label(id="a", source=Source("l.jsonl", 1)), None, "no reply", "timeout"))
    assert found.as_mapping()["agreement"] is None
    assert found.verdict == "agreement cannot be told"
    assert (found.auroc, found.of_scores["spearman"], found.rates["by_people"], found.curve) == (None, None, None, ())


def test_scores_by_several_judges_are_not_passed_off_as_one():
    found = compare(judged("a", True, 5.0), judged("b", False, 1.0, model="m/2"), judged("c", True, 5.0, model=None))
    assert any(
        note.startswith("several judges are mixed here") and note.endswith("m/1, m/2, scores that came with the labels")
        for note in found.notes
    )


def test_a_run_without_scores_gives_no_rate():
    found = compare(judged("a", True, 5.0), judged("b", False, 1.0), unlabelled=UnlabelledCases("r1", (), 4))
    assert (found.rates["corrected"], found.rates["unlabelled"]) == (None, None)
    assert "run r1 has no unlabelled case with a score for groundedness: no pass rate for it" in found.notes


def test_people_who_said_one_thing_of_all_are_no_measure():
    found = compare(judged("a", True, 5.0), judged("b", True, 1.0))
    assert any(note.startswith("people said the same of all answers") for note in found.notes)


def a_labelled_turn(turn: int, conversation: str) -> ScoredLabel:
    case = EvalCase(f"{conversation}[{turn}]", "q", conversation=conversation, turn=turn)
    label = judged(case.id, turn % 2 == 1, 5.0 * (turn % 2))
    return replace(label, observation=observe(case, Answer(text="a"), k=5))


def test_turns_of_a_few_conversations_give_no_interval():
    labels = [a_labelled_turn(turn, conversation) for conversation in "ab" for turn in (1, 2, 3)]
    unlabelled = UnlabelledCases("r1", (1.0,) * 4, conversations=("f::a", "f::a", "f::b", "f::b"))
    found = compare(*labels, unlabelled=unlabelled)
    notes = found.notes
    estimates = [found.agreement, found.kappa, found.auroc, *found.rates.values()]
    assert [estimate.interval for estimate in estimates if estimate is not None] == [None] * 7
    assert set(found.thresholds.values()) == {"too few conversations: at least five are needed"}
    assert (
        "6 of the labelled answers are turns of 2 conversations: too few for an interval, at least 5 are needed"
    ) in notes
    assert any(note.startswith("4 of the unlabelled answers of run r1 are turns of 2 conversations") for note in notes)
    alone = compare(*[a_labelled_turn(1, conversation) for conversation in "abc"]).notes
    assert not any("turns of" in note for note in alone)


def test_turns_that_say_the_same_count_as_one_answer():
    kinds = {f"c{number}": (number % 2 == 0, 5.0 * (number % 3 != 0)) for number in range(40)}

    def labels(turns: int) -> list[ScoredLabel]:
        made = []
        for conversation, (passes, score) in kinds.items():
            for turn in range(1, turns + 1):
                case = EvalCase(f"{conversation}[{turn}]", "q", conversation=conversation, turn=turn)
                label = judged(case.id, passes, score)
                made.append(replace(label, observation=observe(case, Answer(text="a"), k=5)))
        return made

    alone = compare(*labels(1))
    four = compare(*labels(4))
    assert (
        "160 of the labelled answers are turns of 40 conversations: intervals are as wide as those allow" in four.notes
    )
    for one, many in (
        (alone.agreement, four.agreement),
        (alone.kappa, four.kappa),
        (alone.auroc, four.auroc),
        (alone.rates["by_people"], four.rates["by_people"]),
    ):
        assert one is not None
        assert one.interval is not None
        assert many is not None
        assert many.interval is not None
        assert many.value == pytest.approx(one.value)
        # A repeated answer says nothing new: the interval is that of one answer for each conversation, and of Student.
        assert _width(many.interval) == pytest.approx(_width(one.interval), rel=0.12)


def _width(interval: tuple[float, float]) -> float:
    low, high = interval
    return high - low
