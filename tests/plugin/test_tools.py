"""Tool calls and searches of agents in a run: trajectories of a server, gates, what is shown, and hostile values."""

from __future__ import annotations

import html
import json
import threading
import zlib
from base64 import b64decode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from project import Project

PASSAGES = {
    "returns": ("docs/returns.md", "A return costs 4 euros."),
    "jeju": ("docs/islands.md", "From Jeju it costs 6 euros."),
    "hours": ("docs/hours.md", "The shop opens at 9."),
}


def search(query: str, call_id: str) -> list[dict[str, Any]]:
    """One search of the agent as messages of OpenAI: the call, and its result as JSON."""
    found = [{"rel_path": path, "text": text} for word, (path, text) in PASSAGES.items() if word in query]
    function = {"name": "search", "arguments": json.dumps({"query": query, "page": 1})}
    return [
        {"role": "assistant", "tool_calls": [{"id": call_id, "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": call_id, "content": json.dumps(found)},
    ]


class Agent(BaseHTTPRequestHandler):
    """An agent that searches three times, and deletes the order of whoever asks for it."""

    def do_POST(self) -> None:
        question = json.loads(self.rfile.read(int(self.headers["content-length"])))["question"]
        messages = [{"role": "user", "content": question}]
        for number, query in enumerate(["hours", "hours and returns", "returns to jeju"]):
            messages += search(query, str(number))
        if "order" in question:
            call = {"id": "d", "type": "function", "function": {"name": "delete_order", "arguments": '{"order": 7}'}}
            messages.append({"role": "assistant", "tool_calls": [call]})
            messages.append({"role": "tool", "tool_call_id": "d", "content": "no such order", "status": "error"})
        text = "6 euros."
        body = json.dumps({"answer": text, "messages": [*messages, {"role": "assistant", "content": text}]}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


@pytest.fixture
def agent(project: Project) -> Iterator[Project]:
    """A project whose target is a real server with that agent."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Agent)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    project.configure(f'target = "http://127.0.0.1:{server.server_port}/ask"')
    try:
        yield project
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


def expected(query: Any, **more: Any) -> dict[str, Any]:
    return {"name": "search", "args": {"query": query}, **more}


GOLD = {"gold_supports": [{"rel_path": "docs/islands.md"}]}
JEJU = {"id": "jeju", "question": "What does a return from Jeju cost?", **GOLD}


def test_a_trajectory_of_three_searches_is_scored(agent: Project):
    tools = [expected({"icontains": "JEJU"}), expected({"regex": "^hours"}), {"name": "translate", "optional": True}]
    agent.cases([JEJU | {"expected_tools": tools, "forbidden_tools": ["delete_*"], "max_tool_calls": 4}])
    result = agent.run()
    assert result.ret == 0
    record = agent.records()["jeju"]
    scores = record["scores"]
    assert scores["tools_as_expected"] == 1.0
    assert scores["tool_call_f1"] == pytest.approx(2 * 2 / (2 + 3))
    assert scores["forbidden_tool_called"] == scores["tool_calls_over_limit"] == 0.0
    assert (scores["tool_calls"], scores["tool_error_rate"]) == (3.0, 0.0)
    # The third search alone brings the gold; two of the three ask something else than before.
    assert (scores["search_recall@5"], scores["searches_to_gold"], scores["repeated_searches"]) == (1.0, 3.0, 0.0)
    assert record["tool_calls"][2] == "3 search(query='returns to jeju', page=1) → 2 chunks, gold at rank 2"
    # Without retrieved chunks of its own, an agent retrieved what its searches brought, each once.
    assert [chunk["rel_path"] for chunk in record["retrieved_chunks"]] == [
        "docs/hours.md",
        "docs/returns.md",
        "docs/islands.md",
    ]


def blocks_of(page: str) -> list[Any]:
    """Return the content of a report's blocks, which are compressed."""
    lines = page.partition('id="blocks">')[2].partition("</script>")[0].split("\n")
    texts = [zlib.decompress(b64decode(line)).decode() for line in lines]
    return [json.loads(text) if text[0] in "[{" else text for text in texts]


def test_every_face_shows_what_was_called_and_what_was_not(agent: Project):
    tools = [expected({"icontains": "busan"}, args_match="exact", ignore=["page"])]
    case = JEJU | {"question": "What of my order?", "expected_tools": tools, "forbidden_tools": ["DELETE_*"]}
    agent.cases([case | {"max_tool_calls": 3}])
    result = agent.run("--rageval-run-id", "one")
    assert agent.outcomes() == {"jeju": "failed"}
    result.stdout.fnmatch_lines(
        [
            "tools_as_expected is 0, gate >= 1 (tool_missed)*",
            "*calls      1 search(query='hours', page=1) → 1 chunk, no gold",
            "*4 delete_order(order=7) → failed: no such order",
            '*tools      expected call not made: search(query={"icontains": "busan"})',
            "*tools      delete_order is forbidden by 'DELETE_?'",
        ]
    )
    folder = agent.runs[-1]
    record = agent.records()["jeju"]
    assert record["cause"]["kind"] == "tool_forbidden"
    assert {gate["metric"] for gate in record["verdict"]["failed_gates"]} == {
        "tools_as_expected",
        "forbidden_tool_called",
        "tool_calls_over_limit",
    }
    call = "4 delete_order(order=7) → failed: no such order"
    missing = 'expected call not made: search(query={"icontains": "busan"})'
    said = " ".join(agent.rageval("explain", "one", "jeju").stdout.str().split())
    for words in (call, missing.partition(": ")[2], "2 × 0 matched / (1 expected + 4 calls)", "1 of 4 calls forbidden"):
        assert words in said
    pages = [text for block in blocks_of((folder / "report.html").read_text(encoding="utf-8")) for text in block]
    page = " ".join(html.unescape(str(page)) for page in pages)
    assert call in page
    assert missing in page
    exported = agent.rageval("export", "one", "--format", "json")
    assert exported.ret == 0


def test_a_run_without_such_fields_is_as_before(agent: Project):
    agent.cases([JEJU])
    agent.run()
    assert "added_metrics" not in agent.config()
    assert not {"tool_calls", "search_recall@5"} & set(agent.config()["metrics"])
    assert agent.outcomes() == {"jeju": "passed"}


def test_a_system_that_reports_no_calls_does_not_pass(project: Project):
    project.write("bot.py", "def answer(question):\n    return 'It costs 4 euros.'\n")
    project.cases([{"id": "one", "question": "What?", "expected_tools": [{"name": "search"}]}])
    project.run()
    record = project.records()["one"]
    assert record["outcome"] == "skipped"
    assert "the system reports no tool calls" in record["reason"]
    assert not {"tool_calls", "tool_call_f1", "search_recall@5"} & record["scores"].keys()


def test_the_gates_can_be_lowered_and_switched_off(agent: Project):
    agent.cases([JEJU | {"expected_tools": [expected("nothing of that kind")], "max_tool_calls": 1}])
    agent.run("--rageval-gate", "tools_as_expected off", "--rageval-gate", "tool_calls_over_limit <= 2")
    assert agent.outcomes() == {"jeju": "passed"}
    agent.run("--rageval-gate", "tools_as_expected off", "--rageval-gate", "tool_call_f1 >= 0.5")
    assert agent.outcomes() == {"jeju": "failed"}


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"forbidden_tools": ["^delete"]}, "forbidden_tools?0? is '^delete', no pattern of tools: write a name, with*"),
        ({"expected_tools": [{"nmae": "x"}]}, "expected_tools?0?.nmae is not a known key; did you mean 'name'?"),
        (
            {"expected_tools": [expected({"icontain": "a"})]},
            "*query.icontain is no matcher; did you mean 'icontains'?*",
        ),
        ({"expected_tools": [expected({"regex": "(a"})]}, "*query.regex is no regular expression*"),
        ({"expected_tools": [expected({"llm-rubric": "a"})]}, "*is decided by a judge, which reads answers only*"),
        ({"tools_match": "exact"}, "tools_match says how expected_tools are compared, and there are none*"),
        ({"max_tool_calls": -1}, "max_tool_calls is -1 (a number), expected a whole number of 0 or more"),
    ],
)
def test_what_is_wrong_in_a_file_stops_the_run_before_anything_is_asked(
    project: Project, fields: dict[str, Any], said: str
):
    project.cases([JEJU | fields])
    result = project.run()
    assert result.ret != pytest.ExitCode.OK
    result.stdout.fnmatch_lines([f"*a.jsonl:1:*: case 'jeju': {said}"])
    assert not project.runs


