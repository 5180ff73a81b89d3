"""Chains, engines and pipelines of frameworks, by duck typing and with the real ones where they are installed."""

from __future__ import annotations

import asyncio
import re
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from project import Project

from pytest_rageval.errors import SettingsError, TargetError
from pytest_rageval.model import Answer, AskRequest, Chunk, Turn
from pytest_rageval.targets.callable_target import CallableTarget
from pytest_rageval.targets.target_spec import target_from_object


def ask(obj: object, question: str = "What is B?", **request: Any) -> Answer:
    return asyncio.run(target_from_object(obj, name="bot:chain").ask(AskRequest(question, 5, **request)))


def document(text: str, metadata: dict[str, Any], **more: Any) -> SimpleNamespace:
    return SimpleNamespace(page_content=text, metadata=metadata, **more)


B = Chunk(rel_path="a.md", heading_path="# A > ## B", text="B is two.")
DOCUMENT = document("B is two.", {"source": "a.md", "Header 1": "A", "Header 2": "B"})
NODE = SimpleNamespace(
    node=SimpleNamespace(text="B is two.", metadata={"file_name": "a.md", "headings": ["A", "B"]}, node_id="n1"),
    score=0.5,
)


class Only:
    """An object with one method, which returns a given result, and members that declare its input."""

    def __init__(self, method: str, result: Any, **declared: Any) -> None:
        vars(self).update({name: lambda value=value: value for name, value in declared.items()})
        setattr(self, method, lambda question: result(question) if callable(result) else result)


@pytest.mark.parametrize(
    ("method", "result"),
    [
        ("invoke", {"input": "?", "context": [DOCUMENT], "answer": "Two."}),
        ("invoke", {"query": "?", "result": "Two.", "source_documents": [DOCUMENT]}),
        (
            "invoke",
            {"messages": [{"role": "user", "content": "?"}, SimpleNamespace(content="Two.")], "docs": [DOCUMENT]},
        ),
        ("run", {"llm": {"replies": ["Two."]}, "retriever": {"documents": [DOCUMENT]}}),
        ("run", {"answer_builder": {"answers": [SimpleNamespace(data="Two.", documents=[DOCUMENT])]}}),
        ("ask", SimpleNamespace(answer="Two.", documents=[DOCUMENT])),
        ("query", SimpleNamespace(response="Two.", source_nodes=[SimpleNamespace(node=DOCUMENT, score=None)])),
        ("__call__", {"answer": "Two.", "context": [DOCUMENT]}),
        ("answer", ("Two.", [DOCUMENT])),
    ],
)
def test_results_of_frameworks_give_the_answer_and_its_chunks(method, result):
    answer = ask(Only(method, result) if method != "__call__" else lambda question: result)
    assert (answer.text, answer.chunks) == ("Two.", (B,))


def test_metadata_gives_ids_and_scores():
    answer = ask(Only("query", SimpleNamespace(response="Two.", source_nodes=[NODE])))
    assert answer.chunks == (
        Chunk("n1", rel_path="a.md", heading_path="# A > ## B", text="B is two.", score_final=0.5),
    )
    (pair,) = ask(Only("invoke", [(DOCUMENT, 0.25)])).chunks or ()
    assert pair.score_final == 0.25


@pytest.mark.parametrize(
    "result",
    [
        "Two.",
        SimpleNamespace(content="Two."),
        {"output": "Two."},
        SimpleNamespace(content=[{"type": "text", "text": "Two."}]),
    ],
)
def test_a_text_alone_is_an_answer(result):
    assert ask(Only("invoke", result)).text == "Two."


def test_async_methods_come_first_and_a_missing_one_falls_back():
    class Chain:
        async def ainvoke(self, question):
            return f"async {question}"

        def invoke(self, question):
            return "sync"

    class Engine:
        async def aquery(self, question):
            raise NotImplementedError

        def query(self, question):
            return f"sync {question}"

    assert ask(Chain(), "Q").text == "async Q"
    assert ask(Engine(), "Q").text == "sync Q"


def test_the_question_takes_the_name_that_the_system_declares():
    declared: dict[str, Any] = {"properties": {"k": {}, "question": {}}}
    chain = Only("invoke", lambda given: given["question"], get_input_jsonschema=declared)
    assert ask(chain, "Q").text == "Q"
    graph = Only("invoke", lambda given: given, get_input_jsonschema={"properties": {"messages": {}}})
    assert ask(graph, "Q", history=(Turn("user", "Hi."),)).text == "Q"
    sockets = {"text": {"is_mandatory": True}, "meta": {"is_mandatory": True}}
    pipeline = Only("run", lambda given: given["embedder"]["text"], inputs={"embedder": sockets})
    assert ask(pipeline, "Q").text == "Q"


def test_a_pipeline_gives_the_documents_of_components_before_its_last_one():
    class Pipeline:
        def inputs(self):
            return {"retriever": {"query": {"is_mandatory": True}}}

        def outputs(self, *, include_components_with_connected_outputs):
            return (
                {"retriever": {"documents": {}}, "llm": {"replies": {}}}
                if include_components_with_connected_outputs
                else {}
            )

        def run(self, given, include_outputs_from=()):
            parts = {"retriever": {"documents": [DOCUMENT]}, "llm": {"replies": ["Two."]}}
            return {name: part for name, part in parts.items() if name in {"llm", *include_outputs_from}}

    answer = ask(Pipeline())
    assert (answer.text, answer.chunks) == ("Two.", (B,))


