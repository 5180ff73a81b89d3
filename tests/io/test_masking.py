"""What counts as a secret, in which spellings it is found, and what is left as it is."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_rageval.config.settings import Settings
from pytest_rageval.io.masking import Mask


def the_settings(**told: Any) -> Settings:
    return Settings.model_validate(told)


def masked(text: str, settings: Settings, environment: dict[str, str]) -> str:
    return Mask(settings.secrets(environment)).text(text)


def test_words_and_short_values_of_the_environment_are_no_secrets():
    environment = {
        "POSTGRES_PASSWORD": "postgres",
        "SORT_KEY": "timestamp",
        "SHORT_TOKEN": "abc",
        "HOME": "/home/ann/of/long/name",
    }
    text = "postgres sorts by timestamp in /home/ann/of/long/name abc"
    assert masked(text, the_settings(), environment) == text


@pytest.mark.parametrize(
    "secret",
    ["abcdefgh", "a/b/c/d/e", "a+b=c&d<e>'f\"", "naïve-sécret", "two words and more"],
)
@pytest.mark.parametrize("spell", [str, lambda s: json.dumps(s)[1:-1] if s.isascii() and '"' not in s else s])
def test_a_secret_is_found_as_it_is_spelt(secret: str, spell: Any):
    assert Mask([secret]).text(f"x {spell(secret)} y") == "x *** y"


def test_what_is_cut_off_of_a_secret_goes_as_well():
    mask = Mask(["sk-0123456789abcdef"])
    assert mask.message("refused: sk-0123456…") == "refused: ***…"
    assert mask.message("refused: sk-0123456… (at bot.py:3)") == "refused: ***… (at bot.py:3)"
    assert mask.message("refused: sk-01… and sk-0123456 is no more") == "refused: sk-01… and sk-0123456 is no more"


def test_what_holds_no_secret_is_not_even_copied():
    value = {"a": ["text", ("more",)], "n": 1}
    assert Mask(["abcdefgh"]).value(value) is value
    assert Mask(["abcdefgh"]).value({"abcdefgh": ["x abcdefgh"]}) == {"***": ["x ***"]}
