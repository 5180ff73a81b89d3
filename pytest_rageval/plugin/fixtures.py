"""Fixtures for tests and conftest files, all of which can be overridden: target, judge, cache, case, evaluator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from pytest_rageval.plugin.entry import active_session

if TYPE_CHECKING:
    from pytest_rageval.judges.judge import Judge, JudgementCache
    from pytest_rageval.model import EvalCase
    from pytest_rageval.plugin.evaluator import Evaluator
    from pytest_rageval.targets.target import Target


class SessionFixtures:
    """The fixtures of one session, as a plugin.

    They know their session by themselves and do not take `request`: pytest makes a new one for every argument of that
    name at every item, also if the fixture itself is cached, and three of them are a twentieth of what an item costs.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    @pytest.fixture(scope="session")
    def rag_client(self) -> Iterator[Target]:
        """Provide the configured system under test. Override it to give a Target, an httpx client or a callable."""
        yield from active_session(self._config).fixtures.target()

    @pytest.fixture(scope="session")
    def rag_judge(self) -> Iterator[Judge | None]:
        """Provide the configured judge; None judges nothing. Override it to give one of your own."""
        yield from active_session(self._config).fixtures.judge()

    @pytest.fixture(scope="session")
    def rag_judge_cache(self) -> Iterator[JudgementCache | None]:
        """Provide the store of judgements between runs: an object with `get` and `put`, or None."""
        yield from active_session(self._config).fixtures.cache()

    @pytest.fixture
    def eval_case(self, request: pytest.FixtureRequest) -> EvalCase:
        """Provide the case of this item, or of this parametrized test."""
        case: EvalCase | None = getattr(request.node, "case", None)
        if case is None:
            message = 'eval_case: this test has no case; mark it with @pytest.mark.rageval("cases.jsonl")'
            pytest.fail(message, pytrace=False)
        return case

    @pytest.fixture
    def rageval(
        self, request: pytest.FixtureRequest, rag_client: object, rag_judge: object, rag_judge_cache: object
    ) -> Evaluator:
        """Evaluate a case in a test of your own: `rageval.evaluate(eval_case).assert_gates()`."""
        return active_session(self._config).evaluator(request.node, rag_client, rag_judge, rag_judge_cache)
