"""Lines of an answers file as nearly all are, read without building an answer: a check at half of the time."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, get_type_hints

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, with_config
from typing_extensions import TypedDict

from pytest_rageval.io.expected import EXTRA
from pytest_rageval.io.records import Name
from pytest_rageval.io.strict_json import holds_keys_once
from pytest_rageval.language.words import fold
from pytest_rageval.model import Chunk, Reference
from pytest_rageval.model.versions import LONGEST_VERSION

# Names of answers are ids and questions in one mapping: this mark tells them apart.
ASKING = "\0"


def asking(question: str) -> str:
    """Return the name of an answer without an id: its question, ignoring case and white space."""
    return ASKING + fold(question)


UsualLine = tuple[str | None, str, str | None]
"""System, name and question of a line that needs no closer look."""


def usual_line(text: str, _number: int) -> UsualLine | None:
    """Read a line with nothing but what nearly all answers have; None for others, and for all that may be wrong."""
    try:
        line: dict[str, Any] = _usual_lines().validate_json(text)
    except ValidationError:
        return None
    debug: dict[str, Any] = line.get("debug", {})
    question: str | None = line.get("question")
    name: str | None = line.get("id")
    if name is None and question and not question.isspace():
        name = asking(question)
    if name is None or "answer" not in line or not line.keys().isdisjoint(debug):
        return None
    keys = len(line) + len(debug)
    for of in (line, debug):
        for part in of.values():
            if part.__class__ is list:
                keys += sum(map(len, part))
            elif part.__class__ is dict and part is not debug:
                keys += len(part)
    if not holds_keys_once(text, keys):
        return None
    return line.get("system"), name, question


@cache
def _usual_lines() -> TypeAdapter[dict[str, Any]]:
    """Return the reader of lines without free parts, as plain data: half of the time of an Answer."""
    strict = with_config(ConfigDict(strict=True, extra="forbid", allow_inf_nan=False, cache_strings="keys"))

    def members(kind: Any, *left_out: str) -> dict[str, Any]:
        return {name: of for name, of in get_type_hints(kind).items() if name not in left_out}

    def form(name: str, fields: dict[str, Any]) -> Any:
        return strict(TypedDict(name, fields, total=False))  # type: ignore[operator]

    plain = dict[str, str | int | float | bool | None]
    debug = {
        "retrieved_chunks": list[form("chunk", members(Chunk, EXTRA))],  # type: ignore[misc]
        "latency": dict[str, float],
        "usage": plain,
        "versions": dict[str, Annotated[str, Field(max_length=LONGEST_VERSION)] | int | float | bool | None],
    }
    references: Any = list[form("reference", members(Reference, EXTRA))]  # type: ignore[misc]
    told = {"answer": str, "references": references, "abstained": bool, "abstain_reason": str}
    case = {"id": Name, "question": str, "system": str, "model_name": str, "timestamp": str}
    return TypeAdapter(form("line", {**case, **told, **debug, "debug": form("debug", debug)}))
