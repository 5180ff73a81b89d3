from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import httpx
import pytest
from fault_server import FaultServer, closed_port, gives
from stored_runs import sealed

from pytest_rageval.config.options import KINDS_OF_TARGETS, OPTIONS, PYTHON
from pytest_rageval.config.tables import TargetMapping
from pytest_rageval.errors import SettingsError
from pytest_rageval.model import Answer, AskRequest, EvalCase, Source
from pytest_rageval.targets import Target, check_target, target_from_object, target_from_spec

BOT = """
from __future__ import annotations

class Bot:
    name = "mine"
    async def ask(self, request):
        from pytest_rageval.model import Answer
        return Answer(text="bot")
    async def aclose(self):
        pass

bot = Bot()
number = 7

def ask(question: str) -> str:
    return question

async def app(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b'{"answer": "app"}'})
"""


MAPPING = TargetMapping(request={"q": "{question}"}, response={"answer": "text"})


@pytest.fixture(autouse=True)
def _imports_of_the_test_alone() -> Iterator[None]:
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if name.startswith("my_"):
            del sys.modules[name]


def target_of(spec: str, root: Path, **options: Any) -> Target:
    return target_from_spec(spec, root=root, reports=root / "reports", **options)


def answer_of(target: Target, key: str = "a::q1") -> Answer:
    async def run() -> Answer:
        try:
            return await target.ask(AskRequest("What?", 5, case_key=key))
        finally:
            await target.aclose()

    return asyncio.run(run())


def refusal_of(spec: str, root: Path) -> str:
    with pytest.raises(SettingsError) as caught:
        target_of(spec, root)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def a_case(case_id: str) -> EvalCase:
    return EvalCase(case_id, "?", source=Source("a.jsonl", 1))


def test_every_spelling_gives_its_target(tmp_path: Path):
    (tmp_path / "my_bot.py").write_text(BOT)
    (tmp_path / "given.jsonl").write_text('{"id": "q1", "answer": "uploaded"}')
    run = tmp_path / "reports" / "runs" / "20251218_063617"
    run.mkdir(parents=True)
    line = sealed('{"schema":2,"case_key":"a::q1","trial":0,"answer":{"answer":"recorded"}}')
    (run / "observations.jsonl").write_text(f"{line}\n")
    with FaultServer(gives({"answer": "http"})) as server:
        for spec, expected in [
            (server.url, "http"),
            ("my_bot:ask", "What?"),
            ("my_bot:bot", "bot"),
            ("asgi:my_bot:app", "app"),
            ("answers:given.jsonl", "uploaded"),
            (f"answers:{tmp_path / 'given.jsonl'}", "uploaded"),
            ("run:20251218_063617", "recorded"),
        ]:
            target = target_of(spec, tmp_path)
            assert answer_of(target).text == expected
            assert target.name == ("mine" if spec == "my_bot:bot" else spec)


@pytest.mark.parametrize(
    "spec", ["", "demos", "ftp://host", "open:gpt@http://x", "a b:c", "asgi:app", "answers:", "run:"]
)
def test_an_unknown_spelling_lists_those_that_are_known(spec: str, tmp_path: Path):
    message = refusal_of(spec, tmp_path)
    assert message.startswith("unknown target ")
    assert "package.module:callable, asgi:package.module:app, answers:FILE[#SYSTEM], run:RUN_ID" in message


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("my_none:ask", "target my_none:ask: my_none cannot be imported: ModuleNotFoundError: No"),
        ("my_bad:ask", "target my_bad:ask: my_bad cannot be imported: SyntaxError: "),
        ("my_exit:ask", "target my_exit:ask: my_exit cannot be imported: SystemExit: 3 (at "),
        ("my_lacking:ask", "target my_lacking:ask: my_lacking cannot be imported: ModuleNotFoundError: No"),
        ("my_bot:bot.tell", "target my_bot:bot.tell: my_bot has no 'tell'"),
        ("my_bot:aks", "target my_bot:aks: my_bot has no 'aks'; did you mean 'ask'?"),
        ("my_bot:number", "my_bot:number: is int 7, expected a Target, an HTTP client with a base URL, or a function"),
        ("my_bot:Bot", "my_bot:Bot: is the class Bot; give an instance, or a function"),
        ("my_bot:Bot.ask", "my_bot:Bot.ask: is the method of a class; give that of an instance"),
        ("answers:none.csv", "target answers:none.csv: there is no file "),
        ("run:../../etc", "target run:../../etc: that is not the id of a run, as in 20251218_063617"),
        ("run:20250101_000000", "target run:20250101_000000: there is no such run in "),
        ("http://", "'http://' is not an HTTP URL; write it as in http://localhost:8080"),
        ("openai:m@http://", "target openai:m@http://: 'http://' is not an HTTP URL; write it as in http://localhost"),
        ("openai:m@host:1", "target openai:m@host:1: a model is spelt openai:MODEL or openai:MODEL@URL, the URL with"),
        ("openai:m", "target openai:m: the environment variable OPENAI_API_KEY is not set"),
        ("ollama:", "target ollama:: a model is spelt ollama:MODEL or ollama:MODEL@URL"),
    ],
)  # fmt: skip
def test_what_cannot_be_found_is_a_settings_error_with_its_reason(spec: str, said: str, tmp_path: Path):
    (tmp_path / "my_bot.py").write_text(BOT)
    (tmp_path / "my_bad.py").write_text("def ask(:\n")
    (tmp_path / "my_lacking.py").write_text("import no_such_library\n")
    (tmp_path / "my_exit.py").write_text("raise SystemExit(3)\n")
    assert refusal_of(spec, tmp_path).startswith(said)


