"""Prices of requests to models, by the table that genai-prices ships, and the budget that they are held to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import urlsplit

from pytest_rageval.errors import ModelFailure, SettingsError
from pytest_rageval.llm.credentials import is_own
from pytest_rageval.llm.rate_limit import estimated_tokens

PASSAGE_TOKENS = 250
"""Tokens of a usual passage, its share of question and answer included. For estimates only."""
REPLY_TOKENS = 250
"""Tokens of a usual judgement: a few sentences of reasoning, claims, the score. For estimates only."""


_PROVIDERS = {
    "azureopenai": "azure",
    "bedrock": "aws",
    "gemini": "google",
    "vertexai": "google",
    "vertexaianthropic": "google",
    "xai": "x-ai",
}
"""By any-llm's name of a provider, that of genai-prices, where they differ."""


class Budget:
    """US dollars that may be spent. Requests that are under way when the limit is reached are still paid."""

    def __init__(self, max_usd: float) -> None:
        self.max_usd = max_usd
        self.spent_usd = 0.0

    @property
    def is_reached(self) -> bool:
        return self.spent_usd >= self.max_usd

    def check(self) -> None:
        """Before each new request: a ModelFailure of kind budget where nothing is left."""
        if self.is_reached:
            raise ModelFailure(
                "budget",
                f"--rageval-max-cost: {self.spent_usd:.4g} of {self.max_usd:.4g} US dollars are spent, so nothing more "
                "is judged; what was judged is kept in the judge cache",
            )

    def spend(self, usd: float) -> None:
        """What a request has cost."""
        self.spent_usd += usd

    def check_price(self, tariff: Tariff) -> None:
        """A limit cannot be kept without prices: a SettingsError where the model has none."""
        if not tariff.is_known:
            raise SettingsError(
                f"--rageval-max-cost: the price of {tariff.model!r} is not known; leave the limit away, or name a "
                "model that genai-prices knows (pip install 'pytest-rageval[prices]')"
            )


class Tariff(NamedTuple):
    """The prices of one model at one provider."""

    model: str
    url: str

    @property
    def is_known(self) -> bool:
        """Is there a price for this model there?"""
        return self.cost(1, 1) is not None

    def cost(self, tokens_in: int | None, tokens_out: int | None) -> float | None:
        """US dollars of one request; None where tokens or prices are not known, which is not the same as 0."""
        if tokens_in is None or tokens_out is None:
            return None
        return cost_of(self.model, self.url, tokens_in, tokens_out)

    def estimate(self, prompts: Iterable[str], passages: int, times: int) -> float | None:
        """US dollars of putting each of these rubrics' prompts to the model `times` over, with so many passages.

        A passage is taken for PASSAGE_TOKENS, a reply for REPLY_TOKENS; None where the price is not known.
        """
        each = [estimated_tokens(prompt, 0) + passages * PASSAGE_TOKENS for prompt in prompts]
        return self.cost(sum(each) * times, REPLY_TOKENS * len(each) * times)


def cost_of(model: str, provider_url: str, tokens_in: int, tokens_out: int) -> float | None:
    """US dollars of one request.

    None, never 0, where nobody knows: genai-prices (the extra `prices`) is not installed or does not know the model at
    this address, or the server is one's own, whose electricity is on another bill.
    """
    parts = urlsplit(provider_url)
    is_named = parts.scheme == "any-llm"
    if not is_named and is_own(provider_url):
        return None
    try:
        from genai_prices import Usage, calc_price
    except ModuleNotFoundError:
        return None
    try:
        usage = Usage(input_tokens=tokens_in, output_tokens=tokens_out)
        if is_named:
            price = calc_price(usage, model, provider_id=_PROVIDERS.get(parts.netloc, parts.netloc))
        else:
            price = calc_price(usage, model, provider_api_url=provider_url)
        return float(price.total_price)
    except (LookupError, ValueError):  # no such provider or model; figures that contradict each other
        return None
