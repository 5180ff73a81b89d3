"""What a model endpoint is asked with: server, limits, budget."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_rageval.config.settings import Settings
from pytest_rageval.llm.budget import Budget


@dataclass(frozen=True, slots=True)
class EndpointOptions:
    """How a model's server is asked; judges that ask none take no notice.

    base_url    the server of a judge whose spec names none
    timeout     seconds for one attempt at a request
    retries     further attempts after 429, 5xx, time-outs and broken connections
    concurrency, requests_per_minute, tokens_per_minute
                limits of this provider for the whole run; None: no limit
    share       this process's part of the limits: 1 / number of workers
    budget      what judging may cost, shared by all judges that are given it; None: no limit
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

    @classmethod
    def of(cls, settings: Settings, *, share: float = 1.0, budget: Budget | None = None) -> EndpointOptions:
        """What the settings say."""
        return cls(
            base_url=settings.judge_base_url,
            temperature=settings.judge_temperature,
            timeout=settings.timeout,
            retries=settings.retries,
            concurrency=settings.judge_concurrency,
            requests_per_minute=settings.judge_requests_per_minute,
            tokens_per_minute=settings.judge_tokens_per_minute,
            share=share,
            budget=budget,
            is_replay=settings.judge_cache == "replay",
        )
