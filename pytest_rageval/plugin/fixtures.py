"""What tests and conftest files may use, and override: target, judge, cache, the case and the evaluation of one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from pytest_rageval.plugin.session import RUN

if TYPE_CHECKING:
    from pytest_rageval.judges.base import Judge, JudgementCache
    from pytest_rageval.model import EvalCase
    from pytest_rageval.plugin.evaluated import Evaluator
    from pytest_rageval.targets.base import Target


@pytest.fixture(scope="session")
def rag_client(request: pytest.FixtureRequest) -> Iterator[Target]:
    """The system under test, as configured. Override it to give a Target, an httpx client or a callable."""
    yield from request.config.stash[RUN].configured_target()


@pytest.fixture(scope="session")
def rag_judge(request: pytest.FixtureRequest) -> Iterator[Judge | None]:
    """The judge, as configured; None judges nothing. Override it to give one of your own."""
    yield from request.config.stash[RUN].configured_judge()


@pytest.fixture(scope="session")
def rag_judge_cache(request: pytest.FixtureRequest) -> Iterator[JudgementCache | None]:
    """Where judgements are kept between runs: an object with `get` and `put`, or None."""
    yield from request.config.stash[RUN].configured_cache()


@pytest.fixture
def eval_case(request: pytest.FixtureRequest) -> EvalCase:
    """The case of this item, or of this parametrized test."""
    case: EvalCase | None = getattr(request.node, "case", None)
    if case is None:
        pytest.fail('eval_case: this test has no case; mark it with @pytest.mark.rageval("cases.jsonl")', pytrace=False)
    return case


@pytest.fixture
def rageval(
    request: pytest.FixtureRequest, rag_client: object, rag_judge: object, rag_judge_cache: object
) -> Evaluator:
    """Evaluates a case in a test of your own: `rageval.evaluate(eval_case).assert_gates()`."""
    return request.config.stash[RUN].evaluator(request.node, rag_client, rag_judge, rag_judge_cache)
