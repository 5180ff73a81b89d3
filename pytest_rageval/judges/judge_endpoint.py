"""How a judge's server is asked, by the settings: its options, and the judge of a run."""

from __future__ import annotations

from pathlib import Path

from pytest_rageval.config.settings import Settings
from pytest_rageval.judges.judge import Judge
from pytest_rageval.judges.judge_spec import judge_from_spec
from pytest_rageval.llm.endpoint_options import EndpointOptions
from pytest_rageval.llm.prices import Budget


def judge_of_run(settings: Settings, root: Path, workers: int) -> Judge | None:
    """The configured judge; limits and budget are divided among the processes of the run."""
    budget = None if settings.max_cost is None else Budget(settings.max_cost / workers)
    options = judge_endpoint(settings, share=1 / workers, budget=budget)
    return judge_from_spec(settings.judge, root=root, options=options)


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
        headers=settings.resolved_judge_headers(),
        extra_body=options.extra_body,
        omit=options.omit,
        server_name=settings.judge_name,
        api=options.api,
        api_version=options.api_version,
    )
