"""Operations of each case: what asking the system took, in OpenTelemetry's words. Lower is better for all.

They have units and no scale, so they count in no layer's score. They are off by default: times differ between equal
runs, and a run that names none of them stays the same to the byte.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from pytest_rageval.llm.price_list import LISTED_PRICES, PriceList, Usage
from pytest_rageval.metrics.registry import Metric, metric
from pytest_rageval.model import Json, NotApplicable, Observation
from pytest_rageval.text import excerpt

LARGEST = 1e15
"""The end of a scale that has none: up to here sums stay exact enough, and finite."""
SCALE = (0, LARGEST)

NOT_CALLED = NotApplicable("no call was timed: the answer is a recorded one, and its record states no latency")
NO_FIRST_TOKEN = NotApplicable("the answer did not arrive as a stream, and the system reports no ttft_ms")
NO_TOKENS = NotApplicable("the system does not report how many tokens it used", is_unobserved=True)
NO_HTTP = NotApplicable("no HTTP request was sent for this case")


@metric(layer="operations", better="lower", scale=SCALE, unit="ms", on_by_default=False)
def latency_ms(obs: Observation) -> float | NotApplicable:
    """Milliseconds from sending the question until the whole answer is there, measured by the caller.

    Lower is better. Waiting for a place, for a rate limit or before a retry does not count, and neither do failed
    attempts. Not applicable where nothing was called, unless the record of the answer states `latency.total_ms`.
    Source: `gen_ai.client.operation.duration` of OpenTelemetry's conventions, in milliseconds.

    >>> score("latency_ms", called(latency_ms=812.5))
    812.5
    """
    if obs.timings.ask_ms is not None:
        return obs.timings.ask_ms
    stated = _first_amount(obs.answer.latency, ("total_ms", "latency_ms"))
    return NOT_CALLED if stated is None else stated


@metric(layer="operations", better="lower", scale=SCALE, unit="ms", on_by_default=False)
def ttft_ms(obs: Observation) -> float | NotApplicable:
    """Milliseconds from sending the question until the first token of the answer.

    Lower is better. Measured where the answer arrives as a stream, else as the system reports it in
    `latency.ttft_ms`. Not applicable where neither is known. Source: `gen_ai.server.time_to_first_token` of
    OpenTelemetry's conventions, in milliseconds.

    >>> score("ttft_ms", called(latency={"ttft_ms": 140.0}))
    140.0
    """
    if obs.timings.ttft_ms is not None:
        return obs.timings.ttft_ms
    stated = _first_amount(obs.answer.latency, ("ttft_ms",))
    return NO_FIRST_TOKEN if stated is None else stated


@metric(layer="operations", better="lower", scale=SCALE, unit="tokens", on_by_default=False)
def input_tokens(obs: Observation) -> float | NotApplicable:
    """Tokens that the system sent to its models for this answer, as its usage reports them.

    Lower is better. Cached tokens are among them. Not applicable where the system reports none. Source:
    `gen_ai.usage.input_tokens` of OpenTelemetry's conventions.

    >>> score("input_tokens", called(usage={"prompt_tokens": 1200, "completion_tokens": 80}))
    1200.0
    """
    tokens = usage_of(obs).input_tokens
    return NO_TOKENS if tokens is None else float(tokens)


@metric(layer="operations", better="lower", scale=SCALE, unit="tokens", on_by_default=False)
def output_tokens(obs: Observation) -> float | NotApplicable:
    """Tokens that the system's models generated for this answer, as its usage reports them.

    Lower is better. Not applicable where the system reports none. Source: `gen_ai.usage.output_tokens` of
    OpenTelemetry's conventions.

    >>> score("output_tokens", called(usage={"input_tokens": 1200, "output_tokens": 80}))
    80.0
    """
    tokens = usage_of(obs).output_tokens
    return NO_TOKENS if tokens is None else float(tokens)


def _cost_terms(obs: Observation, _: int) -> str:
    if _first_amount(obs.answer.usage, _COSTS) is not None:
        return "as the system reports it"
    usage = usage_of(obs)
    model = excerpt(model_of(obs) or "its model", 80)
    return f"{usage.input_tokens:,} input and {usage.output_tokens:,} output tokens of {model}"


@metric(
    layer="operations",
    better="lower",
    scale=SCALE,
    unit="US dollars",
    on_by_default=False,
    terms=_cost_terms,
)
def cost_usd(obs: Observation, prices: PriceList = LISTED_PRICES) -> float | NotApplicable:
    """US dollars that the system's models cost for this answer; the judge's cost is not part of it.

    Lower is better. As the system reports it (`cost_usd` in its usage), else its tokens at the prices of
    `[tool.rageval.prices]`, else at the list price of its model. What is not known is never 0. Not applicable where a
    price or a number of tokens is not known. Source: the rules of this project.

    >>> score("cost_usd", called(usage={"input_tokens": 1200, "output_tokens": 80, "cost_usd": 0.0021}))
    0.0021
    """
    stated = _first_amount(obs.answer.usage, _COSTS)
    if stated is not None:
        return stated
    usage = usage_of(obs)
    if usage.input_tokens is None or usage.output_tokens is None:
        return NO_TOKENS
    model = model_of(obs)
    cost = prices.cost(model, usage)
    if cost is not None:
        return cost
    named = "its model, which the system does not name," if model is None else f"model {excerpt(model, 80)!r}"
    return NotApplicable(f"no price of {named} is known; write one into [tool.rageval.prices]")


@metric(layer="operations", better="lower", scale=SCALE, unit="requests", on_by_default=False)
def requests(obs: Observation) -> float | NotApplicable:
    """HTTP requests that were sent to the system for this case: one, and each refused or failed attempt.

    Lower is better. Not applicable where no HTTP request was sent. Source: the rules of this project.

    >>> score("requests", called(requests=3))
    3.0
    """
    sent = obs.timings.requests
    return NO_HTTP if sent is None else float(sent)


OPERATIONS: tuple[Metric, ...] = (latency_ms, ttft_ms, input_tokens, output_tokens, cost_usd, requests)
OPERATION_UNITS: Mapping[str, str | None] = {operation.name: operation.unit for operation in OPERATIONS}
"""The unit of each operation, by its name."""

_COSTS = ("cost_usd", "total_cost_usd", "cost")
_INPUT = ("input_tokens", "prompt_tokens", "prompt_eval_count")
_OUTPUT = ("output_tokens", "completion_tokens", "eval_count")
_CACHED = ("cache_read_input_tokens", "cached_tokens")
_DETAILS = ("input_tokens_details", "prompt_tokens_details")


def usage_of(obs: Observation) -> Usage:
    """Return the tokens that the system reports, by any of the names that providers give them."""
    usage = obs.answer.usage
    sent = _first_amount(usage, _INPUT)
    generated = _first_amount(usage, _OUTPUT)
    cached = _first_amount(usage, _CACHED)
    for name in _DETAILS:
        details = usage.get(name)
        if cached is None and isinstance(details, Mapping):
            cached = _first_amount(details, _CACHED)
    if sent is not None and "input_tokens" in usage:
        # Anthropic counts cached tokens beside its input_tokens; everyone else counts them among those of the prompt.
        sent += sum(_first_amount(usage, (name,)) or 0 for name in _BESIDE)
    return Usage(_whole(sent), _whole(generated), _whole(cached))


_BESIDE = ("cache_read_input_tokens", "cache_creation_input_tokens")


def model_of(obs: Observation) -> str | None:
    """Return the model that the system reports as its own, or None."""
    for written in (obs.answer.versions.get("llm"), obs.answer.extra.get("model_name")):
        if isinstance(written, str) and written:
            return written
    return None


def _first_amount(reported: Mapping[str, Json], names: Sequence[str]) -> float | None:
    """Return the first of these members that is an amount: a finite number from 0 within the scale."""
    for name in names:
        value = reported.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and _is_amount(value):
            return float(value)
    return None


def _is_amount(value: float) -> bool:
    # A whole number of any length may come from JSON: compared first, it is never turned into a float too large.
    return 0 <= value <= LARGEST and math.isfinite(value)


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)
