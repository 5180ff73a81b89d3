"""The models of the tables below `[tool.rageval]`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from pytest_rageval.io.expected import Expects

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Weight = Annotated[float, Field(ge=0, allow_inf_nan=False)]
_ONE_OR_MORE = BeforeValidator(lambda value: (value,) if isinstance(value, str) else value)
_IN_JSON_SCHEMA = WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]})
OneOrMore = Annotated[tuple[str, ...], _ONE_OR_MORE, _IN_JSON_SCHEMA]


class Frozen(BaseModel):
    """A value of the configuration: unknown keys and values of another type are problems."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)


class Gates(Frozen):
    """Gate expressions by where they apply."""

    case: Annotated[tuple[str, ...], Expects('a list of gates, as in ["token_f1 >= 0.5"]')] = ()
    run: Annotated[tuple[str, ...], Expects('a list of gates, as in ["recall_any@5 >= 0.85"]')] = ()


class Regression(Frozen):
    """How far a metric may get worse against the baseline."""

    metric: str
    max_drop: Weight | None = None
    max_rise: Weight | None = None
    significant: bool = False


def _phrase(written: str) -> str:
    if sum(map(str.isalnum, written)) < 2:
        raise ValueError(f'is {written!r}, expected a phrase of two letters or more, as in "I am only trained on"')
    return written


Phrase = Annotated[str, AfterValidator(_phrase)]
Phrases = Annotated[tuple[Phrase, ...], _ONE_OR_MORE, _IN_JSON_SCHEMA, Expects("a phrase or a list of phrases")]


class Abstention(Frozen):
    """What counts as a refusal, beyond the phrases that are known for every bot."""

    phrases: Phrases = ()
    """Refusals of the project's own bot, beside the known ones; case and white space do not matter."""


Stated = Annotated[str, Field(min_length=1, max_length=200)]


class Versions(Frozen):
    """Versions that the project states because its system does not report them: `[tool.rageval.versions]`."""

    llm: Stated | None = None
    embedding: Stated | None = None
    chunker: Stated | None = None
    prompt: Stated | None = None
    index: Stated | None = None


class Origin(Frozen):
    """Which stored versions a run is made from, as the browser writes it: `[tool.rageval.origin]`."""

    agent: Stated | None = None
    agent_version: Annotated[int, Field(ge=1)] | None = None
    dataset: Stated | None = None
    dataset_version: Annotated[int, Field(ge=1)] | None = None
    source: Literal["connector", "uploaded answers"]


class Price(Frozen):
    """What a million tokens of a model cost in US dollars: `[tool.rageval.prices]`."""

    input: Weight
    output: Weight
    cached_input: Weight | None = None
    """Of input tokens from the provider's cache; None: the same as `input`."""


class TargetMapping(Frozen):
    """How a JSON API is asked and read: `[tool.rageval.target.mapping]`; see docs/targets.md."""

    path: str = ""
    method: Literal["POST", "PUT"] = "POST"
    request: Mapping[str, Any]
    response: Mapping[str, Any]


_FROM_LIST = BeforeValidator(lambda value: tuple(value) if isinstance(value, list) else value)
_OMITTED = 'a list of temperature, seed and schema, as in ["seed"]'


class JudgeOptions(Frozen):
    """What the provider of a judge is told: `[tool.rageval.judge_options]`; see docs/model-judges.md."""

    max_tokens: Annotated[int, Field(ge=16, le=1_000_000)] | None = None
    reasoning_effort: str | None = None
    headers: Mapping[str, str] = Field(default_factory=dict)
    extra_body: Mapping[str, Any] = Field(default_factory=dict)
    omit: Annotated[tuple[Literal["temperature", "seed", "schema"], ...], _FROM_LIST, Expects(_OMITTED)] = ()
    """What a server does not take, so that it is left out of each request."""
    api: Literal["openai", "azure"] = "openai"
    """What a server of OpenAI's kind is: OpenAI's own API, or Azure's deployments of it."""
    api_version: str | None = None


TABLES: Mapping[str, type[BaseModel]] = {
    "gates": Gates, "abstention": Abstention, "regression": Regression, "mapping": TargetMapping,
    "judge_options": JudgeOptions, "versions": Versions, "origin": Origin,
    "prices": Price,
}  # fmt: skip
"""The models by the field of Settings that holds them."""
