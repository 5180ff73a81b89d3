"""Judged metrics of a whole conversation: one value each, at the last turn, from what the system itself said."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from batch_server import BatchServer
from judge_server import JudgeServer
from project import Project

BOT = """
def answer(question, history):
    if "broken" in question:
        raise ValueError("the index is gone")
    if "silent" in question:
        return {"answer": "", "abstained": False, "retrieved_chunks": []}
    said = [turn["text"] for turn in history if turn["role"] == "assistant"]
    return {"answer": f"{question.rstrip('?')}: reply {len(said) + 1}.", "abstained": False, "retrieved_chunks": []}
"""
METRICS = ["knowledge_retention", "conversation_completeness"]
OUTCOME = "The person knows both prices."
TOLD = {
    "id": "told", "expected_outcome": OUTCOME,
    "turns": [{"question": "I live in Jeju. Price?"}, {"question": "And a return?"},
              {"question": "Thanks!", "conversational": True}],
}  # fmt: skip
BARE = {"id": "bare", "turns": [{"question": "Price?"}, {"question": "silent?"}]}
SHORT = {"id": "short", "expected_outcome": OUTCOME, "turns": [{"question": "Price?"}]}
BROKEN = {"id": "broken", "expected_outcome": OUTCOME, "turns": [{"question": "broken?"}, {"question": "And?"}]}


def facts(*kept: bool) -> dict[str, Any]:
    entries = [{"fact": f"fact {at}", "reasoning": "so", "kept": is_kept} for at, is_kept in enumerate(kept, start=1)]
    return {"reasoning": "one is lost", "facts": entries}


def reply(request: Any) -> Any:
    """Judge by what a request holds: two facts where the person lives in Jeju, one of them lost; else none."""
    text = "\n".join(message["content"] for message in request["messages"])
    parts = {
        "knowledge_retention": facts(True, False) if "I live in Jeju" in text else facts(),
        "conversation_completeness": {"reasoning": "half of it", "score": 0.5},
    }
    schema = request["response_format"]["json_schema"]["schema"]
    wanted = schema["properties"]
    if wanted.keys() <= parts.keys():
        return {name: parts[name] for name in wanted}
    return parts["knowledge_retention" if "facts" in wanted else "conversation_completeness"]


@pytest.fixture
def server(project: Project, monkeypatch: pytest.MonkeyPatch) -> Iterator[JudgeServer]:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    project.cases([TOLD, BARE, SHORT, BROKEN, {"id": "single", "question": "Price?", "expected_outcome": OUTCOME}])
    project.write("bot.py", BOT)
    settings = 'target = "bot:answer"\nconfirm = 0\njudge_requests = "together"'
    gates = json.dumps([f"{name} >= 0.7 tag L5_{name}_fail" for name in METRICS])
    table = f"[tool.rageval.metrics]\nenabled = {json.dumps(METRICS)}\n[tool.rageval.gates]\ncase = {gates}"
    project.configure(f"{settings}\n{table}")
    with JudgeServer(says=reply) as judging:
        yield judging


def judged_by(server: JudgeServer) -> tuple[str, str]:
    return "--judge", f"openai:judge-1@{server.url}"


def run_some(project: Project, server: JudgeServer, keyword: str, *more: str) -> None:
    """Run the turns of one conversation in pytest."""
    _, spec = judged_by(server)
    project.run("-q", "-k", keyword, "--rageval-judge", spec, *more)


def scores(project: Project, run_id: str = "") -> dict[str, dict[str, float]]:
    results = project.results(run_id) if run_id else list(project.records().values())
    found: dict[str, dict[str, float]] = {}
    for record in results:
        values = {name: value for name, value in record["scores"].items() if name in METRICS}
        if values:
            found[record["case_key"].partition("::")[2]] = values
    return found


EXPECTED = {
    "told[3]": {"knowledge_retention": 0.5, "conversation_completeness": 0.5},
    "short[1]": {"conversation_completeness": 0.5},
}


def test_the_last_turn_has_the_value_of_its_conversation(project: Project, server: JudgeServer):
    result = project.rageval("run", *judged_by(server), "--run-id", "one")
    assert result.ret == 1, str(result.stdout)
    assert scores(project, "one") == EXPECTED
    records = {record["case_key"].partition("::")[2]: record for record in project.results("one")}
    skipped = {key: record["skipped_metrics"] for key, record in records.items()}
    assert skipped["told[1]"]["knowledge_retention"] == "the last turn of the conversation has this score"
    assert skipped["single"]["conversation_completeness"] == "the case is no turn of a conversation"
    assert skipped["short[1]"]["knowledge_retention"] == "the person said nothing before the last turn"
    assert skipped["bare[2]"] == {
        "knowledge_retention": "the person told nothing that could be kept in mind",
        "conversation_completeness": "the conversation has no expected_outcome",
        **{name: why for name, why in skipped["bare[2]"].items() if name not in METRICS},
    }
    assert (records["broken[2]"]["outcome"], records["broken[2]"]["scores"]) == ("error", {})
    assert records["broken[2]"]["error"]["kind"] == "blocked"
    assert records["told[3]"]["outcome"] == "failed", "small talk at the end is gated by the whole conversation"
    assert records["told[3]"]["score_details"]["knowledge_retention"] == {"told": 2, "lost": ["fact 2"]}
    assert len(server.chats) == 3, "one request for both rubrics of a conversation"
    assert project.metrics()["metrics"]["conversation_completeness"]["n_scored"] == 2
    assert not [name for name in project.metrics()["metrics"] if name.startswith("turn_decay@conversation")]
    explained = str(project.rageval("explain", "one", "evalcases/a.jsonl::told[3]").stdout)
    assert "knowledge_retention" in explained
    assert "fact 2" in explained


def test_the_judge_is_shown_the_whole_conversation_as_the_system_led_it(project: Project, server: JudgeServer):
    run_some(project, server, "told")
    (chat,) = server.chats
    text = "\n".join(message["content"] for message in chat.json["messages"])
    for said in ("I live in Jeju. Price: reply 1.", "And a return: reply 2.", "Thanks!: reply 3.", OUTCOME):
        assert said in text


def test_other_outcomes_and_other_turns_are_judged_anew_equal_ones_are_in_the_cache(
    project: Project, server: JudgeServer
):
    project.cases([SHORT])
    project.rageval("run", *judged_by(server))
    project.rageval("run", *judged_by(server))
    assert len(server.chats) == 1
    project.cases([SHORT | {"expected_outcome": "The person knows one price."}])
    project.rageval("run", *judged_by(server), "--run-id", "other")
    assert len(server.chats) == 2
    project.cases([SHORT])
    project.rageval("run", *judged_by(server), "--run-id", "same")
    compared = json.loads(str(project.rageval("compare", "other", "same", "--json").stdout))
    assert "conversation_completeness" not in json.dumps(compared.get("metrics")) or compared["n_paired"] == 0


def test_references_as_history_are_no_conversation_of_the_system(project: Project, server: JudgeServer):
    run_some(project, server, "told", "--rageval-history", "gold", "--rageval-run-id", "gold")
    assert scores(project, "gold") == {}
    assert server.chats == []
    skipped = project.results("gold")[2]["skipped_metrics"]
    assert skipped["knowledge_retention"].startswith("the earlier replies are references")
    project.rageval("judge", "gold", *judged_by(server))
    assert (server.chats, scores(project, "gold")) == ([], {}), "nor from the records"


def test_a_stored_run_is_judged_again_scored_again_and_gated_again(project: Project, server: JudgeServer):
    project.rageval("run", "--judge", "none", "--run-id", "one")
    assert scores(project, "one") == {}
    project.rageval("judge", "one", *judged_by(server))
    assert scores(project, "one") == EXPECTED
    asked = len(server.chats)
    project.rageval("score", "one")
    assert (scores(project, "one"), len(server.chats)) == (EXPECTED, asked)
    held = project.rageval("gate", "one", "--gate", "conversation_completeness >= 0.4")
    failed = project.rageval("gate", "one", "--gate", "run conversation_completeness >= 0.6")
    assert "conversation_completeness" not in str(held.stdout).partition("fail")[2]
    assert failed.ret == 1


def test_shards_come_to_the_same(project: Project, server: JudgeServer):
    for shard in ("1/2", "2/2"):
        project.rageval("run", *judged_by(server), "--shard", shard, "--run-id", f"part-{shard[0]}")
    merged = project.rageval("merge", "part-1", "part-2", "--run-id", "whole")
    assert merged.ret in (0, 1), str(merged.stderr)
    assert scores(project, "whole") == EXPECTED
    assert len(server.chats) == 3


def test_a_judge_that_cannot_say_makes_an_error_and_no_score(project: Project, server: JudgeServer):
    server.says = lambda _: {"facts": "none", "score": "good"}
    run_some(project, server, "short", "--rageval-run-id", "one")
    (record,) = project.results("one")
    assert (record["outcome"], scores(project, "one")) == ("error", {})


def test_a_heuristic_judge_has_no_value_and_says_why(project: Project, server: JudgeServer):
    project.run("-q", "-k", "told", "--rageval-run-id", "one")
    skipped = project.results("one")[2]["skipped_metrics"]
    assert skipped["knowledge_retention"] == "no judge scored this"
    assert server.chats == []


def test_people_label_conversations_of_a_run(project: Project, server: JudgeServer):
    project.rageval("run", *judged_by(server), "--run-id", "one")
    labels = [
        {"run": "one", "case_key": f"evalcases/a.jsonl::{case}", "human_score": 0.5} for case in ("told[3]", "short[1]")
    ]
    project.write("labels.jsonl", "".join(json.dumps(label) + "\n" for label in labels))
    asked = len(server.chats)
    calibrated = project.rageval(
        "calibrate",
        "labels.jsonl",
        "--rubric",
        "conversation_completeness",
        "--judge-cache",
        "off",
        "--json",
        *judged_by(server),
    )
    assert calibrated.ret == 0, str(calibrated.stderr)
    assert json.loads(str(calibrated.stdout))["judge"]["models"] == ["judge-1"]
    assert len(server.chats) == asked + 2
    assert "I live in Jeju" in json.dumps(server.chats[-2].json) + json.dumps(server.chats[-1].json)


@pytest.mark.child_process
def test_workers_come_to_the_same_and_a_resumed_run_asks_nothing_twice(project: Project, server: JudgeServer):
    _, spec = judged_by(server)
    project.run_process("-q", "-n", "2", "--rageval-judge", spec, "--rageval-run-id", "one")
    assert scores(project, "one") == EXPECTED
    asked = len(server.chats)
    assert asked == 3
    resumed = project.run("-q", "--rageval-judge", spec, "--rageval-resume")
    assert (scores(project), len(server.chats)) == (EXPECTED, asked), str(resumed.stdout)


def test_a_batch_judges_whole_conversations(project: Project, server: JudgeServer):
    project.rageval("run", "--judge", "none", "--run-id", "one")
    with BatchServer(score=1, says=reply) as batches:
        submitted = project.rageval("judge", "one", "--judge", f"openai:judge-1@{batches.url}/v1", "--batch")
        assert submitted.ret == 0, str(submitted.stderr)
        batches.is_ready = True
        project.rageval("judge", "one", "--collect")
        assert batches.chats == []
    assert scores(project, "one")["told[3]"]["conversation_completeness"] > 0
