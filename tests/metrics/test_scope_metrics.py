"""L2: were the folders that the system chose the right ones to search?"""

from __future__ import annotations

import unicodedata

import pytest
from observations import a_case, score

from pytest_rageval.matching.places import observe
from pytest_rageval.metrics.selection import NO_PLACES, NO_SELECTION, NOT_SELECTING, UNKNOWN_MODE
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


@pytest.mark.parametrize("root", ["", "/", ".", "./"])
def test_the_root_includes_everything(root):
    assert score("scope_miss", searched("elsewhere", root)) == 0


def test_an_empty_selection_means_all_folders():
    assert score("scope_miss", searched()) == 0


def test_one_gold_within_the_selection_is_enough():
    assert score("scope_miss", searched("a", "b", gold=("c/x.md", "b/y.md"))) == 0
    assert score("scope_miss", searched("a", "b", gold=("c/x.md", "d/y.md"))) == 1


def test_folders_are_compared_whatever_the_composition_of_their_letters():
    assert score("scope_miss", searched(unicodedata.normalize("NFD", "노트"), gold=("노트/시장.md",))) == 0


def test_a_later_fallback_does_not_undo_a_miss():
    assert score("scope_miss", searched("elsewhere", sent="on_with_fallback", fallback=True)) == 1


def test_the_mode_that_was_sent_counts_before_the_one_that_is_reported():
    assert score("scope_miss", searched("elsewhere", sent="on", reported="off")) == 1
    assert score("scope_miss", searched("elsewhere", sent="off", reported="on")) == NOT_SELECTING.reason
    assert score("scope_miss", searched("elsewhere", sent=None, reported="on_with_fallback")) == 1


@pytest.mark.parametrize("mode", ["off", "auto", 1, ["on"]])
def test_other_modes_select_nothing(mode):
    assert score("scope_miss", searched("elsewhere", sent=None, reported=mode)) == NOT_SELECTING.reason


def test_without_a_mode_a_selection_or_a_place_there_is_no_score():
    assert score("scope_miss", searched("elsewhere", sent=None)) == UNKNOWN_MODE.reason
    assert score("scope_miss", searched("elsewhere", gold=())) == NO_PLACES.reason
    unreported = observe(a_case(gold=Gold(supports=(Anchor("a.md"),))), Answer("Yes."), params={"folder_mode": "on"})
    assert score("scope_miss", unreported) == NO_SELECTION.reason


def test_places_count_even_where_retrieval_is_measured_by_ids():
    gold = Gold(supports=(Anchor("lab/a.md"),), chunk_ids=("c1",))
    answer = Answer("Yes.", folder_selection=FolderSelection(("desk",)))
    assert score("scope_miss", observe(a_case(gold=gold), answer, gold_by="ids", params={"folder_mode": "on"})) == 1
