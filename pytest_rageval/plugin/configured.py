"""What do the settings stand for? Target, judge and cache of a session, checked before the first question."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pytest

from pytest_rageval.errors import RagevalError, SettingsError

if TYPE_CHECKING:
    from pytest_rageval.judges.judge import Judge, JudgementCache
    from pytest_rageval.llm.endpoint_options import EndpointOptions
    from pytest_rageval.plugin.session import EvalSession
    from pytest_rageval.targets.target import Target

NO_TARGET = (
    "no target: say which system to ask with --rageval-target, e.g. --rageval-target demo, "
    'or target = "http://localhost:8080" in [tool.rageval], or override the rag_client fixture'
)


class Configured:
    """Target, judge and cache of one session, as configured."""

    def __init__(self, run: EvalSession) -> None:
        self._run = run

    def target(self) -> Iterator[Target]:
        from pytest_rageval.targets import target_from_spec

        run, settings = self._run, self._run.settings
        if settings.target is None:
            pytest.fail(NO_TARGET, pytrace=False)
        target = _made(
            target_from_spec, settings.target, root=run.root, reports=run.reports, timeout=settings.timeout,
            retries=settings.retries, concurrency=settings.concurrency, max_bytes=settings.max_response_bytes,
            headers=settings.resolved_headers(), mapping=settings.mapping,
        )  # fmt: skip
        yield target
        run.ahead.run(target.aclose())
        run.notes += getattr(target, "notes", ())

    def judge(self) -> Iterator[Judge | None]:
        judge = _made(self._judge)
        yield judge
        if judge is not None:
            self._run.ahead.run(judge.aclose())
            self._run.notes += getattr(judge, "notes", ())

    def cache(self) -> Iterator[JudgementCache | None]:
        settings = self._run.settings
        if settings.judge_cache == "off" or settings.redact:  # a judgement quotes what it judged
            yield None
            return
        from pytest_rageval.judges.cache.sqlite_cache import SqliteCache

        cache = SqliteCache(self._run.reports / "cache" / "judge_cache.sqlite")
        yield cache
        cache.close()
        self._run.notes += cache.notes

    @cached_property
    def judge_options(self) -> EndpointOptions:
        """What a judge that asks a server is told; limits and budget are divided among the workers of xdist."""
        from pytest_rageval.llm.budget import Budget
        from pytest_rageval.llm.endpoint_options import EndpointOptions

        settings, share = self._run.settings, 1 / self._run.workers
        budget = None if settings.max_cost is None else Budget(settings.max_cost * share)
        return EndpointOptions.of(settings, share=share, budget=budget)

    @cached_property
    def described_judge(self) -> dict[str, Any] | None:
        """The configured judge as config.json names it; None where nothing is judged."""
        from pytest_rageval.judges.judge import described_judge

        judge = self._asked_about
        if judge is None or self._run.settings.retrieval_only:
            return None
        return described_judge(judge, self._run.settings.judge_temperature)

    def check_judge(self) -> None:
        """SettingsError where the judge's server cannot be asked; nothing is asked in replay."""
        settings = self._run.settings
        if settings.judge_cache == "replay" or settings.retrieval_only or settings.dry_run:
            return
        judge = self._asked_about
        check = getattr(judge, "check", None)
        if judge is None or check is None:
            return

        async def problem() -> str | None:
            found: str | None = await check()
            await judge.aclose()
            return found

        if (said := asyncio.run(problem())) is not None:
            raise SettingsError(f"judge {judge.model!r}: {said}")

    def estimate(self, cases: int) -> str | None:
        """What judging so many cases may cost, in one line; None where nothing is paid, or nobody knows the price."""
        from pytest_rageval.runs.estimate import estimate

        return estimate(self._asked_about, self._run.plan, cases)

    @cached_property
    def _asked_about(self) -> Judge | None:
        """The judge that all questions about it are put to, made once: making it may ask its server for its model.

        It never judges: a judge belongs to one event loop.
        """
        return self._judge()

    def _judge(self) -> Judge | None:
        from pytest_rageval.judges import judge_from_spec

        return judge_from_spec(self._run.settings.judge, root=self._run.root, options=self.judge_options)


def _made(make: Any, *arguments: Any, **named: Any) -> Any:
    """What a setting stands for; a wrong one that only shows now is an error of each case, in one line."""
    try:
        return make(*arguments, **named)
    except RagevalError as error:
        pytest.fail("; ".join(error.problems), pytrace=False)
