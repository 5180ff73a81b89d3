"""What a run's summary says, and that every face says the same."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape

import pytest
from project import SOME, Project, a_case, a_missed_case

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
    assert lines[2].startswith("**✘ Fails the build: 9 cases newly fail")
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


def summary(project: Project, run_id: str) -> str:
    return (project.path / "reports" / "runs" / run_id / "summary.md").read_text(encoding="utf-8")


def section(text: str, title: str) -> str:
    return text.partition(f"## {title}\n")[2].partition("\n## ")[0]


@pytest.fixture
def three(project: Project) -> Project:
    """A baseline, a run that is worse, one that is better again; a partial run between them."""
    project.cases([*SOME, a_missed_case("missed")])
    project.run("-q", "--rageval-run-id", "a", "--rageval-update-baseline")
    bot = (project.path / "bot.py").read_text()
    project.write("bot.py", bot.replace('"freezing": (', '"melting": ('))
    project.run("-q", "--rageval-run-id", "b")
    project.run("-q", "--rageval-run-id", "part", "-k", "boil")
    project.write("bot.py", bot)
    project.run("-q", "--rageval-run-id", "c")
    return project


def test_the_previous_complete_run_stands_beside_the_baseline_once(three: Project):
    first = section(summary(three, "a"), "Compared")
    assert "There was no baseline, and no complete run before this one." in first
    same = section(summary(three, "b"), "Compared")
    assert "The previous complete run is a; it is the baseline." in same
    assert same.count("| recall\\_any@5 |") == 1
    last = section(summary(three, "c"), "Compared")
    assert "The baseline is a. The previous complete run is b." in last
    baseline, _, before = last.partition("**Against the previous run:**")
    assert "**Against the baseline:**" in baseline
    [row] = [line for line in before.splitlines() if line.startswith("| recall\\_any@5 |")]
    assert [cell.strip() for cell in row.split("|")[2:5]] == ["0.500", "0.750", "+0.250"]
    assert "- passes now, failed in the previous run (1): evalcases/a.jsonl::freeze" in last


def test_deciding_again_keeps_the_comparison(three: Project):
    before = summary(three, "c")
    three.run("-q", "--rageval-run-id", "d")
    three.rageval("score", "c")
    assert summary(three, "c") == before
    three.rageval("judge", "c", "--spot-check", "--second-judge", "stub:3")
    assert section(summary(three, "c"), "Compared") == section(before, "Compared")


def test_the_configuration_names_weights_models_prompts_and_versions(project: Project):
    project.cases(SOME)
    project.configure(
        'target = "bot:answer"\njudge = "stub:0.9"\nrerank_vector_weight = 0.7\n[tool.rageval.versions]\n'
        'llm = "llama3.2"\nembedding = "granite-278m"'
    )
    project.run("-q", "--rageval-run-id", "a", "--rageval-metrics", "relevance")
    table = section(summary(project, "a"), "Configuration")
    for row in (
        "| version of llm | llama3.2 |", "| version of embedding | granite-278m |", "| weight of vector scores | 0.7 |",
        "| weight of lexical scores | server default |", "| prompt of relevance | 3+", "| answerer version | ",
    ):  # fmt: skip
        assert row in table


CELL = re.compile(r"<b>([^<]*)</b>(?: <span class=\"delta\">[▼▲] ([^<]*)</span>)?|<td class=\"heat none\">(–)")


def test_every_face_shows_the_same_score_and_the_same_change(project: Project):
    cases = [a_case(f"c{number}", category=("factual", "multi_hop")[number % 2]) for number in range(8)]
    unlabelled = {"id": "bare", "question": "What is the boiling point?", "category": "factual"}
    project.cases([*cases, unlabelled])
    project.run("--rageval-update-baseline")
    spoilt = [a_missed_case("c0", category="factual"), *cases[1:], unlabelled]
    project.cases(spoilt)
    result = project.run("--rageval-ignore-invariants")
    scores, changes = on_page((project.runs[-1] / "report.html").read_text(encoding="utf-8"))
    assert set(scores) == {"factual", "multi_hop"}
    assert scores == {name: row[2:] for name, row in in_terminal(result.outlines).items()}
    assert scores == {name: row[6:] for name, row in in_markdown(project).items()}
    compared = project.rageval("compare", "baseline", "latest", "--ignore-invariants").outlines
    moved = {line.split()[0]: line.split()[-len(changes["factual"]) :] for line in compared if line.split()[:1]}
    assert changes == {name: ["" if text in "=–" else text for text in moved[name]] for name in changes}
    assert any(changes["factual"])


def on_page(html: str) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """By category, the scores of its layers and their changes."""
    table = html.partition('<table class="heat">')[2].partition("</table>")[0]
    scores, changes = {}, {}
    for row in table.split("<tr>")[2:]:
        name = unescape(re.sub(r"<[^>]+>", "", row.partition("</th>")[0])).strip()
        cells = CELL.findall(row)
        scores[name] = [value or none for value, _, none in cells]
        changes[name] = [moved for _, moved, _ in cells]
    return scores, changes


def in_terminal(lines: list[str]) -> dict[str, list[str]]:
    return {line.split()[0]: line.split()[1:] for line in lines if line.startswith(("factual ", "multi_hop "))}


def in_markdown(project: Project) -> dict[str, list[str]]:
    text = (project.runs[-1] / "summary.md").read_text(encoding="utf-8").replace("\\_", "_")
    part = text.partition("## By category")[2].partition("## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in part.splitlines() if line.startswith("|")]
    return {row[0]: row[1:] for row in rows[2:]}


SLIP = re.compile(r"(?<![\d.,@=/:·-])(?<!of )(?<!top )(?<!rank )(?<!gold )\b1 (?!has\b|was\b)[a-z]{3,}s\b(?!/)")
TAGS = re.compile(r"<(script|style).*?</\1>|<[^>]+>", re.DOTALL)


def texts(project: Project) -> Iterator[tuple[str, str]]:
    """What each face shows, by name."""
    project.cases([a_case("only"), a_missed_case("other")])
    project.run("--rageval-update-baseline")
    project.cases([a_missed_case("only")])
    yield "pytest", project.run("-v").stdout.str()
    yield "pytest, broken", project.run("-v", "--rageval-target", "bot:nothing").stdout.str()
    yield "run", project.rageval("run").stdout.str()
    folder = project.runs[-1]
    yield "summary.md", (folder / "summary.md").read_text(encoding="utf-8")
    yield "report.html", TAGS.sub("\n", (folder / "report.html").read_text(encoding="utf-8"))
    for command in (
        ["explain", "latest", "only"], ["compare", "baseline", "latest"], ["compare", "latest~1", "latest"],
        ["compare", "baseline", "latest", "--format", "markdown"], ["history"], ["history", "--metric", "mrr"],
        ["runs", "list"], ["runs", "show", "latest"], ["gate", "latest"], ["comment"], ["doctor"],
        ["cases", "validate"], ["cases", "stats"], ["cases", "audit"], ["runs", "prune", "--keep", "1", "--dry-run"],
    ):  # fmt: skip
        result = project.rageval(*command)
        yield " ".join(command), f"{result.stdout.str()}\n{result.stderr.str()}"


def test_one_thing_is_never_said_in_the_plural(project: Project):
    slips = [
        f"{face}: {line.strip()}" for face, text in texts(project) for line in text.splitlines() if SLIP.search(line)
    ]
    assert not slips, "\n".join(slips)