def test_a_file_of_answers_is_chosen_by_system_even_if_its_name_holds_the_sign(tmp_path: Path):
    rows = [{"id": "q1", "system": name, "answer": name} for name in ("new", "old")]
    for name in ("given.jsonl", "given#1.jsonl"):
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
        assert answer_of(target_of(f"answers:{name}#old", tmp_path)).text == "old"
    (tmp_path / "one#2.jsonl").write_text('{"id": "q1", "answer": "x"}')
    assert answer_of(target_of("answers:one#2.jsonl", tmp_path)).text == "x"


def test_an_installed_package_may_bring_a_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "my_plugin.py").write_text("def make(rest):\n    return lambda question: rest\n")
    info = tmp_path / "my_plugin-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-plugin\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[rageval.targets]\nmine = my_plugin:make\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert answer_of(target_of("mine:some:thing", tmp_path)).text == "some:thing"


def test_a_target_of_the_project_gets_the_members_that_it_lacks_where_it_comes_in():
    class Mine:
        name = "mine"
        takes_turns = True

        async def ask(self, request: AskRequest) -> Answer:
            return Answer(text="x")

        async def aclose(self) -> None: ...

    target = target_from_object(Mine())
    assert (target.name, target.takes_turns, target.answers_at_once, target.is_called) == ("mine", True, False, True)
    assert (target.notes, target.params_problem(["k"]), target.url) == ((), "", None)
    assert answer_of(target).text == "x"
    assert target_from_object(target) is target


def test_a_function_and_a_client_are_made_into_targets():
    assert answer_of(target_from_object(lambda question: question)).text == "What?"
    with FaultServer(gives({"answer": "x"})) as server, httpx.Client(base_url=server.url) as client:
        assert answer_of(target_from_object(client)).text == "x"


@pytest.mark.parametrize("obj", [None, 7, "demo"])
def test_anything_else_is_a_settings_error(obj: object):
    with pytest.raises(SettingsError, match=r"^rag_client: is .*, expected a Target, an HTTP client"):
        target_from_object(obj)


def test_a_client_without_a_base_url_is_a_settings_error():
    with httpx.Client() as client, pytest.raises(SettingsError, match="has no base URL; give it one"):
        target_from_object(client)


def check(spec: str, root: Path, *cases: EvalCase, **options: Any) -> list[str]:
    is_partial_allowed = options.pop("is_partial_allowed", False)
    target = target_from_spec(spec, root=root, reports=root / "reports", **options)
    return check_target(target, spec, cases, is_partial_allowed=is_partial_allowed)


@pytest.mark.parametrize("mapping", [None, MAPPING], ids=["native", "mapped"])
@pytest.mark.parametrize("spec", ["{url}", "openai:m@{url}", "openai:m@{url}/v1", "ollama:m@{url}"])
def test_a_server_that_cannot_be_reached_is_said_before_it_is_asked(
    tmp_path: Path, spec: str, mapping: TargetMapping | None
):
    closed = spec.format(url=f"http://127.0.0.1:{closed_port()}")
    said = f"target cannot connect to {closed.rpartition('@')[2]}: Connection refused; is the system running?"
    assert check(closed, tmp_path, mapping=mapping) == [said]
    with FaultServer(gives({})) as server:
        assert check(spec.format(url=server.url), tmp_path, mapping=mapping) == []
    assert server.requests == []


def test_a_mapping_is_for_urls_alone(tmp_path: Path):
    with FaultServer(gives({"text": "mapped", "message": {"content": "chat"}, "answer": "native"})) as server:
        assert answer_of(target_of(server.url, tmp_path, mapping=MAPPING)).text == "mapped"
        assert answer_of(target_of(f"ollama:m@{server.url}", tmp_path, mapping=MAPPING)).text == "chat"
        assert answer_of(target_of(server.url, tmp_path)).text == "native"
    assert [request.path for request in server.requests] == ["/", "/api/chat", "/api/v1/ask?debug=true"]


def test_answers_must_cover_the_cases(tmp_path: Path):
    (tmp_path / "given.jsonl").write_text('{"id": "q1", "answer": "x"}')
    assert check("answers:given.jsonl", tmp_path, a_case("q1")) == []
    cases = (a_case("q1"), a_case("q2"))
    assert check("answers:given.jsonl", tmp_path, *cases) == ["given.jsonl: no answer for a.jsonl::q2"]
    assert check("answers:given.jsonl", tmp_path, *cases, is_partial_allowed=True) == []


def test_every_kind_can_be_made_is_spelt_in_the_help_and_stands_in_the_docs():
    docs = (Path(__file__).parents[2] / "docs" / "targets.md").read_text(encoding="utf-8")
    for kind in KINDS_OF_TARGETS:
        assert kind is PYTHON or import_module(f"pytest_rageval.{kind.room}.{kind.module}").from_spec
        assert kind.short in OPTIONS[0].help
        assert kind.names == () or any(f"`{name}" in docs for name in kind.names)
