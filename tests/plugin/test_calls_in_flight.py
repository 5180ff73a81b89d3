"""How many calls a run has in flight, fewer where the system refuses them, and when it gives up."""

from __future__ import annotations

import asyncio
import gc
import json
import re
import socket

import pytest
from fault_server import Behaviour, Connection, FaultServer, gives, status
from project import Project, a_case, lines_with

JUDGED = """
import httpx
import pytest

from pytest_rageval import Judgement


class Judge:
    model, heuristic, rubrics = "own", False, frozenset({"groundedness"})

    async def judge(self, request):
        async with httpx.AsyncClient(verify=False) as client:
            await client.post("URL/judge", timeout=60)
        return Judgement(request.rubric, {request.rubric: 5}, scale=(0, 5), model="own", prompt_version="1")

    async def aclose(self):
        pass


@pytest.fixture(scope="session")
def rag_judge():
    return Judge()
"""
CHUNK = {"rel_path": "notes/water.md", "heading_path": "# Water > ## Boiling", "text": "Water boils at 100 degrees."}
ANSWER = json.dumps(
    {"answer": "Water boils at 100 degrees at sea level.", "debug": {"retrieved_chunks": [CHUNK]}}
).encode()


class Crowd:
    """Answers after a moment, and refuses what is beyond `fit` at the same time.

    Nothing is answered before `gathered` calls have come, refused or not, so that a slow machine shows them together as
    well: as many as the run may have in flight.
    """

    def __init__(self, gathered: int, fit: int = 1000) -> None:
        self._fit, self._gathered = fit, gathered
        self._came = self._in_flight = 0
        self.everybody = asyncio.Event()
        self.most_in_flight = 0
        self.refused = 0

    async def __call__(self, connection: Connection) -> None:
        self._came += 1
        if self._came >= self._gathered:
            self.everybody.set()
        if self._in_flight >= self._fit:
            self.refused += 1
            await connection.reply(429, b"busy", retry_after="0")
            return
        self._in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self._in_flight)
        everybody = self.everybody
        await everybody.wait()
        await asyncio.sleep(0.02)
        self._in_flight -= 1
        await connection.reply(200, ANSWER)


def test_asking_and_judging_together_have_no_more_calls_in_flight_than_the_run_may(project: Project):
    project.cases([a_case(f"q{number}") for number in range(30)])
    crowd = Crowd(8)
    with FaultServer(crowd) as server:
        project.write("conftest.py", JUDGED.replace("URL", server.url))
        result = project.run(f"--rageval-target={server.url}", "--rageval-concurrency=8", "--rageval-judge-cache=off")
    result.assert_outcomes(passed=30)
    assert len(server.requests) == 60
    assert crowd.most_in_flight == 8


def test_a_system_that_refuses_calls_is_asked_less_at_once_and_the_run_says_so(project: Project):
    project.cases([a_case(f"q{number}") for number in range(60)])
    crowd = Crowd(12, fit=3)
    with FaultServer(crowd) as server:
        result = project.run(f"--rageval-target={server.url}", "--rageval-concurrency=12")
    result.assert_outcomes(passed=60)
    assert crowd.refused < 60, "as a rule a dozen; who does not slow down is refused some hundred times"
    result.stdout.re_match_lines(
        [r".*the system refused \d+ calls \(429 or 503\): down to [1-6] of 12 questions were in"]
    )


@pytest.mark.child_process
def test_workers_that_ask_less_at_once_say_so_together(project: Project):
    project.cases([a_case(f"q{number}") for number in range(12)])
    refusals = iter(range(2))

    async def answer(connection: Connection) -> None:
        if next(refusals, None) is None:
            await connection.reply(200, ANSWER)
        else:
            await connection.reply(429, b"busy", retry_after="0")

    with FaultServer(answer) as server:
        result = project.run("-n", "2", f"--rageval-target={server.url}", "--rageval-concurrency=12")
    result.assert_outcomes(passed=12)
    notes = lines_with(result, "the system refused")
    assert len(notes) == 1
    assert re.match(r"the system refused 2 calls \(429 or 503\): down to \d+ of 12 questions were in flight", notes[0])


def test_one_setting_asks_as_much_at_once_as_allowed_whatever_the_system_says(project: Project):
    project.cases([a_case(f"q{number}") for number in range(40)])
    crowd = Crowd(20, fit=2)
    with FaultServer(crowd) as server:
        project.configure(f'target = "{server.url}"\nconcurrency = 20\nadaptive_concurrency = false\nretries = 0')
        result = project.run()
    result.stdout.no_fnmatch_line("*the system refused*")
    assert crowd.refused >= 18


