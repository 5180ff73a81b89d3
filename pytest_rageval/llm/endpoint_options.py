"""What a model endpoint is asked with: server, limits, budget."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pytest_rageval.llm.credentials import KeySource, judge_key, unneeded_key
from pytest_rageval.llm.prices import Budget
from pytest_rageval.llm.rate_limit import Limits
from pytest_rageval.model import Json


@dataclass(frozen=True, slots=True)
class EndpointOptions:
    """How a model's server is asked; who asks none takes no notice.

    base_url    the server of a spec that names none
    timeout     seconds for one attempt at a request
    retries     further attempts after 429, 5xx, time-outs and broken connections
    concurrency, requests_per_minute, tokens_per_minute
                limits of this provider for the whole run; None: no limit
    is_adaptive fewer requests at the same time while the server refuses some
    share       this process's part of the limits: 1 / number of workers
    budget      what asking may cost, shared by all that are given it; None: no limit
    is_replay   nothing will be asked, so that no key is needed
    max_tokens  of a reply, its thoughts included where the server counts them; None: as whoever asks thinks best
    reasoning_effort, extra_body
                further fields of each request, as the provider calls them
    omit        what is not sent: of `temperature`, `seed`, `schema`
    headers     sent with each request; an `authorization`, `api-key` or `x-api-key` among them replaces the key
    server_name what the server is called in identities, in place of host and path
    api         what a server of OpenAI's kind is: `openai`, or `azure` with its `api_version`
    """

    base_url: str | None = None
    temperature: float = 0.0
    timeout: float = 120.0
    retries: int = 2
    concurrency: int = 8
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    is_adaptive: bool = True
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

    @property
    def limits(self) -> Limits:
        """The limits of this process: its share, and at least one request at a time."""
        per_minute = (self.requests_per_minute, self.tokens_per_minute)
        requests, tokens = (None if limit is None else limit * self.share for limit in per_minute)
        return Limits(max(1, int(self.concurrency * self.share)), requests, tokens, self.is_adaptive)

    @property
    def parameters(self) -> dict[str, Json]:
        """Further fields of each request's body."""
        effort = {} if self.reasoning_effort is None else {"reasoning_effort": self.reasoning_effort}
        return effort | dict(self.extra_body)

    @property
    def key_of(self) -> KeySource:
        """Where the key comes from; none is needed where the headers bring one, or nothing is asked."""
        holds_key = any(name.lower() in ("authorization", "api-key", "x-api-key") for name in self.headers)
        return unneeded_key if self.is_replay or holds_key else judge_key
