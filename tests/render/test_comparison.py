"""A comparison in each of its forms: what it says, how wide, how long, and that hostile text stays text."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt
from rich.cells import cell_len
from stored_runs import a_chunk, a_row, compared_runs, store

from pytest_rageval.render.markdown.view_markdown import LONGEST, view_markdown
from pytest_rageval.render.text.view_text import view_lines
from pytest_rageval.views.comparison import ComparisonView, comparison_view

HOSTILE = (
    "<script>alert(1)</script> `x` **b** | {{ 7*7 }} \x1b[31mred \u202e @everyone #12 http://evil.example ]]> & \"'"
)


def content_of(tmp_path: Path, *, key: str = "a.jsonl::q", text: str = "An answer.", cases: int = 1) -> ComparisonView:
    """Two runs in which some cases fail newly, with this text wherever the system or the case put one."""
    keys = [key, *(f"{key}{number}" for number in range(1, cases))]
    groups = {**a_row("x").groups, "category": (text[:60],)}
    chunks = [a_chunk(1, text, [0]), a_chunk(2, "b.md", [1])]
    before = {one: {"question": text, "answer": text, "retrieved_chunks": chunks} for one in keys}
    after = {one: {"question": text, "answer": f"{text} now", "retrieved_chunks": chunks[::-1]} for one in keys}
    after = {
        one: {**told, "retrieved_chunks": [a_chunk(1, "c.md"), a_chunk(2, text, [0])]} for one, told in after.items()
    }
    store(tmp_path, "a", [a_row(one, mrr=1.0, groups=groups) for one in keys], records=before, description=text)
    rows = [a_row(one, mrr=0.0, groups=groups, outcome="failed", failed=(("mrr", "tag"),)) for one in keys]
    store(tmp_path, "b", rows, records=after, config={"params": {"prompt": text}})
    return view_of(tmp_path, "a", "b")


def view_of(*names: Any, **options: Any) -> ComparisonView:
    return comparison_view(compared_runs(*names, **options).content)


def terminal(content: ComparisonView, width: int = 100) -> list[str]:
    return [line.text for line in view_lines(content, width)]


def test_a_flipped_case_says_why_on_the_terminal(tmp_path: Path):
    lines = "\n".join(terminal(content_of(tmp_path)))
    assert "Fail now, did not before (1)" in lines
    assert "why            mrr is 0, gate >= 1 (tag)" in lines
    assert "gold 1         rank 1 → 2, An answer." in lines
    assert "gold 2         lost (was rank 2), b.md" in lines
    assert "answer before  An answer.\n" in lines
    assert "answer after   An answer. now" in lines


@pytest.mark.parametrize("width", [80, 120])
def test_no_line_about_a_case_is_wider_than_the_terminal(tmp_path: Path, width: int):
    content = content_of(tmp_path, key="a.jsonl::" + "남산" * 60, text="질문이 아주 길다 " * 50)
    lines = terminal(content, width)
    start = next(number for number, line in enumerate(lines) if "Fail now" in line)
    assert any("…" in line for line in lines[start:])
    assert all(cell_len(line) <= width for line in lines[start:])


@pytest.mark.parametrize(
    ("width", "row"),
    [
        (50, "-1.000 95 % -1.000 to -0.587, p 0.00024, n 12: regressed"),
        (60, "0.00024 12 regressed"),
        (80, "12 regressed"),
    ],
)
def test_no_table_is_wider_than_the_terminal(tmp_path: Path, width: int, row: str):
    content = content_of(tmp_path, text="a category " * 9, cases=12)
    lines = terminal(content, width)
    end = next(number for number, line in enumerate(lines) if "Fail now" in line)
    assert [line for line in lines[:end] if cell_len(line) > width] == []
    assert row in " ".join(" ".join(lines[:end]).split())


def test_hostile_text_cannot_steer_a_terminal(tmp_path: Path):
    text = "\n".join(terminal(content_of(tmp_path, key=f"a.jsonl::{HOSTILE}", text=HOSTILE), 400))
    assert "\\x1b[31mred" in text
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202e]", text)


class Page(HTMLParser):
    """The tags of a page and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize(
    "text",
    [
        "<img src=x onerror=alert(1)>", "</summary></details><svg/onload=alert(1)>", "<!-- <b>x", "<![CDATA[<b>x",
        "&lt;img src=x onerror=alert(1)&gt;", "\\<img src=x onerror=alert(1)>", '"><script>alert(1)</script>',
        "`<img src=x onerror=alert(1)>`", "&#60;b&#62; @everyone #12 www.evil.example http://evil.example",
    ],
)  # fmt: skip
def test_a_name_in_a_block_of_html_is_text_there_and_reads_as_it_is(tmp_path: Path, text: str):
    markdown = view_markdown(content_of(tmp_path, key=f"a.jsonl::{text}", text=text))
    page = Page(MarkdownIt("commonmark", {"html": True}).enable("table").render(markdown))
    assert page.tags == {"h2", "h3", "p", "ul", "li", "code", "table", "thead", "tbody", "tr", "th", "td",
                         "details", "summary"}  # fmt: skip
    assert page.attributes == set()
    assert f"a.jsonl::{text} – mrr is 0" in page.text
    summary = next(line for line in markdown.splitlines() if line.startswith("<details>"))
    assert not re.search(r"(?<![\w>;])[@#](?=\w)|://|www\.", re.sub(r"<code>.*?</code>|&#\d+;", "", summary))


@pytest.mark.parametrize("text", ["short", "x" * 5000, "|" * 5000, "긴 " * 2000])
def test_a_comment_is_never_too_long_for_a_pull_request(tmp_path: Path, text: str):
    found = view_markdown(content_of(tmp_path, text=text, cases=150))
    assert len(found) <= LONGEST
    assert "### Fail now, did not before (150)" in found
    assert found.count("<details>") == found.count("</details>")


def test_what_one_side_kept_no_record_of_is_said_in_every_form(tmp_path: Path):
    content_of(tmp_path)
    (tmp_path / "runs/a/results.jsonl").unlink()
    content = view_of(tmp_path, "a", "b")
    assert "answer before  no record was kept" in "\n".join(terminal(content))
    assert "- answer before: <code>no record was kept</code>" in view_markdown(content)
