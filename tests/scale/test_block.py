"""Blocks: whole lines of whole cases, each of them once."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_rageval.scale import portions
from pytest_rageval.scale.portions import Tail


def test_only_whole_lines_of_whole_cases_are_taken(tmp_path: Path):
    file = tmp_path / "results.jsonl"
    tail = Tail(file, lines_together=2)
    assert tail.take() == ("", 0), "nothing is written yet"
    file.write_text("a1\na2\nb1\n")
    assert tail.take() == ("a1\na2\n", 1)
    assert tail.take() == ("", 0)
    with file.open("a") as more:
        more.write("b")
        more.flush()
        assert tail.take() == ("", 0)
        more.write("2\nc1\n")
    assert tail.take() == ("b1\nb2\n", 1)


def test_a_block_is_bounded_unless_one_case_is_larger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(portions, "MOST_OF_A_BLOCK", 10)
    file = tmp_path / "results.jsonl"
    file.write_text("1234\n" * 5 + "x" * 50 + "\n" + "y\n")
    tail = Tail(file)
    taken = [tail.take() for _ in range(5)]
    assert [cases for _, cases in taken] == [2, 2, 2, 1, 0]
    assert "".join(lines for lines, _ in taken) == file.read_text()