HOSTILE_BOT = """
import os
def answer(question):
    name = "\\x1b[31m<script>alert(1)</script>" + "x" * 5_000
    call = {"name": name, "arguments": {"key": os.environ["BOT_TOKEN"], "long": "y" * 10_000, "<b>": [[1]] * 100}}
    return {"answer": "Yes.", "tool_calls": [call] * 1_000}
"""


def test_hostile_calls_are_bounded_escaped_and_masked(project: Project, monkeypatch: pytest.MonkeyPatch):
    secret = "tok-5f0c2b7d9e31a846"
    monkeypatch.setenv("BOT_TOKEN", secret)
    project.write("bot.py", HOSTILE_BOT)
    tools = [{"name": "search", "args": {"long": {"regex": "(y+)+$"}}}] * 20
    project.cases([{"id": "hostile", "question": "What?", "expected_tools": tools, "max_tool_calls": 5}])
    result = project.run("--rageval-store-full-text", "--rageval-run-id", "one")
    shown = result.stdout.str()
    said = project.rageval("explain", "one", "hostile").stdout.str()
    folder = project.runs[-1]
    pages = [text for block in blocks_of((folder / "report.html").read_text(encoding="utf-8")) for text in block]
    assert not any("<script>alert(1)" in str(page) for page in pages)
    for text in (shown, said):
        assert "\x1b[31m" not in text
        assert "and 980 more calls" in text
        assert max(map(len, text.splitlines())) < 400
    for path in folder.iterdir():
        assert secret not in path.read_text(encoding="utf-8"), path


