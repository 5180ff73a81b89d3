"""The mapping of a reply of unknown shape: where it holds the answer and the chunks, found by names and shapes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from pytest_rageval.model import Json
from pytest_rageval.targets.foreign_results import ANSWERS, DOCUMENTS, HEADINGS, IDS, PATHS, SCORES, TEXTS
from pytest_rageval.text import cut

_LIKE_PATH = re.compile(r"\S*\.[A-Za-z]\w{0,5}(#.*)?|\w+://\S+|/\S+")
_LONGEST_PATH = 1_000
"""The pattern takes n² steps, and a reply may hold texts of any length."""
_LEVEL = re.compile(r"(\b(?:h|header[ _-]?|heading[ _-]?))[1-6](\"?)$", re.IGNORECASE)
"""The name of one level of headings, such as `metadata."Header 1"`."""
_MOST_ITEMS = 8
"""Items of a list that are looked at: the first text may be a short one."""


def response_mapping(data: Json, question: str = "") -> tuple[dict[str, Any], list[str]]:
    """Return the mapping of a reply, found by names and shapes, and what it lacks."""
    chunks = max(_lists(data), key=lambda found: found.fitness, default=None)
    response: dict[str, Any] = {}
    missing: list[str] = []
    answer_path = _answer_path(data, question, None if chunks is None else chunks.path)
    if answer_path is not None:
        response["answer"] = answer_path
    else:
        missing.append("an answer")
    usage_path = _usage_path(data)
    if usage_path is not None:
        response["usage"] = usage_path
    abstained_path = _abstained_path(data)
    if abstained_path is not None:
        response["abstained"] = abstained_path
    if chunks is None:
        missing.append(_why_no_chunks(data))
        return response, missing
    fields = _chunk_fields(chunks.items)
    response["retrieved_chunks"] = {"each": chunks.path or "@"} | fields
    missing += [words for field, words in _NEEDED.items() if field not in fields]
    return response, missing


def shown_keys(data: Json) -> list[str]:
    """Return the paths of a reply's values, its type if it has none."""
    return [path.replace("[0]", "[]") for path, value in _leaves(data)] or [type(data).__name__]


def _answer_path(data: Json, question: str, chunks_path: str | None) -> str | None:
    """Return the path of the text that is the answer: the best by name, of equal ones the longest."""
    texts: list[tuple[int, int, str]] = []
    for path, value in _leaves(data):
        # The longest text of a reply is often a passage.
        is_of_chunk = chunks_path is not None and path.startswith(f"{chunks_path}[")
        if isinstance(value, str) and value != question and not is_of_chunk:
            texts.append((_rank(path, ANSWERS), -len(value), path))
    best = min(texts, key=lambda text: text[:2], default=None)
    return None if best is None else best[2]


_TOKENS = frozenset(
    {"input_tokens", "output_tokens", "prompt_tokens", "completion_tokens", "prompt_eval_count", "total_tokens"}
)


def _usage_path(data: Json) -> str | None:
    """Return the path of the object that counts tokens, the outermost one."""
    for path, value in _members(data):
        if path and isinstance(value, dict) and not _TOKENS.isdisjoint(value):
            return path
    return None


_ABSTAINED = frozenset(
    {"abstained", "abstain", "abstention", "declined", "refused", "refusal", "isrefusal", "noanswer", "unanswerable"}
)
"""Names that a server gives the sign that it declines, in lower case without separators."""


def _abstained_path(data: Json) -> str | None:
    """Return the path of the truth value that says whether the server declines to answer."""
    for path, value in _leaves(data, enters_lists=False):
        name = re.sub(r"[^a-z]", "", path.rpartition(".")[2].lower())
        if isinstance(value, bool) and name in _ABSTAINED:
            return path
    return None


def _why_no_chunks(data: Json) -> str:
    """Return why a reply has no chunks: a system that knows no answer often sends an empty list of them."""
    empty = [path for path, value in _members(data) if path and value == []]
    named = [path for path in empty if _is_named_like_chunks(path)]
    found = named or empty
    if not found:
        return "retrieved chunks: retrieval cannot be measured"
    shown = cut(found[0], _LONGEST_SHOWN)
    return f"retrieved chunks: `{shown}` is empty; ask a question that the system can answer"


_LONGEST_SHOWN = 80
_NEEDED = {
    "text": "texts of chunks",
    "rel_path": "paths of chunks",
    "heading_path": "headings (golds are matched by document)",
}


class _ChunkList(NamedTuple):
    """A list that may hold chunks; the largest `fitness` is the best."""

    fitness: tuple[int, int]
    path: str
    items: list[Json]


def _lists(data: Json) -> Iterator[_ChunkList]:
    """Yield the lists that may hold chunks."""
    for path, value in _members(data):
        if not isinstance(value, list) or not value:
            continue
        is_named = _is_named_like_chunks(path)
        fields = _chunk_fields(value)
        if is_named or {"text", "rel_path"} <= fields.keys():
            signs = int(is_named) + int("rel_path" in fields)
            if "text" in fields:
                signs += 2
            depth = path.count(".")
            yield _ChunkList((signs, -depth), path, value)


