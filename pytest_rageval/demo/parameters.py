"""Checks of the bodies of `ask` and `index` requests; all problems of one are reported together."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from pytest_rageval.demo.chunking import TokenBudget

BODY_BYTES = 1024 * 1024
MIN_SCORE = 0.35
"""Default threshold on `score_final`: tuned so that questions from elsewhere find nothing; see the module `answer`."""

RERANK_THRESHOLD = 0.5
"""A reranked chunk of less relevance is dropped."""


class BadRequest(Exception):
    """A request that cannot be served; `problems` holds one line each for the sender."""

    def __init__(self, *problems: str, status: int = 400, **headers: str) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems
        self.status = status
        self.headers = headers


class LlmError(Exception):
    """A failure of the language model; the message says why, in one line without credentials."""


def _whole(value: Any) -> Any:
    """Return 5.0 as 5."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _folder(path: str) -> str:
    """Return a folder without the slashes at its ends; `.` and `/` name the root."""
    return "" if path in (".", "./") else path.strip("/").removeprefix("./")


Whole = Annotated[int, BeforeValidator(_whole)]
Share = Annotated[float, Field(ge=0, le=1)]


class PriorTurn(BaseModel):
    """A turn of the conversation so far."""

    model_config = ConfigDict(strict=True, frozen=True)
    role: str
    text: str


class IndexBudget(BaseModel):
    """The parameters of indexing. One that is None is the index's own."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")
    chunk_max_tokens: Whole | None = Field(None, ge=16, le=4000)
    chunk_overlap: Whole | None = Field(None, ge=0, le=2000)

    @model_validator(mode="before")
    @classmethod
    def _without_null(cls, body: Any) -> Any:
        if not isinstance(body, dict):
            return body
        return {name: value for name, value in body.items() if value is not None}


class Ask(IndexBudget):
    """A checked question.

    The weights are accepted to fulfil the contract: without embeddings the lexical one counts as 1.
    """

    question: str
    k: Whole = Field(5, ge=1, le=1000)
    min_score: Share = MIN_SCORE
    folder_mode: Literal["off", "on", "on_with_fallback"] = "on_with_fallback"
    vaults: list[str] = []
    folders: list[Annotated[str, AfterValidator(_folder)]] = []
    history: list[PriorTurn] = []
    conversation_id: str | None = None
    """Taken and not used: `history` says all that was said."""
    rewrite: bool = True
    """Whether a follow-up is rewritten with what it leaves out, see `rewriting`."""
    rerank: bool = False
    rerank_threshold: Share = RERANK_THRESHOLD
    rerank_vector_weight: Share = 0.7
    rerank_lexical_weight: Share = 0.3


Body = TypeVar("Body", bound=IndexBudget)


def parse_body(kind: type[Body], body: bytes) -> Body:
    """Parse a JSON body; null equals absent. Raises `BadRequest` with all problems."""
    try:
        return kind.model_validate_json(body)
    except ValidationError as error:
        raise BadRequest(*(_problem(kind, detail) for detail in error.errors(include_url=False))) from None


def _problem(kind: type[BaseModel], detail: Any) -> str:
    message = detail["msg"][:1].lower() + detail["msg"][1:]
    if detail["type"] == "json_invalid":
        return f"the body is not JSON: {detail['ctx']['error']}"
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in detail["loc"])
    where = path[1:]  # a parameter's name comes first, behind a dot
    if detail["type"] == "extra_forbidden":
        return f"unknown parameter {_shown(where)}; known are {', '.join(kind.model_fields)}"
    if detail["type"] == "missing":
        return f"{where} is missing"
    return f"{where or 'the body'} is {_shown(detail['input'])}: {message}"


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=True)
    return text if len(text) <= 60 else text[:57] + "..."


def merged_budget(current: TokenBudget, wanted: IndexBudget) -> TokenBudget:
    """Replace parts of the current budget. Raises `BadRequest` if they do not fit together."""
    given = {name: getattr(wanted, name) for name in TokenBudget._fields}
    budget = current._replace(**{name: tokens for name, tokens in given.items() if tokens is not None})
    if budget.chunk_overlap > budget.chunk_max_tokens // 2:
        raise BadRequest(
            f"chunk_overlap is {budget.chunk_overlap}, expected at most half of chunk_max_tokens"
            f" ({budget.chunk_max_tokens // 2})"
        )
    return budget
