"""Places with pages in their texts, and titles of chunks."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from pytest_rageval.cases.exchange.formats import read_other


def places_of(folder: Path, written: str) -> list[tuple[object, object]]:
    path = folder / "golds.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("question", "answer", "source"), ("What is it?", "It", written)])
    (case,) = read_other(path, path.name).cases
    supports: list[dict[str, object]] = case["gold_supports"]
    return [(support["rel_path"], support.get("heading_path")) for support in supports]


@pytest.mark.parametrize(
    ("written", "pages"),
    [
        ("manual.pdf:15", [15]),
        ("manual.pdf p.3-4", [3, 4]),
        ("manual.pdf (pp. 3–5)", [3, 4, 5]),
        ("manual.pdf, S. 7", [7]),
        ("manual.pdf (Page 13)", [13]),
        ("manual.pdf#page=3-4", [3, 4]),
        ("Manual.DOCX:2", [2]),
    ],
)
def test_pages_in_the_text_of_a_place_are_its_pages(tmp_path: Path, written: str, pages: list[int]):
    found = places_of(tmp_path, written)
    assert [heading for _, heading in found] == [f"page {page}" for page in pages]
    assert {str(path).lower() for path, _ in found} <= {"manual.pdf", "manual.docx"}


@pytest.mark.parametrize("written", ["a.md:12", "v1.2:3", "report.2024 5", "https://x.org:8080"])
def test_numbers_that_are_no_pages_stay_in_the_path(tmp_path: Path, written: str):
    assert places_of(tmp_path, written) == [(written, None)]


def trulens(folder: Path, *chunks: dict[str, object]):
    path = folder / "set.json"
    path.write_text(json.dumps([{"query": "Q?", "expected_response": "A.", "expected_chunks": [*chunks]}]), "utf-8")
    return read_other(path, path.name)


def test_a_title_that_is_a_file_is_the_place_of_its_chunk(tmp_path: Path):
    (case,) = trulens(tmp_path, {"text": "It is.", "title": "docs/a.md"}).cases
    assert case["gold_supports"] == [{"rel_path": "docs/a.md"}]
    assert case["contexts"] == ["It is."]


def test_a_title_that_is_no_file_is_named_among_what_is_kept(tmp_path: Path):
    read = trulens(tmp_path, {"text": "It is.", "title": "Limits of uploads"})
    (case,) = read.cases
    assert "gold_supports" not in case
    assert case["metadata"] == {"expected_chunks[].title": ["Limits of uploads"]}
    assert "expected_chunks[].title" in read.kept
