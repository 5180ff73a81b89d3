"""summary.md: the comparison with the run before, beside that with the baseline, and what was configured."""

from __future__ import annotations

import pytest
from project import SOME, Project, a_missed_case


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
    assert "There was no baseline: " in first
    assert "and no complete run before this one." in first
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
