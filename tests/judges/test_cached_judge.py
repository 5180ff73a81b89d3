"""The cached judge: what is one request, what each mode does, and what is never kept."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from pytest_rageval.errors import JudgeError
from pytest_rageval.judges.base import Judge
from pytest_rageval.judges.cache import SqliteCache
from pytest_rageval.judges.cached import CachedJudge, Mode, cache_key
from pytest_rageval.judges.lexical import LexicalJudge
from pytest_rageval.model import Judgement, JudgeRequest


class Counting:
    """A judge that counts how often it is asked, and says what it is given to say."""

    model, heuristic, rubrics = "counting/1", False, frozenset({"groundedness"})

    def __init__(self, *says: Judgement | JudgeError | object) -> None:
        self.says, self.asked = list(says), 0

    async def judge(self, request: JudgeRequest) -> Judgement:
        self.asked += 1
        await asyncio.sleep(0)
        said = self.says.pop(0) if self.says else a_judgement(float(self.asked))
        if isinstance(said, Exception):
            raise said
        return said  # type: ignore[return-value]

    async def aclose(self) -> None: ...


def a_judgement(score: float = 4.0, **fields) -> Judgement:
    return Judgement(**{"rubric": "groundedness", "scores": {"groundedness": score}, "scale": (0.0, 5.0), **fields})


def a_request(question: str = "why?", **variables) -> JudgeRequest:
    contexts = [{"chunk_id": "c1", "text": "text"}]
    return JudgeRequest(
        "groundedness", "1+abc", {"question": question, "answer": "so", "contexts": contexts, **variables}
    )


@pytest.fixture
def a_cached(tmp_path) -> Iterator[Callable[..., CachedJudge]]:
    """Stand a judge before the one cache of this test."""
    cache = SqliteCache(tmp_path / "cache.sqlite")

    def stand_before(judge: Judge, mode: Mode = "use") -> CachedJudge:
        return CachedJudge(judge, cache, mode)

    yield stand_before
    cache.close()


def ask(judge: Judge, *requests: JudgeRequest) -> list[Judgement]:
    async def all_at_once() -> list[Judgement]:
        return await asyncio.gather(*(judge.judge(request) for request in requests))

    return asyncio.run(all_at_once())


# ── the key ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_key_is_a_sha_256_and_does_not_depend_on_the_order_of_the_variables():
    request = a_request()
    turned = replace(request, variables=dict(reversed(request.variables.items())))
    assert cache_key(request, "m") == cache_key(turned, "m")
    assert len(cache_key(request, "m")) == 64


@pytest.mark.parametrize(
    "other",
    [
        {"rubric": "relevance"},
        {"prompt_version": "1+abd"},
        {"trial": 1},
        {"variables": {**a_request().variables, "question": "why not?"}},
        {"variables": {**a_request().variables, "answer": "so "}},
        {"variables": {**a_request().variables, "contexts": [{"chunk_id": "c1", "text": "texts"}]}},
        {"variables": {**a_request().variables, "references": []}},
    ],
)
def test_whatever_a_judgement_depends_on_changes_the_key(other):
    assert cache_key(replace(a_request(), **other), "m") != cache_key(a_request(), "m")


def test_model_and_sampling_are_part_of_the_key():
    keys = {cache_key(a_request(), "m"), cache_key(a_request(), "n"), cache_key(a_request(), "m", {"temperature": 1})}
    assert len(keys) == 3


def test_a_lone_surrogate_in_a_request_still_gives_a_key():
    assert len(cache_key(a_request("\ud800"), "m")) == 64


# ── the modes ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_it_is_a_judge_and_passes_on_what_it_stands_before(a_cached):
    judge = a_cached(Counting())
    assert isinstance(judge, Judge)
    assert (judge.model, judge.heuristic, judge.rubrics) == ("counting/1", False, {"groundedness"})


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


def test_replay_gives_what_is_kept_and_never_asks(a_cached):
    ask(a_cached(Counting()), a_request())
    replaying = Counting()
    (said,) = ask(a_cached(replaying, "replay"), a_request())
    assert said.cached
    assert replaying.asked == 0


def test_a_miss_in_replay_is_an_error_that_names_the_parts_of_the_key(a_cached, tmp_path):
    counting = Counting()
    request = a_request("Why is\nthe sky \x1bblue, and not of any other colour that one could think of at this time?")
    with pytest.raises(JudgeError) as caught:
        ask(a_cached(counting, "replay"), request)
    assert (caught.value.kind, counting.asked) == ("cache_miss", 0)
    (problem,) = caught.value.problems
    for part in ("question 'Why is the sky ", "…'", "rubric groundedness", "model counting/1", "prompt_version 1+abc",
                 "trial 0", "answer ", "contexts ", cache_key(request, "counting/1")[:12], "'use'"):  # fmt: skip
        assert part in problem
    assert "\n" not in problem
    assert "\x1b" not in problem
    assert not (tmp_path / "cache.sqlite").exists()


@pytest.mark.parametrize("mode", ["use", "refresh", "off", "replay"])
def test_a_heuristic_judge_is_asked_directly_in_every_mode(a_cached, tmp_path, mode):
    (said,) = ask(a_cached(LexicalJudge(), mode), a_request())
    assert not said.cached
    assert not (tmp_path / "cache.sqlite").exists()


# ── what is never kept ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ({"groundedness": 4}, "returned {'groundedness': 4}, expected a Judgement"),
        (None, "returned None, expected a Judgement"),
        (a_judgement(float("nan")), "groundedness is nan, expected a finite number"),
        (a_judgement(6.0), "groundedness is 6, outside its scale 0 to 5"),
        (a_judgement(scores={"groundedness": "4"}), "groundedness is '4', expected a finite number"),
        (a_judgement(scores={"groundedness": True}), "groundedness is True, expected a finite number"),
        (a_judgement(reasoning="half \ud83d a face"), "its text holds a lone surrogate"),
        (a_judgement(unsupported_claims=("\udc00",)), "its text holds a lone surrogate"),
        (a_judgement(extra={"raw": "\udc00"}), "its text holds a lone surrogate"),
        (a_judgement(extra={"confidence": float("inf")}), "cannot be written as JSON"),
        (a_judgement(reasoning=None), "its reasoning or claims are not all strings"),
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
    class Remembering(dict):
        def put(self, key: str, judgement: Judgement) -> None:
            self[key] = judgement

    cache = Remembering({cache_key(a_request(), "counting/1"): "4 of 5"})
    (said,) = ask(CachedJudge(Counting(), cache), a_request())
    assert not said.cached
    assert list(cache.values()) == [said]
