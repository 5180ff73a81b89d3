"""Systems of frameworks by duck typing: which of their methods is called, and what their results mean.

No framework is imported: objects of LangChain, LlamaIndex, Haystack and their like are known by methods and attributes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pytest_rageval.matching.pages import NAMES as PAGES
from pytest_rageval.matching.spellings import heading_text
from pytest_rageval.model import AskRequest, Json

METHODS = (
    ("ainvoke", "invoke"), ("aquery", "query"), ("achat", "chat"), ("aretrieve", "retrieve"), ("run_async", "run"),
    ("arun", "run"), ("aask", "ask"), ("aanswer", "answer"),
)  # fmt: skip
"""The methods that take a question, async and sync, in the order in which they are looked for."""
_QUESTIONS = ("question", "query", "input", "user_input", "prompt", "text")
ANSWERS = ("answer", "result", "response", "output", "output_text", "content", "text", "data", "replies", "answers")
_DOCUMENTS = "context contexts source_documents source_nodes documents docs nodes sources hits"
_LISTS = "chunks passages citations matches results"
DOCUMENTS = (*_DOCUMENTS.split(), *_LISTS.split())
PATHS = ("rel_path", "file_path", "source", "path", "url", "uri", "file_name", "filename", "file", "document", "link")
HEADINGS = ("heading_path", "headings", "header_path", "section", "heading", "title")
TEXTS = ("page_content", "text", "content", "chunk", "passage", "body", "snippet", "excerpt")
IDS = ("chunk_id", "node_id", "id", "id_")
_DOC_IDS = ("doc_id", "document_id", "ref_doc_id", "parent_id")
SCORES = ("score_final", "score", "relevance_score", "similarity", "_score", "relevance")


class Call(NamedTuple):
    """The method of an object that answers: its name, and whether it is async."""

    ask: Callable[[AskRequest], Any]
    is_async: bool


def call_of(obj: object) -> Call | None:
    """Return how an object of a framework is asked; None if it has none of the methods."""
    for later, now in METHODS:
        sync = getattr(obj, now, None)
        own = getattr(obj, later, None)
        if callable(own):
            return Call(_either(own, sync, obj), is_async=True)
        if callable(sync):
            return Call(_only(sync, obj), inspect.iscoroutinefunction(sync))
    return None


def _only(sync: Callable[..., Any], obj: object) -> Callable[[AskRequest], Any]:
    return lambda request: sync(_argument(obj, request), **_options(obj))


def _either(own: Callable[..., Any], sync: Callable[..., Any] | None, obj: object) -> Callable[[AskRequest], Any]:
    async def ask(request: AskRequest) -> Any:
        argument = _argument(obj, request)
        try:
            return await own(argument, **_options(obj))
        except NotImplementedError:  # a base class declares the async method, and the object has the other one
            if sync is None:
                raise
            import asyncio  # here, because scoring a file of answers needs no loop

            return await asyncio.to_thread(sync, argument)

    return ask


def _argument(obj: object, request: AskRequest) -> Any:
    """Return what the method takes: the question, or an object with the keys that the system declares."""
    if callable(inputs := getattr(obj, "inputs", None)):  # a pipeline of Haystack
        questions: dict[str, dict[str, str]] = {}
        for component, sockets in _items(inputs()):
            keys = [key for key, spec in _items(sockets) if _is_question(key, spec)]
            if keys:
                questions[component] = dict.fromkeys(keys, request.question)
        return questions
    schema = getattr(obj, "get_input_jsonschema", None)
    properties = (schema() if callable(schema) else {}).get("properties") or {}
    if "messages" in properties:
        turns = [{"role": turn.role, "content": turn.text} for turn in request.history or ()]
        return {"messages": [*turns, {"role": "user", "content": request.question}]}
    known = [name for name in _QUESTIONS if name in properties]
    names = known or [name for name in properties if name != "root"]
    return {names[0]: request.question} if names else request.question


def _options(obj: object) -> dict[str, Any]:
    """Return what makes a pipeline of Haystack give its documents too, and not only what its last components give."""
    inputs = getattr(obj, "inputs", None)
    outputs = getattr(obj, "outputs", None)
    if not (callable(inputs) and callable(outputs)):
        return {}
    found = outputs(include_components_with_connected_outputs=True)
    return {"include_outputs_from": {name for name, sockets in _items(found) if "documents" in sockets}}


def _items(value: Any) -> Any:
    return value.items() if isinstance(value, Mapping) else ()


def _is_question(key: str, spec: Any) -> bool:
    return key in _QUESTIONS and (not isinstance(spec, Mapping) or bool(spec.get("is_mandatory", True)))


# ── results ───────────────────────────────────────────────────────────────────────────────────────────────────


def foreign_record(result: Any) -> dict[str, Json] | None:
    """Return what a chain, an engine or a retriever returned as an answer record; None if it means nothing here."""
    if isinstance(result, str):
        return {"answer": result}
    if isinstance(result, tuple) and len(result) == 2 and isinstance(result[0], str):
        result = {"answer": result[0], "documents": result[1]}
    if isinstance(result, list | tuple):
        chunks = [chunk for chunk in map(chunk_of, result) if chunk is not None]
        are_all_chunks = len(chunks) == len(result) and not _are_texts(result)
        return {"retrieved_chunks": chunks} if are_all_chunks else None
    answer = _answer(result)
    documents = _documents(result)
    if answer is None and documents is None:
        joined: dict[str, Json] = {}
        for _, part in _items(result):
            if isinstance(part, Mapping):
                joined |= foreign_record(part) or {}
        return joined or None
    record: dict[str, Json] = {} if answer is None else {"answer": answer}
    # A system that says itself whether it declines is believed, whatever it calls its chunks.
    abstained = member(result, "abstained")
    if isinstance(abstained, bool):
        record["abstained"] = abstained
    if documents is not None:
        record["retrieved_chunks"] = [chunk for chunk in map(chunk_of, documents) if chunk is not None]
    return record


def _answer(result: Any) -> str | None:
    """Return the text of an answer: of the first member that is one, or of the last message."""
    if isinstance(messages := member(result, "messages"), list | tuple) and messages:
        return plain_text(member(messages[-1], "content"))
    for name in ANSWERS:
        value = member(result, name)
        if isinstance(value, list | tuple) and value:
            value = _parts(value) or value[0]
        texts = (value, plain_text(member(value, "content")), plain_text(member(value, "data")))
        if (text := next((each for each in texts if isinstance(each, str)), None)) is not None:
            return text
    return None


def _documents(result: Any) -> Sequence[Any] | None:
    for name in DOCUMENTS:
        value = member(result, name)
        if isinstance(value, list | tuple):
            # Texts under `sources` are names of files, under any other name passages.
            are_names = name == "sources" and _are_texts(value)
            return [{"source": each} for each in value] if are_names else value
    answers = member(result, "answers")
    has_answers = isinstance(answers, list | tuple) and bool(answers)
    return _documents(answers[0]) if has_answers else None


def _are_texts(values: Sequence[Any]) -> bool:
    return bool(values) and all(isinstance(value, str) for value in values)


def chunk_of(document: Any) -> dict[str, Json] | None:
    """Return a document of a framework as a chunk: its text, place, ids and score."""
    if isinstance(document, str):
        return {"text": document}
    if isinstance(document, tuple) and len(document) == 2:  # a document with its score
        chunk = chunk_of(document[0])
        return chunk if chunk is None else chunk | {"score_final": float(document[1])}
    # LlamaIndex wraps a node together with its score.
    node = member(document, "node") or document
    metadata = _first((node,), ("metadata", "meta"), Mapping) or {}
    sources = (node, document, metadata)
    chunk = {
        "text": _first(sources[:2], TEXTS, str),
        "rel_path": _first((metadata, node, document), PATHS, str),
        "heading_path": _heading(metadata) or _heading(node),
        "chunk_id": _first(sources, IDS, str),
        "doc_id": _first((metadata, node), _DOC_IDS, str),
        "score_final": _first((document, node, metadata), SCORES, int | float),
        "page": _first((metadata, node), PAGES, str | int),
    }
    found = {name: value for name, value in chunk.items() if value is not None}
    return found if {"text", "rel_path", "chunk_id"} & found.keys() else None


def _heading(of: Any) -> Json:
    level_names = ("header ", "h1", "h2", "h3")
    levels = {key: value for key, value in _items(of) if str(key).lower().startswith(level_names)}
    if levels:
        return heading_text(levels)
    for name in HEADINGS:
        value = member(of, name)
        if name == "header_path" and isinstance(value, str):  # LlamaIndex: /A/B/
            value = [part for part in value.split("/") if part]
        if value and isinstance(text := heading_text(value), str):
            return text
    return None


def _first(sources: Sequence[Any], names: Sequence[str], of: Any) -> Any:
    for source in sources:
        for name in names:
            value = member(source, name)
            if isinstance(value, of) and value != "":
                return value
    return None


def member(of: Any, name: str) -> Any:
    """Return a member of a mapping or an attribute; None if there is none, or if it is a method."""
    if isinstance(of, Mapping):
        return of.get(name)
    try:
        value = getattr(of, name, None)
    except Exception:  # noqa: BLE001 - an attribute may be any foreign code
        return None
    return None if callable(value) else value


def plain_text(value: Any) -> str | None:
    """Return the text of a message's content, which may be a list of parts; None if it is something else."""
    if isinstance(value, list):
        return _parts(value)
    return value if isinstance(value, str) else None


def _parts(values: Sequence[Any]) -> str:
    """Return the joined texts of a message's parts; empty if these are something else."""
    texts = (member(part, "text") for part in values)
    return "".join(text for text in texts if isinstance(text, str))


def member_names(result: Any) -> Iterator[str]:
    """Yield the public members of a result, for a message that it means nothing."""
    names: Iterable[Any] = ()
    if isinstance(result, Mapping):
        names = result
    elif hasattr(result, "__dict__"):
        names = vars(result)
    for name in map(str, names):
        if not name.startswith("_"):
            yield name
