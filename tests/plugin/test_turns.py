"""Conversations as a user runs them: each turn a test, its history the same however it was selected."""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import pytest
from processes import ending, kill, wait_until
from project import Project, a_case
from thread_bot import BOT


def a_talk(id: str, *questions: str, **fields: Any) -> dict[str, Any]:
    """A conversation whose turns pass, if the bot has as many turns before them as it should."""
    turns = [
        {"question": question, "gold": {"answer": f"{question} is number {number}."}}
        for number, question in enumerate(questions, 1)
    ]
    return {"id": id, "turns": turns, **fields}


TALKS = [a_talk(f"talk{number}", *(f"{word}{number}" for word in ("alpha", "beta", "gamma"))) for number in range(4)]


DIVIDING = """
def pytest_xdist_make_scheduler(config, log):
    from xdist.scheduler import LoadScheduling
    return LoadScheduling(config, log)
"""
"""A scheduler of the project's own, which knows no conversations."""
UNEVEN = [a_talk("long", *(f"question{number}" for number in range(5))), *TALKS]
"""Turns whose half is amid a conversation."""


@pytest.fixture
def threads(project: Project) -> Project:
    project.write("threads.py", BOT)
    project.configure('target = "threads:answer"')
    project.cases(TALKS)
    return project


def asked(project: Project) -> list[dict[str, Any]]:
    lines = (project.path / "asked.txt").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def histories(project: Project) -> dict[str, Any]:
    """What each turn was asked after, by its key, as the last run has recorded it."""
    lines = [json.loads(line) for line in (project.runs[-1] / "observations.jsonl").read_text("utf-8").splitlines()]
    return {line["case_key"]: line["dialogue"]["history"] for line in lines if line.get("dialogue")}


def assert_in_order(project: Project) -> None:
    """Each conversation was asked by one process, in the order of its turns, with what it said as history."""
    places: Mapping[str, list[dict[str, Any]]] = defaultdict(list)
    for call in asked(project):
        places[call["id"]].append(call)
    for calls in places.values():
        assert len({call["pid"] for call in calls}) == 1
        said: list[str] = []
        for call in calls:
            assert call["thread"] == said == call["history"]
            said += [call["question"], f"{call['question']} is number {len(said) // 2 + 1}."]


def test_each_turn_is_a_test_with_what_was_said_before(threads: Project):
    result = threads.run("-v")
    result.assert_outcomes(passed=12)
    result.stdout.fnmatch_lines(["evalcases/a.jsonl::talk0[[]2] PASSED*"])
    assert_in_order(threads)
    assert len(asked(threads)) == 12
    record = threads.records()["talk0[2]"]
    assert (record["conversation"], record["turn"], record["case_key"]) == ("talk0", 2, "evalcases/a.jsonl::talk0[2]")
    said = [{"role": "user", "text": "alpha0"}, {"role": "assistant", "text": "alpha0 is number 1."}]
    assert histories(threads)["evalcases/a.jsonl::talk0[2]"] == said


@pytest.mark.child_process
@pytest.mark.parametrize("dist", ["", "load", "worksteal", "loadfile", "loadscope", "loadgroup"])
def test_workers_keep_a_conversation_together(threads: Project, dist: str):
    threads.cases(UNEVEN)
    threads.run("-n", "2", *(["--dist", dist] if dist else [])).assert_outcomes(passed=17)
    assert len(asked(threads)) == 17
    assert_in_order(threads)


@pytest.mark.child_process
def test_a_scheduler_that_divides_a_conversation_changes_no_history(threads: Project):
    threads.run().assert_outcomes(passed=12)
    whole = histories(threads)
    (threads.path / "asked.txt").unlink()
    threads.write("conftest.py", DIVIDING)
    threads.run("-n", "2").assert_outcomes(passed=12)
    assert len(asked(threads)) > 12
    assert_in_order(threads)
    assert histories(threads) == whole


@pytest.mark.parametrize("selection", [["-k", "talk1 and turn3"], ["evalcases/a.jsonl::talk1[3]"]])
def test_a_selected_turn_is_asked_after_the_others_which_are_not_scored(threads: Project, selection: list[str]):
    threads.run().assert_outcomes(passed=12)
    whole = histories(threads)
    (threads.path / "asked.txt").unlink()
    threads.run(*selection).assert_outcomes(passed=1, deselected=11 if selection[0] == "-k" else 0)
    assert [call["question"] for call in asked(threads)] == ["alpha1", "beta1", "gamma1"]
    assert_in_order(threads)
    assert list(threads.records()) == ["talk1[3]"]
    assert histories(threads) == {"evalcases/a.jsonl::talk1[3]": whole["evalcases/a.jsonl::talk1[3]"]}


