"""Prices: known ones from the table, unknown ones never 0; and a budget made of them."""

from __future__ import annotations

import pytest
from processes import python

from pytest_rageval.errors import ModelFailure
from pytest_rageval.llm.endpoint_options import Budget, Tariff

OPENAI = "https://api.openai.com/v1/chat/completions"
ANTHROPIC = "https://api.anthropic.com/v1/messages"


def test_a_known_model_has_its_price():
    assert Tariff("gpt-4o-mini", OPENAI).cost(1_000_000, 0) == pytest.approx(0.15)
    assert Tariff("gpt-4o-mini", OPENAI).cost(0, 1_000_000) == pytest.approx(0.60)
    assert Tariff("claude-3-5-haiku-20241022", ANTHROPIC).cost(1_000_000, 1_000_000) == pytest.approx(0.8 + 4.0)


@pytest.mark.parametrize(
    ("model", "url"),
    [
        ("gpt-unheard-of", OPENAI),
        ("claude-3-5-haiku-20241022", OPENAI),
        ("gpt-4o-mini", "https://gateway.example/v1/chat/completions"),
        ("gpt-4o-mini", "http://localhost:8080/v1"),
        ("gpt-4o-mini", "http://192.168.1.4/v1"),
        ("gpt-4o-mini", "http://judge.internal/v1"),
        ("gpt-4o-mini", "http://api.openai.com@127.0.0.1/v1"),
    ],
)
def test_what_nobody_knows_is_unknown_and_not_free(model: str, url: str):
    assert Tariff(model, url).cost(1000, 1000) is None
    assert not Tariff(model, url).is_known


def test_an_estimate_grows_with_the_prompts():
    tariff = Tariff("gpt-4o-mini", OPENAI)
    one = tariff.estimate(["x" * 4000], passages=5, times=1)
    assert one is not None
    assert one == pytest.approx(((1000 + 5 * 250) * 0.15 + 250 * 0.60) / 1e6)
    assert tariff.estimate(["x" * 4000], passages=5, times=100) == pytest.approx(100 * one)
    assert tariff.estimate(["x" * 4000] * 2, passages=5, times=1) == pytest.approx(2 * one)
    assert Tariff("gpt-unheard-of", OPENAI).estimate(["x"], passages=5, times=1) is None


@pytest.mark.child_process
def test_without_the_extra_and_without_a_network_prices_are_unknown():
    script = f"""
import sys, socket
sys.modules["genai_prices"] = None
def refuse(*_): raise AssertionError("a connection was tried")
socket.socket.connect = refuse
from pytest_rageval.llm.endpoint_options import Tariff
print(Tariff("gpt-4o-mini", {OPENAI!r}).cost(1000, 1000))
"""
    ran = python("-c", script, check=True)
    assert ran.stdout == "None\n"


def test_a_budget_lets_through_until_it_is_spent():
    budget = Budget(0.10)
    budget.check()
    budget.spend(0.09)
    budget.check()
    budget.spend(0.02)
    with pytest.raises(ModelFailure, match=r"--rageval-max-cost: 0\.11 of 0\.1 US dollars are spent") as caught:
        budget.check()
    assert caught.value.kind == "budget"
