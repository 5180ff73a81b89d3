"""What did the words show? One bounded line from the claims looked at: the weakest, what is missing, what differs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pytest_rageval.judges.lexical.evidence import SUPPORTED, Support

LONGEST_QUOTATION = 120
"""Characters of a sentence that are shown; of a word, half as many."""

MOST_SHOWN = 8
"""Items of one kind; further ones are counted."""


def account(found: Sequence[Support], where: str) -> str:
    """How many sentences are borne out by `where`, which one the least, and what speaks against them."""
    held = sum(one.value >= SUPPORTED for one in found)
    weakest = min(found, key=lambda one: one.value)
    return "".join(
        (
            f"heuristic: {held} of {len(found)} sentences are borne out by {where}",
            f"; weakest: {_quoted(weakest.claim.text)}" if weakest.value < SUPPORTED else "",
            first_items("; the opposite is said", _opposed(found, where, "negation")),
            first_items("; said otherwise", _opposed(found, where, "figure", "name", "opposite")),
            first_items(f"; figures not in {where}", sorted({word for one in found for word in one.wrong})),
            first_items("; not found", sorted({word for one in found for word in one.missing})),
        )
    )


def first_items(label: str, items: Sequence[str]) -> str:
    """The first items after their label; nothing where there are none."""
    more = f" and {len(items) - MOST_SHOWN} more" if len(items) > MOST_SHOWN else ""
    return f"{label}: {', '.join(item[:400] for item in items[:MOST_SHOWN])}{more}" if items else ""


def _opposed(found: Iterable[Support], where: str, *kinds: str) -> list[str]:
    conflicts = [one.opposed for one in found if one.opposed is not None and one.opposed.kind in kinds]
    return [
        f"{_quoted(one.claimed)} where {where} has {_quoted(one.stated)}"
        + ("" if one.stated == one.sentence else f" in {_quoted(one.sentence)}")
        for one in conflicts
    ]


def _quoted(text: str) -> str:
    shown = " ".join(text[: 4 * LONGEST_QUOTATION].split())
    return repr(shown if len(shown) <= LONGEST_QUOTATION else f"{shown[: LONGEST_QUOTATION - 1]}…")
