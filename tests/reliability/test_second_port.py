"""What belongs to one server never reaches another: two servers write down all that they receive, in every set-up."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest
from fault_server import Connection, FaultServer
from hostile import REPORTS, leaks
from project import Project, a_case
from reliability import Tally

from pytest_rageval.providers import KEYS

pytestmark = pytest.mark.reliability("secrets", "a second port that must never see a credential", costs="leak")

OF_TARGET = {
    "token": "tt-Xq83kPz1mV",
    "header": "th-Bn42wRy7cL",
    "password": "tp-Gd95sJf6hT",
    "query": "tq-Mv17zKx3bN",
    "parameter": "ta-Ws64eDc8rF",
    "cookie": "tc-Yh29nUj5mI",
}
OF_JUDGE = {"token": "jt-Ol38pQa2zX", "header": "jh-Ed51cRf4vT", "password": "jp-Gb70yHn9uJ", "query": "jq-Mi16kOl8pA"}
OF_PROVIDERS = {name: f"pk-{number}-Zw73qSx5eD" for number, name in enumerate(sorted(KEYS))}
"""Keys for the addresses of providers alone."""
TEXT = "Water boils at 100 degrees at sea level."
VERDICT = json.dumps({"reasoning": "So.", "score": 5, "abstained": False})


class WritingServer(FaultServer):
    """Answers as any of the systems and judges do, sets cookies, and repeats what it was sent."""

    def __init__(self, cookie: str, redirect: str = "") -> None:
        super().__init__(self._behave)
        self.cookie = cookie
        self.redirect = redirect

    async def _behave(self, connection: Connection) -> None:
        request = connection.request
        cookies = {"set_cookie": f"session={self.cookie}; Path=/"}
        if self.redirect:
            await connection.reply(307, b"", location=self.redirect, **cookies)
            return
        told = f"{request.path} {request.headers} {request.body.decode(errors='replace')}"
        await connection.reply(200, json.dumps(reply_of_any_kind(request.path, told)).encode(), **cookies)

    def has(self, secret: str) -> list[str]:
        """The requests in which a secret stands, in any of the ways in which it is sent."""
        encoded = base64.b64encode(secret.encode()).decode().rstrip("=")
        found = []
        for request in self.requests:
            sent = f"{request.path} {request.headers} {request.body.decode(errors='replace')}"
            basic = request.headers.get("authorization", "").removeprefix("Basic ")
            opened = base64.b64decode(basic + "==", validate=False).decode("latin-1") if basic else ""
            if secret in sent or encoded in sent or secret in opened:
                found.append(sent)
        return found


def reply_of_any_kind(path: str, told: str) -> dict[str, Any]:
    is_judge = "judge-model" in told
    said = VERDICT if is_judge else TEXT
    message = {"role": "assistant", "content": said}
    reply: dict[str, Any] = {
        "answer": f"{TEXT} {told}", "debug": {"retrieved_chunks": [{"rel_path": "notes/water.md", "text": told}]},
        "model": "judge-model-2026-01-01", "choices": [{"message": message, "finish_reason": "stop"}],
        "content": [{"type": "text", "text": said}], "stop_reason": "end_turn", "message": message, "done": True,
        "done_reason": "stop",
    }  # fmt: skip
    if path.partition("?")[0].endswith("/embeddings"):
        reply["data"] = [{"index": number, "embedding": [1.0, 0.5]} for number in range(64)]
    return reply


TARGETS = {
    "http": 'target = "{url}"',
    "openai": 'target = "openai:chat@{url}"',
    "ollama": 'target = "ollama:chat@{url}"',
    "mapped": "",
}
MAPPED = """
[tool.rageval.target]
url = "{url}"
[tool.rageval.target.mapping]
request = {{ q = "{{question}}", auth = {{ token = "{parameter}" }} }}
response = {{ answer = "answer", retrieved_chunks = "debug.retrieved_chunks" }}
"""
JUDGES = ["openai", "anthropic", "embedding"]


@pytest.fixture
def project(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project with every kind of key in its environment."""
    monkeypatch.setenv("RAGEVAL_TARGET_TOKEN", OF_TARGET["token"])
    monkeypatch.setenv("RAGEVAL_JUDGE_TOKEN", OF_JUDGE["token"])
    monkeypatch.setenv("TARGET_HEADER", OF_TARGET["header"])
    monkeypatch.setenv("JUDGE_HEADER", OF_JUDGE["header"])
    for name, value in OF_PROVIDERS.items():
        monkeypatch.setenv(name, value)
    project.cases([a_case("one"), a_case("two", "boiling two")])
    return project


