"""L2: were the folders that the system chose the right ones to search?"""

from __future__ import annotations

import unicodedata

import pytest
from observations import a_case, assert_score, score, scores

from pytest_rageval.matching.places import observe
from pytest_rageval.metrics.citations import NO_PLACES, NO_SELECTION, NOT_SELECTING, UNKNOWN_MODE
from pytest_rageval.model import Anchor, Answer, FolderSelection, Gold, Observation


def searched(
    *folders: str, gold=("lab/imaging/drift.md",), sent: str | None = "on", reported=None, fallback=None
) -> Observation:
    extra = {} if reported is None else {"mode": reported}
    selection = FolderSelection(folders, fallback=fallback, extra=extra)
    params = {} if sent is None else {"folder_mode": sent}
    case = a_case(gold=Gold(supports=tuple(map(Anchor, gold))))
    return observe(case, Answer("Yes.", folder_selection=selection), params=params)


@pytest.mark.parametrize("folder", ["lab/imaging", "lab", "lab/imaging/", "/lab", "./lab/imaging", "lab\\imaging"])
def test_a_folder_includes_all_that_is_below_it(folder):
    assert score("scope_miss", searched(folder)) == 0


@pytest.mark.parametrize("folder", ["lab/im", "imaging", "labs", "lab/imaging/raw", "Lab"])
def test_other_folders_do_not(folder):
    assert score("scope_miss", searched(folder)) == 1


BY_IDS = observe(
    a_case(gold=Gold(supports=(Anchor("lab/a.md"),), chunk_ids=("c1",))),
    Answer("Yes.", folder_selection=FolderSelection(("desk",))),
    gold_by="ids",
    params={"folder_mode": "on"},
)
UNREPORTED = observe(a_case(gold=Gold(supports=(Anchor("a.md"),))), Answer("Yes."), params={"folder_mode": "on"})
MISSES = {
    **{f"the root {root!r} includes everything": (searched("elsewhere", root), 0) for root in ("", "/", ".", "./")},
    "an empty selection means all folders": (searched(), 0),
    "one gold within the selection is enough": (searched("a", "b", gold=("c/x.md", "b/y.md")), 0),
    "no gold within the selection is a miss": (searched("a", "b", gold=("c/x.md", "d/y.md")), 1),
    "letters are compared whatever their composition": (
        searched(unicodedata.normalize("NFD", "노트"), gold=("노트/시장.md",)), 0),
    "a later fallback undoes no miss": (searched("elsewhere", sent="on_with_fallback", fallback=True), 1),
    "the mode that was sent counts first": (searched("elsewhere", sent="on", reported="off"), 1),
    "a mode off that was sent counts first": (searched("elsewhere", sent="off", reported="on"), NOT_SELECTING),
    "else the mode that is reported": (searched("elsewhere", sent=None, reported="on_with_fallback"), 1),
    **{f"the mode {mode!r} selects nothing": (searched("elsewhere", sent=None, reported=mode), NOT_SELECTING)
       for mode in ("off", "auto", 1, ["on"])},
    "without a mode there is no score": (searched("elsewhere", sent=None), UNKNOWN_MODE),
    "without a place there is no score": (searched("elsewhere", gold=()), NO_PLACES),
    "without a selection there is no score": (UNREPORTED, NO_SELECTION),
    "places count where retrieval is measured by ids": (BY_IDS, 1),
}  # fmt: skip


@scores({sentence: ("scope_miss", *row) for sentence, row in MISSES.items()})
def test_what_is_a_miss(name, obs, expected):
    assert_score(name, obs, expected)
