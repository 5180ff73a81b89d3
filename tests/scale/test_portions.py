"""Portions: sizes, the way over, and what becomes of them when workers are lost."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pytest_rageval.cases.canonical import content_hash
from pytest_rageval.model import Anchor, Edge, EvalCase, Gold, Source, Turn
from pytest_rageval.scale import portions
from pytest_rageval.scale.portions import Portions, portion_size, read_cases


def some_cases(number: int) -> list[EvalCase]:
    return [EvalCase(f"q{n}", f"question {n}", source=Source("evalcases/a.jsonl", n + 1)) for n in range(number)]


def ids(cases: object) -> list[str]:
    assert isinstance(cases, (list, tuple))
    return [case.id for case in cases]


def drained(waiting: Portions) -> list[list[str]]:
    taken = []
    while waiting:
        taken.append(ids(waiting.take().cases))
    return taken


@given(st.integers(0, 60), st.integers(1, 20))
def test_portions_are_all_cases_once_and_in_order(number: int, size: int):
    taken = drained(Portions(some_cases(number), size))
    assert [id for portion in taken for id in portion] == ids(some_cases(number))
    assert all(len(portion) <= size for portion in taken)


@given(st.integers(1, 10**8), st.integers(1, 5000), st.integers(1, 1000))
def test_a_portion_is_neither_empty_nor_more_than_a_fair_part(cases: int, workers: int, in_flight: int):
    size = portion_size(cases, workers, in_flight)
    assert 1 <= size <= portions.MOST_CASES
    assert size <= -(-cases // workers)


def test_few_cases_make_several_portions_a_worker_and_many_the_largest():
    assert portion_size(800, 2, 8) == 100
    assert portion_size(100, 2, 8) == 32, "enough to keep what is in flight full"
    assert portion_size(10**8, 100, 8) == portions.MOST_CASES


def test_long_cases_make_shorter_portions(monkeypatch):
    monkeypatch.setattr(portions, "MOST_BYTES", 300)
    taken = drained(Portions(some_cases(9), 100))
    assert [len(portion) for portion in taken] == [2, 2, 2, 2, 1]


def test_a_portion_that_is_lost_again_and_again_is_divided_until_a_case_is_alone():
    waiting = Portions(some_cases(8), 8)
    losses, alive = 0, list[str]()
    deadly = None
    while waiting:
        portion = waiting.take()
        if "q5" in ids(portion.cases):
            losses += 1
            deadly = waiting.put_back(portion)
        else:
            alive += ids(portion.cases)
    assert deadly is not None
    assert deadly.id == "q5"
    assert sorted(alive) == ["q0", "q1", "q2", "q3", "q4", "q6", "q7"]
    assert losses == 5, "twice as a whole, then once for each of 4, 2 and 1 cases"


GOLD = Gold(answers=("x",), supports=(Anchor("a.md", "# A", ("s",), "2026-01-01"),), kg_edges=(Edge("a", "is", "b"),))
ODD = [
    EvalCase("a", "lone \ud800 surrogate\nand a line", source=Source("b.jsonl", 3)),
    EvalCase(
        "탑", "높이는?", history=(Turn("user", "안녕"),), contexts=(), tags=("x",), metadata={"n": [1, None, 1.5]}
    ),
    EvalCase("g", "q", answerable=False, requires_kg=True, gold=GOLD),
]


def test_cases_come_over_as_they_were():
    text = Portions(ODD, len(ODD)).take().text
    assert read_cases(text) == ODD
    assert list(map(content_hash, read_cases(text))) == list(map(content_hash, ODD))
    assert text.isascii()
