"""Follow-ups asked once more as their rewrites: what a system loses by not resolving the reference."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from processes import ending, kill, wait_until
from project import Project, a_case

from pytest_rageval.comparison.baseline import side_of_run
from pytest_rageval.config.settings_sources import load_settings
from pytest_rageval.render.html.page_run import read_page
from pytest_rageval.render.html.report_page import fragments
from pytest_rageval.runs.reader import open_stored_run
from pytest_rageval.runs.records.result_line import to_line

BOT = '''
"""Finds the note that a question names; each call is a line of asked.txt."""
import json, os

def answer(question, history, conversation_id):
    with open("asked.txt", "a") as file:
        said = [turn["text"] for turn in history]
        file.write(json.dumps({"question": question, "said": said, "id": conversation_id, "pid": os.getpid()}) + "\\n")
    if question == os.environ.get("BROKEN"):
        raise ValueError("the index is gone")
    notes = [word for word in question.split() if word.startswith("note")]
    if not notes and "RESOLVES" in os.environ:
        notes = [word for turn in history for word in turn["text"].split() if word.startswith("note")]
    chunks = [{"rel_path": f"notes/{note}.md", "text": note} for note in notes]
    return {"answer": f"See {notes}.", "abstained": False, "retrieved_chunks": chunks}
'''


def a_talk(number: int, follow_ups: int = 2) -> dict[str, Any]:
    gold = {"gold_supports": [{"rel_path": f"notes/note{number}.md"}]}
    first = {"question": f"what about note{number} ?", **gold}
    later = [
        {"question": f"and that{turn} ?", "rewrite": f"and note{number} {turn} ?", **gold} for turn in range(follow_ups)
    ]
    return {"id": f"talk{number}", "turns": [first, *later]}


TALKS = 6


@pytest.fixture
def talks(project: Project) -> Project:
    project.write("notes_bot.py", BOT)
    project.configure('target = "notes_bot:answer"')
    project.cases([a_talk(number) for number in range(TALKS)])
    return project


def asked(project: Project) -> list[dict[str, Any]]:
    path = project.path / "asked.txt"
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []


def forget(project: Project) -> None:
    (project.path / "asked.txt").unlink(missing_ok=True)


def gap(project: Project, name: str = "rewrite_gap@recall_any@5") -> dict[str, Any]:
    metric: dict[str, Any] = project.metrics()["metrics"][name]
    return metric


def test_a_system_that_does_not_resolve_references_has_a_gap(talks: Project):
    talks.run("--rageval-rewrites")
    metric = gap(talks)
    assert (metric["mean"], metric["rewritten"], metric["in_conversation"]) == (1, 1, 0)
    assert (metric["n_scored"], metric["n_independent"], metric["n_expected"]) == (12, 6, 12)
    assert (metric["better"], metric["scale"]) == ("lower", [-1, 1])
    low, high = metric["ci"]
    assert 0 < low <= high == 1


def test_one_that_resolves_them_has_none(talks: Project, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("RESOLVES", "1")
    talks.run("--rageval-rewrites").assert_outcomes(passed=18)
    assert gap(talks)["mean"] == 0


def test_a_rewrite_is_asked_alone_in_a_conversation_of_its_own(talks: Project):
    talks.cases([a_talk(0)])
    talks.run("--rageval-rewrites")
    calls = {call["question"]: call for call in asked(talks)}
    assert (
        list(calls) == ["what about note0 ?", "and that0 ?", "and note0 0 ?", "and that1 ?", "and note0 1 ?"]
        or len(calls) == len(asked(talks)) == 5
    )
    assert calls["and note0 0 ?"]["said"] == []
    assert len({call["id"] for call in calls.values()}) == 3
    assert len(calls["and that1 ?"]["said"]) == 4


def test_rewrites_move_nothing_else(talks: Project):
    talks.run()
    without = talks.metrics()
    talks.run("--rageval-rewrites")
    with_them = talks.metrics()
    others = {name: value for name, value in with_them["metrics"].items() if "rewrite_gap" not in name}
    operations = ("latency_ms", "requests")
    for metrics in (without["metrics"], others):
        for name in operations:
            metrics.pop(name, None)
    assert others == without["metrics"]
    for name in ("outcomes", "overall_score", "conversations", "by_turn", "total_tests"):
        assert with_them[name] == without[name]


def test_without_the_option_nothing_is_asked_twice(talks: Project):
    talks.run()
    assert len(asked(talks)) == 3 * TALKS
    assert not [name for name in talks.metrics()["metrics"] if "rewrite" in name]
    assert "rewrites" not in talks.metrics()
    assert "rewrites" not in talks.config()["settings"]
    assert not [record for record in talks.results() if "rewrite" in record]


@pytest.mark.parametrize(
    "arguments",
    [
        ["--rageval-gate", "run rewrite_gap@recall@5 <= 0.1"],
        ["--rageval-metrics", "recall_any@5,rewrite_gap@recall@5"],
        ["--rageval-regression", "rewrite_gap@recall@5 rise 0.1"],
    ],
)
def test_a_gap_without_the_option_is_refused_with_its_name(talks: Project, arguments: list[str]):
    result = talks.run(*arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*rewrite_gap@recall*--rageval-rewrites*rewrites = true*"])
    assert not asked(talks)


@pytest.mark.parametrize("in_table", [False, True])
def test_a_run_gate_bounds_the_gap(talks: Project, in_table: bool, monkeypatch: pytest.MonkeyPatch):
    gate = "run rewrite_gap@recall@5 <= 0.1"
    options = ["--rageval-rewrites", "--rageval-gate", gate]
    if in_table:
        talks.configure(f'target = "notes_bot:answer"\nrewrites = true\ngates.run = ["{gate}"]')
        options = []
    result = talks.run(*options)
    result.stdout.fnmatch_lines(["*rewrite_gap@recall_any@5 1.0 > 0.1*"])
    assert result.ret
    monkeypatch.setenv("RESOLVES", "1")
    assert talks.run(*options).ret == 0


def test_a_failed_rewrite_leaves_its_pair_out_and_is_counted(talks: Project, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("BROKEN", "and note0 0 ?")
    result = talks.run("--rageval-rewrites")
    metric = gap(talks)
    assert (metric["n_scored"], metric["n_error"], metric["n_expected"]) == (11, 1, 12)
    assert metric["mean"] == 1
    assert talks.metrics()["outcomes"]["error"] == 0
    assert talks.records()["talk0[2]"]["rewrite"]["error"]["kind"] == "exception"
    result.stdout.fnmatch_lines(["*rewrite_gap leaves out 1 of 12 follow-ups*exception 1*"])


def test_blocked_turns_have_no_pair(talks: Project, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("BROKEN", "and that0 ?")
    talks.cases([a_talk(0), a_talk(1, follow_ups=0)])
    talks.run("--rageval-rewrites")
    # Neither the broken turn nor the blocked one is asked as its rewrite.
    assert [call["question"] for call in asked(talks)].count("and note0 0 ?") == 0
    metric = gap(talks)
    assert (metric["mean"], metric["n_scored"], metric["n_error"], metric["n_expected"]) == (None, 0, 2, 2)


def test_each_trial_is_paired_with_a_rewrite_of_its_own(talks: Project):
    talks.cases([a_talk(0)])
    talks.run("--rageval-rewrites", "--rageval-repeat", "2")
    questions = [call["question"] for call in asked(talks)]
    assert questions.count("and note0 0 ?") == 2
    assert (gap(talks)["mean"], gap(talks)["n_scored"]) == (1, 2)


def test_a_new_failure_is_confirmed_without_its_rewrite(talks: Project, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("RESOLVES", "1")
    talks.cases([a_talk(0)])
    talks.run("--rageval-rewrites", "--rageval-update-baseline")
    monkeypatch.delenv("RESOLVES")
    forget(talks)
    talks.run("--rageval-rewrites").assert_outcomes(passed=1, failed=3)
    questions = [call["question"] for call in asked(talks)]
    assert questions.count("and that0 ?") >= 3
    assert questions.count("and note0 0 ?") == 1


def test_a_single_case_with_a_history_is_a_follow_up_too(talks: Project):
    gold = {"gold_supports": [{"rel_path": "notes/note7.md"}]}
    said = [{"role": "user", "text": "what about note7 ?"}, {"role": "assistant", "text": "fine"}]
    instructed = [{"role": "system", "text": "Be brief."}, *said]
    talks.cases(
        [
            a_case("single", question="and that ?", history=instructed, rewrite="and note7 ?", **gold),
            a_case("first", question="note7 ?", rewrite="what of note7 ?", **gold),
        ]
    )
    talks.run("--rageval-rewrites")
    calls = {call["question"]: call for call in asked(talks)}
    # Instructions are nothing that was said; the first question of a person refers to nothing.
    assert calls["and note7 ?"]["said"] == ["Be brief."]
    assert "what of note7 ?" not in calls
    assert (gap(talks)["mean"], gap(talks)["n_expected"]) == (1, 1)


def test_recorded_answers_are_those_of_the_rewrites_too(talks: Project):
    talks.run("--rageval-rewrites", "--rageval-run-id", "first")
    forget(talks)
    talks.run("--rageval-rewrites", "--rageval-target", "run:first")
    assert not asked(talks)
    assert (gap(talks)["mean"], gap(talks)["n_scored"]) == (1, 12)
    talks.run("--rageval-run-id", "without")
    talks.run("--rageval-rewrites", "--rageval-target", "run:without")
    assert (gap(talks)["mean"], gap(talks)["n_error"]) == (None, 12)


def test_answers_of_a_file_are_never_taken_for_those_to_rewrites(talks: Project):
    talks.cases([a_talk(0)])
    lines = []
    for turn in (1, 2, 3):
        chunks = [{"rel_path": "notes/note0.md", "text": "note0"}]
        lines.append({"id": f"talk0[{turn}]", "answer": "See it.", "retrieved_chunks": chunks})
    talks.write("answers.jsonl", "\n".join(map(json.dumps, lines)))
    talks.run("--rageval-rewrites", "--rageval-target", "answers:answers.jsonl")
    metric = gap(talks)
    assert (metric["mean"], metric["n_error"]) == (None, 2)


def test_scoring_again_needs_no_request(talks: Project):
    talks.run("--rageval-rewrites")
    before = gap(talks)
    forget(talks)
    run = talks.runs[-1].name
    assert talks.rageval("score", run).ret in (0, 1)
    assert gap(talks) == before
    assert talks.rageval("judge", run).ret in (0, 1)
    assert gap(talks) == before
    gated = talks.rageval("gate", run, "--gate", "run rewrite_gap@recall@5 <= 0.1")
    assert gated.ret == 1
    assert not asked(talks)


def test_new_labels_count_on_both_sides(talks: Project):
    talks.run("--rageval-rewrites")
    forget(talks)
    changed = [a_talk(number) for number in range(TALKS)]
    for talk in changed:
        for turn in talk["turns"]:
            turn["gold_supports"] = [{"rel_path": "notes/elsewhere.md"}]
    changed[0]["turns"][1]["rewrite"] = "another question ?"
    talks.cases(changed)
    assert talks.rageval("score", talks.runs[-1].name, "--cases", "evalcases/a.jsonl").ret in (0, 1)
    metric = gap(talks)
    assert (metric["mean"], metric["rewritten"]) == (0, 0)
    # Its answer is one to another question.
    assert (metric["n_scored"], metric["n_error"]) == (11, 1)
    assert not asked(talks)


def test_shards_are_merged_with_their_pairs(talks: Project):
    for number in (1, 2):
        talks.run("--rageval-rewrites", "--rageval-shard", f"{number}/2", "--rageval-run-id", f"s{number}")
    assert len(asked(talks)) == 5 * TALKS
    talks.rageval("merge", "s1", "s2")
    assert (gap(talks)["mean"], gap(talks)["n_scored"], gap(talks)["n_independent"]) == (1, 12, 6)


def test_the_last_failed_turns_are_asked_as_their_rewrites(talks: Project):
    talks.run("--rageval-rewrites")
    forget(talks)
    talks.run("--rageval-rewrites", "--lf", "-k", "talk0")
    # The first turn is asked for the others' sake.
    assert len(asked(talks)) == 5
    assert gap(talks)["n_scored"] == 2


@pytest.mark.parametrize("history", ["live", "gold"])
def test_redacted_runs_keep_the_scores_and_no_text(talks: Project, history: str):
    talks.run("--rageval-rewrites", "--rageval-redact", "--rageval-history", history)
    assert gap(talks)["mean"] == 1
    written = "".join(path.read_text("utf-8") for path in talks.runs[-1].rglob("*") if _is_text(path))
    assert "and note0 0 ?" not in written


def _is_text(path: Path) -> bool:
    return path.suffix in (".jsonl", ".json", ".md", ".html")


def test_explain_and_the_report_show_the_arithmetic_of_a_follow_up(talks: Project):
    talks.run("--rageval-rewrites")
    result = talks.rageval("explain", talks.runs[-1].name, "talk0[2]")
    result.stdout.fnmatch_lines(
        [
            "asked as its rewrite, without history",
            "*question*and note0 0 ?",
            "*retrieved*1. notes/note0.md   gold 1",
            "*rewrite_gap@recall_any@5*1.000 alone - 0.000 in conversation = 1.000",
        ]
    )
    run = open_stored_run(talks.path / "reports", "latest")
    report = read_page(side_of_run(run), None, load_settings(talks.path))
    page = "".join(fragments(report, report.cases))
    assert "Asked as its rewrite" in page
    assert "1.000 alone - 0.000 in conversation = 1.000" in page


@pytest.mark.child_process
@pytest.mark.parametrize("how", [["run", "--workers", "2"], ["-n", "2"]], ids=["workers", "xdist"])
def test_each_rewrite_is_asked_once_by_several_processes(talks: Project, how: list[str]):
    talks.run("--rageval-rewrites")
    alone = gap(talks)
    forget(talks)
    if how[0] == "run":
        talks.rageval(*how, "--rewrites")
    else:
        talks.run("--rageval-rewrites", *how)
    assert len(asked(talks)) == 5 * TALKS
    assert len({call["pid"] for call in asked(talks)}) == 2
    assert gap(talks) == alone


@pytest.mark.child_process
@pytest.mark.parametrize("keeps_threads", [True, False])
def test_a_killed_run_asks_no_answered_rewrite_again(talks: Project, keeps_threads: bool):
    hangs = "question == 'and note3 1 ?' and not os.path.exists('go')"
    waits = f"    if {hangs}:\n        import time\n        time.sleep(600)\n"
    hanging = BOT.replace("    if question == os", f"{waits}    if question == os")
    if not keeps_threads:
        hanging = hanging.replace(", conversation_id)", ")").replace('"id": conversation_id', '"id": ""')
    talks.write("notes_bot.py", hanging)
    process = talks.start("--rageval-rewrites")
    wait_until(lambda: any(call["question"] == "and note5 1 ?" for call in asked(talks)), "the last rewrite", process)
    wait_until(lambda: len(_observed(talks)) == 3 * TALKS - 1, "all other turns", process)
    kill(process)
    ending(process)
    talks.write("go", "")
    forget(talks)
    talks.run("--rageval-rewrites", "--rageval-resume", "latest")
    rewrites = [
        call["question"] for call in asked(talks) if "note" in call["question"] and "what" not in call["question"]
    ]
    assert rewrites == ["and note3 1 ?"]
    assert (gap(talks)["mean"], gap(talks)["n_scored"]) == (1, 12)


def _observed(project: Project) -> list[str]:
    files = [path for run in project.runs for path in run.glob("observations.jsonl")]
    return [line for path in files for line in path.read_text("utf-8").splitlines()]


def test_another_judge_judges_answers_to_rewrites_too(talks: Project):
    wanted = [a_talk(number) for number in range(TALKS)]
    for talk in wanted:
        for turn in talk["turns"]:
            turn["gold"] = {"answer": f"See note{talk['id'][-1]}"}
    talks.cases(wanted)
    talks.run("--rageval-rewrites", "--rageval-gate", "run rewrite_gap@correctness <= 5")
    assert gap(talks, "rewrite_gap@correctness")["mean"] > 0
    forget(talks)
    assert talks.rageval("judge", talks.runs[-1].name, "--judge", "stub:4").ret in (0, 1)
    judged = gap(talks, "rewrite_gap@correctness")
    assert (judged["mean"], judged["rewritten"], judged["n_scored"]) == (0, 4, 12)
    assert not asked(talks)


def test_a_run_without_follow_ups_says_that_no_rewrite_was_asked(talks: Project):
    talks.cases([a_talk(0, follow_ups=0)])
    result = talks.run("--rageval-rewrites")
    result.stdout.fnmatch_lines(["*no case is a follow-up with a `rewrite`*"])


def test_an_odd_rewrite_in_a_record_is_no_traceback(talks: Project):
    talks.run("--rageval-rewrites", "--rageval-run-id", "first")
    path = talks.path / "reports" / "runs" / "first" / "observations.jsonl"
    lines = []
    for line in path.read_text("utf-8").splitlines():
        record = json.loads(line)
        record.pop("checksum")
        if "rewrite" in record:
            record["rewrite"] = {"error": None, "k": None}
        lines.append(to_line(record))
    path.write_text("\n".join(lines) + "\n", "utf-8")
    scored = talks.rageval("score", "first")
    assert scored.ret == 2
    assert "not an observation as a run writes it" in scored.stderr.str()
    talks.run("--rageval-rewrites", "--rageval-target", "run:first")
    assert gap(talks)["n_error"] == 12
