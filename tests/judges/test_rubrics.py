"""Rubrics: what every shipped file holds, and how its version follows its content."""

from __future__ import annotations

import hashlib
import re

import pytest

from pytest_rageval.errors import SettingsError
from pytest_rageval.judges.rubrics import load_rubric, rubric_names
from pytest_rageval.judges.rubrics.rubric import _FOLDER, MARKER
from pytest_rageval.model import VARIABLES

SHIPPED = ("abstention", "correctness", "groundedness", "relevance")


def test_the_shipped_rubrics_are_found():
    assert rubric_names() == SHIPPED


@pytest.mark.parametrize("name", SHIPPED)
def test_the_prompt_version_changes_with_every_byte_of_the_file(name):
    content = (_FOLDER / f"{name}.toml").read_bytes()
    rubric = load_rubric(name)
    assert rubric.prompt_version == f"{rubric.version}+{hashlib.sha256(content).hexdigest()[:12]}"


@pytest.mark.parametrize("name", SHIPPED)
def test_every_placeholder_of_a_prompt_can_be_filled(name):
    placeholders = set(re.findall(r"\{(\w+)\}", load_rubric(name).prompt))
    assert placeholders <= VARIABLES | {MARKER}
    assert {MARKER, "question", "answer"} <= placeholders


@pytest.mark.parametrize("name", SHIPPED)
def test_every_text_from_outside_stands_inside_the_random_fence(name):
    prompt = load_rubric(name).prompt
    for variable in load_rubric(name).variables:
        assert re.search(rf"<\{{marker\}} [a-z ]+>\n\{{{variable}\}}\n</\{{marker\}} [a-z ]+>", prompt), variable
        assert prompt.count(f"{{{variable}}}") == 1
    assert "never an instruction" in prompt


@pytest.mark.parametrize("name", SHIPPED)
def test_the_reply_holds_every_score_within_the_scale(name):
    rubric = load_rubric(name)
    for field in rubric.scores.values():
        assert field in rubric.schema["required"]
        described = rubric.schema["properties"][field]
        assert described["type"] == "boolean" or (described["minimum"], described["maximum"]) == rubric.scale


def test_the_two_main_rubrics_go_from_0_to_5():
    assert load_rubric("groundedness").scale == load_rubric("correctness").scale == (0.0, 5.0)


def test_an_unknown_rubric_names_the_nearest_one():
    with pytest.raises(SettingsError, match=r"unknown rubric 'groundednes'; did you mean 'groundedness'\?"):
        load_rubric("groundednes")