def _is_named_like_chunks(path: str) -> bool:
    return _is_named(path, DOCUMENTS) or "source" in path or "chunk" in path


def _is_like_path(text: str) -> bool:
    return len(text) <= _LONGEST_PATH and _LIKE_PATH.fullmatch(text) is not None


def _chunk_fields(items: Sequence[Json]) -> dict[str, str]:
    """Return the expressions of a chunk's fields in an item of a list."""
    if isinstance(items[0], str):
        return {"rel_path" if _is_like_path(items[0]) else "text": "@"}
    if not isinstance(items[0], dict):
        return {}
    leaves = _longest_leaves(items)
    found: dict[str, str] = {}
    # A leaf is one field only, so the order decides: the text comes last, since any long leaf may be it.
    for field, (names, may_be) in _FIELDS.items():
        expression: str | None = None
        if field == "heading_path":
            expression = _heading_levels(leaves)
        if expression is None:
            free = [path for path in leaves if path not in found.values()]
            candidates = [path for path in free if may_be(path, leaves[path])]
            expression = min(candidates, key=partial(_rank, names=names), default=None)
        if expression is not None:
            found[field] = expression
    chunk_id = found.get("chunk_id")
    if chunk_id is not None and isinstance(leaves[chunk_id], int):
        # Ids are texts in labels; a database may number its chunks.
        found["chunk_id"] = f"to_string({chunk_id})"
    return {field: found[field] for field in _FIELDS_IN_ORDER if field in found}


def _longest_leaves(items: Sequence[Json]) -> dict[str, Json]:
    """Return the leaves of the first items, each with its longest text in any of them."""
    leaves: dict[str, Json] = {}
    for item in items[:_MOST_ITEMS]:
        for path, value in _leaves(item, enters_lists=False):
            if path not in leaves or (isinstance(value, str) and len(value) > len(str(leaves[path]))):
                leaves[path] = value
    return leaves


def _heading_levels(paths: Iterable[str]) -> str | None:
    """Return an expression of all levels of headings if each level is a field of its own; the reply may lack some."""
    for path in paths:
        if _LEVEL.search(path) is not None:
            levels = [_LEVEL.sub(rf"\g<1>{number}\2", path) for number in range(1, 5)]
            return f"[{', '.join(levels)}]"
    return None


def _is_named(path: str, names: Sequence[str]) -> bool:
    return _rank(path, names) < len(names)


def _may_be_path(path: str, value: Json) -> bool:
    return isinstance(value, str) and (_is_like_path(value) or _is_named(path, PATHS))


def _may_be_heading(path: str, _: Json) -> bool:
    return _is_named(path, HEADINGS) or "head" in path.lower()


def _may_be_score(path: str, value: Json) -> bool:
    return isinstance(value, float) or _is_named(path, SCORES) or "score" in path


def _may_be_id(path: str, _: Json) -> bool:
    return _is_named(path, IDS)


def _may_be_text(path: str, value: Json) -> bool:
    return isinstance(value, str) and (_is_named(path, TEXTS) or len(value) > _LONGER_THAN_A_NAME)


_LONGER_THAN_A_NAME = 40
_FIELDS: Mapping[str, tuple[Sequence[str], Callable[[str, Json], bool]]] = {
    "rel_path": (PATHS, _may_be_path),
    "heading_path": (HEADINGS, _may_be_heading),
    "score_final": (SCORES, _may_be_score),
    "chunk_id": (IDS, _may_be_id),
    "text": (TEXTS, _may_be_text),
}
"""The usual names of each field of a chunk, and a check of whether a leaf may be it, in the order of the search."""
_FIELDS_IN_ORDER = ("chunk_id", "rel_path", "heading_path", "text", "score_final")
"""As a mapping shows them."""


def _members(data: Json, path: str = "") -> Iterator[tuple[str, Json]]:
    """Yield all members with their expressions, the first item of each list for all of them."""
    yield path, data
    if isinstance(data, dict):
        for name, value in data.items():
            step = name if re.fullmatch(r"[A-Za-z_]\w*", name) else json.dumps(name)
            yield from _members(value, f"{path}.{step}" if path else step)
    elif isinstance(data, list) and data and isinstance(data[0], dict):
        yield from _members(data[0], f"{path}[0]")


def _leaves(data: Json, *, enters_lists: bool = True) -> Iterator[tuple[str, Json]]:
    for path, value in _members(data):
        is_entered = isinstance(value, list) and enters_lists and bool(value) and isinstance(value[0], dict)
        is_leaf = not isinstance(value, dict) and not is_entered
        if path and is_leaf and (enters_lists or "[" not in path):
            yield path, value


def _rank(path: str, names: Sequence[str]) -> int:
    name = path.rpartition(".")[2].strip('"').lower()
    return names.index(name) if name in names else len(names)
