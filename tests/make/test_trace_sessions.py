"""A draft from a trace has what was said before it in the same session."""

from __future__ import annotations

import json
from typing import Any

import pytest
from project import Project


def a_trace(number: int, question: str, answer: str, feedback: str | None = None, **named: str) -> dict[str, Any]:
    """A request of one span, as Phoenix writes it; `number` is its minute."""
    attributes = {"attributes.input.value": question, "attributes.output.value": answer}
    if feedback is not None:
        attributes["attributes.user.feedback"] = feedback
    return {
        "context.trace_id": f"t{number}", "context.span_id": f"s{number}", "parent_id": None, "name": "ask",
        "start_time": 60_000 * number, "end_time": 60_000 * number + 250, **attributes,
        **{f"attributes.{name}": value for name, value in named.items()},
    }  # fmt: skip


def drafts(project: Project, *traces: dict[str, Any]) -> list[dict[str, Any]]:
    project.write("traces.json", json.dumps(traces))
    result = project.rageval("cases", "from-traces", "traces.json", "--format", "openinference")
    assert result.ret == 0, result.stderr
    lines = (project.path / "traces.drafts.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize("name", ["session.id", "gen_ai.conversation.id"])
def test_a_follow_up_has_the_turns_before_it_in_time(project: Project, name: str):
    session = {name: "one"}
    (draft,) = drafts(
        project,
        a_trace(3, "And from Jeju?", "4 euros.", "down", **session),
        a_trace(1, "Hello", "Hello!", **{name: "two"}),
        a_trace(2, "What does a return cost?", "4 euros.", **session),
        a_trace(4, "Thanks", "You are welcome.", **session),
    )
    assert draft["question"] == "And from Jeju?"
    assert draft["history"] == [
        {"role": "user", "text": "What does a return cost?"},
        {"role": "assistant", "text": "4 euros."},
    ]
    assert draft["metadata"]["draft"]["session"] == "one"
    result = project.rageval("cases", "validate", "traces.drafts.jsonl")
    assert "1 case, 0 problems" in str(result.stdout)


def test_the_same_words_after_other_questions_are_other_drafts(project: Project):
    made = drafts(
        project,
        a_trace(1, "A return?", "4 euros.", **{"session.id": "one"}),
        a_trace(2, "And from Jeju?", "4 euros.", "down", **{"session.id": "one"}),
        a_trace(3, "An exchange?", "2 euros.", **{"session.id": "two"}),
        a_trace(4, "And from Jeju?", "2 euros.", "down", **{"session.id": "two"}),
        a_trace(5, "And from Jeju?", "Where?", "down"),
        a_trace(6, "and  from jeju?", "Where?", "down"),
    )
    assert [len(draft.get("history", ())) for draft in made] == [2, 2, 0]
    assert len({draft["id"] for draft in made}) == 3
