"""The scores of a conversation's turns, as metrics of a whole run read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ConversationScores:
    """Whether every turn of a conversation passes, and by metric the scores of its first and of its later turns."""

    passed: bool
    first: Mapping[str, Sequence[float]] = field(default_factory=dict)
    later: Mapping[str, Sequence[float]] = field(default_factory=dict)
