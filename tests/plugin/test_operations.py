"""Latency, tokens, cost and requests as metrics, against real servers: measured, gated, compared."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterable

import pytest
from fault_server import Behaviour, Connection, FaultServer, gives, status
from project import Project, a_case, lines_with

BOILING = "Water boils at 100 degrees at sea level."
ANSWER = {"answer": BOILING}
USAGE = {"input_tokens": 1_200, "output_tokens": 80}
NO_JUDGE = "--rageval-judge=none"


def some(number: int) -> list[dict[str, object]]:
    return [a_case(f"q{n}", gold_supports=[]) for n in range(number)]


def after(seconds: float, then: Behaviour) -> Behaviour:
    async def wait(connection: Connection) -> None:
        await asyncio.sleep(seconds)
        await then(connection)

    return wait


def operations(project: Project, case: str = "q0") -> dict[str, float]:
    found: dict[str, float] = project.records()[case]["operations"]
    return found


def test_a_slow_answer_fails_a_gate_on_its_latency(project: Project):
    project.cases(some(3))
    fast = gives(ANSWER)
    with FaultServer(fast, after(1.1, fast), fast) as server:
        target = f"--rageval-target={server.url}"
        ran = project.run(target, NO_JUDGE, "--rageval-concurrency=1", "--rageval-gate=latency_ms <= 1000")
    ran.assert_outcomes(passed=2, failed=1)
    taken = {key: record["operations"]["latency_ms"] for key, record in project.records().items()}
    assert taken["q1"] >= 1100 > 1000 > max(taken["q0"], taken["q2"])
    failed = project.records()["q1"]["verdict"]["failed_gates"][0]
    assert (failed["metric"], failed["value"], failed["threshold"]) == ("latency_ms", taken["q1"], "<= 1000")


def test_waiting_for_a_retry_or_a_rate_limit_or_a_place_is_no_latency(project: Project):
    project.cases(some(3))
    gates = [NO_JUDGE, "--rageval-gate=latency_ms <= 900", "--rageval-gate=requests <= 3"]
    refused = status(429, retry_after="1")
    behaviours = (status(503, retry_after="1"), after(0.05, gives(ANSWER)), refused, after(0.05, gives(ANSWER)))
    with FaultServer(*behaviours) as server:
        began = time.perf_counter()
        ran = project.run(f"--rageval-target={server.url}", "--rageval-concurrency=1", *gates)
        assert time.perf_counter() - began > 2
    ran.assert_outcomes(passed=3)
    sent = sorted(record["scores"]["requests"] for record in project.records().values())
    assert sent == [1, 2, 2]
    for record in project.records().values():
        assert 50 <= record["scores"]["latency_ms"] == record["operations"]["latency_ms"] < 900


async def streams(connection: Connection) -> None:
    """A chat endpoint whose first token takes 100 ms, and the last one 900 ms more."""
    assert connection.request.json["stream"] is True
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
    await connection.send(head)

    async def event(delta: dict[str, str], **members: object) -> None:
        chunk = {"model": "m1", "choices": [{"index": 0, "delta": delta, "finish_reason": None} | members]}
        await connection.send(f"data: {json.dumps(chunk)}\n\n".encode())

    await event({"role": "assistant", "content": ""})
    await asyncio.sleep(0.1)
    await event({"content": "Water boils "})
    await asyncio.sleep(0.9)
    await event({"content": "at 100 degrees at sea level."}, finish_reason="stop")
    usage = {"prompt_tokens": 1_200, "completion_tokens": 80}
    await connection.send(f"data: {json.dumps({'choices': [], 'usage': usage})}\n\ndata: [DONE]\n\n".encode())
    connection.close()


def test_the_time_to_the_first_token_of_a_streaming_chat_endpoint_is_measured(project: Project):
    project.cases(some(1))
    project.configure('[tool.rageval.prices."m1"]\ninput = 1\noutput = 10')
    with FaultServer(streams) as server:
        target = ("--rageval-target", f"openai:m1@{server.url}", "--rageval-param", "stream=true", NO_JUDGE)
        ran = project.run(*target, "--rageval-gate=ttft_ms <= 900")
    ran.assert_outcomes(passed=1)
    record = project.records()["q0"]
    assert record["answer"] == BOILING
    measured = operations(project)
    assert 100 <= measured["ttft_ms"] < 900 < 1000 <= measured["latency_ms"]
    assert (measured["input_tokens"], measured["output_tokens"]) == (1_200, 80)
    assert measured["cost_usd"] == pytest.approx((1_200 * 1 + 80 * 10) / 1e6)


@pytest.mark.parametrize(
    "events", ['data: {"choices": [{"delta": {"content": "Wa"}}]}\n\n', 'data: {"error": "busy"}\n\n']
)
def test_a_stream_that_breaks_off_is_an_error_and_no_answer(project: Project, events: str):
    async def breaks_off(connection: Connection) -> None:
        await connection.reply(200, events.encode(), content_type="text/event-stream")

    project.cases(some(1))
    with FaultServer(breaks_off) as server:
        project.run("--rageval-target", f"openai:m1@{server.url}", "--rageval-param", "stream=true", NO_JUDGE)
    error = project.records()["q0"]["error"]
    assert (error["kind"], "stream" in error["message"]) == ("invalid_response", True)


def test_a_function_that_yields_its_answer_has_a_time_to_the_first_token(project: Project):
    project.cases(some(1))
    project.write(
        "bot.py",
        "import time\n\n\ndef answer(question):\n    time.sleep(0.05)\n    yield 'Water boils '\n"
        "    time.sleep(0.1)\n    yield 'at 100 degrees at sea level.'\n",
    )
    project.run("--rageval-target=bot:answer", NO_JUDGE)
    measured = operations(project)
    assert 50 <= measured["ttft_ms"] <= measured["latency_ms"] - 100


def test_a_recorded_answer_has_the_latency_and_usage_that_its_file_states_and_no_other(project: Project):
    project.cases(some(2))
    stated = {"latency": {"total_ms": 812.5, "ttft_ms": 140}, "usage": USAGE | {"cost_usd": 0.0021}}
    rows: Iterable[dict[str, object]] = [{"id": "q0", **ANSWER, **stated}, {"id": "q1", **ANSWER}]
    project.write("given.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    project.run("--rageval-target=answers:given.jsonl", NO_JUDGE, "--rageval-gate=latency_ms <= 3000")
    assert operations(project, "q0") == {
        "latency_ms": 812.5, "ttft_ms": 140.0, "input_tokens": 1200.0, "output_tokens": 80.0, "cost_usd": 0.0021,
    }  # fmt: skip
    assert operations(project, "q1") == {}
    assert "no call was timed" in project.records()["q1"]["skipped_metrics"]["latency_ms"]
    described = project.metrics()["volatile"]["operations"]
    assert (described["latency_ms"]["n"], described["latency_ms"]["p95"]) == (1, None)


def test_a_replayed_run_has_no_latency(project: Project):
    project.cases(some(1))
    with FaultServer(after(0.05, gives(ANSWER))) as server:
        project.run(f"--rageval-target={server.url}", NO_JUDGE, "--rageval-run-id=asked")
    assert operations(project)["latency_ms"] >= 50
    project.run("--rageval-target=run:asked", NO_JUDGE, "--rageval-run-id=replayed")
    assert operations(project) == {}


def test_an_unknown_price_is_not_applicable_and_never_nothing(project: Project):
    project.cases(some(1))
    replies = {"answer": BOILING, "debug": {"usage": USAGE, "versions": {"llm": "our-own-model"}}}
    gate = "--rageval-gate=cost_usd <= 1"
    with FaultServer(gives(replies)) as server:
        ran = project.run(f"--rageval-target={server.url}", NO_JUDGE, gate)
        record = project.records()["q0"]
        assert "cost_usd" not in record["scores"] | record["operations"]
        why = "no price of model 'our-own-model' is known; write one into [tool.rageval.prices]"
        assert record["skipped_metrics"]["cost_usd"] == why
        assert lines_with(ran, "unmeasured: no case that the gate is for has a value of cost_usd")
        project.configure("[tool.rageval.prices]\nour-own-model = { input = 0.5, output = 2 }")
        project.run(f"--rageval-target={server.url}", NO_JUDGE, gate)
    assert project.records()["q0"]["scores"]["cost_usd"] == pytest.approx((1_200 * 0.5 + 80 * 2) / 1e6)


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ("[tool.rageval.prices]\nm = { input = 1 }", "prices.m"),
        ("[tool.rageval.prices]\nm = { input = -1, output = 2 }", "prices.m.input"),
        ("[tool.rageval.prices]\nm = { input = 1, outputs = 2 }", "prices.m.outputs"),
        ('gates = { run = ["latency_ms p99 <= 3"] }', "'p99' is no statistic of a run; did you mean 'p95'?"),
        ('gates = { case = ["latency_ms p50 <= 3"] }', "p50 is of all cases of a run; write 'run latency_ms p50 <= 3'"),
        ('gates = { run = ["error_rate p50 <= 0.1"] }', "error_rate is one value of the whole run, which has no p50"),
        ('gates = { case = ["latency_ms <= 50%"] }', "latency_ms is in ms, which have no 100 %"),
        ('regression = ["latency_ms rise 10%"]', "latency_ms is in ms, which have no 100 %"),
    ],
)
def test_what_means_nothing_is_said_before_anything_is_asked(project: Project, table: str, problem: str):
    project.cases(some(1))
    project.configure(table)
    with FaultServer(gives(ANSWER)) as server:
        ran = project.run(f"--rageval-target={server.url}", NO_JUDGE)
        assert not server.requests
    assert ran.ret == pytest.ExitCode.USAGE_ERROR
    assert lines_with(ran, problem)


def test_a_p95_of_19_cases_is_refused_before_anything_is_asked(project: Project):
    project.cases(some(19))
    project.configure('gates = { run = ["latency_ms p95 <= 2500"] }')
    refusal = "gate 'run latency_ms p95 <= 2500': a p95 needs 20 cases or more, and there are 19"
    with FaultServer(gives(ANSWER)) as server:
        target = f"--rageval-target={server.url}"
        ran = project.run(target, NO_JUDGE)
        assert ran.ret == pytest.ExitCode.USAGE_ERROR
        assert lines_with(ran, refusal)
        assert lines_with(project.rageval("run", f"--target={server.url}"), refusal)
        assert not server.requests


def test_a_p95_beyond_its_limit_fails_the_build_and_is_named(project: Project):
    project.cases(some(20))
    project.configure('gates = { run = ["latency_ms p95 <= 700", "latency_ms p50 <= 700", "latency_ms max <= 9000"] }')
    fast = gives(ANSWER)
    slow = after(0.8, fast)
    with FaultServer(slow, slow, fast) as server:
        ran = project.run(f"--rageval-target={server.url}", NO_JUDGE, "--rageval-concurrency=1")
    ran.assert_outcomes(passed=22, failed=1)
    p95, p50, largest = project.metrics()["gates"]
    assert (p95["passed"], p95["statistic"], p95["label"]) == (False, "p95", "latency_ms p95")
    assert p95["value"] >= 800 > p50["value"]
    assert (p50["passed"], largest["passed"]) == (True, True)
    assert lines_with(ran, "rageval-gates::latency_ms p95")
    verdict = project.metrics()["verdict"]["sentence"]
    assert f"run gate latency_ms p95 {p95['value']:.4g} > 700" in verdict


def test_a_p95_that_too_few_cases_have_a_value_for_is_no_pass(project: Project):
    project.cases(some(20))
    rows = [{"id": f"q{n}", **ANSWER, **({"latency": {"total_ms": 5}} if n else {})} for n in range(20)]
    project.write("given.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    gate = "--rageval-gate=run latency_ms p95 <= 2500"
    ran = project.run("--rageval-target=answers:given.jsonl", NO_JUDGE, gate)
    ran.assert_outcomes(passed=20, failed=1)
    assert lines_with(ran, "latency_ms p95 has no value in this run (a p95 needs 20), gate <= 2500 · 19 of 20 cases")
    assert not lines_with(ran, "report: not written")


def test_two_runs_are_compared_in_what_they_took_and_other_concurrency_is_remarked(project: Project):
    project.cases(some(6))
    gate = "--rageval-gate=latency_ms <= 5000"
    fast = gives({**ANSWER, "debug": {"usage": USAGE}})
    for run, behaviour, concurrency in (("fast", fast, 1), ("slow", after(0.3, fast), 2)):
        with FaultServer(behaviour) as server:
            target = f"--rageval-target={server.url}"
            project.run(target, NO_JUDGE, gate, f"--rageval-concurrency={concurrency}", f"--rageval-run-id={run}")
    compared = project.rageval("compare", "fast", "slow")
    assert compared.ret == 0, "no gate guards latency against another run unless one is written"
    shown = compared.stdout.str()
    assert "times were measured with up to 1 calls in flight before, and up to 2 now: they depend on that" in shown
    moved = next(line for line in compared.outlines if line.startswith("latency_ms") and "regressed" in line)
    assert " ms" in moved
    assert lines_with(compared, "mean before")
    assert lines_with(compared, "input_tokens")
    content = json.loads(project.rageval("compare", "fast", "slow", "--format", "json").stdout.str())
    latency = content["metrics"]["latency_ms"]
    assert (latency["unit"], latency["verdict"]) == ("ms", "regressed")
    assert 250 < latency["delta"] < 3000
    assert content["operations"]["input_tokens"]["after"]["total"] == 6 * 1_200
    same = json.loads(project.rageval("compare", "slow", "slow", "--format", "json").stdout.str())
    assert not [note for note in same["notes"] if "calls in flight" in note]


def test_an_operation_that_one_of_two_runs_has_no_value_of_is_not_compared(project: Project):
    project.cases(some(6))
    gates = [NO_JUDGE, "--rageval-gate=latency_ms <= 5000", "--rageval-gate=input_tokens <= 5000"]
    with FaultServer(gives({**ANSWER, "debug": {"usage": USAGE}})) as server:
        project.run(f"--rageval-target={server.url}", *gates, "--rageval-run-id=known")
    with FaultServer(gives(ANSWER)) as server:
        ran = project.run(f"--rageval-target={server.url}", *gates, "--rageval-run-id=unknown")
    assert not lines_with(ran, "not written")
    for sides in (("known", "unknown"), ("unknown", "known")):
        compared = json.loads(project.rageval("compare", *sides, "--format", "json").stdout.str())
        assert compared["metrics"]["input_tokens"]["delta"] is None
        assert compared["metrics"]["overall_score"]["why"] == ""


def test_a_regression_gate_on_latency_is_in_milliseconds_and_fails_the_build(project: Project):
    project.cases(some(6))
    project.configure('regression = [{ metric = "latency_ms", max_rise = 100 }]')
    fast = gives(ANSWER)
    with FaultServer(fast) as server:
        project.run(f"--rageval-target={server.url}", NO_JUDGE, "--rageval-update-baseline")
    with FaultServer(after(0.4, fast)) as server:
        ran = project.run(f"--rageval-target={server.url}", NO_JUDGE)
    assert ran.ret == pytest.ExitCode.TESTS_FAILED
    (gate,) = project.metrics()["gates"]
    assert (gate["metric"], gate["op"], gate["passed"]) == ("latency_ms", "rise", False)
    overall = project.metrics()["comparison"]["metrics"]["overall_score"]
    assert (overall["delta"], overall["why"]) == (0, "")


def test_every_face_shows_operations_in_their_units(project: Project):
    project.cases(some(2))
    project.configure("[tool.rageval.prices]\n'*' = { input = 0.5, output = 2 }")
    with FaultServer(gives({**ANSWER, "debug": {"usage": USAGE}})) as server:
        ran = project.run(f"--rageval-target={server.url}", NO_JUDGE, "--rageval-gate=cost_usd <= 1")
    spent = (1_200 * 0.5 + 80 * 2) / 1e6
    assert lines_with(ran, f"cost_usd: mean ${spent:.6f}, p50 ${spent:.6f}, max ${spent:.6f}, in all ${2 * spent:.6f}")
    folder = project.runs[-1]
    report = (folder / "report.html").read_text(encoding="utf-8")
    assert f"${2 * spent:.6f}" in report
    assert "2,400" in report
    summary = (folder / "summary.md").read_text(encoding="utf-8")
    assert "2,400 input tokens, 160 output tokens" in summary
    assert lines_with(
        project.rageval("explain", "latest", "q0"), f"input tokens 1,200 · output tokens 80 · cost ${spent:.6f}"
    )
    assert lines_with(project.rageval("history", "--metric", "cost_usd"), f"${spent:.6f}")
    exported = project.rageval("export", "latest", "--format", "csv")
    assert exported.ret == 0
    listed = project.rageval("metrics")
    for name in ("latency_ms", "ttft_ms", "input_tokens", "output_tokens", "cost_usd", "requests"):
        assert lines_with(listed, name)
