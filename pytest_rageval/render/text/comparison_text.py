"""Two runs side by side on the terminal: what was configured, what moved, which questions flipped and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pytest_rageval.io.suggestions import and_more, listed
from pytest_rageval.render.text.columns import STYLES, StyledLine, aligned, shortened, styled, table_lines
from pytest_rageval.text import printable
from pytest_rageval.views.comparison import ComparisonView, FlipList, FlippedCase, GateView, moved_chunks
from pytest_rageval.views.parts import FigureTable, Line, Tone

SHOWN_FLIPS = {"worse": 10, "better": 5, "doubtful": 5}
SHOWN_CATEGORIES = 12
SHOWN_SETTINGS = 20
SHOWN_CASES = 5
GATES: dict[bool | None, tuple[str, Tone]] = {
    True: ("holds", "plain"), False: ("FAILS", "worse"), None: ("says nothing", "doubtful"),
}  # fmt: skip
LABEL = 15
"""Columns of the labels at the left of a case."""


def comparison_lines(view: ComparisonView, *, width: int) -> Iterator[StyledLine]:
    """Yield the lines for a terminal of this width; texts of cases and systems are escaped and cut."""
    yield from styled(view.verdict, width)
    yield from (StyledLine(f"{name:<8}" + _cut(side, width - 8)) for name, side in view.sides)
    for line in (*view.problems, *(Line(note, "doubtful") for note in view.notes), Line(""), view.changed):
        yield from styled(line)
    yield from _settings(view.settings, width)
    for part in (
        [
            *(table_lines(view.metrics, width) if view.metrics.rows else ()),
            *map(StyledLine, filter(None, [view.quiet])),
        ],
        [line for gate in view.gates for line in _gate(gate)],
        table_lines(view.categories, width, most=SHOWN_CATEGORIES) if view.categories.rows else (),
        *(_flips(flips, width) for flips in view.flips),
        _one_sided(view, width),
    ):
        lines = [*part]
        yield from [StyledLine("")] * bool(lines)
        yield from lines


def _settings(settings: FigureTable, width: int) -> Iterator[StyledLine]:
    room = max((width - 8) // 3, 10)
    rows = (row.cells for row in settings.rows[:SHOWN_SETTINGS])
    shown = [[_cut(name, min(room, 40)), _cut(before, room), f"→ {_cut(after, room)}"] for name, before, after in rows]
    yield from map(StyledLine, aligned(shown, indent="  ", to_the_left=True))
    if len(settings.rows) > SHOWN_SETTINGS:
        yield StyledLine("  " + and_more(len(settings.rows) - SHOWN_SETTINGS, settings.what))


def _gate(gate: GateView) -> Iterator[StyledLine]:
    word, tone = GATES[gate.passed]
    return styled(Line(f"{word}: {gate.text}", tone))


def _flips(flips: FlipList, width: int) -> Iterator[StyledLine]:
    most = SHOWN_FLIPS[flips.tone]
    yield StyledLine(f"{flips.title} ({len(flips.cases)})", STYLES[flips.tone])
    for case in flips.cases[:most]:
        yield StyledLine("")
        yield StyledLine("  " + _cut(case.key, width - 2), STYLES[flips.tone])
        yield from map(StyledLine, _labelled(_about(case), width))
    if len(flips.cases) > most:
        yield StyledLine("")
        yield StyledLine(f"  {and_more(len(flips.cases) - most)}: --format html shows more of them, --format json all")


def _about(case: FlippedCase) -> Iterator[tuple[str, str]]:
    """Yield what there is to say of one case, by a label."""
    if case.question is not None:
        yield "question", case.question
    yield from (("why", reason) for reason in case.why)
    if case.scores:
        yield "scores", listed(case.scores, 5)
    if not case.has_record:
        yield "records", "none were kept of this case"
    yield from ((gold, f"{move}, {place}") for gold, move, place in case.golds)
    yield from moved_chunks(case)
    yield from case.answers


def _labelled(rows: Iterable[tuple[str, str]], width: int) -> Iterator[str]:
    for label, text in rows:
        yield f"    {label:<{LABEL}}{_cut(text, width - LABEL - 4)}".rstrip()


def _one_sided(view: ComparisonView, width: int) -> Iterator[StyledLine]:
    lines = [f"{title} ({len(keys)}): {listed(keys, SHOWN_CASES)}" for title, keys in view.lists]
    yield from (StyledLine(_cut(line, 3 * width)) for line in filter(None, [*lines, view.errors]))


def _cut(text: str, width: int) -> str:
    return shortened(printable(text), max(width, 10))
