"""How many builds a flaky bot turns red, with and without confirmation, and that none of them hides a worse bot.

    THOROUGH=1 pytest -s tests/run/test_flaky_builds.py

prints the tables of docs/appendix.md: of 200 builds of 40 cases each, decided as a run decides them, and of 50 real
runs.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping

import pytest
from processes import rounds
from project import Project

from pytest_rageval.comparison.baseline import Side
from pytest_rageval.config.settings import Settings
from pytest_rageval.io.case_output import Output
from pytest_rageval.metrics import load_registry
from pytest_rageval.model import Answer, EvalCase, Gold, Observation, Source, Trial
from pytest_rageval.run.attempts import MOST_BY_CHANCE, Attempts, DecidedCase, NewFailureCount, drive
from pytest_rageval.run.plan import Plan, make_plan
from pytest_rageval.run.scoring import Observed
from pytest_rageval.runs.columns import CaseColumns
from pytest_rageval.runs.decision_hash import decision_hash
from pytest_rageval.runs.row import CaseScores

CASES = 40
RUNS = 50
FLAKY = 12
"""Three of ten questions."""
GATED = make_plan(
    Settings(target="bot:answer", judge="none", enabled=("exact_match",), gate=("exact_match >= 1",)), load_registry()
)


def a_case(number: int) -> EvalCase:
    return EvalCase(
        f"q{number}", f"question {number}", gold=Gold(answers=("right",)), source=Source("a.jsonl", number + 1)
    )


ALL = [a_case(number) for number in range(CASES)]


def a_baseline(plan: Plan) -> Side:
    """Return a baseline in which all cases passed."""
    scores = {"exact_match": 1.0}
    cases = {
        case.key: CaseScores("", "passed", scores, decision_hash=decision_hash(case, "none", plan)) for case in ALL
    }
    return Side("baseline.json", {"metrics": {}, "volatile": {}}, CaseColumns.of(cases), {"k": 5})


BASELINE = a_baseline(GATED)


class Unbounded(NewFailureCount):
    """A count that has every new failure confirmed."""

    @property
    def is_beyond_chance(self) -> bool:
        return False


def decided(case: EvalCase, wrong: float, confirm: int, chance: random.Random, count: NewFailureCount) -> DecidedCase:
    """Decide a case whose answers are wrong with this probability; `count`: of the build."""

    def ask(trials: list[Trial]) -> list[Observed]:
        texts = ["wrong" if chance.random() < wrong else "right" for _ in trials]
        return [Observation(case, Answer(text), trial=trial.number) for text, trial in zip(texts, trials, strict=True)]

    deciding = Attempts(case, GATED, BASELINE, confirm, lambda _: Output(), count=count).decide()
    return drive(deciding, ask(next(deciding)), ask)


def red_builds(
    wrong: Mapping[int, float], confirm: int, runs: int = RUNS, kind: type[NewFailureCount] = NewFailureCount
) -> tuple[int, float]:
    """Return how many of some runs fail, and how many requests a run takes.

    wrong  how likely a wrong answer is, by the number of the case
    kind   the count that decides when no further failure is confirmed
    """
    chance = random.Random(f"{sorted(wrong.items())} {confirm}")
    red = 0
    requests = 0
    for _ in range(runs):
        outcomes = []
        count = kind()
        for number, case in enumerate(ALL):
            ended = decided(case, wrong.get(number, 0.0), confirm, chance, count)
            outcomes.append(ended.ending.outcome)
            requests += len(ended.evaluation.trials)
        red += "failed" in outcomes
    return red, requests / runs


def flaky(wrong: float) -> dict[int, float]:
    return dict.fromkeys(range(FLAKY), wrong)


def test_confirmation_spares_most_red_builds_of_a_flaky_bot():
    without, _ = red_builds(flaky(0.1), 0)
    confirmed, requests = red_builds(flaky(0.1), 2)
    # Expected are .72 and .21 of the builds.
    assert without > 25
    assert confirmed < 20
    assert requests < CASES + 2 * 3


@pytest.mark.parametrize("confirm", [1, 2, 4])
def test_no_build_hides_a_case_that_always_fails(confirm: int):
    runs = rounds(200, 20)
    red, _ = red_builds({**flaky(0.1), CASES - 1: 1.0}, confirm, runs)
    assert red == runs


def test_a_case_that_fails_half_of_the_time_turns_three_of_eight_builds_red():
    runs = rounds(2_000, 100)
    red, _ = red_builds({0: 0.5}, 2, runs)
    assert 0.2 < red / runs < 0.55


@pytest.mark.parametrize("wrong", [0.1, 0.2, 0.3, 0.5])
def test_no_build_is_red_because_a_wavering_bot_is_not_asked_again(wrong: float):
    """Every question wavers, so that many fail at once: a build that confirms no more is red in any case."""
    runs = rounds(2_000, 40)
    every = dict.fromkeys(range(CASES), wrong)
    bounded, _ = red_builds(every, 2, runs)
    unbounded, _ = red_builds(every, 2, runs, Unbounded)
    assert abs(bounded - unbounded) <= 0.1 * runs


def test_a_bot_that_broke_costs_at_most_forty_requests_more():
    red, requests = red_builds(dict.fromkeys(range(CASES), 1.0), 2, 5)
    assert red == 5
    assert requests == CASES + 2 * MOST_BY_CHANCE


@pytest.mark.torture
@pytest.mark.parametrize("wrong", [0.05, 0.1, 0.2, 0.3])
def test_confirmed_builds_are_red_less_often(wrong: float):
    builds = 200
    shares = {confirm: red_builds(flaky(wrong), confirm, builds) for confirm in (0, 1, 2, 4)}
    red = [shares[confirm][0] / builds for confirm in shares]
    words = " | ".join(f"{share:.0%}" for share in red)
    print(f"\n{wrong:.0%} wrong, red with confirm 0, 1, 2, 4: {words} | {shares[2][1]:.1f} requests with 2")
    assert max(red[1:]) < red[0]


WORSE = {
    "one case always": {CASES - 1: 1.0},
    "one case half": {CASES - 1: 0.5},
    "eight cases half": dict.fromkeys(range(FLAKY, FLAKY + 8), 0.5),
}


@pytest.mark.torture
@pytest.mark.parametrize("name", WORSE)
def test_a_worse_bot_stays_red_when_it_is_asked_again(name: str):
    builds = 200
    without = red_builds(WORSE[name], 0, builds)[0] / builds
    confirmed = red_builds(WORSE[name], 2, builds)[0] / builds
    print(f"\n{name}: {without:.0%} without, {confirmed:.0%} with")
    assert confirmed > without - 0.3


BOT = """
import json, random
from pathlib import Path