@pytest.mark.parametrize(
    ("usual", "meanwhile"),
    [((700, 10, 10), 50_000), ((90_000, 10, 10), 90_000), ((0, 10, 10), 0)],
    ids=["usual", "rarer", "off"],
)
def test_the_garbage_collector_seldom_looks_while_a_run_asks_and_as_often_as_before_when_it_ends(
    project: Project, usual: tuple[int, int, int], meanwhile: int
):
    project.cases([a_case("q1")])
    seen = project.path / "seen"
    telling = f"pathlib.Path({str(seen)!r}).write_text(str(gc.get_threshold()[0]))"
    project.write("bot.py", f"import gc, pathlib\ndef answer(question):\n    {telling}\n")
    before = gc.get_threshold()
    try:
        gc.set_threshold(*usual)
        project.run("--rageval-target=bot:answer")
        assert gc.get_threshold() == usual
    finally:
        gc.set_threshold(*before)
    assert int(seen.read_text()) == meanwhile


CASES = 40


def ask(project: Project, url: str, *arguments: str, cases: int = CASES) -> pytest.RunResult:
    project.cases([a_case(f"q{number}") for number in range(cases)])
    return project.run("--rageval-target", url, "-p", "no:randomly", *arguments)


def has_stopped(project: Project, result: pytest.RunResult) -> bool:
    lines = lines_with(result, "the first 16 calls all failed alike")
    assert len(lines) <= 1
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    return bool(lines)


@pytest.mark.parametrize(("code", "how"), [(401, ()), (403, ("-n", "2")), (404, ())])
def test_a_server_that_refuses_every_call_ends_the_run(project: Project, how: tuple[str, ...], code: int):
    with FaultServer(status(code)) as server:
        result = ask(project, server.url, *how)
    assert has_stopped(project, result)
    assert f"status {code}" in lines_with(result, "the first 16 calls")[0]
    assert len(project.outcomes()) >= 16
    if not how:  # workers may be done before the process that counts their calls has heard of the sixteenth
        assert len(project.outcomes()) < CASES
        assert project.metrics()["partial"] is True


@pytest.mark.parametrize("face", ["pytest", "run"])
def test_the_last_line_says_why_a_run_stopped(project: Project, face: str):
    with FaultServer(status(403)) as server:
        if face == "pytest":
            result = ask(project, server.url)
        else:
            project.cases([a_case(f"q{number}") for number in range(CASES)])
            result = project.rageval("run", "--target", server.url)
    last = [line for line in result.outlines if "--rageval-resume" in line or "--resume" in line][-1]
    assert re.match(r"stopped, since its first calls all failed: POST \S+: status 403; ", last)
    assert "interrupted" not in last
    # Resuming asks for nothing again that has a result, and an error is one.
    assert "mend that and run again (" in last
    assert last.endswith("would keep the errors)")


def test_fewer_cases_than_that_are_all_asked(project: Project):
    with FaultServer(status(401)) as server:
        assert not has_stopped(project, ask(project, server.url, cases=15))
    assert len(project.outcomes()) == 15


@pytest.mark.parametrize(
    "replies",
    [
        *([status(code)] for code in (500, 429, 400)),
        [gives({"answer": "x", "debug": {"retrieved_chunks": []}}), status(401)],
        [status(401), status(403)] * CASES,
    ],
    ids=["500", "429", "400", "one answer before", "refusals of several kinds"],
)
def test_what_may_heal_or_is_not_always_the_same_ends_nothing(project: Project, replies: list[Behaviour]):
    project.configure("retries = 0\nrate_limit_patience = 0.5")
    with FaultServer(*replies) as server:
        assert not has_stopped(project, ask(project, server.url, "--rageval-concurrency", "1"))
    assert len(project.outcomes()) == CASES


def test_a_model_whose_port_is_closed_ends_the_run(project: Project):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    project.write(
        "bot.py",
        f"""
        import httpx

        def answer(question):
            httpx.get("http://127.0.0.1:{port}")
    """.replace("\n        ", "\n"),
    )
    project.configure('target = "bot:answer"')
    project.cases([a_case(f"q{number}") for number in range(CASES)])
    result = project.run("-p", "no:randomly")
    assert has_stopped(project, result)
    assert "Connection refused" in lines_with(result, "the first 16 calls")[0]