def test_the_last_failed_turn_has_the_history_of_the_whole_run(threads: Project):
    wrong = json.loads(json.dumps(TALKS))
    wrong[2]["turns"][1]["gold"]["answer"] = "42 kilograms"
    threads.cases(wrong)
    threads.run().assert_outcomes(passed=11, failed=1)
    whole = histories(threads)
    (threads.path / "asked.txt").unlink()
    threads.run("--lf").assert_outcomes(failed=1)
    assert [call["question"] for call in asked(threads)] == ["alpha2", "beta2"]
    assert histories(threads) == {"evalcases/a.jsonl::talk2[2]": whole["evalcases/a.jsonl::talk2[2]"]}


def test_the_order_of_the_tests_changes_no_history_and_asks_nothing_twice(threads: Project):
    threads.run().assert_outcomes(passed=12)
    whole = histories(threads)
    (threads.path / "asked.txt").unlink()
    threads.write("conftest.py", "def pytest_collection_modifyitems(items):\n    items.reverse()\n")
    threads.run().assert_outcomes(passed=12)
    assert len(asked(threads)) == 12
    assert histories(threads) == whole


def test_shards_divide_conversations_and_no_turns(threads: Project):
    for number in (1, 2):
        threads.run("--rageval-shard", f"{number}/2", "--rageval-run-id", f"s{number}")
    assert len(asked(threads)) == 12
    conversations = [{record["conversation"] for record in threads.results(run)} for run in ("s1", "s2")]
    assert not conversations[0] & conversations[1]
    assert len(conversations[0] | conversations[1]) == 4


def test_each_trial_is_a_conversation_of_its_own(threads: Project):
    threads.cases(TALKS[:1])
    threads.run("--rageval-repeat", "3").assert_outcomes(passed=3)
    assert len(asked(threads)) == 9
    assert len({call["id"] for call in asked(threads)}) == 3
    assert_in_order(threads)


def test_turns_after_an_error_are_blocked_and_counted_once(threads: Project):
    threads.cases([*TALKS[:1], a_talk("gone", "one", "broken", "three", "four", "five")])
    result = threads.run()
    result.assert_outcomes(passed=4, errors=4)
    assert [call["question"] for call in asked(threads) if "a0" not in call["question"]] == ["one", "broken"]
    blocked = threads.records()["gone[4]"]
    assert (blocked["error"]["kind"], blocked["error"]["turn"]) == ("blocked", 2)
    assert "turn 2 ended in an error, so this turn was not asked: exception: " in blocked["error"]["message"]
    assert blocked["cause"] == {"kind": "blocked", "detail": "turn 2"}
    assert "Fails the build: 1 conversation broke at turn 2; 3 turns blocked. 4 of 8 pass" in result.stdout.str()
    metrics = threads.metrics()
    assert metrics["conversations"] == {
        "count": 2,
        "turns": 8,
        "broken": {"evalcases/a.jsonl::gone": 2},
        "blocked_turns": 3,
        "broken_by_error": 1,
        "pass_rate_ci": None,
    }
    # Three of them were never asked.
    assert metrics["metrics"]["error_rate"]["mean"] == pytest.approx(1 / 5)


@pytest.mark.parametrize("rule", ["continue", "stop"])
def test_a_failed_gate_ends_a_conversation_only_where_it_should(threads: Project, rule: str):
    talk = a_talk("fails", "one", "two", "three")
    talk["turns"][1]["gold"]["answer"] = "42 kilograms"
    threads.cases([talk])
    threads.configure(f'target = "threads:answer"\non_turn_failure = "{rule}"')
    result = threads.run()
    if rule == "continue":
        result.assert_outcomes(passed=2, failed=1)
        assert len(asked(threads)) == 3
    else:
        result.assert_outcomes(passed=1, failed=1, errors=1)
        assert len(asked(threads)) == 2
        assert threads.records()["fails[3]"]["error"]["turn"] == 2
        assert "1 conversation broke at turn 2; 1 turn blocked, 1 case fails" in result.stdout.str()


def test_a_rerun_is_a_new_conversation(threads: Project):
    threads.write(
        "threads.py", BOT + "\nfirst = answer\ndef answer(question, conversation_id, request):\n"
        "    if question == 'beta0' and not os.path.exists('again'):\n"
        "        open('again', 'w').close()\n"
        "        raise ValueError('once')\n"
        "    return first(question, conversation_id, request)\n"
    )  # fmt: skip
    threads.cases([a_talk("talk0", "alpha0", "beta0")])
    threads.run("-p", "rerunfailures", "--reruns", "1").assert_outcomes(passed=2)
    assert [call["question"] for call in asked(threads)] == ["alpha0", "alpha0", "beta0"]
    assert_in_order(threads)


