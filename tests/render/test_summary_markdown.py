"""What a run's summary says, and that every face says the same."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from html import unescape

import pytest
from large_digest import large_digest
from project import SOME, Project, a_case, a_missed_case

from pytest_rageval.metrics.registry import LAYERS
from pytest_rageval.render.markdown.summary_markdown import _share, summary_markdown
from pytest_rageval.runs.causes import TITLES
from pytest_rageval.views.causes import ADVICE


@pytest.mark.parametrize(
    ("passed", "total", "text"),
    [(0, 0, ""), (3, 4, " (75 %)"), (4, 5, " (80 %, 95 % within 38 to 96 %)")],
)
def test_the_share_of_passed_cases_has_an_interval_from_five_cases_on(passed: int, total: int, text: str):
    assert _share({"total_tests": total, "outcomes": {"passed": passed}}) == text


def test_causes_stand_behind_the_verdict_and_before_all_tables(project: Project):
    project.cases([a_case(f"c{number:02}") for number in range(19)])
    gate = ("--rageval-gate", "run recall_any@5 >= 0.5")
    project.run("--rageval-update-baseline", "--rageval-run-id", "a", *gate)
    assert "Why cases fail" not in summary(project, "a")
    bot = (project.path / "bot.py").read_text(encoding="utf-8")
    project.write("bot.py", bot.replace('("notes/water.md", "# Water > ## Boiling"', '("notes/tea.md", "# Tea"'))
    project.run("--rageval-run-id", "b", *gate)
    text = summary(project, "b")
    lines = text.splitlines()
    titles = [line.removeprefix("## ") for line in lines if line.startswith("## ")]
    assert titles == [
        "Why cases fail", "What to do", "Failing cases", "Layers", "Moved metrics", "Configuration", "More",
    ]  # fmt: skip
    assert lines[1].startswith("**✘ Fails the build: 19 cases newly fail")
    part = section(text, "Why cases fail")
    assert "- ❌ recall\\_any@5 " in part
    names = ", ".join(f"evalcases/a.jsonl::c{number:02}" for number in range(3))
    cause = "the text of the gold was retrieved under another name: as notes/tea.md, not notes/water.md"
    assert f"- **19 × {cause}**: {names} and 16 more" in part.replace("\\", "")
    assert f"- fails now, did not in the baseline (19): {names} and 16 more" in part
    assert section(text, "What to do").startswith(f"- {ADVICE['gold_elsewhere']} See evalcases/a.jsonl::c00")
    rows = section(text, "Failing cases").splitlines()[2:12]
    assert [row.split(" | ")[0] for row in rows] == [f"| evalcases/a.jsonl::c{number:02}" for number in range(10)]
    assert "and 9 more cases" in section(text, "Failing cases")


def test_a_failing_case_has_question_expected_answer_and_what_it_got(project: Project):
    project.cases([
        a_missed_case("missed", question="What is the boiling point?", gold={"answer": "100 degrees | at sea level"}),
        a_case("none", "What is boiling?", answerable=False),
    ])  # fmt: skip
    project.run("--rageval-run-id", "a")
    rows = {row.split(" | ")[0]: row for row in section(summary(project, "a"), "Failing cases").splitlines()}
    missed = rows["| evalcases/a.jsonl::missed"]
    assert "the gold was not retrieved; " in missed
    assert "<code>What is the boiling point?</code> | <code>100 degrees \\| at sea level</code> | <code>" in missed
    assert "<code>an abstention: the documents hold no answer</code>" in rows["| evalcases/a.jsonl::none"]


def test_a_run_with_redacted_texts_has_none_in_its_summary(project: Project):
    project.cases([a_missed_case("missed", question="What is the boiling point?", gold={"answer": "100 degrees"})])
    project.run("--rageval-run-id", "a", "--rageval-redact")
    text = summary(project, "a")
    assert "| evalcases/a.jsonl::missed |" in text
    assert "boiling point" not in text
    assert "100 degrees" not in text


def test_what_changed_since_the_baseline_is_listed_with_both_values(project: Project):
    project.cases(SOME)
    project.run("--rageval-run-id", "a", "--rageval-update-baseline")
    project.run("--rageval-run-id", "b", "--rageval-param", "min_score=0.9", "--rageval-k", "7")
    changed = section(summary(project, "b"), "What changed")
    assert "- <code>params.min\\_score – → 0.9</code>" in changed
    assert "- <code>k 5 → 7</code>" in changed
    comment = project.rageval("comment", "b").stdout.str()
    assert "**What changed**: <code>k 5 → 7</code>, <code>params.min\\_score – → 0.9</code>" in comment
    # As in CI, where only the committed baseline is.
    shutil.rmtree(project.path / "reports" / "runs" / "a")
    assert "<code>k 5 → 7</code>" in project.rageval("comment", "b").stdout.str()
    project.run("--rageval-run-id", "c")
    assert "What changed" not in summary(project, "c")


def test_what_changed_has_the_commit_of_the_project_before_and_now(project: Project):
    project.cases(SOME)

    def commit() -> str:
        git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c"]
        for arguments in (["add", "bot.py"], ["commit", "-q", "--allow-empty", "-m", "x"]):
            subprocess.run([*git, *arguments], cwd=project.path, check=True, timeout=60)
        told = subprocess.run(
            ["git", "rev-parse", "HEAD"], cwd=project.path, check=True, capture_output=True, timeout=60
        )
        return told.stdout.decode()[:7]

    subprocess.run(["git", "init", "-q"], cwd=project.path, check=True, timeout=60)
    before = commit()
    project.run("--rageval-run-id", "a", "--rageval-update-baseline")
    now = commit()
    project.run("--rageval-run-id", "b")
    assert f"- <code>commit {before} → {now}</code>" in section(summary(project, "b"), "What changed")


def test_every_cause_has_advice_and_no_advice_is_without_a_cause():
    assert ADVICE.keys() == TITLES.keys()


def test_known_failures_are_counted_by_cause_apart_from_those_that_fail_the_build(project: Project):
    project.cases([*SOME, a_missed_case("known")])
    project.configure('target = "bot:answer"\nknown_failures = "ratchet"')
    project.run("--rageval-run-id", "a", "--rageval-update-baseline")
    project.run("--rageval-run-id", "b")
    text = summary(project, "b")
    assert "- known failures: **1 × the gold was not retrieved**: evalcases/a.jsonl::known" in text
    assert "## Failing cases" not in text
    comment = project.rageval("comment", "b").stdout.str()
    assert comment.startswith("> [!TIP]\n> **Passes: nothing got worse.")
    assert "×" not in comment


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
    first = section(summary(three, "a"), "Moved metrics")
    assert "There was no baseline, and no complete run before this one." in first
    same = section(summary(three, "b"), "Moved metrics")
    assert "The previous complete run is a; it is the baseline." in same
    assert "| metric | now | baseline | change | verdict |\n" in same
    assert cells(same, "recall\\_any@5")[:3] == ["0.500", "0.750", "-0.250"]
    last = section(summary(three, "c"), "Moved metrics")
    assert "The baseline is a. The previous complete run is b." in last
    assert "| metric | now | previous run | change | verdict |\n" in last
    assert cells(last, "recall\\_any@5")[:3] == ["0.750", "0.500", "+0.250"]


def cells(text: str, metric: str) -> list[str]:
    [row] = [line for line in text.splitlines() if line.startswith(f"| {metric} |")]
    return [cell.strip() for cell in row.split("|")[2:]]


def test_a_metric_that_moved_against_both_runs_is_one_row(three: Project):
    bot = (three.path / "bot.py").read_text()
    three.write("bot.py", bot.replace('"freezing": (', '"melting": (').replace('"boiling": (', '"cooking": ('))
    three.run("-q", "--rageval-run-id", "worst")
    part = section(summary(three, "worst"), "Moved metrics")
    assert "| metric | now | baseline | change | verdict | previous run | change | verdict |\n" in part
    row = cells(part, "recall\\_any@5")
    assert row[1] == row[4] == "0.750"
    assert row[2] == row[5] != "–"


def test_deciding_again_keeps_the_comparison(three: Project):
    before = summary(three, "c")
    three.run("-q", "--rageval-run-id", "d")
    three.rageval("score", "c")
    assert summary(three, "c") == before
    three.rageval("judge", "c", "--spot-check", "--second-judge", "stub:3")
    assert section(summary(three, "c"), "Moved metrics") == section(before, "Moved metrics")


def test_the_configuration_names_weights_models_prompts_and_versions(project: Project):
    project.cases(SOME)
    project.configure(
        'target = "bot:answer"\njudge = "stub:0.9"\nrerank_vector_weight = 0.7\n[tool.rageval.versions]\n'
        'llm = "llama3.2"\nembedding = "granite-278m"'
    )
    project.run("-q", "--rageval-run-id", "a", "--rageval-metrics", "relevance")
    block = section(summary(project, "a"), "Configuration").splitlines()
    assert len(block) <= 6
    for words in (
        "llm llama3.2", "embedding granite-278m", "weight of vector scores 0.7", "folder mode server default",
        "weight of lexical scores server default", "prompt of relevance 3+", "k 5", "answerer ", "judge: stub",
    ):  # fmt: skip
        assert any(words in line for line in block), words


LONG = "사례 @b <i>x</i> | `y` " * 900


def test_a_summary_has_at_most_ninety_lines_whatever_the_run_holds(project: Project):
    """Every list longer than its limit, in a run whose texts have 16 kB."""
    project.cases([a_case("boil")])
    project.configure('target = "bot:answer"\njudge = "stub:0.9"')
    project.run("-q", "--rageval-run-id", "a", "--rageval-metrics", "recall_any,mrr,relevance")
    metrics = project.metrics()
    digest = large_digest(LONG, gates=400)
    moved = tuple(each._replace(label=f"{number} {LONG}") for number, each in enumerate(digest.moved * 5))
    layer = {"score": 0.5, "title": LONG, "metrics": []}
    keys = [f"a.jsonl::{number} {LONG}" for number in range(300)]
    names = (
        "flipped_to_fail", "fails_new_gate", "flipped_to_pass", "not_measured", "newly_gated", "unmeasured",
        "only_after", "changed_cases", "only_before",
    )  # fmt: skip
    flips = dict.fromkeys(names, keys)
    comparison = {**digest.metrics["comparison"], **flips, "problems": [LONG] * 9, "layers": {
        name: {"delta": None, "why": LONG} for name in LAYERS}}  # fmt: skip
    large = {
        **metrics, **digest.metrics, "comparison": comparison, "description": LONG, "partial": True,
        "by_layer": dict.fromkeys(LAYERS, layer), "judge_errors": keys, "without_gate": 9, "gold_without_gate": 9,
        "facts_without_gate": 9, "undecided": 9, "untrained_languages": {f"{n} {LONG}": 9 for n in range(40)},
        "repeats": {"trials": 3, "cases": 9, "pass_at_n": 1.0, "pass_hat_n": 0.5}, "can_be_baseline": True,
    }  # fmt: skip
    large["volatile"] = {**metrics["volatile"], "run_id": LONG}
    config = {**project.config(), "observed": {f"{number}{LONG}": LONG for number in range(90)}, "target": LONG}
    previous = {**comparison, "baseline_run_id": f"p{LONG}"}
    every_kind = tuple(cause._replace(kind=kind) for cause, kind in zip(digest.causes, TITLES, strict=False))
    text = summary_markdown(
        replace(digest, metrics=large, moved=moved, causes=every_kind), config, previous, has_page=True
    )
    assert text.startswith("# Run ")
    assert len(text.splitlines()) <= 90
    assert len(text) < 40_000


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
