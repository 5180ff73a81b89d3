"""The budget: what asking models may cost, for all in the process that are given the same one."""

from __future__ import annotations

from pytest_rageval.errors import ModelFailure, SettingsError
from pytest_rageval.llm.prices import Tariff


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
