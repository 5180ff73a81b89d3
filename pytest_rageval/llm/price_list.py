"""What the models of a system cost: the project's own prices, and the list of genai-prices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from pytest_rageval.errors import SettingsError
from pytest_rageval.llm.endpoint_options import Tariff, listed_price
from pytest_rageval.llm.model_spec import model_and_url
from pytest_rageval.providers import ASKED

ANY_MODEL = "*"
"""The key of `[tool.rageval.prices]` for every model that has no price of its own."""
_MILLION = 1_000_000


class Usage(NamedTuple):
    """The tokens of one answer; None if the system does not report them. Cached ones are among those of the input."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None


class ModelPrice(NamedTuple):
    """US dollars for a million tokens; `cached_input` of those from the provider's cache, None: as `input`."""

    input: float
    output: float
    cached_input: float | None = None

    def cost(self, usage: Usage) -> float | None:
        """Return the price of these tokens, or None if they are not known."""
        if usage.input_tokens is None or usage.output_tokens is None:
            return None
        cached = min(usage.cached_tokens or 0, usage.input_tokens)
        cached_price = self.input if self.cached_input is None else self.cached_input
        dollars = (usage.input_tokens - cached) * self.input
        dollars += cached * cached_price
        dollars += usage.output_tokens * self.output
        return dollars / _MILLION


@dataclass(frozen=True)
class PriceList:
    """The prices of models: the project's own by model, then those that genai-prices lists.

    server  the address that the models are asked at, whose provider decides the list price; None: the list is searched
            for the name of the model alone, as it is for a system that does not say where its models run
    model   the model of a system that does not name it; None if nobody does
    """

    own: Mapping[str, ModelPrice] = field(default_factory=dict)
    server: str | None = None
    model: str | None = None

    def cost(self, model: str | None, usage: Usage) -> float | None:
        """Return the price of these tokens in US dollars, or None (never 0) if it is not known."""
        model = model or self.model
        own = self._own_price(model)
        if own is not None:
            return own.cost(usage)
        if model is None or usage.input_tokens is None or usage.output_tokens is None:
            return None
        if self.server is None:
            return listed_price(model, usage.input_tokens, usage.output_tokens, usage.cached_tokens)
        tariff = Tariff(model, self.server)
        return tariff.cost(usage.input_tokens, usage.output_tokens, usage.cached_tokens)

    def _own_price(self, model: str | None) -> ModelPrice | None:
        """Return the project's price of a model: by the name that the system reports, or that it is asked by."""
        for name in (model, self.model, ANY_MODEL):
            if name is not None and name in self.own:
                return self.own[name]
        return None


LISTED_PRICES = PriceList()


def price_list(own: Mapping[str, ModelPrice], target: str | None, stated_model: str | None) -> PriceList:
    """Return the prices of a system.

    own           by model, as the project writes them
    target        its specification, which names model and server if it is a provider's model
    stated_model  the model that the project says its system uses
    """
    kind, _, rest = (target or "").partition(":")
    if kind not in ASKED:
        return PriceList(own, model=stated_model)
    try:
        model, url = model_and_url(kind, rest)
    except SettingsError:
        return PriceList(own, model=stated_model)  # making the target reports what is wrong
    return PriceList(own, url or ASKED[kind].home, model)
