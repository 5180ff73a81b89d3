"""Figures over turns of conversations: intervals count conversations, and turns are told apart by their number."""

from __future__ import annotations

from typing import Any

import pytest
from project import Project, a_case

from pytest_rageval.render.html.turn_charts import turn_charts

BOT = '''
import os

def answer(question, history):
    """Fail the later turns of every second conversation; of all of them if told to be worse."""
    number = int(question.split()[0])
    is_later = any(turn["role"] == "user" for turn in history)
    fails = is_later and (number % 2 or "worse" in os.environ.get("BOT", ""))
    return {"answer": "wrong" if fails else question, "retrieved_chunks": []}
'''
TALKS = 8
TURNS = 5


def a_talk(number: int) -> dict[str, Any]:
    questions = [f"{number} {word} question" for word in ("first", "second", "third", "fourth", "fifth")]
    return {"id": f"talk{number}", "turns": [{"question": each, "gold": {"answer": each}} for each in questions]}


@pytest.fixture
def talks(project: Project) -> Project:
    project.write("talks.py", BOT)
    project.configure('target = "talks:answer"')
    project.cases([a_talk(number) for number in range(TALKS)])
    return project


def test_an_interval_over_turns_is_that_of_conversations(talks: Project):
    talks.run()
    metric = talks.metrics()["metrics"]["gold_in_answer"]
    assert (metric["n_scored"], metric["n_independent"]) == (TALKS * TURNS, TALKS)
    low, high = metric["ci"]
    # Forty independent values have an interval of 0.3; eight conversations, half of which fail, one of 0.5.
    assert high - low > 0.45
    assert low <= metric["mean"] <= high


def test_the_summary_shows_both_counts_and_an_interval_of_conversations(talks: Project):
    result = talks.run()
    result.stdout.fnmatch_lines(["*40 cases (40 turns of 8 conversations)*"])
    summary = (talks.runs[-1] / "summary.md").read_text("utf-8")
    assert "40 cases (40 turns of 8 conversations)" in summary
    low, high = talks.metrics()["conversations"]["pass_rate_ci"]
    assert f"95 % within {100 * low:.0f} to {100 * high:.0f} %" in summary
    assert high - low > 0.45


def test_conversations_that_pass_and_the_decay_of_later_turns_are_metrics_of_the_run(talks: Project):
    talks.run()
    metrics = talks.metrics()["metrics"]
    assert metrics["conversation_pass_rate"]["mean"] == 0.5
    decay = metrics["turn_decay@gold_in_answer"]
    assert decay["mean"] == pytest.approx(-0.5)
    low, high = decay["ci"]
    assert -1 <= low < -0.5 < high <= 1


def test_turns_are_reported_by_number(talks: Project):
    talks.run()
    by_turn = talks.metrics()["by_turn"]
    assert list(by_turn) == ["1", "2", "3", "4", "5"]
    assert [group["metrics"]["gold_in_answer"]["mean"] for group in by_turn.values()] == [1, 0.5, 0.5, 0.5, 0.5]
    summary = (talks.runs[-1] / "summary.md").read_text("utf-8")
    assert "| turn 2 |" in summary.partition("## Turns")[2]
    assert "By number of the turn" in (talks.runs[-1] / "report.html").read_text("utf-8")


def test_a_run_gate_may_bound_the_decay(talks: Project):
    result = talks.run("--rageval-gate", "run turn_decay@gold_in_answer >= -0.2")
    assert result.ret
    result.stdout.fnmatch_lines(["*turn_decay@gold_in_answer -0.5 < -0.2*"])


def test_a_comparison_counts_conversations(talks: Project, monkeypatch: pytest.MonkeyPatch):
    talks.run("--rageval-update-baseline")
    monkeypatch.setenv("BOT", "worse")
    talks.run()
    change = talks.metrics()["comparison"]["metrics"]["gold_in_answer"]
    assert (change["n_paired"], change["n_changed"], change["n_independent"]) == (40, 16, 8)
    # Sixteen turns changed, of four conversations: four that all fell are no proof.
    assert change["p"] > 0.05
    result = talks.run("--rageval-baseline", f"run:{talks.runs[0].name}")
    assert talks.metrics()["comparison"]["metrics"]["gold_in_answer"]["p"] == change["p"]
    assert result.ret


