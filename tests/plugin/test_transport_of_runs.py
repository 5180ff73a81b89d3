"""What carries the requests of a run: said in its configuration, without another result."""

from __future__ import annotations

import json

import pytest
from fault_server import FaultServer, gives, sends_raw, status
from project import Project, a_case

pytest.importorskip("aiohttp")
ANSWER = {"answer": "Water boils at 100 degrees at sea level."}
SSH = sends_raw(b"SSH-2.0\r\n\r\n")


def test_a_run_has_the_same_results_by_either_transport(project: Project, monkeypatch: pytest.MonkeyPatch):
    project.cases([a_case(f"q{number}") for number in range(5)])
    behaviours = (gives(ANSWER), status(503), gives(ANSWER), SSH, gives(ANSWER), status(403, b"no"))
    errors: list[dict[str, str]] = []
    transports = []
    for name in ("httpx", "aiohttp"):
        monkeypatch.setenv("RAGEVAL_HTTP", name)
        with FaultServer(*behaviours) as server:
            result = project.run(
                f"--rageval-target={server.url}", "--rageval-concurrency=1", "--rageval-run-id", f"run-{len(errors)}"
            )
        result.assert_outcomes(passed=3, errors=2)
        records = project.records()
        errors.append(
            {id: (record["error"] or {}).get("message", "").replace(server.url, "") for id, record in records.items()}
        )
        transports.append(
            json.loads((project.path / "reports/runs" / f"run-{len(errors) - 1}" / "config.json").read_text())[
                "transport"
            ]
        )
    assert transports == ["httpx", "aiohttp"]
    assert errors[0] == errors[1]
    assert "the reply is not HTTP: SSH-2.0" in str(errors[0])


def test_a_transport_that_does_not_exist_ends_the_run_before_anything_is_asked(
    project: Project, monkeypatch: pytest.MonkeyPatch
):
    project.cases([a_case("q1")])
    monkeypatch.setenv("RAGEVAL_HTTP", "curl")
    with FaultServer(gives(ANSWER)) as server:
        result = project.run(f"--rageval-target={server.url}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*RAGEVAL_HTTP: 'curl' is not 'httpx' or 'aiohttp'"])
    assert server.requests == []
