"""A run against a judge's server that thinks aloud, refuses, filters, truncates and errs: what the user sees of each.

    pytest tests/plugin/test_difficult_judge.py -s

prints the page's table as it came. docs/model-judges.md shows the same table, and is held against the run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from fault_server import Connection
from judge_server import JudgeServer
from project import Project

PAGE = Path(__file__).parents[2] / "docs" / "model-judges.md"
GOOD = '{"reasoning": "all there", "supported_claims": ["it boils"], "unsupported_claims": [], "score": 4.5}'


def reply(content: str | None, finish: str = "stop", **message: Any) -> dict[str, Any]:
    said = {"role": "assistant", "content": content, **message}
    return {"model": "judge-1", "choices": [{"index": 0, "message": said, "finish_reason": finish}]}


CALL = {"id": "c1", "type": "function", "function": {"name": "search", "arguments": "{}"}}
SHOWN: Mapping[str, dict[str, Any]] = {
    "thinks aloud before it replies": reply(f'<think>Perhaps {{"score": 1}}? No.</think>{GOOD}'),
    "thinks aloud beside its reply": reply(GOOD, reasoning_content='{"score": 0}'),
    "thinks until its tokens are spent": reply("<think>Let me see. The first claim", "length"),
    "refuses in its own field": reply(None, refusal="I cannot judge this."),
    "refuses in prose": reply("I'm sorry, but I can't help with that."),
    "is cut by a content filter": reply('{"reasoning": "the', "content_filter"),
    "is truncated": reply(GOOD[:40], "length"),
    "calls a tool": reply(None, "tool_calls", tool_calls=[CALL]),
    "sends an empty reply": reply(""),
    "errs inside a 200": {"error": {"message": "Unknown sampler", "code": "invalid_request_error"}},
    "has no money inside a 200": {"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}},
    "errs inside its choice": {"choices": [{"error": {"message": "upstream broke", "code": 502}}]},
    "praises and lists faults": reply(
        '{"reasoning": "fine", "supported_claims": [], "unsupported_claims": ["it boils"], "score": 5}'
    ),
}
"""What the server does, and its reply."""


class Difficult(JudgeServer):
    """Does for each question what the question asks of it."""

    async def _next(self, connection: Connection, shape: object) -> None:
        prompt = connection.request.json["messages"][1]["content"]
        does = next(does for does in SHOWN if f"Q: {does}?" in prompt)
        await connection.reply(200, json.dumps(SHOWN[does]).encode())


@pytest.fixture
def rows(project: Project) -> dict[str, str]:
    """By what the server did, what the run says of it."""
    project.write(
        "talk.py",
        'def answer(question):\n    return {"answer": "It boils.", "abstained": False,\n'
        '            "retrieved_chunks": [{"chunk_id": "c1", "text": "It boils."}]}\n',
    )
    project.cases({"id": f"q{n}", "question": f"Q: {does}?"} for n, does in enumerate(SHOWN))
    with Difficult() as server:
        result = project.run(
            *("--rageval-target", "talk:answer", "--rageval-metrics", "groundedness"),
            *("--rageval-judge", f"openai:judge-1@{server.url}"),
        )
    said = {does: _said(project.records()[f"q{n}"], server.url) for n, does in enumerate(SHOWN)}
    print("\n".join(f"| {does} | {what} |" for does, what in said.items()))
    for n, does in enumerate(SHOWN):
        is_error = project.records()[f"q{n}"]["error"] is not None
        assert any(line.startswith("ERROR") and f"::q{n} " in line for line in result.outlines) is is_error, does
    return said


def _said(record: Mapping[str, Any], url: str) -> str:
    if error := record["error"]:
        prefix = "judge 'judge-1', rubric 'groundedness': no score can be read: "
        message = str(error["message"]).removeprefix(prefix).replace(f"{url}/v1/chat/completions", "URL")
        return f"error `{error['kind']}`: {message}"
    flags = record["judge"]["flags"].get("groundedness", [])
    return f"scored {record['scores']['groundedness']:g}" + "".join(f", flagged: {flag}" for flag in flags)


def test_the_page_shows_what_a_user_sees_of_each_behaviour_of_a_difficult_judge(rows: dict[str, str]):
    table = (
        PAGE.read_text(encoding="utf-8")
        .partition("| the server | the run says |\n| --- | --- |\n")[2]
        .partition("\n\n")[0]
    )
    shown = dict(re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", table, re.MULTILINE))
    assert shown == {does.strip(): what for does, what in rows.items()}


def test_nothing_that_is_no_reply_is_ever_scored(rows: dict[str, str]):
    scored = {does for does, what in rows.items() if what.startswith("scored")}
    assert scored == {
        "thinks aloud before it replies", "thinks aloud beside its reply", "praises and lists faults",
    }  # fmt: skip
