"""What a model endpoint is asked with: server, limits, budget."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_rageval.llm.budget import Budget


@dataclass(frozen=True, slots=True)
class EndpointOptions:
    """How a model's server is asked; who asks none takes no notice.

    base_url    the server of a spec that names none
    timeout     seconds for one attempt at a request
    retries     further attempts after 429, 5xx, time-outs and broken connections
    concurrency, requests_per_minute, tokens_per_minute
                limits of this provider for the whole run; None: no limit
    share       this process's part of the limits: 1 / number of workers
    budget      what asking may cost, shared by all that are given it; None: no limit
    is_replay   nothing will be asked, so that no key is needed
    """

    base_url: str | None = None
    temperature: float = 0.0
    timeout: float = 120.0
    retries: int = 2
    concurrency: int = 8
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    share: float = 1.0
    budget: Budget | None = None
    is_replay: bool = False
