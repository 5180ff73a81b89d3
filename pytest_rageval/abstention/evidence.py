"""How much of what an answer adds to its question stands in the passages that were retrieved for it.

An answer takes its substance from the passages; a refusal speaks about itself. A refusal that recites what the passages
do say takes much from them too, so this share shifts the verdict on the wording and never decides alone.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

SHORTEST_PASSAGES = 40
"""Letter runs from which passages tell something: a heading or a cut text holds no answer, whatever the answer is."""
LONGEST_ANSWER = 2_000
LONGEST_PASSAGES = 40_000
"""Characters that are read of the answer, and of all its passages together."""
LONGEST_KEPT = 30
"""Letters of a word whose runs are kept for other texts: one of 40,000 letters takes two megabytes."""
FEW_RUNS = 10
"""An answer of so many letter runs says half of what a long one says: "Yes." tells nothing of the passages."""


def held_share(question: str, answer: str, passages: Sequence[str]) -> float:
    """Return the share, in [0, 1], of the answer's letter runs that stand in the passages; those of the question aside.

    The share is drawn towards a half, the more so the shorter the answer:

    >>> passage = "The plan costs 59 euros a month, and includes five seats and mails to ten thousand people a year."
    >>> round(held_share("What does it cost?", "59 euros a month", [passage]), 2)
    0.72
    >>> held_share("Is it free?", "", [passage])
    0.5
    """
    held = _runs(_joined(passages))
    if len(held) < SHORTEST_PASSAGES:
        return 0.5
    added = _runs(answer[:LONGEST_ANSWER]) - _runs(question[:LONGEST_ANSWER])
    # What the question says stands in the passages that it found, whatever the answer is.
    held &= added
    return (len(held) + FEW_RUNS / 2) / (len(added) + FEW_RUNS)


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
    for word in set(_words(text)):
        of_word = _kept_runs if len(word) <= LONGEST_KEPT else _runs_of_word
        runs.update(of_word(word))
    return runs


def _words(text: str) -> list[str]:
    """Return the words of a text, folded; of ASCII text in a fifth of the time that the pattern takes."""
    if text.isascii():
        return text.lower().translate(_ASCII_BORDERS).split()
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())


def _runs_of_word(word: str) -> tuple[str, ...]:
    # Words of these scripts are often of two characters.
    size = 2 if _EAST_ASIAN.search(word) else 3
    last_start = max(1, len(word) - size + 1)
    return tuple(word[start : start + size] for start in range(last_start))


# The words of one passage stand in many others: half of the time.
_kept_runs = lru_cache(maxsize=8192)(_runs_of_word)
_WORD = re.compile(r"\w+")
_ASCII_BORDERS = {code: " " for code in range(128) if _WORD.match(chr(code)) is None}
_EAST_ASIAN = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7a3]")
