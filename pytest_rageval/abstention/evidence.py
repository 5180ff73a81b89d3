"""How much of what an answer adds to its question stands in the passages that were retrieved for it.

An answer takes its substance from the passages; a refusal speaks about itself. A refusal that recites what the passages
do say takes much from them too, so this share shifts the verdict on the wording and never decides alone.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

LONGEST_ANSWER, LONGEST_PASSAGES = 2_000, 40_000
"""Characters that are read of the answer, and of all its passages together."""


def held_share(question: str, answer: str, passages: Sequence[str]) -> float:
    """Return the share, in [0, 1], of the answer's letter runs that stand in the passages; those of the question aside.

    >>> held_share("What does it cost?", "59 euros a month", ["The plan costs 59 euros a month."])
    1.0
    """
    added = _runs(answer[:LONGEST_ANSWER]) - _runs(question[:LONGEST_ANSWER])
    if not added:
        return 0.0
    return len(added & _runs(_joined(passages))) / len(added)


def _joined(passages: Sequence[str]) -> str:
    parts = []
    left = LONGEST_PASSAGES
    for passage in passages:
        if left <= 0:
            break
        parts.append(passage[:left])
        left -= len(passage)
    return "\n".join(parts)


def _runs(text: str) -> set[str]:
    """Return the runs of three letters within words; of two in Chinese, Japanese and Korean."""
    runs: set[str] = set()
    for word in set(_WORD.findall(unicodedata.normalize("NFKC", text).casefold())):
        size = 2 if _EAST_ASIAN.search(word) else 3
        last_start = max(1, len(word) - size + 1)
        runs.update(word[start : start + size] for start in range(last_start))
    return runs


_WORD = re.compile(r"\w+")
_EAST_ASIAN = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7a3]")
