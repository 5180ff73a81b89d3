"""The cached judge: what each mode does, what is kept together, and what is never kept."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from counting_judge import Counting, Remembering, a_judgement, a_request, ask

from pytest_rageval.config.settings import Settings
from pytest_rageval.errors import JudgeError, SettingsError
from pytest_rageval.io.masking import Mask
from pytest_rageval.judges.cache.cache_key import KeyParts, key_parts
from pytest_rageval.judges.cache.cached_judge import CachedJudge
from pytest_rageval.judges.cache.sqlite_cache import SqliteCache
from pytest_rageval.judges.checked_judge import CheckedJudge, TimeLimit
from pytest_rageval.judges.judge_spec import judge_with_cache
from pytest_rageval.judges.lexical_judge import LexicalJudge
from pytest_rageval.model import Judgement, JudgeRequest


@pytest.fixture
def a_cached(tmp_path: Path) -> Iterator[Callable[..., CheckedJudge]]:
    """Stand a judge before the one cache of this test."""
    with closing(SqliteCache(tmp_path / "cache.sqlite")) as cache:
        yield lambda judge, mode="use": judge_with_cache(judge, cache, Settings(judge_cache=mode), Mask(()))


class Served(Counting):
    """The same model behind one of several servers."""

    def __init__(self, identity: str, served: str = "m-2026-01-01") -> None:
        super().__init__()
        self.identity, self.served = identity, served

    async def judge(self, request: JudgeRequest) -> Judgement:
        return replace(await super().judge(request), extra={"served_model": self.served})


def test_another_server_is_another_judge_and_an_equal_identity_the_same(a_cached):
    first, other, again = Served("openai:m@one/v1"), Served("openai:m@two/v1"), Served("openai:m@one/v1")
    for judge in (first, other, again):
        ask(a_cached(judge), a_request())
    assert (first.asked, other.asked, again.asked) == (1, 1, 0)


def test_a_served_model_that_changed_is_known_and_never_part_of_the_key(a_cached):
    ask(a_cached(Served("openai:m@one/v1", "m-2026-01-01")), a_request("a"))
    newer = Served("openai:m@one/v1", "m-2026-06-01")
    judge = a_cached(newer)
    ask(judge, a_request("a"), a_request("b"))
    assert newer.asked == 1
    assert judge.served == {"m-2026-01-01", "m-2026-06-01"}


def test_what_was_judged_comes_from_the_cache_and_says_so(a_cached):
    counting = Counting()
    (first,), (second,) = (ask(a_cached(counting), a_request()) for _ in range(2))
    assert counting.asked == 1
    assert (first.cached, second.cached) == (False, True)
    assert replace(second, cached=False) == first


def test_equal_requests_at_the_same_time_are_judged_once(a_cached):
    counting = Counting()
    said = ask(a_cached(counting), *[a_request()] * 20, *[a_request("else?")] * 20)
    assert counting.asked == 2
    assert sum(not one.cached for one in said) == 2
    assert len({one.scores["groundedness"] for one in said[:20]}) == 1


def test_when_the_first_of_equal_requests_fails_the_next_one_asks(a_cached):
    judge = a_cached(Counting(JudgeError("timeout", "no reply in 120 s")))

    async def two() -> list[Judgement | BaseException]:
        return await asyncio.gather(judge.judge(a_request()), judge.judge(a_request()), return_exceptions=True)

    failed, said = asyncio.run(two())
    assert isinstance(failed, JudgeError)
    assert isinstance(said, Judgement)


def test_when_the_first_of_equal_requests_is_cancelled_the_next_one_asks(a_cached):
    judge = a_cached(Counting())

    async def two() -> Judgement:
        first = asyncio.ensure_future(judge.judge(a_request()))
        second = asyncio.ensure_future(judge.judge(a_request()))
        await asyncio.sleep(0)
        first.cancel()
        return await second

    assert not asyncio.run(two()).cached


def test_refresh_judges_again_and_keeps_the_new_judgement(a_cached):
    counting = Counting()
    ask(a_cached(counting), a_request())
    ask(a_cached(counting, "refresh"), a_request())
    (kept,) = ask(a_cached(counting), a_request())
    assert counting.asked == 2
    assert kept.scores == {"groundedness": 2.0}


def test_off_neither_looks_up_nor_keeps(a_cached, tmp_path):
    counting = Counting()
    ask(a_cached(counting, "off"), a_request(), a_request())
    assert counting.asked == 2
    assert not (tmp_path / "cache.sqlite").exists()


def test_a_miss_in_replay_is_an_error_that_names_the_parts_of_the_key(a_cached, tmp_path):
    counting = Counting()
    request = a_request("Why is\nthe sky \x1bblue, and not of any other colour that one could think of at this time?")
    with pytest.raises(JudgeError) as caught:
        ask(a_cached(counting, "replay"), request)
    assert (caught.value.kind, counting.asked) == ("cache_miss", 0)
    (problem,) = caught.value.problems
    for part in ("question 'Why is the sky ", "…'", "rubric groundedness", "model counting/1", "prompt_version 1+abc",
                 "trial 0", "answer ", "contexts ", key_parts(request, "counting/1").key[:12], "'use'"):  # fmt: skip
        assert part in problem
    assert "\n" not in problem
    assert "\x1b" not in problem
    assert not (tmp_path / "cache.sqlite").exists()


@pytest.mark.parametrize("mode", ["use", "refresh", "off", "replay"])
def test_a_heuristic_judge_is_asked_directly_in_every_mode(a_cached, tmp_path, mode):
    (said,) = ask(a_cached(LexicalJudge(), mode), a_request())
    assert not said.cached
    assert not (tmp_path / "cache.sqlite").exists()


class Embedding(Counting):
    """A heuristic that asks a server: not local."""

    heuristic, is_local = True, False


def test_a_heuristic_judge_that_is_not_local_is_kept_like_a_model(a_cached):
    embedding = Embedding()
    judge = a_cached(embedding)
    ask(judge, a_request())
    (said,) = ask(judge, a_request())
    assert (said.cached, embedding.asked, judge.is_local, judge.heuristic) == (True, 1, False, True)


@pytest.mark.parametrize("sampling", [{"temperature": float("nan")}, {"stop": {1, 2}}, {"stop": "\ud800"}, 7])
def test_sampling_that_is_no_json_is_said_once_and_not_at_every_case(a_cached, sampling):
    counting = Counting()
    counting.sampling = sampling
    with pytest.raises(SettingsError, match="judge 'counting/1': model and sampling become part of a cache key, but"):
        a_cached(counting)


def test_a_stored_judgement_carries_its_first_cost(a_cached):
    judge = a_cached(Counting(a_judgement(cost_usd=0.25, latency_ms=800.0)))
    ask(judge, a_request())
    (first,) = ask(judge, a_request())
    assert (first.cached, first.cost_usd, first.latency_ms) == (True, 0.25, 800.0)


def test_both_ends_of_a_scale_are_scores_of_it(a_cached):
    judge = a_cached(Counting(a_judgement(0.0), a_judgement(5.0)))
    assert [said.scores["groundedness"] for said in ask(judge, a_request(), a_request("else?"))] == [0.0, 5.0]


def test_a_judgement_that_takes_longer_than_it_may_is_an_error(a_cached):
    class Slow(Counting):
        async def judge(self, request):
            await asyncio.sleep(60)

    judge = CheckedJudge(Slow(), limit=TimeLimit(0.01, "10 ms (timeout)"))
    with pytest.raises(JudgeError, match=r"rubric 'groundedness': no judgement within 10 ms \(timeout\)") as caught:
        ask(judge, a_request())
    assert caught.value.kind == "timeout"


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ({"groundedness": 4}, 'returned {"groundedness": 4}, expected a Judgement'),
        (a_judgement(float("nan")), "groundedness is nan, expected a finite number"),
        (a_judgement(6.0), "groundedness is 6, outside its scale 0 to 5"),
        (a_judgement(scores={"groundedness": "4"}), "groundedness is '4', expected a finite number"),
        (a_judgement(reasoning="half \ud83d a face"), "its text holds a lone surrogate"),
        (a_judgement(extra={"raw": "\udc00"}), "its text holds a lone surrogate"),
        (a_judgement(extra={"confidence": float("inf")}), "cannot be written as JSON"),
        (a_judgement(reasoning=None), "its reasoning or claims are not all strings"),
        (a_judgement(cost_usd=float("nan")), "cost_usd is nan, expected a number of at least 0, or None"),
        (a_judgement(tokens_in=-1), "tokens_in is -1, expected a number of at least 0, or None"),
        (a_judgement(scale=None), "its scale is null, expected two finite numbers"),
        (a_judgement(scores=[4.0]), "its scores are [4.0], expected a mapping"),
    ],
)
def test_what_cannot_pass_for_a_judgement_is_an_error_and_not_kept(a_cached, said, problem):
    counting = Counting(said)
    judge = a_cached(counting)
    with pytest.raises(JudgeError) as caught:
        ask(judge, a_request())
    assert caught.value.kind == "invalid_reply"
    assert problem in str(caught.value)
    str(caught.value).encode()
    assert not ask(judge, a_request())[0].cached
    assert counting.asked == 2


def test_an_entry_of_a_foreign_cache_that_is_no_judgement_is_judged_again():
    cache = Remembering({key_parts(a_request(), "counting/1").key: "4 of 5"})
    (said,) = ask(CachedJudge(Counting(), cache), a_request())
    assert not said.cached
    assert list(cache.values()) == [said]


class Batches(SqliteCache):
    """The cache, and how many judgements it was given at a time."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.sizes: list[int] = []

    def put_all(self, new: Iterable[tuple[str, Judgement, KeyParts | None]]) -> None:
        entries = list(new)
        self.sizes.append(len(entries))
        super().put_all(entries)


