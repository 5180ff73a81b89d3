"""An assertion of a case: what its answer must contain, be or cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

GROUPS = ("any", "all")
"""Types of assertions that hold other ones."""
NEGATION = "not-"


@dataclass(frozen=True, slots=True)
class Assertion:
    """One assertion, in the words of promptfoo.

    type       as it is written, `not-` in front included; `any` and `all` hold other assertions
    value      what the answer is compared with, None for types without a value
    threshold  the limit of types that have one; None stands for the type's default
    metric     the name under which it is averaged, if it has one
    members    the assertions of `any` and `all`
    """

    type: str
    value: Any = None
    threshold: float | None = None
    metric: str | None = None
    members: tuple[Assertion, ...] = ()

    @property
    def is_group(self) -> bool:
        return self.type in GROUPS

    @property
    def is_negated(self) -> bool:
        return self.type.startswith(NEGATION)

    @property
    def plain_type(self) -> str:
        """Return the type without `not-`."""
        return self.type.removeprefix(NEGATION)