def test_single_cases_have_none_of_it(project: Project):
    project.write("talks.py", BOT)
    project.configure('target = "talks:answer"')
    gold = {"answer": "question"}
    project.cases([a_case(f"c{number}", question=f"{number} question", gold=gold) for number in range(6)])
    project.run()
    metrics = project.metrics()
    assert not {"by_turn", "conversations"} & metrics.keys()
    assert not {name for name in metrics["metrics"] if "turn_decay" in name or "conversation" in name}
    assert "n_independent" not in metrics["metrics"]["gold_in_answer"]
    assert "added_metrics" not in project.config()
    assert '"conversation"' not in (project.runs[-1] / "scores.jsonl").read_text("utf-8")


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("turn_decay", "about another metric"),
        ("turn_decay@latency_ms", "no score of a case"),
        ("turn_decay@mrrr", "did you mean"),
    ],
)
def test_a_decay_of_no_metric_is_refused(talks: Project, written: str, said: str):
    result = talks.run("--rageval-metrics", written)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*{said}*"])


def test_workers_and_scoring_again_give_the_same_figures(talks: Project):
    talks.run()
    alone = talks.metrics()
    talks.run("-n", "2")
    assert talks.metrics()["metrics"] == alone["metrics"]
    assert talks.metrics()["by_turn"] == alone["by_turn"]
    assert talks.rageval("score", talks.runs[0].name).ret in (0, 1)
    assert talks.metrics()["metrics"]["turn_decay@gold_in_answer"] == alone["metrics"]["turn_decay@gold_in_answer"]
    assert talks.metrics()["by_turn"] == alone["by_turn"]


def test_a_baseline_with_an_odd_conversation_is_refused(talks: Project):
    talks.run("--rageval-update-baseline")
    [baseline] = talks.path.rglob("*baseline*.json")
    text = baseline.read_text("utf-8")
    written = '"conversation": "evalcases/a.jsonl::talk0"'
    assert written in text
    baseline.write_text(text.replace(written, '"conversation": 7', 1), encoding="utf-8")
    result = talks.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*is not a baseline; make a new one*"])


def of_two_lengths(talks: Project) -> None:
    """Run four conversations of five turns, and five of two."""
    longer = [a_talk(number) for number in range(4)]
    shorter = [a_talk(number) for number in range(4, 9)]
    for talk in shorter:
        talk["turns"] = talk["turns"][:2]
    talks.cases([*longer, *shorter])
    talks.run()


def test_turns_have_intervals_by_number_where_they_are_enough(talks: Project):
    of_two_lengths(talks)
    by_turn = talks.metrics()["by_turn"]
    counts = {number: group["metrics"]["gold_in_answer"]["n_scored"] for number, group in by_turn.items()}
    assert counts == {"1": 9, "2": 9, "3": 4, "4": 4, "5": 4}
    assert by_turn["2"]["metrics"]["gold_in_answer"]["ci"] is not None
    assert by_turn["3"]["metrics"]["gold_in_answer"]["ci"] is None


def test_the_page_charts_metrics_by_turn_and_joins_no_first_turn_with_later_ones(talks: Project):
    of_two_lengths(talks)
    chart = next(chart for chart in turn_charts(talks.metrics()) if chart.name == "gold_in_answer")
    first, second, third, *_ = chart.points
    assert (first.is_first, second.is_first) == (True, False)
    assert first.words == "turn 1: 1.000, 95 % within 0.664 to 1.000, n 9"
    assert f"{first.x:g} {first.y:g}" not in chart.line
    assert f"{second.x:g} {second.y:g}" in chart.line
    assert second.low is not None
    assert third.low is None
    assert [label.text for label in chart.counts] == ["9", "9", "4", "4", "4"]
    assert chart.remark == "turns 3, 4, 5: fewer than 5, no interval"
    assert "fewer than 5, no interval" in (talks.runs[-1] / "report.html").read_text("utf-8")


def test_a_chart_of_very_long_conversations_has_room_and_says_what_it_leaves_out(talks: Project):
    questions = [f"2 question {number}" for number in range(30)]
    turns = [{"question": each, "gold": {"answer": each}} for each in questions]
    talks.cases([{"id": "long", "turns": turns}])
    talks.run()
    chart = turn_charts(talks.metrics())[0]
    assert len(chart.points) == 12
    assert chart.remark.endswith("18 more in the table")


def test_first_turns_alone_have_no_chart(talks: Project):
    talks.cases([{"id": "one", "turns": [{"question": "2 only", "gold": {"answer": "2 only"}}]}])
    talks.run()
    assert turn_charts(talks.metrics()) == []


def test_the_terminal_tells_first_turns_from_later_ones_in_a_line(talks: Project):
    result = talks.run()
    result.stdout.fnmatch_lines(["first turns → later turns: 8 of 8 → 16 of 32 pass · *gold_in_answer 1.000 → 0.500*"])
