"""The one protocol of every judge, and of the cache in front of it; and what judges that ask a server are told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from pytest_rageval.model import Judgement, JudgeRequest

if TYPE_CHECKING:
    from pytest_rageval.judges.budget import Budget
    from pytest_rageval.settings import Settings


@runtime_checkable
class Judge(Protocol):
    """Scores what no formula can.

    `model` names what judges, with its build where known, and is part of every cache key. `rubrics` are those it
    can answer. `heuristic` is True where no model is behind it.
    """

    model: str
    heuristic: bool
    rubrics: frozenset[str]

    async def judge(self, request: JudgeRequest) -> Judgement: ...

    async def aclose(self) -> None: ...


@runtime_checkable
class JudgementCache(Protocol):
    """Keeps judgements by key; both are quick and safe to call from several processes."""

    def get(self, key: str) -> Judgement | None: ...

    def put(self, key: str, judgement: Judgement) -> None: ...


def described(judge: Judge, temperature: float) -> dict[str, Any]:
    """The judge as config.json names it."""
    known: dict[str, Any] = {"model": judge.model, "heuristic": judge.heuristic}
    if not judge.heuristic:
        known |= {"temperature": temperature, "pinned": getattr(judge, "is_pinned", None)}
    return known


@dataclass(frozen=True, slots=True)
class JudgeOptions:
    """How a judge asks its server; judges that ask none take no notice.

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
    def of(cls, settings: Settings, *, share: float = 1.0, budget: Budget | None = None) -> JudgeOptions:
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
