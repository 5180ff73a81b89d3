"""What a reader sees before scrolling, in a real browser: verdict, counts, flips, tiles and what changed."""

from __future__ import annotations

from pathlib import Path

import pytest
from browser import Chromium
from stored_pages import STATES, a_page, write_page

pytestmark = pytest.mark.browser
SEEN_AT_ONCE = (".verdict .word", ".verdict .sentence", ".verdict .against", ".tile .figure",
                ".flips li:nth-child(-n+5) a", "#flips-title", "#moves-title")  # fmt: skip
OUTSIDE = """selectors => selectors.flatMap(selector => [...document.querySelectorAll(selector)].filter(element => {
  const box = element.getBoundingClientRect();
  return box.width === 0 || box.height === 0 || box.top < 0 || box.left < 0 || box.bottom > innerHeight
    || box.left >= innerWidth;
}).map(element => selector + ': ' + element.textContent.trim() + JSON.stringify(element.getBoundingClientRect())))"""
TONES = {"green": "green", "worse": "red", "gate failed": "red", "no baseline": "red", "partial": "red",
         "all errors": "red", "0 cases": "amber", "1 case": "red"}  # fmt: skip


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844)])
@pytest.mark.parametrize("state", STATES)
def test_the_first_screen_says_how_the_run_went(
    chromium: Chromium, tmp_path: Path, state: str, width: int, height: int
):
    page = a_page(tmp_path, state)
    with chromium.page(width, height) as screen:
        screen.open(write_page(tmp_path, page))
        selectors = [selector for selector in SEEN_AT_ONCE if selector != "#moves-title" or width > 500]
        assert screen.evaluate(OUTSIDE, selectors) == []
        assert screen.evaluate("document.documentElement.scrollWidth") <= width, "nothing scrolls sideways"
        shown = " ".join(screen.inner_text(".verdict .sentence").split())
        assert shown == f"{page.verdict.symbol} {page.verdict.sentence}"
        assert TONES[state] in screen.get_attribute(".verdict", "class")
        flips = screen.locator(".flips li").count()
        expected = {"green": 0, "0 cases": 0, "1 case": 1, "partial": 3}.get(state, 5)
        assert flips == expected
        assert (screen.requests[1:], screen.problems) == ([], [])