def test_gold_history_feeds_the_references_back(threads: Project):
    wrong = json.loads(json.dumps(TALKS[:1]))
    wrong[0]["turns"][0]["gold"]["answer"] = "The reference."
    threads.cases(wrong)
    threads.run("--rageval-history", "gold")
    calls = {call["question"]: call for call in asked(threads)}
    assert calls["beta0"]["history"] == ["alpha0", "The reference."]
    # Each turn is judged alone: the bot remembers none of the others.
    assert len({call["id"] for call in calls.values()}) == 3
    assert {tuple(call["thread"]) for call in calls.values()} == {()}


def test_live_and_gold_history_are_compared_turn_by_turn(threads: Project):
    threads.write(
        "stateless.py",
        "def answer(question, history):\n    return history[-1]['text'] if history else 'No idea at all'\n",
    )
    threads.configure('target = "stateless:answer"')
    threads.cases(
        [
            {
                "id": "talk",
                "turns": [{"question": "a", "reference": "blue whale"}, {"question": "b", "reference": "blue whale"}],
            }
        ]
    )
    threads.run("--rageval-run-id", "live").assert_outcomes(failed=2)
    threads.run("--rageval-run-id", "gold", "--rageval-history", "gold").assert_outcomes(failed=1, passed=1)
    compared = threads.rageval("compare", "live", "gold", "--format", "json")
    assert [case["case_key"] for case in json.loads(compared.stdout.str())["flipped_to_pass"]] == [
        "evalcases/a.jsonl::talk[2]"
    ]
    shown = threads.rageval("compare", "live", "gold").stdout.str()
    assert "history  live  → gold" in shown
    assert "errors carry over: 1 later turn fails after the system's own answers alone: talk[2]" in shown
    turned = threads.rageval("compare", "gold", "live").stdout.str()
    assert "errors carry over: 1 later turn fails after the system's own answers alone: talk[2]" in turned
    same = threads.rageval("compare", "live", "live").stdout.str()
    assert "carr" not in same


@pytest.mark.child_process
def test_a_killed_run_goes_on_with_the_conversation(threads: Project):
    threads.cases([a_talk("talk0", "alpha0", "beta0", "slow", "delta0"), *TALKS[1:]])
    process = threads.start()

    def has_results() -> bool:
        files = [path for run in threads.runs for path in run.glob("results.jsonl")]
        return any(path.read_bytes().count(b"\n") >= 2 for path in files)

    wait_until(has_results, "two results", process)
    kill(process)
    ending(process)
    threads.write("fast", "")
    (threads.path / "asked.txt").unlink()
    threads.run("--rageval-resume", "latest").assert_outcomes(passed=13)
    assert_in_order(threads)
    said = [turn["text"] for turn in histories(threads)["evalcases/a.jsonl::talk0[4]"] if turn["role"] == "user"]
    assert said == ["alpha0", "beta0", "slow"]
    assert len(threads.records()) == 13


@pytest.mark.child_process
@pytest.mark.parametrize("how", [[], ["--workers", "2"]], ids=["one process", "workers"])
def test_the_command_keeps_a_conversation_together(threads: Project, how: list[str]):
    threads.cases(UNEVEN)
    assert threads.rageval("run", *how).ret == 0
    assert len(asked(threads)) == 17
    assert_in_order(threads)
    assert {record["outcome"] for record in threads.results()} == {"passed"}


@pytest.mark.child_process
def test_a_worker_that_dies_leaves_its_conversations_whole(threads: Project):
    threads.cases([*TALKS[:2], a_talk("dead", "one", "deadly", "three"), *TALKS[2:]])
    threads.run("-n", "2")
    outcomes = threads.outcomes()
    assert [id for id, outcome in outcomes.items() if outcome != "passed" and not id.startswith("dead")] == []
    assert outcomes["dead[2]"] == "error"
    assert len(outcomes) == 15
    assert_in_order(threads)


def test_a_function_of_a_question_alone_is_named_with_a_remedy(project: Project):
    project.cases([a_talk("talk", "boiling?", "freezing?")])
    result = project.run()
    said = " ".join(result.stdout.str().split())
    assert (
        "1 question was asked without what was said before: bot:answer takes a question alone; add a parameter" in said
    )


def test_small_talk_needs_no_gold_and_no_gate(project: Project):
    turns = [{"question": "What is the boiling point?"}, {"question": "Thanks!", "conversational": True}]
    project.cases([{"id": "talk", "turns": turns}])
    project.write("polite.py", "def answer(question, history):\n    return 'I am sorry, I do not know that.'\n")
    project.configure('target = "polite:answer"')
    result = project.run()
    assert project.outcomes() == {"talk[1]": "failed", "talk[2]": "passed"}
    assert "examined by no gate: talk[2]" not in " ".join(result.stdout.str().split())


