"""Which judge is meant: specs, fixtures' objects, plain objects, and what is said of anything else."""

from __future__ import annotations

import asyncio
import sys
from importlib import import_module
from pathlib import Path

import pytest
from fault_server import closed_port
from judge_server import JudgeServer
from model_judges import problem_of

from pytest_rageval.errors import JudgeError, SettingsError
from pytest_rageval.judges import judge_from_object, judge_from_spec
from pytest_rageval.judges.judge import Judge
from pytest_rageval.judges.judge_spec import KINDS
from pytest_rageval.judges.lexical_judge import LexicalJudge
from pytest_rageval.judges.model_judge import ModelJudge
from pytest_rageval.judges.plain_judge import PlainJudge, StubJudge
from pytest_rageval.llm.endpoint_options import EndpointOptions
from pytest_rageval.model import Judgement, JudgeRequest


def a_request(rubric: str = "groundedness") -> JudgeRequest:
    contexts = [{"chunk_id": "c1", "text": "first"}, {"chunk_id": "c2", "text": "second"}]
    material = {"question": "why?", "answer": "because", "contexts": contexts, "citations": []}
    return JudgeRequest(rubric, "1+abc", material)


def judged(judge: Judge, rubric: str = "groundedness") -> Judgement:
    return asyncio.run(judge.judge(a_request(rubric)))


@pytest.fixture
def own_module(tmp_path, monkeypatch):
    """Write a module into a folder that is not on the import path."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)

    def write(name: str, source: str) -> Path:
        (tmp_path / f"{name}.py").write_text(source)
        return tmp_path

    yield write
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_lexical_is_the_lexical_judge_and_none_is_none():
    assert isinstance(judge_from_spec("lexical"), LexicalJudge)
    assert judge_from_spec("none") is None


def test_a_stub_gives_its_score_on_every_scale_and_never_classifies():
    judge = judge_from_spec("stub:4")
    assert isinstance(judge, StubJudge)
    assert judged(judge).scores == {"groundedness": 4.0}
    assert judged(judge, "relevance").scores == {"relevance": 1.0}
    assert "abstention" not in judge.rubrics


@pytest.mark.parametrize("spec", ["stub", "stub:", "stub:high", "stub:nan", "stub:inf", "stub:-1"])
def test_a_stub_without_a_usable_score_is_said(spec):
    with pytest.raises(
        SettingsError, match=r"the score is a number of at least 0: up to 1 a share of each scale, as in stub:0\.9"
    ):
        judge_from_spec(spec)


KNOWN = (
    "known: lexical, none, stub:SCORE, openai:MODEL, openai:MODEL@URL, http://HOST, anthropic:MODEL, "
    "any-llm:PROVIDER/MODEL, embedding:MODEL@URL, nli:FOLDER, nli:OWNER/NAME, deepeval:METRIC@JUDGE, "
    "package.module:object"
)


@pytest.mark.parametrize("spec", ["", "none:", "lexical:2", "two words", "no_such_module:judge", "a@b"])
def test_an_unknown_judge_names_the_known_ones(spec):
    problem = problem_of(spec)
    assert problem.startswith(f"unknown judge {spec!r}")
    assert problem.endswith(KNOWN)


@pytest.mark.parametrize("spec", ["qwen2.5-14b", "qwen2.5:14b", "llama3:latest", "org/model-7b"])
def test_a_bare_model_needs_a_base_url_and_is_one_with_it(spec):
    with pytest.raises(SettingsError, match=r"if it is a model, say where with --rageval-judge-base-url"):
        judge_from_spec(spec)
    judge = judge_from_spec(spec, options=EndpointOptions(base_url="http://localhost:8080"))
    assert isinstance(judge, ModelJudge)
    assert judge.model == spec


def answers(spec: str, **options) -> Judgement:
    judge = judge_from_spec(spec, options=EndpointOptions(**options))
    assert judge is not None

    async def one() -> Judgement:
        try:
            return await judge.judge(a_request())
        finally:
            await judge.aclose()

    return asyncio.run(one())


@pytest.mark.parametrize(
    ("spec", "has_base_url", "path", "model"),
    [
        ("openai:judge:7b@URL", False, "/v1/chat/completions", "judge:7b"),
        ("openai:judge@URL/api/v3/", False, "/api/v3/chat/completions", "judge"),
        ("judge", True, "/v1/chat/completions", "judge"),
        ("URL", False, "/v1/chat/completions", "only-one"),
        ("anthropic:judge@URL", False, "/v1/messages", "judge"),
        ("anthropic:judge", True, "/v1/messages", "judge"),
    ],
)
def test_a_spec_leads_to_its_server_and_model(spec, has_base_url, path, model):
    with JudgeServer(models=["only-one"]) as server:
        told = {"base_url": server.url} if has_base_url else {}
        said = answers(spec.replace("URL", server.url), **told)
    assert (said.scores, said.model) == ({"groundedness": 4.0}, model)
    assert (server.chats[0].path, server.chats[0].json["model"]) == (path, model)


@pytest.mark.parametrize(("models", "said"), [([], "0 models;"), (["a", "b\x1b[0m"], "2 models: a, b")])
def test_a_server_with_another_number_of_models_lists_them(models, said):
    with JudgeServer(models=models) as server, pytest.raises(SettingsError) as caught:
        judge_from_spec(server.url)
    assert f"GET {server.url}/v1/models: {said}" in str(caught.value)
    assert str(caught.value).endswith("write openai:MODEL@URL")
    assert "\x1b" not in str(caught.value)


def test_a_server_that_is_not_there_cannot_name_its_model():
    with pytest.raises(SettingsError, match=r"the model cannot be asked for: GET http://127\.0\.0\.1:\d+/v1/models"):
        judge_from_spec(f"http://127.0.0.1:{closed_port()}")


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("openai", "judge 'openai' lacks what follows its kind; write it as openai:MODEL or openai:MODEL@URL"),
        ("openai:", "is spelt openai:MODEL or openai:MODEL@URL"),
        ("openai:http://localhost", "is spelt openai:MODEL"),
        ("openai:judge", "the environment variable OPENAI_API_KEY is not set; api.openai.com needs it"),
        ("anthropic:judge", "the environment variable ANTHROPIC_API_KEY is not set; api.anthropic.com needs it"),
        ("embedding:small", "no server; write it as embedding:MODEL@URL"),
        ("http://", "is not an HTTP URL"),
        ("deepeval:toxicity", "metric 'toxicity' is not one of faithfulness, g-eval"),
        ("deepeval:faithfulness", "no model; write it as deepeval:faithfulness@openai:MODEL"),
    ],
)
def test_what_is_wrong_with_a_served_judge_is_said_in_one_line(spec, said):
    assert said in problem_of(spec)


OWN = """
from pytest_rageval.model import Judgement

