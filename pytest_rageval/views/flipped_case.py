"""A case that fails on one side of a comparison alone: why, and what moved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_rageval.comparison.gate_lines import failed_gate
from pytest_rageval.io.suggestions import listed
from pytest_rageval.text import NO_VALUE, short
from pytest_rageval.views.parts import FigureTable, Fold, LabelledText, TableRow

Content = Mapping[str, Any]
SHOWN_SCORES = 5


def flipped_case(case: Content) -> Fold:
    """Return a case whose outcome differs, with what its records say of both sides."""
    detail = case["detail"]
    reasons = tuple(_reasons(detail or {}))
    table = _chunk_table(detail) if detail else None
    return Fold(case["case_key"], reasons, tuple(_facts(case, reasons)), table)


def _chunk_table(detail: Content) -> FigureTable:
    rows = []
    for chunk in detail["chunks"]:
        before = str(chunk["rank_before"] or NO_VALUE)
        after = str(chunk["rank_after"] or NO_VALUE)
        golds = ", ".join(map(str, chunk["golds"]))
        rows.append(TableRow((before, after, golds, chunk["place"], chunk["state"])))
    return FigureTable(("before", "after", "gold", "place", ""), tuple(rows), has_texts=True)


def _facts(case: Content, reasons: Sequence[str]) -> Iterator[LabelledText]:
    detail = case["detail"]
    if detail and detail["question"] is not None:
        yield LabelledText("question", "", detail["question"])
    yield from (LabelledText("why", reason) for reason in reasons)
    if case.get("scores"):
        moves = [_score_move(score) for score in case["scores"]]
        yield LabelledText("scores", listed(moves, SHOWN_SCORES))
    if detail is None:
        yield LabelledText("records", "none were kept of this case")
        return
    for gold in detail["golds"]:
        yield LabelledText(f"gold {gold['gold']}", _gold_move(gold), gold["place"])
    yield from _moved_chunks(detail)
    yield from _answers(detail)


def _reasons(detail: Content) -> Iterator[str]:
    """Yield the failed gates or the error of the side on which the case fails."""
    for name in ("after", "before"):
        error = detail.get(f"error_{name}")
        if error:
            yield f"{error['kind']}: {error['message'] or 'no message was kept'}"
            return
        gates = detail.get(f"failed_gates_{name}")
        if gates:
            yield from map(failed_gate, gates)
            return


def _score_move(score: Content) -> str:
    return f"{score['metric']} {short(score['before'])} → {short(score['after'])}"


def _gold_move(gold: Content) -> str:
    """Return `lost (was rank 1)`, `gained (rank 2)`, `rank 1 → 3` or `rank 1`."""
    before, after = gold["rank_before"], gold["rank_after"]
    if after is None:
        return f"lost (was rank {before})"
    if before is None:
        return f"gained (rank {after})"
    return f"rank {before}" if before == after else f"rank {before} → {after}"


def _moved_chunks(detail: Content) -> Iterator[LabelledText]:
    """Yield the chunks that are gone or new in a case whose golds all kept their ranks."""
    is_known = detail["has_record_before"] and detail["has_record_after"]
    has_moved_gold = any(gold["rank_before"] != gold["rank_after"] for gold in detail["golds"])
    if not is_known or has_moved_gold:
        return
    for state in ("gone", "new"):
        chunks = [chunk for chunk in detail["chunks"] if chunk["state"] == state]
        if chunks:
            places = [f"{chunk['rank_before'] or chunk['rank_after']} {chunk['place']}" for chunk in chunks]
            yield LabelledText(state, "", listed(places, 3))


def _answers(detail: Content) -> Iterator[LabelledText]:
    """Yield the answer before and after, once if both are equal, or that none was kept."""
    before = _answer(detail, "before")
    after = _answer(detail, "after")
    if before is not None and before == after:
        yield LabelledText("answer", "", before)
        return
    yield LabelledText("answer before", "", "no record was kept" if before is None else before)
    yield LabelledText("answer after", "", "no record was kept" if after is None else after)


def _answer(detail: Content, side: str) -> str | None:
    """Return the answer of one side, and whether it is an abstention; None if no record was kept."""
    if not detail[f"has_record_{side}"]:
        return None
    text: str | None = detail[f"answer_{side}"]
    if detail[f"abstained_{side}"]:
        return f"abstained: {text}" if text else "abstained"
    if detail[f"undecided_{side}"]:
        return f"undecided whether it abstained: {text}"
    return "no text was kept" if text is None else text
