"""`rageval demo serve` as a user runs it, alone or with a model that writes: a real port, keys, clients."""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from demo_notes import a_server
from judge_server import JudgeServer
from processes import PATIENCE_S
from project import rageval

DRIFT = "By how many micrometres does the imaging plane sink during a two-photon session?"


def refused(folder: Path, spec: str, **environment: str) -> str:
    """What a demo that does not start says."""
    done = rageval(folder, "demo", "serve", "--port", "0", "--llm", spec, **environment)
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
def test_a_model_that_cannot_be_asked_is_said_in_one_line_before_anything_is_served(
    tmp_path: Path, spec: str, said: str
):
    stderr = refused(tmp_path, spec)
    assert stderr.startswith(said)
    assert stderr.count("\n") == 1


def test_a_key_that_the_server_refuses_is_said_without_the_key(tmp_path: Path):
    with JudgeServer(key="another", models=("writer-7b",)) as model:
        stderr = refused(tmp_path, f"openai:writer-7b@{model.url}", RAGEVAL_JUDGE_TOKEN="sk-a-wrong-key")
    assert "status 401" in stderr
    assert "environment variable RAGEVAL_JUDGE_TOKEN" in stderr
    assert "sk-a-wrong-key" not in stderr


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A server that all tests share which leave it running."""
    with a_server() as (_, _, address):
        yield address


@pytest.mark.child_process
def test_it_answers_over_http_and_keeps_the_connection(url: str):
    with httpx.Client(base_url=url, timeout=PATIENCE_S, limits=httpx.Limits(max_connections=1)) as client:
        for _ in range(3):
            response = client.post("/api/v1/ask?debug=true", json={"question": "What is the hero product of Laneige?"})
            assert response.status_code == 200
            assert "Dew Reserve Night Mask" in response.json()["answer"]
        assert client.get("/api/v1/health").json() == {"status": "ok", "index": "built"}
        assert client.get("/api/v1/index/stats").json()["docs_processed"] >= 60


@pytest.mark.child_process
def test_ctrl_c_ends_it_quietly_even_with_a_client_connected():
    with a_server() as (process, _, address), httpx.Client(base_url=address, timeout=PATIENCE_S) as client:
        assert client.get("/api/v1/health").json()["index"] == "not built yet"
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, stdout, stderr) == (0, "", "")


@pytest.mark.child_process
def test_a_port_in_use_is_said_in_one_line(tmp_path: Path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = rageval(tmp_path, "demo", "serve", "--port", str(port))
    assert done.returncode == 2
    assert done.stderr == (
        f"ERROR: cannot listen on 127.0.0.1:{port}: Address already in use; choose another --host or --port\n"
    )


@pytest.mark.child_process
def test_an_unknown_host_is_said_in_one_line(tmp_path: Path):
    done = rageval(tmp_path, "demo", "serve", "--host", "no-such-host.invalid")
    assert done.returncode == 2
    assert done.stderr.startswith("ERROR: cannot listen on no-such-host.invalid:8080: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.child_process
@pytest.mark.parametrize(
    ("headers", "status", "said"),
    [
        ({"host": "evil.example:8080"}, 421, "'evil.example:8080' is no name of this server"),
        ({"host": "127.0.0.1.evil.example"}, 421, "is no name of this server"),
        ({"host": "intranet"}, 421, "is no name of this server"),
        ({"host": "["}, 421, "is no name of this server"),
        ({"origin": "http://evil.example"}, 403, "pages of the origin 'http://evil.example' may not ask this server"),
        ({"origin": "null"}, 403, "may not ask this server"),
        ({"host": "localhost:1", "origin": "http://localhost:2"}, 403, "may not ask this server"),
    ],
)
def test_a_page_of_another_origin_is_refused_in_one_line(url: str, headers: dict[str, str], status: int, said: str):
    for method, path in (("GET", "/api/v1/health"), ("POST", "/api/v1/ask")):
        response = httpx.request(method, url + path, headers=headers, content=b'{"question": "x"}', timeout=PATIENCE_S)
        assert response.status_code == status
        assert said in response.json()["error"]


@pytest.mark.child_process
@pytest.mark.parametrize("headers", [{"host": "localhost:9"}, {"host": "[::1]:9"}, {"host": "127.0.0.1"}])
def test_names_of_this_machine_are_served(url: str, headers: dict[str, str]):
    for more in ({}, {"origin": f"http://{headers['host']}"}):
        assert httpx.get(f"{url}/api/v1/health", timeout=PATIENCE_S, headers=headers | more).status_code == 200
