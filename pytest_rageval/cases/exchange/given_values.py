"""What a system gave, read from foreign values into parts of a record of an answers file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_rageval.cases.answerability import truth_of
from pytest_rageval.cases.exchange.gold_objects import gold_places
from pytest_rageval.cases.exchange.values import listed_values, reference_of, retrieved_chunk
from pytest_rageval.cases.names import ABSTAINED, GIVEN, RETRIEVED, RETRIEVED_IDS
from pytest_rageval.model import NOTHING, Json


def given_parts(meant: str, value: Json) -> dict[str, Json] | None:
    """Return the parts that hold the value of a field; None if it is none.

    Retrieved ids and paths stay under the names of their fields: they are joined with the texts later.
    """
    if meant == GIVEN:
        return {"answer": (reference_of(value) or NOTHING).get("reference", value)}
    if meant == ABSTAINED:
        flag = truth_of(value)
        return None if flag is None else {"abstained": flag}
    if meant == RETRIEVED:
        passages = value if isinstance(value, list) else [value]
        chunks = [retrieved_chunk(passage, rank) for rank, passage in enumerate(passages, start=1)]
        if None in chunks:  # kept as metadata, which names it
            return None
        return {"retrieved_chunks": chunks}
    if meant == RETRIEVED_IDS:
        return {meant: [{"chunk_id": str(chunk_id)} for chunk_id in listed_values(value)]}
    known: Any = gold_places(value, as_ids=False) or {}
    return {meant: known.get("gold_supports") or [{"rel_path": each} for each in listed_values(value)]}


def with_empty_retrieval(
    answer: dict[str, Json], leaves: Mapping[str, Json], meanings: Mapping[str, str]
) -> dict[str, Json]:
    """Return the record of an answer with an empty list of chunks if its row says that nothing was retrieved.

    Without an answer an empty list says nothing: rows of questions alone have such members, too.
    """
    if "answer" not in answer or "retrieved_chunks" in answer:
        return answer
    is_empty = any(value == [] and meanings.get(path) == RETRIEVED for path, value in leaves.items())
    return {**answer, "retrieved_chunks": []} if is_empty else answer