@pytest.fixture
def batches(tmp_path: Path) -> Iterator[Batches]:
    cache = Batches(tmp_path / "batches.sqlite")
    yield cache
    cache.close()


def test_judgements_of_one_moment_are_kept_together_before_any_of_them_is_handed_out(batches: Batches):
    async def kept(judge: CachedJudge, request: JudgeRequest) -> bool:
        await judge.judge(request)
        return batches.get(key_parts(request, "counting/1").key) is not None

    async def judge_all() -> list[bool]:
        judge = CachedJudge(Counting(), batches)
        return await asyncio.gather(*(kept(judge, a_request(f"q{number}")) for number in range(5)))

    assert all(asyncio.run(judge_all()))
    assert batches.sizes == [5]


class Noting(Counting):
    """Knows what it has judged."""

    def __init__(self) -> None:
        super().__init__()
        self.judged: list[JudgeRequest] = []

    async def judge(self, request: JudgeRequest) -> Judgement:
        judgement = await super().judge(request)
        self.judged.append(request)
        return judgement


def test_whenever_cases_are_cancelled_what_was_judged_is_kept(batches: Batches):
    async def cancelled_after(turns: int, judge: Noting) -> int:
        cached = CachedJudge(judge, batches)
        requests = [a_request(f"q{number} of {turns}") for number in range(3)]
        tasks = [asyncio.create_task(cached.judge(request)) for request in requests]
        for _ in range(turns):
            await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        return sum(task.cancelled() for task in tasks)

    endings = set()
    for turns in range(5):
        judge = Noting()
        cancelled = asyncio.run(cancelled_after(turns, judge))
        endings.add((len(judge.judged), cancelled))
        assert all(batches.get(key_parts(request, "counting/1").key) for request in judge.judged), turns
    assert endings == {(0, 3), (3, 3), (3, 0)}, "before they were judged, before they were written, and after"
