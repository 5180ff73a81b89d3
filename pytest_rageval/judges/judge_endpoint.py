"""How a judge's server is asked, by the settings."""

from __future__ import annotations

from pytest_rageval.config.settings import Settings
from pytest_rageval.llm.budget import Budget
from pytest_rageval.llm.endpoint_options import EndpointOptions


def judge_endpoint(settings: Settings, *, share: float = 1.0, budget: Budget | None = None) -> EndpointOptions:
    """The options of a judge's server; `share` and `budget` as for `EndpointOptions`."""
    options = settings.judge_options
    return EndpointOptions(
        base_url=settings.judge_base_url,
        temperature=settings.judge_temperature,
        timeout=settings.timeout,
        retries=settings.retries,
        concurrency=settings.judge_concurrency,
        requests_per_minute=settings.judge_requests_per_minute,
        tokens_per_minute=settings.judge_tokens_per_minute,
        is_adaptive=settings.adaptive_concurrency,
        share=share,
        budget=budget,
        is_replay=settings.judge_cache == "replay",
        max_tokens=options.max_tokens,
        reasoning_effort=options.reasoning_effort,
        headers={} if settings.judge_cache == "replay" else settings.resolved_judge_headers(),
        extra_body=options.extra_body,
        server_name=settings.judge_name,
        api=options.api,
        api_version=options.api_version,
    )
