"""The page of a sweep: what it says and draws, that hostile texts are text in it, and that it asks for nothing."""

from __future__ import annotations

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from browser import Chromium
from project import Project
from scored_bot import ScoredBot

GRID = ("--grid", "min_score=.2,.4,.6", "--grid", "k=1,5")


def test_the_page_says_what_the_terminal_says_draws_each_parameter_and_leads_to_the_runs(project: Project):
    bot = ScoredBot(project)
    output, path = bot.sweep(*GRID, "--grid", "style=plain"), bot.folder / "sweep.html"
    html = path.read_text(encoding="utf-8")
    sentence = re.search(r"^better than the default: .*$", output, re.MULTILINE)
    assert sentence is not None
    assert sentence[0] in html
    assert "Best: min_score 0.6, k 5" in html
    assert re.search(r"questions saved</th><td class=\"n\">60 of 140<", html)
    assert "\nmin_score = 0.6" in html
    assert re.findall(r'<svg[^>]*aria-label="([^;]+);', html) == [
        "score by min_score", "score by k", "recall against negative accuracy",
    ]  # fmt: skip
    assert "all at style plain" in html
    links = set(re.findall(r'href="(\.\./[^"]+)"', html))
    assert len(links) == 3
    assert all((path.parent / link).is_file() and link.endswith("/report.html") for link in links)


@pytest.mark.parametrize(
    "arguments", [("--grid", "k=5"), ("--grid", "k=1,5", "--weights", "recall=1"), ("--grid", "style=a,b,[1]")]
)
def test_a_page_with_little_to_draw_is_a_page(project: Project, arguments: tuple[str, ...]):
    bot = ScoredBot(project)
    bot.sweep(*arguments)
    html = (bot.folder / "sweep.html").read_text(encoding="utf-8")
    assert html.rstrip().endswith("</html>")
    assert "nan" not in re.sub(r"[a-z]nan|nan[a-z]", "", html.lower())


def test_without_negative_cases_there_is_nothing_to_weigh_against(project: Project):
    bot = ScoredBot(project)
    cases = [{"id": "a", "question": "What about a?", "gold": {"chunk_ids": ["a"]}}]
    project.cases([*cases, {**cases[0], "id": "b"}])
    bot.sweep("--grid", "k=1,5")
    assert "there is nothing to weigh against" in (bot.folder / "sweep.html").read_text(encoding="utf-8")


HOSTILE = (
    "<script>document.title='hit'</script>",
    "<img src=x onerror=\"document.title='hit'\">",
    "\u202e\u0007{{7*7}}",
)


@pytest.mark.browser
def test_hostile_values_and_ids_are_text_and_nothing_is_loaded(project: Project, chromium: Chromium):
    bot = ScoredBot(project, "second look")
    cases = project.path / "evalcases" / "a.jsonl"
    cases.write_text(cases.read_text().replace('"id": "odd"', '"id": "<b onclick=alert(1)>odd"'))
    bot.sweep(*GRID, "--grid", "style=" + ",".join(f'"{_json(text)}"' for text in HOSTILE))
    path = bot.folder / "sweep.html"
    with chromium.page() as page:
        page.goto(path.as_uri())
        text = page.inner_text("body")
        assert page.title() == f"Sweep · {bot.folder.name}"
        assert len(page.requests) == 1
        assert page.problems == []
        for name in (HOSTILE[0], HOSTILE[1], "\\u202e\\x07{{7*7}}", "<b onclick=alert(1)>odd"):
            assert name in text


def _json(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\u0007", "\\u0007")


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_is_wide_enough_and_readable(project: Project, chromium: Chromium, scheme: str):
    bot = ScoredBot(project)
    bot.sweep(*GRID)
    with chromium.page(width=390, height=844, color_scheme=scheme) as page:
        page.goto((bot.folder / "sweep.html").as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        box = page.locator(".verdict").bounding_box()
        assert box is not None
        assert box["y"] + box["height"] < 844
        violations = Axe().run(page).response["violations"]
        assert [rule["id"] for rule in violations if rule["impact"] in ("serious", "critical")] == []
