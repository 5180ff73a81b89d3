"""One case in full: question, expected and retrieved chunks, matches, each metric's arithmetic, each gate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rich.cells import cell_len

from pytest_rageval.io.suggestions import and_more
from pytest_rageval.model import Observation
from pytest_rageval.render.text.columns import aligned, last_wrapped, shortened, wrapped
from pytest_rageval.text import printable, score_text
from pytest_rageval.views.case import CaseView
from pytest_rageval.views.case_parts import ChunkRow

TEXT = 300
"""Characters of a text that are shown."""
FOLDED = 3
"""Lines of a chunk that are shown."""
LEAST = 20
"""Minimum width of a text, even in a narrower terminal."""
NOTHING_RETRIEVED = ChunkRow(None, "other", "", "nothing was retrieved", None, None)


class Form(NamedTuple):
    """The columns of the terminal, and whether texts are shown in full."""

    width: int = 120
    is_full: bool = False


def explanation(case: CaseView, obs: Observation | None, form: Form) -> Iterator[str]:
    """Return the lines of a case. `obs` holds the uncut texts, if the run keeps them."""
    return map(printable, _lines(case, obs, form))


def _lines(case: CaseView, obs: Observation | None, form: Form) -> Iterator[str]:
    yield f"{case.key}   {case.outcome}"
    yield " · ".join([f"written at {case.place}", *map(_short, case.facts)])
    yield from [f"latency: {case.latency}"] * ("requests" in case.latency)
    yield ""
    yield from [] if case.has_observation else ["no observation was kept"]
    yield from _texts(case, obs, form)
    yield from _section("expected", [(name, _short(text)) for name, text in case.labels], form.width)
    yield from _retrieved(case, obs, form)
    yield from (f"  note: {flag}" for flag in dict.fromkeys((*(obs.matching.flags if obs else ()), *case.flags)))
    yield from _section("claims", [*_claims(case, form)], form.width)
    scores = [(name, value, _short(terms)) for name, value, terms in case.scores]
    yield from _section("metrics", scores, form.width)
    yield from _section("errors", [(error,) for error in case.errors], form.width)
    yield from _section("doubts about the judge's replies", case.doubts, form.width)
    gates = [*dict.fromkeys(case.every_gate)]  # two gates may say the same under different conditions
    yield from _section("gates", gates or [("no gate examined this case",)], form.width)
    skipped = [(f"{reason}: {', '.join(names)}",) for reason, names in case.skipped]
    yield from _section("not applicable", skipped, form.width)


def _texts(case: CaseView, obs: Observation | None, form: Form) -> Iterator[str]:
    answer = obs.answer.text if obs else case.answer
    for name, text in (("question", case.question), ("answer", answer)):
        if text is not None:
            lines = wrapped(printable(text) if form.is_full else _short(text), max(form.width - 11, LEAST))
            yield from (f"{name if not number else '':<10} {line}".rstrip() for number, line in enumerate(lines))
    if obs and obs.answer.abstained is not None:
        reason = f" ({obs.answer.abstain_reason})" if obs.answer.abstain_reason else ""
        yield f"abstained  {'yes' if obs.answer.abstained else 'no'}{reason}"


def _retrieved(case: CaseView, obs: Observation | None, form: Form) -> Iterator[str]:
    """Yield the chunks by rank, each with its text, then the golds that were not retrieved."""
    is_silent = any(chunk.rank for chunk in case.chunks) or (obs is not None and obs.answer.chunks is None)
    chunks = [*([] if is_silent else [NOTHING_RETRIEVED]), *case.chunks]
    rows: list[tuple[str, ...]] = [
        (str(chunk.rank or "–"), printable(chunk.place), *_score_and_mark(chunk)) for chunk in chunks
    ]
    width = sum(max(map(cell_len, column)) + 2 for column in zip(*([row[0], *row[2:]] for row in rows), strict=True))
    room = min(max(form.width - len("  ") - width, LEAST // 2), 70)
    rows = [(rank, shortened(place, room), *others) for rank, place, *others in rows]
    yield from ["", "came"] if rows else []
    for line, chunk in zip(aligned(rows, indent="  ", to_the_left=True), chunks, strict=True):
        yield line
        yield from _chunk_text(chunk, obs, form)


def _score_and_mark(chunk: ChunkRow) -> tuple[str, str]:
    if chunk is NOTHING_RETRIEVED:
        return "", ""
    mark = f"{chunk.mark}{' was not retrieved' if chunk.rank is None else ''}"
    return score_text(chunk.score), "" if chunk.kind == "other" else mark


def _chunk_text(chunk: ChunkRow, obs: Observation | None, form: Form) -> Iterator[str]:
    """Yield the text of a chunk under its row, in full as far as the run keeps it."""
    recorded = obs.answer.chunks[chunk.rank - 1].text if obs and obs.answer.chunks and chunk.rank else None
    text = recorded or chunk.text
    if not text:
        return
    lines = wrapped(printable(text.strip()), max(form.width - 7, LEAST))
    shown = lines if form.is_full or len(lines) <= FOLDED + 1 else lines[:FOLDED]
    yield from (f"       {line}".rstrip() for line in shown)
    if len(shown) < len(lines):
        yield f"       {and_more(len(lines) - len(shown), 'lines')}: --full shows them"


def _claims(case: CaseView, form: Form) -> Iterator[tuple[str, ...]]:
    """Yield the judge's verdict on each claim of the answer, and the chunk nearest to it."""
    for claim in case.claims:
        verdict = ("✔", "supported") if claim.is_supported else ("✘", "unsupported")
        near = f"chunk {claim.chunk}" if claim.chunk else ""
        yield *verdict, near, shortened(printable(claim.text), max(form.width - 28, LEAST))


def _section(title: str, rows: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    if rows:
        yield ""
        yield title
        yield from last_wrapped(rows, width, indent="  ")


def _short(text: str) -> str:
    return shortened(printable(text), TEXT)
