"""Options, prices and budget of a model endpoint."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

from pytest_rageval.errors import ModelFailure, SettingsError
from pytest_rageval.http.call_limit import PATIENCE_S, Limits
from pytest_rageval.llm.credentials import KeySource, is_own, judge_key, unneeded_key
from pytest_rageval.model import Json


@dataclass(frozen=True, slots=True)
class EndpointOptions:
    """Settings for requests to a model's server; judges without a server ignore them.

    base_url    the server of a spec without one
    timeout     seconds for one attempt at a request
    retries     further attempts after 5xx, time-outs and broken connections
    concurrency, requests_per_minute, tokens_per_minute
                limits of this provider for the whole run; None: no limit
    is_adaptive fewer requests while the server refuses some
    patience    seconds without any success after which refused requests fail
    share       this process's worker share of the limits: 1 / number of workers
    budget      the money that may be spent, shared by all users of this object; None: no limit
    is_replay   no request will be sent, so no key is needed
    max_tokens  limit of a reply, including thoughts if the server counts them; None: the caller's default
    reasoning_effort, extra_body
                further fields of each request, in the provider's names
    omit        parameters not to send, out of `temperature`, `seed`, `schema`
    headers     sent with each request; an `authorization`, `api-key` or `x-api-key` among them replaces the key
    server_name the server's name in identities, in place of host and path
    is_joint    rubrics of one answer are judged with one request
    api         kind of an OpenAI-compatible server: `openai`, or `azure` with its `api_version`
    """

    base_url: str | None = None
    temperature: float = 0.0
    timeout: float = 120.0
    retries: int = 2
    concurrency: int = 8
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    is_adaptive: bool = True
    patience: float = PATIENCE_S
    share: float = 1.0
    budget: Budget | None = None
    is_replay: bool = False
    max_tokens: int | None = None
    reasoning_effort: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    extra_body: Mapping[str, Json] = field(default_factory=dict)
    omit: tuple[str, ...] = ()
    server_name: str | None = None
    api: Literal["openai", "azure"] = "openai"
    api_version: str | None = None
    is_joint: bool = False

    @property
    def limits(self) -> Limits:
        """Return the limits of this process: its share, and at least one request at a time."""

        def shared(limit: float | None) -> float | None:
            return None if limit is None else limit * self.share

        concurrency = max(1, int(self.concurrency * self.share))
        requests = shared(self.requests_per_minute)
        tokens = shared(self.tokens_per_minute)
        return Limits(concurrency, requests, tokens, self.is_adaptive, self.patience)

    @property
    def parameters(self) -> dict[str, Json]:
        """Return the additional fields of each request's body."""
        parameters: dict[str, Json] = {}
        if self.reasoning_effort is not None:
            parameters["reasoning_effort"] = self.reasoning_effort
        return parameters | dict(self.extra_body)

    @property
    def key_of(self) -> KeySource:
        """Return the source of the key; none is needed in replay, or if the headers hold a key."""
        holds_key = any(name.lower() in ("authorization", "api-key", "x-api-key") for name in self.headers)
        return unneeded_key if self.is_replay or holds_key else judge_key


# ── prices ────────────────────────────────────────────────────────────────────────────────────────────────────

PASSAGE_TOKENS = 250
"""Tokens of a typical passage, including its share of question and answer. For estimates only."""
REPLY_TOKENS = 250
"""Tokens of a typical judgement: a few sentences of reasoning, claims, the score. For estimates only."""


_PROVIDERS = {
    "azureopenai": "azure",
    "bedrock": "aws",
    "gemini": "google",
    "vertexai": "google",
    "vertexaianthropic": "google",
    "xai": "x-ai",
}
"""Providers whose names differ: any-llm's name → that of genai-prices."""


class Budget:
    """A limit in US dollars. Requests in flight when it is reached are still paid."""

    def __init__(self, max_usd: float) -> None:
        self.max_usd = max_usd
        self.spent_usd = 0.0

    def check(self) -> None:
        """Raise ModelFailure of kind budget if nothing is left; call it before each new request."""
        if self.spent_usd >= self.max_usd:
            raise ModelFailure(
                "budget",
                f"--rageval-max-cost: {self.spent_usd:.4g} of {self.max_usd:.4g} US dollars are spent, so nothing more "
                "is judged; what was judged is kept in the judge cache",
            )

    def spend(self, usd: float) -> None:
        """Add the cost of a request."""
        self.spent_usd += usd

    def check_price(self, tariff: Tariff) -> None:
        """Raise SettingsError if the model has no known price, since a limit needs one."""
        if not tariff.is_known:
            raise SettingsError(
                f"--rageval-max-cost: the price of {tariff.model!r} is not known; leave the limit away, or name a "
                "model that genai-prices knows (pip install 'pytest-rageval[prices]')"
            )


class Tariff(NamedTuple):
    """The prices of one model at one provider."""

    model: str
    url: str

    @property
    def is_known(self) -> bool:
        """Return True if the model has a known price at this provider."""
        return self.cost(1, 1) is not None

    def cost(self, tokens_in: int | None, tokens_out: int | None, tokens_cached: int | None = None) -> float | None:
        """Return the price of one request in US dollars, or None (never 0) if it is unknown.

        Of `tokens_in`, `tokens_cached` came from the provider's cache, at a lower price.

        It is unknown without token counts, without genai-prices (the extra `prices`), for models that genai-prices does
        not list, and for servers on this machine or a private network.
        """
        if tokens_in is None or tokens_out is None:
            return None
        where: dict[str, Any] = {"provider_api_url": self.url}
        parts = urlsplit(self.url)
        if parts.scheme == "any-llm":
            where = {"provider_id": _PROVIDERS.get(parts.netloc, parts.netloc)}
        elif is_own(self.url):
            return None
        return listed_price(self.model, tokens_in, tokens_out, tokens_cached, **where)

    def estimate(
        self, prompts: Iterable[str], *, passages: int = 0, times: int = 1, tokens_out: int = REPLY_TOKENS
    ) -> float | None:
        """Estimate the US dollars for sending each prompt `times` over with so many passages; None without a price.

        Assumes PASSAGE_TOKENS a passage and `tokens_out` a reply.
        """
        tokens_in = [estimated_tokens(prompt, 0) + passages * PASSAGE_TOKENS for prompt in prompts]
        if not tokens_in:
            return 0.0
        return self.cost(times * sum(tokens_in), times * len(tokens_in) * tokens_out)


@lru_cache(4096)  # 180 µs each, and many answers use as many tokens as another
def listed_price(
    model: str, tokens_in: int, tokens_out: int, tokens_cached: int | None = None, **where: Any
) -> float | None:
    """Return the price of one request by genai-prices, or None if the library or the model is not there.

    where  `provider_api_url` or `provider_id`; without one, the provider is the one whose models have such names
    """
    try:
        from genai_prices import Usage, calc_price
    except ModuleNotFoundError:
        return None
    try:
        usage = Usage(input_tokens=tokens_in, output_tokens=tokens_out, cache_read_tokens=tokens_cached)
        return float(calc_price(usage, model, **where).total_price)
    except (LookupError, ValueError):  # unknown provider or model, or contradictory figures
        return None


def estimated_tokens(text: str, most_out: int) -> int:
    """Estimate the tokens of a request before it is sent: UTF-8 bytes / 4, plus the longest reply allowed.

    Bytes, since a Korean or Chinese character is about one token, an English one a quarter.
    """
    return len(text.encode("utf-8", "surrogatepass")) // 4 + most_out
