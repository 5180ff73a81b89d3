"""Texts of the label screen, laid out in the cells of a terminal."""

from __future__ import annotations

import pytest
from label_desk import HOSTILE
from rich.cells import cell_len

from pytest_rageval.label.screen_text import fitted_end, laid_out


@pytest.mark.parametrize("text", [*HOSTILE.values(), "a b  c " * 40, " lead", "wide 한글한글한글한글"])
@pytest.mark.parametrize("width", [2, 7, 33])
def test_laid_out_rows_fit_and_together_are_the_text(text: str, width: int):
    segments = laid_out(text, width)
    assert all(cell_len(row.shown) <= width or row.end - row.start == 1 for row in segments)
    assert "".join(text[row.start : row.end] for row in segments) == text.replace("\n", "")


def test_paths_are_cut_at_their_beginning():
    assert (fitted_end("abcdef", 4), fitted_end("ab", 4), fitted_end("한글한글", 6)) == ("…def", "ab", "…한글")
