"""Replies of judges: those of the documents give their scores, and those of a difficult server are told apart."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from fault_server import Connection
from judge_server import JudgeServer
from project import Project, a_case

pytestmark = pytest.mark.reliability("judge replies", "replies in a run", costs="false green")

REPLIES: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "data/founding/judge_replies.json").read_text(encoding="utf-8")
)
OF_TWO_SOURCES = """
def answer(question):
    chunks = [{"chunk_id": name, "rel_path": f"{name}.md", "text": "It boils at 100 degrees."} for name in "ab"]
    return {"answer": "It boils at 100 degrees [1].", "retrieved_chunks": chunks}
"""


@pytest.fixture
def project_of_two(project: Project) -> Project:
    project.write("talk.py", OF_TWO_SOURCES)
    project.configure('target = "talk:answer"')
    project.cases([a_case("boil")])
    return project


def judged(project: Project, metrics: str, *replies: object) -> dict[str, Any]:
    """The case's record, its answer judged by a server that replies so, after a word that it is no abstention."""
    with JudgeServer(*replies) as server:
        project.run("--rageval-judge", f"openai:judge-1@{server.url}", "--rageval-metrics", metrics)
    return project.records()["boil"]


@pytest.mark.parametrize("rubric", ["groundedness", "correctness", "reference_match"])
def test_a_score_is_any_number_of_the_scale(project_of_two: Project, rubric: str):
    shown = REPLIES[rubric]
    record = judged(project_of_two, rubric, REPLIES["abstention"]["reply"], shown["reply"])
    assert record["error"] is None
    assert record["scores"][rubric] == shown["score"]


def test_the_classifier_of_abstention(project_of_two: Project):
    record = judged(project_of_two, "abstention_accuracy", REPLIES["abstention"]["reply"])
    assert record["abstention"]["abstained"] is REPLIES["abstention"]["abstained"]
    assert record["abstention"]["decided_by"] == "judge"


def test_the_composite_of_five_dimensions(project_of_two: Project):
    shown = REPLIES["composite"]
    record = judged(project_of_two, "composite", REPLIES["abstention"]["reply"], shown["reply"])
    assert record["scores"]["composite"] == pytest.approx(shown["composite"], abs=1e-12)


def test_a_rubric_may_insist_on_whole_points(project_of_two: Project):
    from importlib.resources import files

    shipped = files("pytest_rageval.judges.rubrics").joinpath("groundedness.toml").read_text(encoding="utf-8")
    project_of_two.write("own/groundedness.toml", shipped.replace("scale = [0, 5]", "scale = [0, 5]\nstep = 1"))
    project_of_two.configure('target = "talk:answer"\nrubrics = "own"')
    record = judged(project_of_two, "groundedness", REPLIES["abstention"]["reply"], REPLIES["groundedness"]["reply"])
    assert record["error"]["kind"] == "judge_invalid_reply"
    assert '"score" is 4.5, expected a whole number' in record["error"]["message"]


def test_a_stub_of_up_to_1_is_a_share_of_each_scale(project_of_two: Project):
    project_of_two.run("--rageval-judge", "stub:0.9", "--rageval-metrics", "groundedness,relevance")
    scores = project_of_two.records()["boil"]["scores"]
    assert (scores["groundedness"], scores["relevance"]) == (4.5, 0.9)


PLAIN = """
import pytest

class Examiner:
    {scale}
    async def score_groundedness(self, answer, context):
        return {score}

    async def score_relevance(self, answer, question):
        return 0.95

@pytest.fixture(scope="session")
def rag_judge():
    return Examiner()
"""


def test_a_plain_object_scores_from_0_to_1_and_95_hundredths_pass_a_gate_of_70(project_of_two: Project):
    project_of_two.write("conftest.py", PLAIN.format(scale="", score="0.95"))
    result = project_of_two.run("--rageval-metrics", "groundedness,relevance", "--rageval-gate", "groundedness >= 70%")
    result.assert_outcomes(passed=1)
    assert project_of_two.records()["boil"]["scores"] == {
        "groundedness": 4.75, "relevance": 0.95, "over_abstention": 0.0,
    }  # fmt: skip


def test_a_plain_object_that_goes_further_without_saying_so_is_told_to_state_its_scale(project_of_two: Project):
    project_of_two.write("conftest.py", PLAIN.format(scale="", score="4.5"))
    project_of_two.run("--rageval-metrics", "groundedness").assert_outcomes(errors=1)
    assert "give it an attribute, as in scale = (0, 5)" in project_of_two.records()["boil"]["error"]["message"]
    project_of_two.write("conftest.py", PLAIN.format(scale="scale = (0, 5)", score="4.5"))
    project_of_two.run("--rageval-metrics", "groundedness").assert_outcomes(passed=1)
    assert project_of_two.records()["boil"]["scores"]["groundedness"] == 4.5


def test_a_reply_whose_lists_contradict_its_score_is_said_and_not_rescored(
    project_of_two: Project, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("COLUMNS", "160")
    reply = {"reasoning": "fine", "supported_claims": ["a"], "unsupported_claims": ["b", "c"], "score": 5}
    record = judged(project_of_two, "groundedness", REPLIES["abstention"]["reply"], reply)
    assert record["scores"]["groundedness"] == 5
    contradiction = "its lists contradict its score: 5 of 5, with 1 claim supported and 2 unsupported"
    assert record["judge"]["flags"]["groundedness"] == [contradiction]
    result = project_of_two.rageval("explain", "latest", "boil")
    result.stdout.fnmatch_lines(["doubts about the judge's replies", f"*groundedness  {contradiction}"])


@pytest.mark.parametrize(("gold", "is_without"), [({"answer": "At 100."}, False), ({}, True)])
def test_correctness_that_was_judged_without_a_reference_says_so(
    project_of_two: Project, gold: dict[str, str], is_without: bool
):
    project_of_two.cases([a_case("boil", gold=gold)])
    record = judged(project_of_two, "correctness", REPLIES["abstention"]["reply"], REPLIES["correctness"]["reply"])
    assert record["scores"]["correctness"] == 4
    assert ("judged_by" in record["score_details"].get("correctness", {})) is is_without
    if is_without:
        result = project_of_two.rageval("explain", "latest", "boil")
        metrics = " ".join(result.stdout.str().partition("\nmetrics\n")[2].split())  # in lines as wide as the terminal
        assert "correctness 4.000 of 5" in metrics
        assert "judged by: the context alone: " in metrics


PAGE = Path(__file__).parents[2] / "docs" / "appendix.md"
GOOD = '{"reasoning": "all there", "supported_claims": ["it boils"], "unsupported_claims": [], "score": 4.5}'


def reply(content: str | None, finish: str = "stop", **message: Any) -> dict[str, Any]:
    said = {"role": "assistant", "content": content, **message}
    return {"model": "judge-1", "choices": [{"index": 0, "message": said, "finish_reason": finish}]}


CALL = {"id": "c1", "type": "function", "function": {"name": "search", "arguments": "{}"}}
SHOWN: Mapping[str, dict[str, Any]] = {
    "thinks aloud before it replies": reply(f'<think>Perhaps {{"score": 1}}? No.</think>{GOOD}'),
    "thinks aloud in another field": reply(GOOD, reasoning_content='{"score": 0}'),
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
    scored = {does for does, what in rows.items() if what.startswith("scored")}
    assert scored == {
        "thinks aloud before it replies", "thinks aloud in another field", "praises and lists faults",
    }, "nothing that is no reply is ever scored"  # fmt: skip
