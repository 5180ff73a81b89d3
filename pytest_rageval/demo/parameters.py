"""Checks of the bodies of `ask` and `index` requests; all problems of one are reported together."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from pytest_rageval.demo.chunking import TokenBudget

BODY_BYTES = 1024 * 1024
MIN_SCORE = 0.35
"""Default threshold on `score_final`: tuned so that questions from elsewhere find nothing; see the module `answer`."""

RERANK_THRESHOLD = 0.5
"""A reranked chunk of less relevance is dropped."""

FOLDER_MODES = ("off", "on", "on_with_fallback")


class BadRequest(Exception):
    """A request that cannot be served; `problems` holds one line each for the sender."""

    def __init__(self, *problems: str, status: int = 400) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems
        self.status = status


@dataclass(frozen=True, slots=True)
class Ask:
    """A checked question. A budget part that is None is the index's own.

    The weights are accepted to fulfil the contract: without embeddings the lexical one counts as 1.
    """

    question: str
    k: int = 5
    min_score: float = MIN_SCORE
    folder_mode: str = "on_with_fallback"
    vaults: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    history: tuple[tuple[str, str], ...] = ()
    rerank: bool = False
    rerank_threshold: float = RERANK_THRESHOLD
    rerank_vector_weight: float = 0.7
    rerank_lexical_weight: float = 0.3
    chunk_max_tokens: int | None = None
    chunk_overlap: int | None = None


def parse_ask(body: bytes) -> Ask:
    """Parse the question in this JSON body; null equals absent. Raises `BadRequest` with all problems."""
    values = _checked(_object(body), _ASK)
    if "question" not in values:
        raise BadRequest("question is missing, expected a string")
    return Ask(**values)


def parse_index(body: bytes) -> dict[str, int]:
    """Parse the indexing parameters in this JSON body; an empty body sets none."""
    return _checked(_object(body), _INDEX) if body.strip() else {}


def merged_budget(current: TokenBudget, chunk_max_tokens: int | None, chunk_overlap: int | None) -> TokenBudget:
    """Replace parts of the current budget. Raises `BadRequest` if they do not fit together."""
    budget = TokenBudget(
        current.chunk_max_tokens if chunk_max_tokens is None else chunk_max_tokens,
        current.chunk_overlap if chunk_overlap is None else chunk_overlap,
    )
    if budget.chunk_overlap > budget.chunk_max_tokens // 2:
        raise BadRequest(
            f"chunk_overlap is {budget.chunk_overlap}, expected at most half of chunk_max_tokens"
            f" ({budget.chunk_max_tokens // 2})"
        )
    return budget


# ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────


def _object(body: bytes) -> Mapping[str, Any]:
    try:
        value = json.loads(body.decode("utf-8"), parse_constant=_refuse_constant)
    except UnicodeDecodeError as error:
        raise BadRequest(f"the body is not UTF-8 (byte {error.start})") from None
    except json.JSONDecodeError as error:
        raise BadRequest(f"the body is not JSON: {error.msg} at line {error.lineno}, column {error.colno}") from None
    except RecursionError:
        raise BadRequest("the body is nested too deeply") from None
    except ValueError:  # int() refuses numbers of more than 4,300 digits
        raise BadRequest("the body holds a number that is too long") from None
    if not isinstance(value, dict):
        raise BadRequest(f"the body is {_shown(value)}, expected a JSON object")
    return value


def _refuse_constant(name: str) -> float:
    raise BadRequest(f"the body holds {name}, which is not JSON")


def _checked(body: Mapping[str, Any], kinds: Mapping[str, _Kind]) -> dict[str, Any]:
    problems: list[str] = []
    values: dict[str, Any] = {}
    for name, value in body.items():
        if name not in kinds:
            problems.append(f"unknown parameter {_shown(name)}; known are {', '.join(kinds)}")
        elif value is not None:
            try:
                values[name] = _read(value, kinds[name], name)
            except ValueError as unfit:
                problems.append(str(unfit))
    if problems:
        raise BadRequest(*problems)
    return values


def _read(value: Any, kind: _Kind, where: str) -> Any:
    """Return the value as its kind converts it; lists and objects become tuples. Raise ValueError if it is unfit."""
    if isinstance(kind, list):
        _check(isinstance(value, list), value, where, "a list")
        return tuple(_read(each, kind[0], f"{where}[{at}]") for at, each in enumerate(value))
    if isinstance(kind, dict):
        is_whole = isinstance(value, dict) and kind.keys() <= value.keys()
        _check(is_whole, value, where, f"an object with {' and '.join(kind)}")
        return tuple(_read(value[name], kind[name], f"{where}.{name}") for name in kind)
    _check(kind.is_fit(value), value, where, kind.expected)
    return kind.convert(value)


def _check(is_fit: bool, value: Any, where: str, expected: str) -> None:
    if not is_fit:
        raise ValueError(f"{where} is {_shown(value)}, expected {expected}")


def _shown(value: object) -> str:
    """Format a value as bounded JSON for a message."""
    text = json.dumps(value, ensure_ascii=True)
    return text if len(text) <= 60 else text[:57] + "..."


# ── kinds of values ───────────────────────────────────────────────────────────────────────────────────────────


class _Scalar(NamedTuple):
    """The expected kind of a value, its check and its conversion."""

    expected: str
    is_fit: Callable[[Any], bool]
    convert: Callable[[Any], Any]


_Kind = _Scalar | list[Any] | dict[str, Any]
_SURROGATE = re.compile("[\ud800-\udfff]")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _whole(least: int, most: int) -> _Scalar:
    return _Scalar(
        f"a whole number from {least} to {most:,}",
        lambda value: _is_number(value) and least <= value <= most and float(value).is_integer(),
        int,
    )


def _folder(path: str) -> str:
    """Return a folder without the slashes at its ends; `.` and `/` name the root."""
    return "" if path in (".", "./") else path.strip("/").removeprefix("./")


_TEXT = _Scalar(
    "a string without lone surrogates", lambda value: isinstance(value, str) and not _SURROGATE.search(value), str
)
_SHARE = _Scalar("a number from 0 to 1", lambda value: _is_number(value) and 0 <= value <= 1, float)
_INDEX = {"chunk_max_tokens": _whole(16, 4000), "chunk_overlap": _whole(0, 2000)}
_ASK: Mapping[str, _Kind] = {
    "question": _TEXT, "k": _whole(1, 1000), "min_score": _SHARE,
    "folder_mode": _Scalar(f"one of {', '.join(FOLDER_MODES)}", lambda value: value in FOLDER_MODES, str),
    "vaults": [_TEXT], "folders": [_TEXT._replace(convert=_folder)], "history": [{"role": _TEXT, "text": _TEXT}],
    "rerank": _Scalar("true or false", lambda value: isinstance(value, bool), bool),
    "rerank_threshold": _SHARE, "rerank_vector_weight": _SHARE, "rerank_lexical_weight": _SHARE, **_INDEX,
}  # fmt: skip
