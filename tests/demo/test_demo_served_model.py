"""A served demo whose answers a model writes: its key, its end, and what keeps it from starting."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from pathlib import Path

import httpx
import pytest
from demo_notes import a_server
from judge_server import JudgeServer
from processes import PATIENCE_S
from project import rageval

DRIFT = "By how many micrometres does the imaging plane sink during a two-photon session?"


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Keys of whoever runs the tests stay where they are; commands run in a folder of their own."""
    monkeypatch.chdir(tmp_path)
    for variable in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "RAGEVAL_JUDGE_TOKEN"):
        monkeypatch.delenv(variable, raising=False)


def refused(spec: str, environment: Mapping[str, str]) -> str:
    """What a demo that does not start says."""
    done = rageval(Path.cwd(), "demo", "serve", "--port", "0", "--llm", spec, **environment)
    assert (done.returncode, done.stdout) == (2, "")
    return done.stderr


@pytest.mark.child_process
def test_a_served_demo_asks_its_model_with_the_key_of_the_environment():
    key = "sk-of-the-environment"
    with (
        JudgeServer("It sinks [1].", key=key, models=("writer-7b",)) as model,
        a_server("--llm", model.url, RAGEVAL_JUDGE_TOKEN=key) as (process, greeting, url),
    ):
        assert ", answers by writer-7b (Ctrl-C ends)" in greeting
        response = httpx.post(f"{url}/api/v1/ask?debug=true", json={"question": DRIFT}, timeout=PATIENCE_S)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=PATIENCE_S)
    assert response.json()["answer"] == "It sinks [1]."
    assert response.json()["debug"]["versions"]["llm"] == "writer-7b"
    assert key not in response.text
    assert (process.returncode, stdout, stderr) == (0, "", "")


@pytest.mark.child_process
def test_ctrl_c_ends_a_served_demo_quietly_while_its_model_thinks():
    with (
        JudgeServer("Never.") as model,
        a_server("--llm", f"openai:writer-7b@{model.url}") as (process, _, url),
    ):
        model.delay = 60
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(f"{url}/api/v1/ask", json={"question": DRIFT}, timeout=1)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, stdout, stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (
            "openai:gpt-4o",
            "ERROR: --llm openai:gpt-4o: the environment variable OPENAI_API_KEY is not set; api.openai.com needs it\n",
        ),
        ("gpt-4o", "ERROR: --llm gpt-4o: no server; write it as openai:MODEL or openai:MODEL@URL\n"),
        (
            "http://127.0.0.1:1",
            "ERROR: --llm http://127.0.0.1:1: the model cannot be asked for: GET http://127.0.0.1:1/v1/models: ",
        ),
    ],
)
def test_a_model_that_cannot_be_asked_is_said_in_one_line_before_anything_is_served(spec: str, said: str):
    stderr = refused(spec, {})
    assert stderr.startswith(said)
    assert stderr.count("\n") == 1


def test_a_key_that_the_server_refuses_is_said_without_the_key():
    with JudgeServer(key="another", models=("writer-7b",)) as model:
        stderr = refused(f"openai:writer-7b@{model.url}", {"RAGEVAL_JUDGE_TOKEN": "sk-a-wrong-key"})
    assert "status 401" in stderr
    assert "environment variable RAGEVAL_JUDGE_TOKEN" in stderr
    assert "sk-a-wrong-key" not in stderr
