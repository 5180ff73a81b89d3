"""Follow-ups: the conversations that a model drafts after each question, and what does not pass."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner
from fault_server import status
from judge_server import JudgeServer
from project import Project, lines_with

from pytest_rageval.cases.loading import load_file
from pytest_rageval.cli.main import rageval

NOTE = """# Returns

Q: What does a return cost?
A: A return costs 4 euros.

From Jeju a return costs 6 euros, since it travels by ship. It takes five days in winter.

# Hours

Q: When does the shop open?
A: It opens at nine.
"""
QUOTE = "From Jeju a return costs 6 euros, since it travels by ship."
DRAFTS = "evalcases/notes.drafts.jsonl"


def follow_up(question: str, rewrite: str, quote: str = QUOTE) -> dict[str, Any]:
    return {"question": question, "rewrite": rewrite, "key_facts": ["6 euros"], "quote": quote}


JEJU = follow_up("And from Jeju?", "What does a return from Jeju cost?")
SHIP = follow_up("How does it travel?", "How does a return from Jeju travel?")
INVENTED = follow_up("And from Mars?", "What does a return from Mars cost?", "From Mars it costs 99 euros.")
PLAIN = follow_up("How long does a return from Jeju take?", "How long does a return from Jeju take?")


def by_prompt(*of_returns: dict[str, Any]) -> Any:
    """Reply to questions of the model itself with none, and to a first question about returns with these follow-ups."""

    def reply(request: Any) -> object:
        prompt = request["messages"][-1]["content"]
        if "follow_ups" not in prompt:
            return {"questions": []}
        return {"follow_ups": list(of_returns) if "What does a return cost?" in prompt else []}

    return reply


@pytest.fixture
def noted(project: Project) -> Project:
    project.write("notes/returns.md", NOTE)
    project.configure('target = "bot:answer"\njudge_concurrency = 1\nretries = 0')
    return project


def records(project: Project) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (project.path / DRAFTS).read_text("utf-8").splitlines()]


def generate(project: Project, server: JudgeServer, *more: str) -> Any:
    return project.rageval("generate", "notes", "--llm", f"openai:m@{server.url}", "--follow-ups", *more)


def test_each_question_becomes_a_conversation_with_rewrites_and_verified_places(noted: Project):
    with JudgeServer(says=by_prompt(JEJU, SHIP)) as server:
        result = generate(noted, server)
    assert result.ret == 0, str(result.stderr)
    assert lines_with(result, "2 new drafts, 1 conversation among them; no run asks them before they are accepted")
    talk, single = records(noted)
    assert [turn["question"] for turn in talk["turns"]] == [
        "What does a return cost?",
        "And from Jeju?",
        "How does it travel?",
    ]
    assert [turn.get("rewrite") for turn in talk["turns"]] == [None, JEJU["rewrite"], SHIP["rewrite"]]
    assert talk["turns"][1]["gold_supports"] == [
        {"rel_path": "returns.md", "heading_path": "# Returns", "snippets": [QUOTE]}
    ]
    assert talk["turns"][1]["expected_key_facts"] == ["6 euros"]
    assert talk["turns"][0]["reference"] == "A return costs 4 euros."
    assert single["question"] == "When does the shop open?"
    loaded = load_file(noted.path / DRAFTS, noted.path)
    assert (loaded.problems, [case.turn for case in loaded.cases]) == ((), [1, 2, 3, None])
    assert noted.rageval("cases", "audit", "--docs", "notes", DRAFTS).ret == 0


def test_what_is_invented_repeated_or_no_follow_up_is_dropped(noted: Project):
    with JudgeServer(says=by_prompt(INVENTED, JEJU)) as server:
        assert lines_with(generate(noted, server), "1 draft dropped: what they quote is not in their section")
    (noted.path / DRAFTS).unlink()
    (noted.path / "evalcases/notes.drafts.replies").unlink()
    with JudgeServer(says=by_prompt(PLAIN, follow_up("And?", "What does a return cost?"))) as server:
        result = generate(noted, server)
    assert lines_with(result, "1 follow-up dropped: understood without the question before")
    assert lines_with(result, "1 draft dropped: asked already, or nearly")
    assert "turns" not in records(noted)[0]


def test_nothing_is_asked_twice_and_a_draft_waits_for_its_follow_ups(noted: Project):
    with JudgeServer({"questions": []}, {"follow_ups": [JEJU]}, status(401)) as server:
        stopped = generate(noted, server)
        assert stopped.ret == 1
        assert lines_with(stopped, "1 draft left out: the model was not asked for follow-ups yet")
        assert [len(record.get("turns", ())) for record in records(noted)] == [2]
        asked = len(server.chats)
        server.replies = ({"follow_ups": []},)
        assert generate(noted, server).ret == 0
        assert len(server.chats) == asked + 1, "only what was not answered"
    assert [len(record.get("turns", ())) for record in records(noted)] == [2, 0]


def test_a_dry_run_counts_the_requests_for_follow_ups(noted: Project):
    with JudgeServer() as server:
        result = generate(noted, server, "--dry-run")
        assert server.chats == []
    assert lines_with(result, "asking the model: 6 requests, up to 5 of them for follow-ups")


@pytest.mark.parametrize(
    "entry",
    ["no object", {"question": "And?"}, {"question": 3, "rewrite": "x", "quote": "y"}, {**JEJU, "question": " "}],
)
def test_a_follow_up_that_cannot_be_read_is_counted(noted: Project, entry: Any):
    with JudgeServer(says=by_prompt(entry, JEJU)) as server:
        result = generate(noted, server)
    assert result.ret == 0
    assert lines_with(result, "1 unreadable")
    assert len(records(noted)[0]["turns"]) == 2


def test_follow_ups_need_a_model(noted: Project):
    result = noted.rageval("generate", "notes", "--follow-ups")
    assert result.ret == 2
    assert lines_with(result, "--follow-ups is for a model; name it with --llm")


def test_a_drafted_conversation_is_accepted_as_a_whole(noted: Project, monkeypatch: pytest.MonkeyPatch):
    with JudgeServer(says=by_prompt(JEJU)) as server:
        generate(noted, server)
    monkeypatch.chdir(noted.path)
    shown = CliRunner().invoke(rageval, ["label", DRAFTS, "--plain", "--notes", "notes"], input="\ny\nn\nq\n")
    assert shown.exit_code == 0, shown.output
    assert "Q  And from Jeju?\n   (= What does a return from Jeju cost?)" in shown.output
    accepted = load_file(noted.path / "evalcases/notes.jsonl", noted.path)
    assert [case.question for case in accepted.cases] == ["What does a return cost?", "And from Jeju?"]
    assert not any("draft" in case.tags for case in accepted.cases)
    assert accepted.cases[1].rewrite == JEJU["rewrite"]
