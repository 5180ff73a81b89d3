"""A case asked more than once: its mean decides, and how far its trials differ is said."""

from __future__ import annotations

import pytest
from project import Project, a_case

WAVERING_BOT = """
import bot
calls = {}
def answer(question):
    calls[question] = calls.get(question, -1) + 1
    # Every third answer of the wavering one retrieves nothing.
    if "wavering" in question and calls[question] % 3 == 2:
        return {"answer": "Water boils at 100 degrees at sea level.", "debug": {"retrieved_chunks": []}}
    if "broken" in question and calls[question] % 3 == 1:
        raise ValueError("the index is gone")
    return bot.answer(question)
"""
CASES = [a_case("steady"), a_case("wavering", "wavering boiling"), a_case("broken", "broken boiling")]


@pytest.fixture
def wavering(project: Project) -> Project:
    project.write("wavering.py", WAVERING_BOT)
    project.configure('target = "wavering:answer"\nconcurrency = 1')
    project.cases(CASES[:2])
    return project


def test_the_mean_over_trials_is_gated(wavering: Project):
    wavering.run("--rageval-repeat", "3", "--rageval-gate", "recall_any@5 >= 0.6").assert_outcomes(passed=2)
    result = wavering.run("--rageval-repeat", "3", "--rageval-gate", "recall_any@5 >= 0.7")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*recall_any@5 is 0.6667, gate >= 0.7*"])


def test_each_trial_is_recorded_and_the_spread_reported(wavering: Project):
    result = wavering.run("--rageval-repeat", "3", "--rageval-gate", "recall_any@5 >= 0.6")
    kept = [(one["test_case_id"], one["trial"], one["verdict"]["trial_passed"]) for one in wavering.results()]
    assert sorted(kept) == [
        ("steady", 0, True), ("steady", 1, True), ("steady", 2, True),
        ("wavering", 0, True), ("wavering", 1, True), ("wavering", 2, False),
    ]  # fmt: skip
    metrics = wavering.metrics()
    assert metrics["total_tests"] == 2
    assert metrics["outcomes"]["passed"] == 2
    assert metrics["metrics"]["recall_any@5"]["n_scored"] == 2
    assert metrics["metrics"]["recall_any@5"]["mean"] == pytest.approx((1 + 2 / 3) / 2)
    repeats = metrics["repeats"]
    assert (repeats["trials"], repeats["cases"], repeats["pass_at_n"], repeats["pass_hat_n"]) == (3, 2, 1.0, 0.5)
    assert repeats["spread"]["recall_any@5"] == pytest.approx((0 + (1 / 3) ** 0.5) / 2)
    assert repeats["spread"]["token_f1"] == 0
    result.stdout.fnmatch_lines(["*3 trials a case: 100 % passed at least once, 50 % every time*"])


def test_a_trial_that_breaks_is_an_error_of_its_case(wavering: Project):
    wavering.cases(CASES)
    wavering.run("--rageval-repeat", "3", "--rageval-gate", "recall_any@5 >= 0.6").assert_outcomes(passed=2, errors=1)
    metrics = wavering.metrics()
    assert metrics["outcomes"]["error"] == 1
    assert metrics["metrics"]["recall_any@5"]["n_error"] == 1
    assert metrics["repeats"]["cases"] == 2


@pytest.mark.child_process
def test_workers_and_resuming_make_no_difference_to_repeats(wavering: Project):
    wavering.write("wavering.py", "from bot import answer\n")
    wavering.run("--rageval-repeat", "3")
    alone = wavering.stable_metrics()
    wavering.run("--rageval-repeat", "3", "-n", "2")
    assert wavering.stable_metrics() == alone
    path = wavering.runs[-1] / "results.jsonl"
    kept = path.read_text(encoding="utf-8").splitlines(keepends=True)[:-1]
    path.write_text("".join(kept), encoding="utf-8")
    wavering.run("--rageval-repeat", "3", "--rageval-resume", wavering.runs[-1].name).assert_outcomes(passed=2)
    assert wavering.stable_metrics() == alone
    assert len(wavering.results()) == 6


PARTLY_SILENT_BOT = """
import bot
calls = {}
def answer(question):
    calls[question] = calls.get(question, -1) + 1
    given = bot.answer(question)
    if calls[question] % 2 == 0:
        del given["debug"]
    return given
"""


def test_a_gate_takes_the_mean_over_the_trials_in_which_it_looks(project: Project):
    project.write("partly.py", PARTLY_SILENT_BOT)
    project.configure('target = "partly:answer"\nconcurrency = 1')
    project.cases([{**a_case("places"), "gold": None}])
    # The first trial, which stands for the case, reports no chunks; the second has its gold at the top.
    result = project.run("--rageval-repeat", "2", "--rageval-gate", "recall_any@5 >= 1")
    result.assert_outcomes(passed=1)
    assert ["recall_any@5" in one["verdict"]["unobserved"] for one in project.results()] == [True, False]


@pytest.mark.parametrize("broken", [0, 1])
def test_a_run_that_is_resumed_knows_of_the_trial_that_broke(project: Project, broken: int):
    project.write(
        "sometimes.py",
        "import bot\ncalls = []\ndef answer(question):\n    calls.append(question)\n"
        f"    if len(calls) == {broken + 1}:\n        raise ValueError('the index is gone')\n"
        "    return bot.answer(question)\n",
    )
    project.configure('target = "sometimes:answer"\nconcurrency = 1')
    project.cases(CASES[:2])
    project.run("--rageval-repeat", "2").assert_outcomes(passed=1, errors=1)
    project.run("--rageval-repeat", "2", "--rageval-resume", project.runs[-1].name).assert_outcomes(passed=1, errors=1)