def test_a_conversation_and_a_turn_are_words_of_the_filter(threads: Project):
    threads.cases([*TALKS[:2], a_case("alone", "x?")])
    threads.run("--rageval-run-id", "whole")
    for expression, count in {"conversation:talk1": 3, "turn:2": 2, "conversation:talk0 turn:1": 1}.items():
        threads.rageval("run", "--only", expression, "--from", "whole", "--run-id", f"of{count}")
        assert len(threads.results(f"of{count}")) == count


def test_a_test_of_the_project_evaluates_turns_with_their_history(threads: Project):
    threads.cases(TALKS[:2])
    threads.own_test("evalcases/a.jsonl", "rageval.evaluate(eval_case).assert_gates()")
    threads.run("test_own.py").assert_outcomes(passed=6)
    assert_in_order(threads)
    threads.run("test_own.py", "-k", "talk1 and turn2").assert_outcomes(passed=1)
    assert_in_order(threads)


def test_a_script_evaluates_conversations(threads: Project):
    threads.write(
        "script.py",
        "import json, pytest_rageval, threads\n"
        "cases = [json.loads(line) for line in open('evalcases/a.jsonl')]\n"
        "run = pytest_rageval.evaluate(cases, threads.answer)\n"
        "print(run.outcomes['passed'], [record['turn'] for record in run.results()][:3])\n",
    )
    result = threads.process(sys.executable, "script.py")
    assert "12 [1, 2, 3]" in result.stdout.str()
    assert_in_order(threads)


def test_junit_names_a_turn_as_pytest_does(threads: Project):
    threads.cases(TALKS[:1])
    threads.run("--junitxml", "junit.xml")
    assert 'name="talk0[2]"' in (threads.path / "junit.xml").read_text("utf-8")


def test_a_hook_that_changes_a_turn_changes_what_later_turns_are_asked_after(threads: Project):
    threads.cases(TALKS[:1])
    threads.write(
        "conftest.py",
        "import dataclasses\n"
        "def pytest_rageval_case(case):\n"
        "    return dataclasses.replace(case, question='Changed') if case.turn == 1 else None\n",
    )
    threads.run("-k", "turn3")
    assert [call["question"] for call in asked(threads)] == ["Changed", "beta0", "gamma0"]


@pytest.mark.child_process
def test_workers_finish_a_run_whose_conversation_was_cut_off(threads: Project):
    """A system without threads has its answers of before as history."""
    threads.write("plain.py", PLAIN)
    threads.configure('target = "plain:answer"')
    threads.cases([a_talk("talk0", "alpha0", "beta0", "slow", "delta0"), *TALKS[1:]])
    process = threads.start_process("-m", "pytest_rageval", "run", "--workers", "2")

    def has_results() -> bool:
        return any((path / "results.jsonl").is_file() and len(threads.results(path.name)) >= 2 for path in threads.runs)

    wait_until(lambda: (threads.path / "waits").exists() and has_results(), "the slow turn", process)
    kill(process)
    ending(process)
    threads.write("fast", "")
    threads.rageval("run", "--workers", "2", "--resume", "latest")
    said = [turn["text"] for turn in histories(threads)["evalcases/a.jsonl::talk0[4]"]]
    assert said == ["alpha0", "alpha0 is number 1.", "beta0", "beta0 is number 2.", "slow", "slow is number 3."]
    assert len(threads.records()) == 13


PLAIN = """
import os, time

def answer(question, history):
    if "slow" in question and not os.path.exists("fast"):
        open("waits", "w").close()
        time.sleep(600)
    return f"{question} is number {len(history) // 2 + 1}."
"""


def test_a_turn_that_newly_fails_is_confirmed_in_conversations_of_its_own(threads: Project):
    threads.cases(TALKS[:2])
    threads.run("--rageval-update-baseline").assert_outcomes(passed=6)
    (threads.path / "asked.txt").unlink()
    worse = BOT.replace("    THREADS[", "    if question == 'beta0':\n        text = 'Nobody knows.'\n    THREADS[")
    threads.write("threads.py", worse)
    threads.run("--rageval-confirm", "2").assert_outcomes(passed=5, failed=1)
    confirming = [call for call in asked(threads) if call["question"] == "beta0"]
    assert len({call["id"] for call in confirming}) == len(confirming) == 3
    assert [call["thread"] for call in confirming] == [["alpha0", "alpha0 is number 1."]] * 3
