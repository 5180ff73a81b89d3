"""A run whose first sixteen calls all fail alike, in a way that cannot heal, stops: over all workers, said once."""

from __future__ import annotations

import socket

import pytest
from fault_server import FaultServer, gives, status
from project import Project, a_case, lines_with

ALONE_AND_WITH_WORKERS = pytest.mark.parametrize("how", [(), ("-n", "2")], ids=["alone", "with workers"])
CASES = 40


def ask(project: Project, url: str, *arguments: str, cases: int = CASES) -> pytest.RunResult:
    project.cases([a_case(f"q{number}") for number in range(cases)])
    return project.run("--rageval-target", url, "-p", "no:randomly", *arguments)


def has_stopped(project: Project, result: pytest.RunResult) -> bool:
    lines = lines_with(result, "the first 16 calls all failed alike")
    assert len(lines) <= 1
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    return bool(lines)


@ALONE_AND_WITH_WORKERS
@pytest.mark.parametrize("code", [401, 403, 404])
def test_a_server_that_refuses_every_call_ends_the_run(project: Project, how: tuple[str, ...], code: int):
    with FaultServer(status(code)) as server:
        result = ask(project, server.url, *how)
    assert has_stopped(project, result)
    assert f"status {code}" in lines_with(result, "the first 16 calls")[0]
    assert 16 <= len(project.outcomes()) < CASES
    assert project.metrics()["partial"] is True


@ALONE_AND_WITH_WORKERS
def test_fewer_cases_than_that_are_all_asked(project: Project, how: tuple[str, ...]):
    with FaultServer(status(401)) as server:
        assert not has_stopped(project, ask(project, server.url, *how, cases=15))
    assert len(project.outcomes()) == 15


@pytest.mark.parametrize("code", [500, 503, 429, 400])
def test_what_may_heal_ends_nothing(project: Project, code: int):
    project.configure("retries = 0")
    with FaultServer(status(code)) as server:
        assert not has_stopped(project, ask(project, server.url))
    assert len(project.outcomes()) == CASES


def test_after_one_answer_no_refusal_ends_the_run(project: Project):
    with FaultServer(gives({"answer": "x", "debug": {"retrieved_chunks": []}}), status(401)) as server:
        assert not has_stopped(project, ask(project, server.url, "--rageval-concurrency", "1"))
    assert len(project.outcomes()) == CASES


def test_refusals_of_several_kinds_end_nothing(project: Project):
    with FaultServer(*[status(401), status(403)] * CASES) as server:
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
