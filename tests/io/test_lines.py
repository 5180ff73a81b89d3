"""Lines of a file: every byte accounted for, and a last line that was cut off left out where the caller says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_rageval.io.lines import read_lines
from pytest_rageval.io.messages import Report


def a_file(folder: Path, content: bytes) -> Path:
    path = folder / "a.jsonl"
    path.write_bytes(content)
    return path


def lines_of(path: Path, torn: bool | None = None) -> tuple[list[str], list[tuple[int, bytes]], tuple[str, ...]]:
    report, asked = Report("a.jsonl"), list[tuple[int, bytes]]()

    def is_torn(number: int, line: bytes) -> bool:
        asked.append((number, line))
        return bool(torn)

    lines = [text for _, text, _ in read_lines(path, report, 100, None if torn is None else is_torn)]
    return lines, asked, report.problems


@pytest.mark.parametrize("end", [b"b", b"\xff", b"{"])
def test_a_last_line_without_an_end_is_left_out_unreported_if_it_was_torn(tmp_path: Path, end: bytes):
    assert lines_of(a_file(tmp_path, b"a\n" + end), torn=True) == (["a\n"], [(2, end)], ())


def test_a_last_line_that_was_not_torn_is_a_line(tmp_path: Path):
    assert lines_of(a_file(tmp_path, b"a\nb"), torn=False) == (["a\n", "b"], [(2, b"b")], ())
    assert lines_of(a_file(tmp_path, b"a\nb"))[0] == ["a\n", "b"]


def test_a_line_with_an_end_was_not_torn(tmp_path: Path):
    assert lines_of(a_file(tmp_path, b"a\nb\n"), torn=True) == (["a\n", "b\n"], [], ())
