"""Drafts of cases from notes: what stands in them, what a model proposes, and what does not pass."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from typing import Any

import pytest
from fault_server import hangs, status
from judge_server import JudgeServer
from processes import PATIENCE_S, wait_until
from project import Project, a_case, lines_with

from pytest_rageval.cases.loading import load_file
from pytest_rageval.cases.note_folder import note_sections
from pytest_rageval.make.generate import NotePassage, questions_in

FAQ = """# Parcels

## Orders

Q: How long does a parcel take?
A: Three days. On islands it takes five days.

**Q2: Who carries it?**
**A2:** The post carries it.

```
Q: is this code?
A: yes
```

Q: And without an answer?

## What does a return cost?

A return costs **4 euros**. Within the EU it is free.

Ask us otherwise.

## Where?
"""
KOREAN = (
    "# 배송\n\n질문: 배송은 얼마나 걸리나요?\n답변: 사흘 걸립니다.\n\n## 반품은 얼마인가요？\n\n반품은 4유로입니다.\n"
)


def drafted(text: str) -> list[tuple[str, str | None, str, str]]:
    passages = [NotePassage("a.md", section) for section in note_sections(text) if section.text.strip()]
    return [(d.question, d.answer, d.quote, d.passage.section.heading_path) for p in passages for d in questions_in(p)]


def test_questions_with_answers_and_headings_that_ask_become_drafts():
    assert drafted(FAQ) == [
        ("How long does a parcel take?", "Three days. On islands it takes five days.", "Three days.",
         "# Parcels > ## Orders"),
        ("Who carries it?", "The post carries it.", "The post carries it.",
         "# Parcels > ## Orders"),
        ("What does a return cost?", "A return costs **4 euros**. Within the EU it is free.",
         "A return costs **4 euros**.", "# Parcels > ## What does a return cost?"),
    ]  # fmt: skip


def test_an_answer_may_stand_a_line_further_and_a_question_may_go_on():
    text = "Q: How long does\n   a parcel take?\n\nA:\nThree days.\n\nQ: Lost?\n\nNo answer here.\n\nA: Not to this.\n"
    assert [(question, answer) for question, answer, _, _ in drafted(text)] == [
        ("How long does a parcel take?", "Three days.")
    ]


def test_korean_notes_ask_too():
    assert [(question, quote) for question, _, quote, _ in drafted(KOREAN)] == [
        ("배송은 얼마나 걸리나요?", "사흘 걸립니다."), ("반품은 얼마인가요？", "반품은 4유로입니다.")
    ]  # fmt: skip


@pytest.fixture
def noted(project: Project) -> Project:
    project.write("notes/faq.md", FAQ)
    project.write("notes/seoul.md", KOREAN)
    return project


def records(project: Project, name: str = "evalcases/notes.drafts.jsonl") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (project.path / name).read_text("utf-8").splitlines()]


def test_drafts_are_cases_with_a_verified_place_that_no_run_asks(noted: Project):
    noted.cases([a_case("boil")])
    result = noted.rageval("generate", "notes")
    assert result.ret == 0
    assert lines_with(result, "5 new drafts; no run asks them before they are accepted")
    path = noted.path / "evalcases/notes.drafts.jsonl"
    loaded = load_file(path, noted.path)
    assert loaded.problems == ()
    assert [case.question for case in loaded.cases][:2] == ["How long does a parcel take?", "Who carries it?"]
    assert str((loaded.cases[0].gold.supports or ())[0]) == "faq.md > # Parcels > ## Orders"
    assert noted.rageval("cases", "audit", "--docs", "notes", str(path)).ret == 0
    noted.run()
    assert [*noted.records()] == ["boil"]


def test_what_is_asked_already_is_not_drafted_again(noted: Project):
    noted.cases([a_case("there", "how long does a parcel take")])
    assert lines_with(noted.rageval("generate", "notes"), "1 draft dropped: asked already, or nearly")
    before = (noted.path / "evalcases/notes.drafts.jsonl").read_bytes()
    again = noted.rageval("generate", "notes")
    assert lines_with(again, "no new drafts")
    assert (noted.path / "evalcases/notes.drafts.jsonl").read_bytes() == before


def reply(*entries: tuple[str, str]) -> dict[str, Any]:
    return {"questions": [{"question": ask, "key_facts": ["3 days"], "quote": quote} for ask, quote in entries]}


ONE = reply(("How often is machine 0 serviced?", "Machine 0 is serviced every 2 weeks"))


def test_a_model_proposes_questions_whose_quotes_are_verified(project: Project):
    text = "# Parcels\n\n" + "Parcels to the islands travel by ship and take five days in winter, three in summer.\n"
    project.write("notes/a.md", text)
    good = (
        "How long do parcels to the islands take in winter?",
        "Parcels to the islands travel by ship and take five days",
    )
    with JudgeServer(reply(good, ("Who pays?", "The sender pays."), (good[0], good[1]))) as server:
        result = project.rageval("generate", "notes", "--llm", f"openai:m@{server.url}")
    assert result.ret == 0
    assert lines_with(result, "asking the model: 1 request, at a price that is not known")
    assert lines_with(result, "1 draft dropped: what they quote is not in their section")
    assert lines_with(result, "1 draft dropped: asked already, or nearly")
    (record,) = records(project)
    assert (record["question"], record["expected_key_facts"]) == (good[0], ["3 days"])
    assert record["gold_supports"] == [{"rel_path": "a.md", "heading_path": "# Parcels", "snippets": [good[1]]}]
    assert record["metadata"] == {"draft": {"from": "model"}}
    prompt = server.chats[0].json["messages"][-1]["content"]
    assert "Parcels to the islands" in prompt


def sections(project: Project, number: int) -> None:
    for at in range(number):
        text = f"Machine {at} is serviced every {at + 2} weeks by the people in hall {at}."
        project.write(f"notes/{at}.md", f"# Note {at}\n\n{text}\n")


def test_what_was_answered_is_not_paid_for_twice(project: Project):
    sections(project, 4)
    project.configure('target = "bot:answer"\njudge_concurrency = 1\nretries = 0')
    with JudgeServer(ONE, {"questions": []}, status(401)) as server:
        first = project.rageval("generate", "notes", "--llm", f"openai:m@{server.url}")
        assert first.ret == 1
        assert lines_with(first, "stopped: ")
        assert lines_with(first, "the same command goes on from here")
        assert len(records(project)) == 1
        asked = len(server.chats)
        server.replies = ({"questions": []},)
        second = project.rageval("generate", "notes", "--llm", f"openai:m@{server.url}")
        assert lines_with(second, "the model: 2 replies, cost unknown, 2 kept from before")
        assert len(server.chats) == asked + 2


def test_a_dry_run_says_the_cost_and_asks_nothing(project: Project):
    sections(project, 3)
    with JudgeServer() as server:
        result = project.rageval("generate", "notes", "--llm", f"openai:m@{server.url}", "--dry-run")
        assert lines_with(result, "asking the model: 3 requests")
        assert server.chats == []
    assert not (project.path / "evalcases/notes.drafts.jsonl").exists()


@pytest.mark.parametrize(
    "text", ["no JSON", '{"questions": 3}', '{"questions": [7]}', '{"questions": [{"question": "x"}]}']
)
def test_a_reply_that_cannot_be_read_is_counted(project: Project, text: str):
    sections(project, 1)
    with JudgeServer(text) as server:
        result = project.rageval("generate", "notes", "--llm", f"openai:m@{server.url}")
    assert result.ret == 0
    assert lines_with(result, "1 unreadable")
    assert lines_with(result, "no new drafts")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("notes", "-o", "evalcases/a.jsonl"), "drafts stand in a file whose name ends with .drafts.jsonl"),
        (("notes", "--llm", "nobody"), "--llm: no server; write it as openai:MODEL or openai:MODEL@URL"),
        (
            ("notes", "--llm", "openai:m@http://127.0.0.1:9/v1", "--max-cost", "1"),
            "--max-cost: the price of 'm' is not known",
        ),
        (("empty",), "empty: no notes there"),
    ],
)
def test_bad_input_gets_one_line(noted: Project, arguments: tuple[str, ...], line: str):
    (noted.path / "empty").mkdir()
    result = noted.rageval("generate", *arguments)
    assert result.ret == 2
    assert lines_with(result, line)
    assert not lines_with(result, "Traceback")


def test_a_budget_ends_it_and_the_same_command_goes_on(project: Project, monkeypatch: pytest.MonkeyPatch):
    # A server of one's own has no price, and no other one can be asked here.
    monkeypatch.setattr("pytest_rageval.llm.endpoint_options.Tariff.cost", lambda _, tokens, *__: 0.4e-6 * tokens)
    sections(project, 4)
    project.configure('target = "bot:answer"\njudge_concurrency = 1')
    with JudgeServer(ONE, {"questions": []}, usage=(1_000_000, 0)) as server:
        spec = f"openai:m@{server.url}"
        first = project.rageval("generate", "notes", "--llm", spec, "--max-cost", "0.5")
        assert first.ret == 1
        assert lines_with(first, "the model: 2 replies, $0.8000")
        assert lines_with(first, "stopped: as much is spent as --max-cost allows; the same command goes on from here")
        assert len(records(project)) == 1
        second = project.rageval("generate", "notes", "--llm", spec, "--max-cost", "5", "--json")
        assert len(server.chats) == 4
    content = json.loads("\n".join(second.outlines))
    assert content["model"]["requests"] == content["model"]["kept"] == 2
    assert content["new_drafts"] == 0


@pytest.mark.child_process
def test_ctrl_c_keeps_what_was_made_and_says_the_line_that_resumes(project: Project):
    sections(project, 3)
    project.write("notes/faq.md", FAQ)
    project.configure('target = "bot:answer"\njudge_concurrency = 1')
    with JudgeServer(ONE, hangs) as server:
        words = ["generate", "notes", "--llm", f"openai:m@{server.url}"]
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest_rageval", *words], cwd=project.path, stderr=subprocess.PIPE, text=True
        )
        wait_until(lambda: len(server.chats) == 2, "the model is asked twice", process)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 130
        assert f"interrupted; rageval {' '.join(words)} goes on from here" in errors
        kept = {record["question"] for record in records(project)}
        assert {"How often is machine 0 serviced?", "Who carries it?"} <= kept
        server.replies = ({"questions": []},)
        resumed = project.rageval(*words)
    assert resumed.ret == 0
    assert lines_with(resumed, "1 kept from before")
    assert {record["question"] for record in records(project)} == kept