WRONG = json.loads(Path("wrong.json").read_text())

def answer(question):
    is_wrong = random.random() < WRONG.get(question, 0)
    place = "elsewhere.md" if is_wrong else "notes.md"
    chunks = [{"chunk_id": "c1", "rel_path": place, "heading_path": "", "text": "...", "rank": 1}]
    return {"answer": "wrong" if is_wrong else "right", "abstained": False, "debug": {"retrieved_chunks": chunks}}
"""


def real_red_builds(project: Project, wrong: Mapping[str, float], *options: str) -> int:
    """Return how many of fifty real runs exit with 1."""
    project.write("wrong.json", json.dumps(wrong))
    return sum(project.rageval("run", *options).ret == 1 for _ in range(RUNS))


@pytest.mark.torture
def test_fifty_real_runs_of_a_flaky_bot_and_of_a_worse_one(project: Project):
    project.write("random_bot.py", BOT)
    table = 'target = "random_bot:answer"\nreport = false\nregression = [{}]'
    gate = '{ metric = "recall_any@k", max_drop = 0.05, significant = true }'
    project.configure(table.format(gate))
    gold = [{"rel_path": "notes.md", "heading_path": ""}]
    project.cases({"id": f"q{n}", "question": f"q{n}", "gold_supports": gold} for n in range(CASES))
    project.write("wrong.json", "{}")
    assert project.rageval("run", "--update-baseline").ret == 0
    a_flaky_bot = {f"q{number}": 0.1 for number in range(FLAKY)}
    without = real_red_builds(project, a_flaky_bot, "--confirm", "0")
    confirmed = real_red_builds(project, a_flaky_bot)
    worse = real_red_builds(project, {**a_flaky_bot, "q39": 1.0})
    print(f"\nreal runs of a flaky bot: {without} of {RUNS} red without, {confirmed} with; of a worse one {worse} with")
    assert confirmed < without
    assert worse == RUNS
    project.configure(table.format(""))
    print(f"with the default regression gate: {real_red_builds(project, a_flaky_bot)} of {RUNS} red")
