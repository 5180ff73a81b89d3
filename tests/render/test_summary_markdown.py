"""summary.md: the verdict first, then what fails now; long lists folded; shares of cases with their intervals."""

from __future__ import annotations

import pytest
from project import Project, a_case, a_missed_case

from pytest_rageval.render.markdown.markdown_text import MOST, SHOWN, folded
from pytest_rageval.render.markdown.summary_markdown import _share


@pytest.mark.parametrize(
    ("passed", "total", "text"),
    [(0, 0, ""), (3, 4, " (75 %)"), (4, 5, " (80 %, 95 % within 38 to 96 %)")],
)
def test_the_share_of_passed_cases_has_an_interval_from_five_cases_on(passed: int, total: int, text: str):
    assert _share({"total_tests": total, "outcomes": {"passed": passed}}) == text


def test_what_fails_now_stands_behind_the_verdict_and_before_all_tables(project: Project):
    project.cases([a_case(f"c{number}") for number in range(9)])
    gate = ("--rageval-gate", "run recall_any@5 >= 0.5")
    project.run("--rageval-update-baseline", *gate)
    assert "What fails now" not in (project.runs[-1] / "summary.md").read_text(encoding="utf-8")
    bot = (project.path / "bot.py").read_text(encoding="utf-8")
    project.write("bot.py", bot.replace('("notes/water.md", "# Water > ## Boiling"', '("notes/tea.md", "# Tea"'))
    project.run(*gate)
    text = (project.runs[-1] / "summary.md").read_text(encoding="utf-8")
    lines = text.splitlines()
    titles = [line.removeprefix("## ") for line in lines if line.startswith("## ")]
    assert titles[:4] == ["What fails now", "Compared", "Gates of the run", "Metrics"]
    assert titles[-1] == "Configuration"
    assert lines[2].startswith("**✘ Gate failed: 9 cases newly fail")
    part = text.partition("## What fails now")[2].partition("\n## ")[0]
    assert "- ❌ recall\\_any@5 " in part
    new = next(line for line in part.splitlines() if "fails now, did not in the baseline" in line)
    assert (
        new
        == "- fails now, did not in the baseline (9): "
        + ", ".join(f"evalcases/a.jsonl::c{number}" for number in range(SHOWN))
        + ", …"
    )
    assert "<details><summary>4 more</summary>\n\n  - evalcases/a.jsonl::c5\n" in part
    assert "fails now" not in text.partition("## Compared")[2]
    assert max(map(len, part.splitlines())) < 400


def test_cases_that_end_in_errors_are_counted_among_what_fails(project: Project):
    project.cases([a_case("boil"), a_missed_case("odd")])
    project.write("broken.py", "def answer(question):\n    raise RuntimeError('down')\n")
    project.run("--rageval-target", "broken:answer")
    text = (project.runs[-1] / "summary.md").read_text(encoding="utf-8")
    assert "- ❌ 2 cases end in errors: see run.log" in text.partition("## What fails now")[2]


@pytest.mark.parametrize(("names", "more"), [(SHOWN, None), (SHOWN + 1, "1 more"), (MOST + 7, "995 more")])
def test_of_a_list_the_first_few_stand_unfolded_and_of_very_many_not_all(names: int, more: str | None):
    text = "\n".join(folded("Fail", [f"c{number}" for number in range(names)], "metrics.json names all"))
    assert text.startswith(f"- Fail ({names:,}): c0, c1, c2, c3, c4")
    assert ("<details>" in text) is (more is not None)
    assert more is None or f"<summary>{more}</summary>" in text
    assert ("and 7 more: metrics.json names all" in text) is (names > MOST)
