"""A pairwise comparison as one HTML page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.metadata import version
from typing import Any, TypeVar

from pytest_rageval.render.html.environment import policy, rendered, style
from pytest_rageval.views.pairwise import VERDICTS, pairwise_view
from pytest_rageval.views.parts import FigureTable, FoldList, LabelledText, Line, NameList

Shown = TypeVar("Shown")
COLOURS = {"better": "green", "worse": "red", "doubtful": "amber", "plain": "grey"}


def pairwise_html(content: Mapping[str, Any]) -> str:
    """Return the page of the content of a pairwise comparison."""
    view = pairwise_view(content)
    verdict = content["verdict"]
    symbol, tone = VERDICTS[verdict["word"]]
    _, *gates = view.head
    return rendered(
        "pairwise.html",
        policy=policy(),
        style=style(),
        version=version("pytest-rageval"),
        names=(content["before"]["name"], content["after"]["name"]),
        symbol=symbol,
        colour=COLOURS[tone],
        sentence=verdict["sentence"],
        gates=_of_kind(Line, gates),
        facts=_of_kind(LabelledText, view.figures),
        remarks=_of_kind(Line, [*view.figures, *view.one_sided]),
        tables=_of_kind(FigureTable, view.categories),
        lists=_of_kind(FoldList, [*view.wins, *view.losses]),
        names_of_others=_of_kind(NameList, view.one_sided),
    )


def _of_kind(kind: type[Shown], blocks: Iterable[object]) -> list[Shown]:
    """Return the blocks of one kind: the page has a place of its own for each."""
    return [block for block in blocks if isinstance(block, kind)]