def configure(project: Project, kind: str, target: str, judge_kind: str, judge: str) -> None:
    with_user = target.replace("//", f"//ann:{OF_TARGET['password']}@") + f"?api_key={OF_TARGET['query']}"
    judge_url = judge.replace("//", f"//bob:{OF_JUDGE['password']}@") + f"?api_key={OF_JUDGE['query']}"
    options = (
        f'judge = "{judge_kind}:judge-model-2026-01-01@{judge_url}"\njudge_cache = "off"\nretries = 0\ntimeout = 20\n'
        'headers = { "x-api-key" = "env:TARGET_HEADER" }\n'
        f'params = {{ secret = "{OF_TARGET["parameter"]}" }}\n'
    )
    headers = '[tool.rageval.judge_options]\nheaders = { "x-gateway-token" = "env:JUDGE_HEADER" }\n'
    if kind == "mapped":
        options = options.replace(f'params = {{ secret = "{OF_TARGET["parameter"]}" }}\n', "")
        project.configure(options, headers + MAPPED.format(url=with_user, parameter=OF_TARGET["parameter"]))
    else:
        project.configure(TARGETS[kind].format(url=with_user) + "\n" + options, headers)


def strays(target: WritingServer, judge: WritingServer) -> Iterator[str]:
    """What a server was sent that belongs to another."""
    for name, secret in OF_TARGET.items():
        # An answer that repeats a key reaches the judge masked, so nothing of the target's may be there.
        if judge.has(secret):
            yield f"the target's {name} at the judge"
    for name, secret in OF_JUDGE.items():
        if target.has(secret):
            yield f"the judge's {name} at the target"
    for name, secret in OF_PROVIDERS.items():
        for server, where in ((target, "target"), (judge, "judge")):
            if server.has(secret):
                yield f"{name} at the {where}"


ALL_SECRETS = [*OF_TARGET.values(), *OF_JUDGE.values(), *OF_PROVIDERS.values()]


PAIRS = [(kind, judge) for kind in TARGETS for judge in JUDGES]
USUAL = [("http", "openai"), ("openai", "anthropic"), ("mapped", "embedding"), ("ollama", "openai")]
OF_PAIRS = [pytest.param(*pair, marks=[] if pair in USUAL else pytest.mark.torture) for pair in PAIRS]


@pytest.mark.parametrize(("kind", "judge_kind"), OF_PAIRS)
def test_no_key_reaches_the_other_server_a_file_or_the_screen(
    project: Project, tally: Tally, kind: str, judge_kind: str
):
    tally.tried(len(ALL_SECRETS))
    with WritingServer(OF_TARGET["cookie"]) as target, WritingServer("jc-Rt62yUi9oP") as judge:
        configure(project, kind, target.url, judge_kind, judge.url)
        result = project.run(*REPORTS)
        again = project.rageval("doctor")
    assert target.has(OF_TARGET["header"]), "the keys are sent where they belong"
    assert judge.requests
    assert list(strays(target, judge)) == []
    assert leaks(project, result, again, traces=ALL_SECRETS) == []
    assert not any("cookie" in request.headers for request in [*target.requests, *judge.requests])


PLACES = ["{url}/caught", "http://ann:pw-Kj84hGf2dS@{host}/caught?token=tk-Vb95nMl3kJ", "//{host}/caught"]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("side", ["http", "openai", "judge"])
def test_a_redirect_to_another_port_is_not_followed(project: Project, tally: Tally, side: str, place: str):
    tally.tried(len(ALL_SECRETS))
    with WritingServer("other") as other:
        host = other.url.partition("//")[2]
        redirecting = WritingServer(OF_TARGET["cookie"], place.format(url=other.url, host=host))
        with redirecting, WritingServer("fine") as fine:
            is_judge = side == "judge"
            target, judge = (fine, redirecting) if is_judge else (redirecting, fine)
            configure(project, "http" if is_judge else side, target.url, "openai", judge.url)
            result = project.run(*REPORTS)
        assert redirecting.requests
        assert other.requests == []
    assert leaks(project, result, traces=[*ALL_SECRETS, "Kj84hGf2dS", "Vb95nMl3kJ"]) == []


@pytest.mark.parametrize("variable", ["http_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"])
def test_a_proxy_of_the_environment_sees_nothing_of_servers_on_this_machine(
    project: Project, monkeypatch: pytest.MonkeyPatch, tally: Tally, variable: str
):
    tally.tried(len(ALL_SECRETS))
    with WritingServer("proxy") as proxy, WritingServer("t") as target, WritingServer("j") as judge:
        monkeypatch.setenv(variable, proxy.url.replace("//", "//ann:px-Lp09oKi8uJ@"))
        configure(project, "http", target.url, "openai", judge.url)
        result = project.run(*REPORTS)
        assert target.requests
        assert proxy.requests == []
    assert leaks(project, result, traces=[*ALL_SECRETS, "px-Lp09oKi8uJ"]) == []
