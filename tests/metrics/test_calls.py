"""Operations of a case: usage by the names of providers, prices, hostile amounts."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_rageval.llm.price_list import ModelPrice, PriceList, Usage, price_list
from pytest_rageval.metrics.calls import model_of, usage_of
from pytest_rageval.metrics.worked_examples import called, score
from pytest_rageval.model import NotApplicable


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({"input_tokens": 10, "output_tokens": 2}, (10, 2, None)),
        ({"prompt_tokens": 10, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}}, (10, 2, 4)),
        (
            {"input_tokens": 10, "output_tokens": 2, "cache_read_input_tokens": 4, "cache_creation_input_tokens": 1},
            (15, 2, 4),
        ),
        ({"prompt_tokens": 10, "completion_tokens": 2, "cache_read_input_tokens": 4}, (10, 2, 4)),
        ({"prompt_eval_count": 10, "eval_count": 2}, (10, 2, None)),
        ({"input_tokens": 0, "output_tokens": 0}, (0, 0, None)),
        ({"input_tokens": 10}, (10, None, None)),
        ({"prompt_tokens": "10", "completion_tokens": True}, (None, None, None)),
        ({"input_tokens": -1, "output_tokens": 10**400}, (None, None, None)),
        ({"input_tokens": float("nan"), "output_tokens": [2]}, (None, None, None)),
    ],
)  # fmt: skip
def test_usage_is_read_by_the_names_of_providers_and_only_if_it_is_an_amount(usage: dict[str, Any], tokens: object):
    assert usage_of(called(usage=usage)) == Usage(*tokens)  # type: ignore[misc]


def test_cached_tokens_have_their_own_price():
    price = ModelPrice(1.0, 10.0, 0.1)
    assert price.cost(Usage(1_000_000, 100_000, 400_000)) == pytest.approx(0.6 + 0.04 + 1.0)
    assert price.cost(Usage(1_000_000, None)) is None


@pytest.mark.parametrize(
    ("prices", "model", "known"),
    [
        (PriceList({"m": ModelPrice(1, 1)}), "m", True),
        (PriceList({"m": ModelPrice(1, 1)}), "m-2026-01-01", False),
        (PriceList({"m": ModelPrice(1, 1)}, model="m"), "m-2026-01-01", True),
        (PriceList({"m": ModelPrice(1, 1)}, model="m"), None, True),
        (PriceList({"*": ModelPrice(1, 1)}), None, True),
        (PriceList(), "gpt-4.1-mini", True),
        (PriceList(server="https://api.openai.com"), "gpt-4.1-mini", True),
        (PriceList(server="http://127.0.0.1:8000"), "gpt-4.1-mini", False),
        (PriceList(), None, False),
    ],
)
def test_a_price_is_the_projects_or_that_of_the_list_or_unknown(prices: PriceList, model: str | None, known: bool):
    cost = prices.cost(model, Usage(1_000, 100))
    assert (cost is not None) is known
    assert cost != 0


def test_a_chat_target_names_the_server_and_the_model_of_its_prices():
    assert price_list({}, "openai:m1@http://127.0.0.1:1", None) == PriceList({}, "http://127.0.0.1:1", "m1")
    assert price_list({}, "openai:gpt-4.1-mini", None).server == "https://api.openai.com"
    assert price_list({}, "bot:answer", "stated") == PriceList({}, None, "stated")
    assert price_list({}, None, None) == PriceList()


def test_an_unknown_price_says_which_one_and_a_stated_cost_counts():
    unknown = score("cost_usd", called(usage={"input_tokens": 1, "output_tokens": 1}))
    assert isinstance(unknown, NotApplicable)
    assert "no price of its model, which the system does not name, is known" in unknown.reason
    assert score("cost_usd", called(usage={"cost_usd": 0})) == 0
    assert model_of(called()) is None
