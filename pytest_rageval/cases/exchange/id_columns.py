"""Which column of a foreign file is the id of its cases: by its name, and by values that stand in one row each."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from pytest_rageval.cases.exchange.column_values import Column, last_name
from pytest_rageval.cases.exchange.gold_objects import is_id
from pytest_rageval.cases.names import is_case_id, is_whole_name, name_words
from pytest_rageval.model import Json

_ALWAYS_IDS = (
    "uid uuid identifiant identificador identificatore identificativo identifikator identificatie kenmerk "
    "no nr num number numero nummer n° case_no case_nr case_number test_no question_no item_no "
    "tc_id tcid testcase_id test_case_id lfd_nr lfdnr sl_no s_no serial_no "
    "序号 序號 連番 순번 일련번호 문항번호 案例编号 题号 用例编号 識別子 식별자"
)
_SOMETIMES_IDS = (
    "ref reference_no reference_id code key tc case test case_ref case_key case_code ref_no q_no slug "
    "item test_case record entry row pos position index testfall testcase prüffall volgnummer kürzel "
    "項番 案例 用例 ケース 케이스"
)
_NUMBER_SIGNS = frozenset(["#", "№", "nº", "n°", "n.º", "no", "no.", "nr", "nr."])


def _plain(names: str) -> frozenset[str]:
    return frozenset(name_words(name) for name in names.split())


_ALWAYS = _plain(_ALWAYS_IDS)
_SOMETIMES = _plain(_SOMETIMES_IDS)
_LONGEST_ID = 64
_MOST_WORDS = 3
_CODE = re.compile(r"(?=.*[\d_:/-])\S{1,64}")
"""A value of a column that may hold something else, too: `REF-7`, `leave_days`; not `Paris`."""
_FILE = re.compile(r".{1,300}\.[A-Za-z]\w{0,5}")


class IdChoice(NamedTuple):
    """The column of ids, if there is one, and a note for the user if another one looks like it and repeats."""

    path: str | None
    note: str = ""


def choose_id(
    candidates: Iterable[Column],
    others: Iterable[Column],
    rows: int,
    is_unique: Callable[[Column], bool],
    *,
    has_gold: bool,
) -> IdChoice:
    """Return the column of ids: `id`, unless its values repeat, else the best one whose values stand in one row each.

    candidates  the columns whose names mean ids
    others      those whose names mean nothing else, such as `#`, `ref` or `code`
    rows        number of rows; `others` must be filled in each
    is_unique   whether no value of a column stands in two rows
    has_gold    another column says what is right: a `code` alone may be the right answer itself
    """
    named = list(candidates)
    first = next((column for column in named if last_name(column.path).lower() in ("id", "_id")), None)
    if first is not None and is_unique(first):
        return IdChoice(first.path)
    filled = [column for column in others if len(column.values) == rows and may_be_id(column, has_gold=has_gold)]
    possible = [column for column in (*named, *filled) if is_unique(column)]
    chosen = min(possible, key=lambda column: doubt_of_id(column.name), default=None)
    if chosen is None:
        # Of ids that repeat, the check of the cases tells where.
        return IdChoice(first.path if first else None)
    if first is None:
        return IdChoice(chosen.path)
    return IdChoice(chosen.path, f"{first.path} repeats, so {chosen.path} was taken as the id of the cases")


def doubt_of_id(name: str) -> int:
    """Return how doubtful it is that a name is that of a case's id."""
    if is_case_id(name):
        return 0
    return 1 if is_whole_name(name) or name_words(name) in _ALWAYS else 2


def may_be_id(column: Column, *, has_gold: bool) -> bool:
    """Return True for a column that people call ids by another name, and whose values are short."""
    words = name_words(column.name)
    is_number_sign = column.name.strip().lower() in _NUMBER_SIGNS
    if words in _ALWAYS or is_number_sign:
        return column.every(_is_short_id)
    is_possible = words in _SOMETIMES and has_gold
    return is_possible and column.every(_is_short_id) and column.every(_is_code)


def _is_short_id(value: Json) -> bool:
    text = str(value)
    is_short = len(text) <= _LONGEST_ID and len(text.split()) <= _MOST_WORDS
    return is_id(value) and is_short and not _FILE.fullmatch(str(value))


def _is_code(value: Json) -> bool:
    return bool(_CODE.fullmatch(str(value)))
