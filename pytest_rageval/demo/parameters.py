"""Check the bodies of `ask` and `index` requests; all problems of one are reported at once."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pytest_rageval.demo.chunking import TokenBudget

BODY_BYTES = 1024 * 1024
MIN_SCORE = 0.35
"""Default threshold on `score_final`: tuned so that questions from elsewhere find nothing; see the module `answer`."""

RERANK_THRESHOLD = 0.5
"""A reranked chunk of less relevance is dropped."""

FOLDER_MODES = ("off", "on", "on_with_fallback")


class BadRequest(Exception):
    """The request cannot be served; `problems` holds one line each, made for the sender to read."""

    def __init__(self, *problems: str, status: int = 400) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems
        self.status = status


@dataclass(frozen=True, slots=True)
class Ask:
    """A checked question. A budget part that is None is the one the index was built with.

    The weights are accepted for the sake of the contract: without embeddings the lexical one counts as 1.
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
    """The question in this JSON body; null equals absent. Raises `BadRequest` with all problems."""
    values = _checked(_object(body), _ASK)
    if "question" not in values:
        raise BadRequest("question is missing, expected a string")
    return Ask(**values)


def parse_index(body: bytes) -> dict[str, int]:
    """The indexing parameters in this JSON body; an empty body sets none."""
    return _checked(_object(body), _INDEX) if body.strip() else {}


def merged_budget(current: TokenBudget, chunk_max_tokens: int | None, chunk_overlap: int | None) -> TokenBudget:
    """The current budget with the given parts replaced. Raises `BadRequest` where they do not fit together."""
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


def _checked(body: Mapping[str, Any], checks: Mapping[str, _Check]) -> dict[str, Any]:
    problems: list[str] = []
    values: dict[str, Any] = {}
    for name, value in body.items():
        if name not in checks:
            problems.append(f"unknown parameter {_shown(name)}; known are {', '.join(checks)}")
        elif value is not None:
            try:
                values[name] = checks[name](value)
            except _Unfit as unfit:
                problems.append(f"{name}{unfit.where} is {_shown(unfit.value)}, expected {unfit.expected}")
    if problems:
        raise BadRequest(*problems)
    return values


def _shown(value: object) -> str:
    """A value as JSON for a message, bounded, whatever it holds."""
    text = json.dumps(value, ensure_ascii=True)
    return text if len(text) <= 60 else text[:57] + "..."


# ── the checks ────────────────────────────────────────────────────────────────────────────────────────────────

_Check = Callable[[Any], Any]


_SURROGATE = re.compile("[\ud800-\udfff]")


class _Unfit(Exception):
    def __init__(self, value: object, expected: str, where: str = "") -> None:
        super().__init__(expected)
        self.value, self.expected, self.where = value, expected, where


def _one(expected: str, is_fit: Callable[[Any], bool], convert: _Check = lambda value: value) -> _Check:
    """Return a check of one value, which it converts."""

    def check(value: Any) -> Any:
        if not is_fit(value):
            raise _Unfit(value, expected)
        return convert(value)

    return check


def _whole(least: int, most: int) -> _Check:
    return _one(
        f"a whole number from {least} to {most:,}",
        lambda value: _is_number(value) and least <= value <= most and float(value).is_integer(),
        int,
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _text(value: Any, where: str = "") -> str:
    if not isinstance(value, str):
        raise _Unfit(value, "a string", where)
    if _SURROGATE.search(value):
        raise _Unfit(value, "text without lone surrogates", where)
    return value


_list = _one("a list", lambda value: isinstance(value, list))
_share = _one("a number from 0 to 1", lambda value: _is_number(value) and 0 <= value <= 1, float)


def _names(value: Any) -> tuple[str, ...]:
    return tuple(_text(name, f"[{at}]") for at, name in enumerate(_list(value)))


def _folders(value: Any) -> tuple[str, ...]:
    """Return folder paths without the slashes at their ends; `.` and `/` name the root."""
    return tuple("" if name in (".", "./") else name.strip("/").removeprefix("./") for name in _names(value))


def _history(value: Any) -> tuple[tuple[str, str], ...]:
    turns: list[tuple[str, str]] = []
    for at, turn in enumerate(_list(value)):
        if not isinstance(turn, dict) or not {"role", "text"} <= turn.keys():
            raise _Unfit(turn, "an object with role and text", f"[{at}]")
        turns.append((_text(turn["role"], f"[{at}].role"), _text(turn["text"], f"[{at}].text")))
    return tuple(turns)


_INDEX = {"chunk_max_tokens": _whole(16, 4000), "chunk_overlap": _whole(0, 2000)}
_ASK = {
    "question": _text, "k": _whole(1, 1000), "min_score": _share,
    "folder_mode": _one(f"one of {', '.join(FOLDER_MODES)}", lambda value: value in FOLDER_MODES),
    "vaults": _names, "folders": _folders, "history": _history,
    "rerank": _one("true or false", lambda value: isinstance(value, bool)),
    "rerank_threshold": _share, "rerank_vector_weight": _share, "rerank_lexical_weight": _share, **_INDEX,
}  # fmt: skip