class Own:
    model, heuristic, rubrics = "own/1", False, frozenset({"groundedness"})
    async def judge(self, request):
        return Judgement(request.rubric, {request.rubric: 3.0}, (0.0, 5.0))
    async def aclose(self): ...

def make():
    return Own()

class holder:
    ready = Own()

number = 7
def broken():
    raise RuntimeError("no key\\nin the environment")
"""


@pytest.mark.parametrize("name", ["Own", "make", "holder.ready"])
def test_a_dotted_path_names_a_class_a_function_or_a_judge(own_module, name):
    judge = judge_from_spec(f"own_judge_module:{name}", root=own_module("own_judge_module", OWN))
    assert judge is not None
    assert judged(judge).scores == {"groundedness": 3.0}


def test_a_judge_of_the_project_gets_the_attributes_that_it_lacks_where_it_comes_in(own_module):
    root = own_module("own_judge_module", OWN + "\nclass Free(Own):\n    is_local, notes = True, ['free']\n")
    plain, free = (judge_from_spec(f"own_judge_module:{name}", root=root) for name in ("Own", "Free"))
    assert plain is not None
    assert free is not None
    assert (plain.is_local, plain.answers_at_once, plain.judge_together, plain.identity) == (
        False,
        False,
        None,
        "own/1",
    )
    assert (free.is_local, free.notes) == (True, ["free"])
    assert asyncio.run(plain.check()) is None


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("number", "judge 'own_judge_module:number' gives int 7; expected a Judge"),
        ("missing", "own_judge_module has no 'missing'"),
        ("broken", "cannot be loaded: RuntimeError: no key in the environment"),
    ],
)
def test_what_is_wrong_with_a_dotted_path_is_said_in_one_line(own_module, name, said):
    root = own_module("own_judge_module", OWN)
    problem = problem_of(f"own_judge_module:{name}", root=root)
    assert said in problem


def test_an_installed_package_adds_judges_by_entry_point(own_module, monkeypatch):
    root = own_module("own_judge_plugin", OWN + "\ndef factory(rest):\n    own = Own(); own.model = rest; return own\n")
    metadata = root / "own_judge_plugin-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: own-judge-plugin\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[rageval.judges]\nown = own_judge_plugin:factory\n")
    monkeypatch.syspath_prepend(str(root))
    judge = judge_from_spec("own:model-7:small")
    assert judge is not None
    assert judge.model == "model-7:small"
    with pytest.raises(SettingsError, match=r"known: lexical, none, .*, own:…, package\.module:object"):
        judge_from_spec("owned")


class Plain:
    model = "plain-model"
    scale: object = (0, 5)

    def __init__(self, groundedness: object = 4, relevance: object = 0.5) -> None:
        self.groundedness, self.relevance = groundedness, relevance
        self.heard: list[tuple[str, str]] = []

    async def score_groundedness(self, answer: str, context: str) -> object:
        self.heard.append((answer, context))
        return self.groundedness

    async def score_relevance(self, answer: str, question: str) -> object:
        self.heard.append((answer, question))
        return self.relevance


class OnlyRelevance:
    async def score_relevance(self, answer: str, question: str) -> float:
        raise ConnectionError("no route\nto host")


def test_a_plain_object_with_the_two_coroutines_judges():
    plain = Plain()
    judge = judge_from_object(plain)
    assert isinstance(judge, PlainJudge)
    assert isinstance(judge, Judge)
    assert judge.rubrics == {"groundedness", "relevance"}
    grounded, relevant = judged(judge), judged(judge, "relevance")
    assert (grounded.scores, grounded.scale) == ({"groundedness": 4.0}, (0.0, 5.0))
    assert (relevant.scores, relevant.scale) == ({"relevance": 0.5}, (0.0, 5.0))
    assert (grounded.model, grounded.prompt_version, grounded.heuristic) == ("plain-model", "1+abc", False)
    assert plain.heard == [("because", "first\n\nsecond"), ("because", "why?")]


@pytest.mark.parametrize(
    "score", [5.5, -1, float("nan"), float("inf"), None, "4", "4/5", True, [4], {"score": 4}, "\ud800"]
)
def test_a_score_that_is_no_number_of_the_scale_is_an_error_and_never_a_zero(score):
    with pytest.raises(JudgeError, match="expected a number from 0 to 5") as caught:
        judged(PlainJudge(Plain(groundedness=score)))
    assert caught.value.kind == "invalid_reply"
    str(caught.value).encode()


def test_a_plain_object_that_states_no_scale_scores_from_0_to_1():
    class Unscaled(Plain):
        scale = None

    said = judged(PlainJudge(Unscaled(groundedness=0.95)))
    assert (said.scores, said.scale) == ({"groundedness": 0.95}, (0.0, 1.0))
    with pytest.raises(JudgeError, match=r"expected a number from 0 to 1; .* as in scale = \(0, 5\)"):
        judged(PlainJudge(Unscaled(groundedness=4.5)))


@pytest.mark.parametrize("scale", [5, (0,), (5, 0), ("0", "5"), (0, float("nan")), "05"])
def test_a_scale_that_is_none_is_said(scale):
    class Odd(Plain):
        pass

    Odd.scale = scale
    with pytest.raises(SettingsError, match=r"judge 'plain-model': scale is .*, expected its lowest and highest score"):
        judge_from_object(Odd())


def test_an_exception_of_a_plain_object_is_a_typed_error_in_one_line():
    with pytest.raises(JudgeError, match="score_relevance raised ConnectionError: no route to host") as caught:
        judged(PlainJudge(OnlyRelevance()), "relevance")
    assert caught.value.kind == "exception"


class HalfAJudge:
    model = "half"

    async def judge(self, request: JudgeRequest) -> Judgement:
        raise AssertionError("an incomplete judge is refused before it is asked")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (7, "rag_judge gives int 7; expected a Judge"),
        (StubJudge, "rag_judge gives the class StubJudge, not an instance of it"),
        (Plain, "rag_judge gives the class Plain, not an instance of it"),
        (HalfAJudge(), "it has judge but lacks heuristic, rubrics, aclose"),
    ],
)
def test_anything_else_is_said_with_what_would_do(given, said):
    with pytest.raises(SettingsError) as caught:
        judge_from_object(given)
    assert said in str(caught.value)
    assert "score_groundedness(answer, context)" in str(caught.value)


def test_every_kind_of_judge_stands_in_the_docs_and_has_a_factory():
    docs = (Path(__file__).parents[2] / "docs/judges.md").read_text(encoding="utf-8")
    for name, kind in KINDS.items():
        assert all(f"`{form.partition('@')[0]}" in docs for form in kind.forms), name
        module, _, function = kind.factory.partition(":")
        assert name == "none" or callable(getattr(import_module(f"pytest_rageval.judges.{module}"), function))
