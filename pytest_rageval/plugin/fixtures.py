"""Fixtures for tests and conftest files, all of which can be overridden: target, judge, cache, case, evaluator."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

from pytest_rageval.plugin.entry import active_session

if TYPE_CHECKING:
    from pytest_rageval.judges.judge import Judge, JudgementCache
    from pytest_rageval.model import EvalCase
    from pytest_rageval.plugin.evaluator import Evaluator
    from pytest_rageval.targets.target import Target


def session_fixtures(config: pytest.Config) -> ModuleType:
    """Return the fixtures of one session as a plugin: functions that know their session.

    They do not take `request`: pytest makes a new one for every argument of that name at every item, also if the
    fixture itself is cached, and three of them are a twentieth of what an item costs. A module, since pytest looks
    for fixtures in modules and classes only, and warns of methods that are fixtures of a session.
    """

    @pytest.fixture(scope="session")
    def rag_client() -> Iterator[Target]:
        """Provide the configured system under test. Override it to give a Target, an httpx client or a callable."""
        yield from active_session(config).fixtures.target()

    @pytest.fixture(scope="session")
    def rag_judge() -> Iterator[Judge | None]:
        """Provide the configured judge, or None. Override it to give one of your own, or None to judge nothing."""
        yield from active_session(config).fixtures.judge()

    @pytest.fixture(scope="session")
    def rag_judge_cache() -> Iterator[JudgementCache | None]:
        """Provide the cache of judgements. Override it to give an object with `get` and `put`, or None."""
        yield from active_session(config).fixtures.cache()

    @pytest.fixture
    def eval_case(request: pytest.FixtureRequest) -> EvalCase:
        """Provide the case of this item, or of this parametrized test."""
        case: EvalCase | None = getattr(request.node, "case", None)
        if case is None:
            message = 'eval_case: this test has no case; mark it with @pytest.mark.rageval("cases.jsonl")'
            pytest.fail(message, pytrace=False)
        return case

    @pytest.fixture
    def rageval(
        request: pytest.FixtureRequest, rag_client: object, rag_judge: object, rag_judge_cache: object
    ) -> Evaluator:
        """Provide an evaluator for a test of your own: `rageval.evaluate(eval_case).assert_gates()`."""
        return active_session(config).evaluator(request.node, rag_client, rag_judge, rag_judge_cache)

    plugin = ModuleType(__name__)
    vars(plugin).update(
        rag_client=rag_client,
        rag_judge=rag_judge,
        rag_judge_cache=rag_judge_cache,
        eval_case=eval_case,
        rageval=rageval,
    )
    return plugin