def test_an_object_that_fits_nothing_is_told_its_type_the_methods_and_an_adapter():
    class Client:
        def find(self, text):
            return text

    with pytest.raises(SettingsError) as error:
        target_from_object(Client(), name="shop.bot:client")
    (said,) = error.value.problems
    assert re.fullmatch(
        r"shop\.bot:client: is .*Client, with none of the methods invoke, query, chat, retrieve, run, ask, answer; "
        r"write a function that calls it: def answer\(question\): return \{'answer': client\.find\(question\)\}",
        said,
    )


def test_a_result_that_means_nothing_is_told_its_members():
    with pytest.raises(TargetError, match=r"of verdict, weight nothing is an answer: return \{'answer': …"):
        ask(Only("invoke", SimpleNamespace(verdict=1, weight=2)))


def test_chunks_without_a_place_are_one_line_with_a_count():
    target = target_from_object(Only("invoke", {"answer": "x", "context": [document("t", {"page": 3})] * 3}))
    for _ in range(2):
        asyncio.run(target.ask(AskRequest("Q", 5)))
    assert target.notes == [
        "6 of 6 chunks name no place: their metadata has none of source, file_path, file_name, path or url"
    ]


def in_pieces(*pieces: Any, is_async: bool = False, delay: float = 0.0) -> Any:
    """A function whose result is a generator of these pieces."""

    def stream(question):
        for piece in pieces:
            time.sleep(delay)
            yield piece

    async def stream_async(question):
        for piece in pieces:
            await asyncio.sleep(delay)
            yield piece

    return stream_async if is_async else stream


def message(text: str) -> SimpleNamespace:
    return SimpleNamespace(content=text, additional_kwargs={})


def completion(*texts: str) -> SimpleNamespace:
    return SimpleNamespace(choices=[SimpleNamespace(delta=SimpleNamespace(content=text)) for text in texts])


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize(
    ("pieces", "chunks"),
    [
        (("Tw", "o."), None),
        ((message("Tw"), message("o."), message("")), None),
        (({"token": "Tw"}, {"token": "o."}), None),
        ((completion("Tw"), completion("o."), completion()), None),
        (({"input": "?"}, {"context": [DOCUMENT]}, {"answer": "Tw"}, {"answer": "o."}), (B,)),
        (({"answer": message("Tw")}, {"answer": message("o.")}, {"docs": [DOCUMENT]}), (B,)),
        (("Tw", "o.", {"sources": [DOCUMENT]}), (B,)),
    ],
)
def test_a_generator_is_read_to_its_end_and_joined(pieces, chunks, is_async):
    answer = ask(in_pieces(*pieces, is_async=is_async))
    assert (answer.text, answer.chunks) == ("Two.", chunks)


def test_a_generator_of_documents_is_what_was_retrieved():
    assert ask(in_pieces(DOCUMENT)).chunks == (B,)


def test_a_streaming_response_is_read_and_keeps_its_sources():
    response = SimpleNamespace(response_gen=iter(["Tw", "o."]), source_nodes=[SimpleNamespace(node=DOCUMENT, score=1)])
    answer = ask(Only("query", response))
    assert answer.text == "Two."
    assert [chunk.rel_path for chunk in answer.chunks or ()] == ["a.md"]


@pytest.mark.parametrize("is_async", [False, True])
def test_a_generator_is_bounded_in_size_and_in_time_and_its_exception_is_the_case_error(is_async):
    def failing(question):
        yield "T"
        raise ValueError("broken")

    def kind(function: Any, **limits: Any) -> str:
        with pytest.raises(TargetError) as error:
            asyncio.run(CallableTarget(function, **limits).ask(AskRequest("Q", 5)))
        return error.value.kind

    assert kind(in_pieces(*["x" * 50] * 3, is_async=is_async), max_bytes=100) == "too_large"
    assert kind(in_pieces(*[""] * 100, is_async=is_async), max_bytes=50) == "too_large"
    assert kind(in_pieces(*["x"] * 9, is_async=is_async, delay=0.05), timeout=0.1) == "timeout"
    assert kind(failing) == "exception"


def test_a_generator_of_something_else_is_told_its_type_and_an_adapter():
    with pytest.raises(TargetError, match=r"a stream of int, .*def answer\(question\): return ''\.join\("):
        ask(in_pieces(1, 2))


CASES = [
    {"id": "b", "question": "What is B?", "reference": "B is two.",
     "gold_supports": [{"rel_path": "a.md", "heading_path": "# A > ## B"}]},
]  # fmt: skip


@pytest.mark.parametrize(
    ("library", "page", "module", "target", "scores"),
    [
        ("langchain_core", "target-langchain.md", "chain_bot", "chain", {"recall_any@5": 1, "exact_match": 1}),
        ("llama_index.core", "target-llamaindex.md", "engine_bot", "engine", {"recall_any@5": 1}),
    ],
)
def test_what_the_how_to_makes_with_a_framework_is_evaluated(
    project: Project, library: str, page: str, module: str, target: str, scores: dict[str, float]
):
    pytest.importorskip(library)
    text = (Path(__file__).parents[2] / "docs" / page).read_text(encoding="utf-8")
    (source,) = re.findall(rf'```python title="{module}.py"\n(.*?)```', text, re.DOTALL)
    project.write(f"{module}.py", source)
    project.cases(CASES)
    wanted = ("--judge", "none", "--metrics", "recall_any,exact_match")
    project.rageval("run", "--target", f"{module}:{target}", *wanted).stdout.fnmatch_lines(["*1 of 1 case passes*"])
    assert scores.items() <= project.records()["b"]["scores"].items()
