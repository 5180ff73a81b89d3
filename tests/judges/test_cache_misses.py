"""The key of a judgement, and a miss in replay: which judgement is nearest, and what differs from it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from counting_judge import Counting, Remembering, a_request, ask

from pytest_rageval.errors import JudgeError
from pytest_rageval.judges.cache.cache_key import difference_line, distance, key_parts
from pytest_rageval.judges.cache.cached_judge import CachedJudge
from pytest_rageval.judges.cache.sqlite_cache import SqliteCache
from pytest_rageval.model import JudgeRequest


@pytest.fixture
def a_cached(tmp_path: Path) -> Iterator[Callable[..., CachedJudge]]:
    """Stand a judge before the one cache of this test."""
    with closing(SqliteCache(tmp_path / "cache.sqlite")) as cache:
        yield lambda judge, mode="use": CachedJudge(judge, cache, mode)


def said_of_a_miss(judge: CachedJudge, request: JudgeRequest) -> str:
    with pytest.raises(JudgeError) as caught:
        ask(judge, request)
    (problem,) = caught.value.problems
    assert "\n" not in problem
    return problem.partition("; ")[2]


RUN_ONCE = "; run once with judge cache mode 'use'"


@pytest.mark.parametrize(
    ("other", "nearest"),
    [
        ({"prompt_version": "1+abd"},
         "same question, same answer, same contexts; prompt_version was '1+abc', now '1+abd'"),
        ({"trial": 2}, "same question, same answer, same contexts; trial was 0, now 2"),
        ({"variables": {**a_request().variables, "references": []}},
         "same question, same answer, same contexts, other references"),
        ({"variables": {**a_request().variables, "answer": "so?"}}, "same question, other answer, same contexts"),
        ({"variables": {**a_request().variables, "contexts": []}}, "same question, same answer, other contexts"),
        ({"variables": {**a_request().variables, "key_facts": ["x"]}},
         "same question, same answer, same contexts, other key_facts"),
        ({"variables": {**a_request().variables, "question": "who?"}},
         "other question 'why?', same answer, same contexts"),
    ],
)  # fmt: skip
def test_a_miss_in_replay_names_the_nearest_and_what_differs(a_cached, other, nearest):
    assert key_parts(replace(a_request(), **other), "m").key != key_parts(a_request(), "m").key
    ask(a_cached(Counting()), a_request())
    said = said_of_a_miss(a_cached(Counting(), "replay"), replace(a_request(), **other))
    assert said == f"nearest: {nearest}{RUN_ONCE}"


def test_without_any_judgement_of_the_rubric_that_is_said(a_cached):
    ask(a_cached(Counting()), a_request())
    said = said_of_a_miss(a_cached(Counting(), "replay"), replace(a_request(), rubric="relevance"))
    assert said == f"none is for this rubric{RUN_ONCE}"


def test_hostile_text_cannot_get_out_of_the_message_of_a_miss(a_cached):
    ask(a_cached(Counting()), a_request("\x1b[31m\u202e" * 500))
    said = said_of_a_miss(a_cached(Counting(), "replay"), replace(a_request(), prompt_version="1\n\x1b]0;"))
    assert "\\x1b[31m\\u202e" in said
    assert "\x1b" not in said
    assert len(said) < 400


def test_a_cache_that_knows_keys_only_serves_all_modes_and_names_no_nearest():
    cache = Remembering()
    ask(CachedJudge(Counting(), cache), a_request())
    assert ask(CachedJudge(Counting(), cache, "replay"), a_request())[0].cached
    assert said_of_a_miss(CachedJudge(Counting(), cache, "replay"), a_request("who?")) == RUN_ONCE[2:]


def test_a_lone_surrogate_in_a_request_still_gives_a_key():
    assert len(key_parts(a_request("\ud800"), "m").key) == 64


def test_rubric_and_trial_are_part_of_the_key_and_the_clear_question_is_not():
    parts = key_parts(a_request(), "m")
    assert replace(parts, rubric="relevance").key != parts.key
    assert replace(parts, asked="another").key == parts.key
    assert len({replace(parts, trial=trial).key for trial in range(3)}) == 3


def test_of_a_long_question_the_beginning_is_kept_however_it_is_escaped():
    assert key_parts(a_request("why " * 1000), "m").asked == ("why " * 50)
    assert len(key_parts(a_request("\x1b" * 1000), "m").asked or "") == 200


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"model": "n"}, "model was 'm', now 'n'"),
        ({"sampling": {"temperature": 1}}, "sampling was {}, now {'temperature': 1}"),
    ],
)
def test_a_part_that_differs_counts_one_and_is_said_with_both_values(changed: dict, said: str):
    kept = key_parts(a_request(), "m")
    wanted = replace(kept, **changed)
    assert distance(kept, wanted) == 1
    assert difference_line(kept, wanted) == f"same question, same answer, same contexts; {said}"