def test_nothing_of_a_call_is_kept_where_texts_are_left_out(agent: Project):
    agent.cases([JEJU | {"expected_tools": [expected("busan")], "forbidden_tools": ["search"]}])
    agent.run("--rageval-redact")
    for path in agent.runs[-1].iterdir():
        assert "returns to jeju" not in path.read_text(encoding="utf-8"), path
    assert agent.outcomes() == {"jeju": "failed"}


@pytest.mark.child_process
def test_workers_and_portions_find_the_same(agent: Project):
    agent.cases(
        [JEJU | {"id": f"case-{number}", "expected_tools": [expected({"contains": "jeju"})]} for number in (1, 2)]
    )
    agent.run("--rageval-run-id", "alone")
    alone = agent.stable_metrics()
    agent.run("-n", "2", "--rageval-run-id", "workers")
    assert agent.stable_metrics() == alone
    agent.rageval("run", "--run-id", "portions", "--workers", "2")
    assert json.loads(agent.stable_metrics())["metrics"]["searches_to_gold"]["mean"] == 3.0


def test_a_stored_run_is_scored_gated_and_compared(agent: Project):
    agent.cases([JEJU | {"expected_tools": [expected({"contains": "jeju"})]}])
    for run_id in ("one", "two"):
        agent.run("--rageval-run-id", run_id)
    scores = agent.records()["jeju"]["scores"]
    for verb in (["score", "one"], ["gate", "one"], ["compare", "one", "two"]):
        said = agent.rageval(*verb)
        assert "unknown metric" not in said.stdout.str() + said.stderr.str()
    (record,) = agent.results("one")
    assert record["scores"] == scores
