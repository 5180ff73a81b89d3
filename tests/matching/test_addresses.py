"""Addresses of pages as places: what makes two of them different, and what does not."""

from __future__ import annotations

import pytest

from pytest_rageval.matching.places import match
from pytest_rageval.model import Anchor, Answer, Chunk, EvalCase, Gold


def is_hit(gold: Anchor | str, chunk: Chunk | str) -> bool:
    anchor = gold if isinstance(gold, Anchor) else Anchor(gold)
    passage = chunk if isinstance(chunk, Chunk) else Chunk(rel_path=chunk, text="Some text.")
    case = EvalCase(id="a", question="Which?", gold=Gold(supports=(anchor,)))
    (hits,) = match(case, Answer(text="This.", chunks=(passage,))).hits or ()
    return bool(hits)


@pytest.mark.parametrize(
    ("gold", "reported"),
    [
        ("https://c.example/pages/viewpage.action?pageId=111", "https://c.example/pages/viewpage.action?pageId=222"),
        ("https://c.example/pages/viewpage.action?pageId=111", "https://c.example/pages/viewpage.action"),
        ("https://c.example/doc.php?id=1", "https://c.example/doc.php?id=2&utm_source=x"),
        ("https://c.example/q?lang=en", "https://c.example/q?lang=de"),
        ("https://c.example/q?lang=en&theme=dark", "https://c.example/q?lang=de"),
        ("https://c.example/help", "https://c.example/help?article=12"),
        ("https://c.example/help", "https://c.example/help?kbId=12&lang=en"),
        ("https://c.example/", "https://c.example/?p=12"),
        ("https://c.example/kb.do", "https://c.example/kb.do?sysparm=K1"),
        ("https://c.example/wiki/index.php", "https://c.example/wiki/index.php?w=Home"),
        ("https://c.example/watch?v=abc", "https://c.example/watch?v=def"),
        ("https://c.example/index.html#/a", "https://c.example/index.html#/b"),
        ("https://c.example/app#!/a/b", "https://c.example/app"),
        ("https://a.example/faq", "https://b.example/faq"),
        ("https://en.c.example/faq", "https://de.c.example/faq"),
        ("https://c.example:8080/faq", "https://c.example:8081/faq"),
        ("s3://one/faq.pdf", "s3://two/faq.pdf"),
        ("doc.php?id=1", "https://c.example/doc.php?id=2"),
        ("b.md#boiling", "b.md#freezing"),
        ("b.md#boiling", "https://c.example/b.md#freezing"),
        ("b.pdf#page=12", "b.pdf#page=13"),
        ("b.pdf#page=12", "kb/b.pdf#page=1"),
        ("b.md#boiling", Chunk(rel_path="b.md", heading_path="# Water > ## Freezing", text="Some text.")),
        ("b.pdf#page=12", Chunk(rel_path="b.pdf", text="Some text.", extra={"page_label": "13"})),
    ],
)
def test_addresses_that_name_other_pages_do_not_match(gold, reported):
    assert not is_hit(gold, reported)
    if isinstance(reported, str):
        assert not is_hit(reported, gold)


@pytest.mark.parametrize(
    ("gold", "reported"),
    [
        ("https://c.example/help", "http://www.c.example/help/?utm_source=a&fbclid=b&gclid=c#top"),
        ("https://c.example/help?id=1&lang=en", "https://c.example/help?lang=en&utm_medium=x&id=1"),
        ("https://c.example/help", "https://C.example:443/help"),
        ("https://c.example/faq", "https://c.example/faq?lang=en"),
        ("https://c.example/faq?locale=en-GB", "https://c.example/faq"),
        ("https://c.example/faq?lang=en", "https://c.example/faq?lang=en&theme=dark"),
        ("https://c.example/faq", "https://c.example/faq?campaign=spring&view=full"),
        ("https://c.example/faq.php", "https://c.example/faq.php?lang=en"),
        ("https://c.example/doc.php?id=1", "https://c.example/doc.php?id=1&hl=en"),
        ("docs/help.md", "https://c.example/docs/help.md?plain=1#L10"),
        ("docs/help.md", "https://c.example/docs/help?id=7"),
        ("https://c.example/docs/help", "docs/help.md"),
        ("https://c.example/a.pdf", "https://c.example/a.pdf?X-Amz-Signature=x&X-Amz-Expires=9&version=3"),
        ("https://c.example/help?q=a%20b", "https://c.example/help?q=a+b"),
        ("https://c.example/index.html#/a", "https://c.example/index.html#/a/"),
        ("b.md#boiling", "kb/b.md#boiling"),
        ("b.md#boiling-point", Chunk(rel_path="./b.md", heading_path="# Water > ## Boiling point", text="Some text.")),
        ("b.md#boiling", Chunk(rel_path="./b.md", heading_path="# Boiling > ## At sea", text="Some text.")),
        ("b.pdf#page=12", "kb/b.pdf#page=12"),
        ("b.pdf#page=12", Chunk(rel_path="./b.pdf", text="Some text.", extra={"page": 11})),
        ("b.md", "b.md#L10-L20"),
        ("b.md", "b.md#chunk-3"),
        ("docs/help.md", "docs/sub/../help.md"),
        ("docs/help.md", "../docs/./help.md"),
    ],
)
def test_addresses_that_differ_in_nothing_else_match(gold, reported):
    assert is_hit(gold, reported)


@pytest.mark.parametrize(
    ("gold", "reported"),
    [
        ("# User’s guide", "# User's guide"),
        ("# Users’ guide – part 1", "# Users' guide - part 1"),
        ("# “Q” words", '# "Q" words'),
        ("# Words „so“ written", '# Words "so" written'),
        ("# Words «so» written", "# Words “so” written"),
        ("# Soft\u00adhyphen", "# Softhyphen"),
        ("# Data\u200bbase", "# Database"),
    ],
)
def test_quotation_marks_and_invisible_signs_of_headings_do_not_count(gold: str, reported: str):
    assert is_hit(Anchor("a.md", gold), Chunk(rel_path="a.md", heading_path=reported, text="Some text."))
    assert is_hit(Anchor("a.md", reported), Chunk(rel_path="a.md", heading_path=gold, text="Some text."))
    assert not is_hit(Anchor("a.md", gold), Chunk(rel_path="a.md", heading_path=f"{reported} B", text="Some text."))
