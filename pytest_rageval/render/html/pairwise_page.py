"""A pairwise comparison as one HTML page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, TypeVar

from pytest_rageval.render.html.environment import policy, rendered, style
from pytest_rageval.views.pairwise import VERDICTS, pairwise_view
from pytest_rageval.views.parts import FigureTable, FoldList, LabelledText, Line, NameList

Shown = TypeVar("Shown")
COLOURS = {"better": "green", "worse": "red", "doubtful": "amber", "plain": "grey"}


@dataclass(frozen=True, kw_only=True)
class PairwiseParts:
    """The parts of a page of a pairwise comparison.

    names    both runs
    symbol   of the verdict, with its `colour` and `sentence`
    gates    the gates with their results
    facts    the figures; `remarks` on them
    tables   the figures by category
    lists    the clearest wins and losses
    names_of_others
             the cases that only one run has
    """

    names: tuple[str, str]
    symbol: str
    colour: str
    sentence: str
    gates: Sequence[Line]
    facts: Sequence[LabelledText]
    remarks: Sequence[Line]
    tables: Sequence[FigureTable]
    lists: Sequence[FoldList]
    names_of_others: Sequence[NameList]


def pairwise_parts(content: Mapping[str, Any]) -> PairwiseParts:
    """Return the parts of the content of a pairwise comparison."""
    view = pairwise_view(content)
    verdict = content["verdict"]
    symbol, tone = VERDICTS[verdict["word"]]
    names = (content["before"]["name"], content["after"]["name"])
    # The first line of the view is the verdict, which the page shows larger.
    _, *gates = view.head
    wins_and_losses = [*view.wins, *view.losses]
    figures_and_one_sided = [*view.figures, *view.one_sided]
    return PairwiseParts(
        names=names,
        symbol=symbol,
        colour=COLOURS[tone],
        sentence=verdict["sentence"],
        gates=_of_kind(Line, gates),
        facts=_of_kind(LabelledText, view.figures),
        remarks=_of_kind(Line, figures_and_one_sided),
        tables=_of_kind(FigureTable, view.categories),
        lists=_of_kind(FoldList, wins_and_losses),
        names_of_others=_of_kind(NameList, view.one_sided),
    )


def pairwise_html(content: Mapping[str, Any]) -> str:
    """Return the page of the content of a pairwise comparison."""
    return rendered(
        "pairwise.html",
        policy=policy(),
        style=style(),
        version=version("pytest-rageval"),
        parts=pairwise_parts(content),
    )


def _of_kind(kind: type[Shown], blocks: Iterable[object]) -> list[Shown]:
    """Return the blocks of one kind: the page has a place of its own for each."""
    return [block for block in blocks if isinstance(block, kind)]
