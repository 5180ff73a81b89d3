"""The key of a judgement: what changes it, what does not, and how two keys differ."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_rageval.judges.cache.cache_key import difference_line, distance, key_parts
from pytest_rageval.model import JudgeRequest


def a_request(question: str = "why?", **variables) -> JudgeRequest:
    contexts = [{"chunk_id": "c1", "text": "text"}]
    return JudgeRequest(
        "groundedness", "1+abc", {"question": question, "answer": "so", "contexts": contexts, **variables}
    )


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
    assert key_parts(replace(a_request(), **other), "m").key != key_parts(a_request(), "m").key


def test_a_lone_surrogate_in_a_request_still_gives_a_key():
    assert len(key_parts(a_request("\ud800"), "m").key) == 64


def test_the_trial_is_part_of_the_key_and_the_clear_question_is_not():
    parts = key_parts(a_request(), "m")
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
        ({"trial": 2}, "trial was 0, now 2"),
        ({"prompt_version": "2"}, "prompt_version was '1+abc', now '2'"),
    ],
)
def test_a_part_that_differs_counts_one_and_is_said_with_both_values(changed: dict, said: str):
    kept = key_parts(a_request(), "m")
    wanted = replace(kept, **changed)
    assert distance(kept, wanted) == 1
    assert difference_line(kept, wanted) == f"same question, same answer, same contexts; {said}"
