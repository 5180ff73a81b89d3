"""Key facts of a case, each with whether the answer states it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pytest_rageval.metrics.answer import stated_facts

METRIC = "key_fact_recall"


class KeyFact(NamedTuple):
    """A fact; `is_stated` None where no metric looked for it."""

    text: str
    is_stated: bool | None


def key_facts(facts: Sequence[str], record: Mapping[str, Any], answer: str | None) -> list[KeyFact]:
    """The facts as `key_fact_recall` found them in the whole answer.

    Nothing is said of them where the metric did not score, or where what it scored then is not what it finds now.
    """
    unknown = [KeyFact(fact, None) for fact in facts]
    recall = record.get("scores", {}).get(METRIC)
    if recall is None or answer is None:
        return unknown
    written = [fact for fact in facts if fact.strip()]
    stated = stated_facts(answer, written)
    if not written or abs(sum(stated) / len(written) - recall) > 1e-9:
        return unknown
    return [KeyFact(fact, is_stated) for fact, is_stated in zip(written, stated, strict=True)]
