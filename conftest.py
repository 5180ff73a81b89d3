"""The fixtures behind the shipped cases: a living example of what a project may give itself.

Each hands on what the options and `[tool.rageval]` configure (the demo system, its judge, the cache), so that
`--rageval-target` and `--rageval-judge` keep working here. A project returns an object of its own instead, as the
docstrings show; `docs/targets.md` and `docs/judges.md` have the details.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_rageval import Judge, Target
    from pytest_rageval.judges.judge import JudgementCache


@pytest.fixture(scope="session")
def rag_client(rag_client: Target) -> Target:
    """Return the system under test: a function, an HTTP client with a base URL, or a `Target`.

    For example `httpx.AsyncClient(base_url="http://localhost:8000")`, or `my_bot.answer`.
    """
    return rag_client


@pytest.fixture(scope="session")
def rag_judge(rag_judge: Judge | None) -> Judge | None:
    """Return the judge: a `Judge`, an object with `score_*` coroutines, or None to judge nothing."""
    return rag_judge


@pytest.fixture(scope="session")
def rag_judge_cache(rag_judge_cache: JudgementCache | None) -> JudgementCache | None:
    """Return where judgements are kept between runs: an object with `get` and `put`, or None."""
    return rag_judge_cache
