"""Flags, marks and blank cells of columns that say whether there is an answer, in many shapes: none is turned round."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from pytest_rageval.cases.exchange.formats import read_other
from pytest_rageval.errors import CaseError

WORDS = (
    "yes/no ja/nein ja/nee oui/non sí/no sim/não 예/아니오 はい/いいえ 是/否 true/false 1/0 Y/N TRUE/FALSE "
    "✓/✗ ☑/☐ ☒/☐ ☑/☒ ○/× o/x x/- ✓/- 있음/없음 有/无"
)
YES = "answerable beantwortbar in_scope répondable should_answer 답변가능 回答可能 可回答"
NO = "unanswerable is_impossible out_of_scope expected_refusal unbeantwortbar 답변불가 回答不可 无法回答"


def answerable(folder: Path, name: str, rows: list[tuple[str, str]]) -> list[object]:
    """Return whether the cases of a file with these right answers and flags have an answer."""
    path = folder / "set.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        written = csv.writer(file)
        written.writerow(["question", "expected_answer", name])
        for number, (answer, flag) in enumerate(rows):
            written.writerow([f"Which one is number {number}?", answer, flag])
    return [case.get("answerable", True) for case in read_other(path, path.name).cases]


@pytest.mark.parametrize("words", WORDS.split())
@pytest.mark.parametrize("name", [*YES.split(), *NO.split()])
def test_a_flag_says_the_same_whatever_its_words_and_a_blank_one_beside_words_says_nothing(name, words, tmp_path):
    yes, no = words.split("/")
    if name in NO.split():
        yes, no = no, yes
    rows = [("One.", yes), ("", no), ("Three.", yes), ("Four.", "")]
    assert answerable(tmp_path, name, rows) == [True, False, True, True]


@pytest.mark.parametrize("tick", ["x", "X", "✓", "✔", "☑", "☒", "●", "*", "[x]"])
@pytest.mark.parametrize("name", YES.split())
def test_a_blank_cell_in_a_column_of_ticks_is_not_ticked(name, tick, tmp_path):
    assert answerable(tmp_path, name, [("One.", tick), ("", ""), ("Three.", tick)]) == [True, False, True]
    assert answerable(tmp_path, name, [("One.", tick), ("", ""), ("", "")]) == [True, False, False]


@pytest.mark.parametrize("tick", ["x", "✓", "☑"])
@pytest.mark.parametrize("name", NO.split())
def test_a_tick_under_unanswerable_says_no_and_a_blank_cell_says_nothing(name, tick, tmp_path):
    assert answerable(tmp_path, name, [("One.", ""), ("", tick), ("Three.", "")]) == [True, False, True]


def test_few_ticks_turn_no_right_answer_round(tmp_path):
    rows = [("One.", "x"), ("Two.", ""), ("Three.", ""), ("", "")]
    assert answerable(tmp_path, "answerable", rows) == [True, True, True, True]


def test_a_cross_in_every_row_is_asked_about(tmp_path):
    with pytest.raises(CaseError, match="cannot be read: 'x'"):
        answerable(tmp_path, "answerable", [("One.", "x"), ("Two.", "x")])
