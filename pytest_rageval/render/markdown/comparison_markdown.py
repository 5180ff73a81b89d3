"""Two runs side by side as a comment on a pull request: short tables first, each flipped question folded away."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest

from pytest_rageval.io.suggestions import and_more, listed
from pytest_rageval.render.markdown.markdown_text import (
    MARKS,
    NAME,
    TEXT,
    TO_THE_LEFT,
    as_code,
    as_html,
    as_name,
    table,
    view_table,
)
from pytest_rageval.views.comparison import ComparisonView, FlipList, FlippedCase, GateView

LONGEST = 60_000
"""Characters: GitHub refuses a comment of more than 65,536."""
SHOWN_FLIPS = (20, 10, 5, 2, 0)
"""Cases of each kind in full: as many as keep the comment short enough."""
SHOWN_CASES, SHOWN_SETTINGS = 10, 30
GATES = {True: "✅ holds", False: "❌ **fails**", None: "➖ says nothing"}


def comparison_markdown(view: ComparisonView) -> str:
    """Return the whole comment, never longer than `LONGEST`. Texts of cases and systems stand in it as code, cut."""
    for most in SHOWN_FLIPS:
        text = "\n".join(_parts(view, most)).rstrip() + "\n"
        if len(text) <= LONGEST:
            break
    return text if len(text) <= LONGEST else text[: LONGEST - 2].rpartition("\n")[0] + "\n…\n"


def _parts(view: ComparisonView, most: int) -> Iterator[str]:
    yield f"## {MARKS[view.verdict.tone]} {as_name(view.verdict.text, 1000)}"
    yield ""
    yield from (f"- {name}: {as_name(side, 400)}" for name, side in view.sides)
    yield ""
    for problem in view.problems:
        yield f"> ⚠️ **{as_name(problem.text, 1000)}**"
        yield ">"
    for note in view.notes:
        yield f"> {as_name(note, 1000)}"
        yield ">"
    yield ""
    yield f"{'⚠️ ' if view.changed.tone == 'doubtful' else ''}{as_name(view.changed.text, 400)}"
    yield ""
    settings = [[*map(as_code, row.cells)] for row in view.settings.rows]
    yield from table(view.settings.heads, settings[:SHOWN_SETTINGS], figures=TO_THE_LEFT) if settings else ()
    yield from [and_more(len(settings) - SHOWN_SETTINGS, "settings"), ""] * (len(settings) > SHOWN_SETTINGS)
    yield from ["### Metrics", ""] * bool(view.metrics.rows)
    yield from view_table(view.metrics)
    yield from [view.quiet, ""] * bool(view.quiet)
    yield from map(_gate, view.gates)
    yield ""
    yield from ["### By category", ""] * bool(view.categories.rows)
    yield from view_table(view.categories)
    for flips in view.flips:
        yield from _flips(flips, most)
    for title, keys in view.lists:
        yield f"- {title} ({len(keys)}): {as_name(listed(keys, SHOWN_CASES), 2000)}"
    yield from [f"- {as_name(view.errors)}"] * bool(view.errors)


def _gate(gate: GateView) -> str:
    return f"- {GATES[gate.passed]}: {as_name(gate.text, 400)}"


def _flips(flips: FlipList, most: int) -> Iterator[str]:
    yield f"### {flips.title} ({len(flips.cases)})"
    yield ""
    for case in flips.cases[:most]:
        yield from _case(case)
    if rest := [case.key for case in flips.cases[most:]]:
        yield ("and " if most else "") + as_name(listed(rest, SHOWN_CASES), 2000)
        yield ""


def _case(case: FlippedCase) -> Iterator[str]:
    why = f" – {as_html('; '.join(case.why), TEXT)}" if case.why else ""
    yield f"<details><summary>{as_html(case.key)}{why}</summary>"
    yield ""
    if case.scores:
        yield f"- scores: {as_name(listed(case.scores, 8), TEXT)}"
    if not case.has_record:
        yield "- no record of this case was kept"
    if case.question is not None:
        yield f"- question: {as_code(case.question)}"
    yield from (f"- {gold}: {move}, {as_code(place, NAME)}" for gold, move, place in case.golds)
    yield from (f"- {name}: {as_code(text)}" for name, text in case.answers)
    yield ""
    yield from _chunks(case)
    yield "</details>"
    yield ""


def _chunks(case: FlippedCase) -> Iterator[str]:
    """Yield both lists of chunks side by side, rank by rank."""
    pairs = zip_longest(case.chunks["before"] or (), case.chunks["after"] or (), fillvalue=("", "", ""))
    rows = [[was[0] or now[0], _place(was[1]), was[2], _place(now[1]), now[2]] for was, now in pairs]
    if rows:
        yield from table(["rank", "before", "", "after", ""], rows, figures=TO_THE_LEFT)


def _place(text: str) -> str:
    return as_code(text, NAME) if text else ""
