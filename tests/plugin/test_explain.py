"""`rageval explain`: one case, everything, from what a real run wrote."""

from __future__ import annotations

import json

import pytest
from judge_server import JudgeServer
from project import Project, a_case
from rich.cells import cell_len

from pytest_rageval.comparison.baseline import side_of_run
from pytest_rageval.config.settings_sources import load_settings
from pytest_rageval.render.html.case_view import case_views
from pytest_rageval.render.html.page_run import compared_side, read_page
from pytest_rageval.render.markdown.case_markdown import case_markdown
from pytest_rageval.runs.reader import open_stored_run


@pytest.fixture
def explained(project: Project):
    """A run of two cases, and a way to ask about it."""
    far = [{"rel_path": "notes/water.md", "heading_path": "# Water > ## Freezing"}]
    project.cases(
        [a_case("far", "boiling or freezing?", gold_supports=far, gold={"answer": "Water freezes at 0 degrees."}),
         a_case("lost", "boiling lost")]
    )  # fmt: skip
    project.write(
        "losing.py",
        "import bot\ndef answer(q):\n    assert 'lost' not in q, 'gone \\x1b[31m'\n    return bot.answer(q)\n",
    )
    project.configure('target = "losing:answer"')
    project.run()

    def ask(*arguments: str) -> pytest.RunResult:
        return project.rageval("explain", *arguments)

    return ask


def test_a_case_is_shown_with_its_arithmetic_and_gates(explained):
    result = explained("latest", "far")
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        [
            "evalcases/a.jsonl::far*",
            "written at evalcases/a.jsonl:1 · factual",
            "question*boiling or freezing?",
            "*gold 1*notes/water.md > # Water > ## Freezing",
            "*1  notes/water.md > # Water > ## Boiling*",
            "*2  notes/water.md > # Water > ## Freezing*gold 1",
            "*mrr*0.500*1 / rank 2",
            "*recall_any@5 >= 1*is 1*holds",
            "*no concepts are labelled:*concept_map_f1",
        ]
    )


def test_a_case_that_could_not_be_asked_says_why_and_sends_nothing_to_the_terminal(explained):
    result = explained("latest", "evalcases/a.jsonl::lost")
    result.stdout.fnmatch_lines(["evalcases/a.jsonl::lost   error", "*exception: *gone \\x1b[[]31m*"])
    assert "\x1b[31m" not in str(result.stdout)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["latest", "farr"], "did you mean 'far'?"),
        (["latest~5", "far"], "holds 1 run;"),
        (["nowhere", "far"], "there is no run 'nowhere'; the last ones are"),
    ],
)
def test_what_is_not_there_is_said_in_one_line(explained, arguments: list[str], said: str):
    result = explained(*arguments)
    assert result.ret == 2
    assert len(result.errlines) == 1
    assert said in result.errlines[0]


LONG = "\\n".join(f"Line {number} of a long passage." for number in range(9))
TOLD = f"""
def answer(question):
    far = {{"chunk_id": "c1", "rel_path": "notes/a.md", "heading_path": "# A", "text": "{LONG}", "rank": 1}}
    near = {{"chunk_id": "c2", "rel_path": "notes/water.md", "heading_path": "# Water > ## Boiling",
            "text": "Water boils at 100 degrees at sea level.", "rank": 2}}
    return {{"answer": "Water boils at 100 degrees at sea level. Cats sing.",
            "debug": {{"retrieved_chunks": [far, near]}}}}
"""
TWO_GOLDS = [
    {"rel_path": "notes/water.md", "heading_path": "# Water > ## Boiling"},
    {"rel_path": "notes/steam.md", "heading_path": "# Steam"},
]


@pytest.fixture
def told(project: Project) -> Project:
    """A run of one case: a chunk of many lines, one of two golds, a claim that nothing supports."""
    project.write("told.py", TOLD)
    project.configure('target = "told:answer"')
    project.cases([a_case("boil", gold_supports=TWO_GOLDS, category="multi_hop")])
    project.run()
    return project


def test_texts_of_chunks_golds_that_are_missing_and_claims_are_shown(told: Project):
    shown = told.rageval("explain", "latest", "boil")
    shown.stdout.fnmatch_lines(
        [
            "retrieved",
            "  1  notes/a.md > # A *",
            "       Line 0 of a long passage.",
            "       Line 2 of a long passage.",
            "       and 6 more lines: --full shows them",
            "  2  notes/water.md > # Water > ## Boiling * gold 1",
            "       Water boils at 100 degrees at sea level.",
            "  –  notes/steam.md > # Steam * gold 2 of 2 was not retrieved",
            "claims",
            "  ✘  unsupported * Cats sing.",
            "  ✔  supported    chunk 2  Water boils at 100 degrees at sea level.",
        ]
    )
    assert "Line 8 of" not in shown.stdout.str()
    assert "Line 8 of" in told.rageval("explain", "latest", "boil", "--full").stdout.str()


@pytest.mark.parametrize("width", [60, 80, 120])
def test_what_is_shown_is_no_wider_than_the_terminal(told: Project, width: int):
    told.cases([a_case("boil", gold_supports=TWO_GOLDS, gold={"answer": "물은 해수면에서 섭씨 백 도에 끓는다. " * 9})])
    told.run()
    lines = told.rageval("explain", "latest", "boil", "--full", COLUMNS=str(width)).outlines
    chunks = lines[lines.index("retrieved") : lines.index("gates")]
    assert [line for line in chunks if cell_len(line) > width] == []


def test_as_json_it_is_the_record_with_its_observation(told: Project):
    content = json.loads(told.rageval("explain", "latest", "boil", "--format", "json").stdout.str())
    assert content["record"]["case_key"] == content["observation"]["case_key"] == "evalcases/a.jsonl::boil"
    assert content["record"]["scores"]["context_recall@5"] == 0.5
    assert len(content["observation"]["answer"]["debug"]["retrieved_chunks"]) == 2


def test_as_markdown_it_is_in_fenced_parts(told: Project):
    text = told.rageval("explain", "latest", "boil", "--format", "markdown").stdout.str()
    assert "**case**\n\n```text\nboil\n```\n\n**question**" in text
    assert "2 | ✔ gold 1 |" in text
    assert "**rerun**\n\n```text\npytest evalcases/a.jsonl::boil\n```" in text


def test_its_markdown_is_of_the_page_of_the_run_with_what_was_before(told: Project):
    """The page is compared with the run of the baseline, in which the second gold stood at a rank."""
    told.run("--rageval-update-baseline")
    told.write("told.py", TOLD.replace('"rank": 2', '"rank": 1').replace("[far, near]", "[far]"))
    told.run()
    run = open_stored_run(told.path / "reports", "latest")
    settings, baseline = load_settings(told.path), told.path / "reports" / "baseline.json"
    page = read_page(side_of_run(run), compared_side(run, told.path / "reports", baseline), settings)
    [view] = case_views(page, page.cases)
    assert view is not None
    shown = told.rageval("explain", "latest", "boil", "--format", "markdown").stdout.str()
    assert "it stood at rank 2 before" in shown
    assert shown.rstrip() == case_markdown(view).rstrip()


def test_an_explained_judge_error_still_shows_what_was_asked_and_came(project: Project):
    project.cases([a_case("boil")])
    with JudgeServer("5 out of 5!") as server:
        project.run("--rageval-judge", f"openai:judge@{server.url}").assert_outcomes(errors=1)
    shown = project.rageval("explain", "latest", "boil").stdout.str()
    assert "What is the boiling point of water?" in shown
    assert "Water boils at 100 degrees at sea level." in shown
    assert "notes/water.md > # Water > ## Boiling" in shown


def test_a_gold_that_covers_a_whole_note_is_named(project: Project):
    project.write("vault/notes/water.md", "# Water\n\nWet.\n\n## Boiling\n\nAt 100.\n\n## Freezing\n\nAt 0.\n")
    project.cases([a_case("wide", gold_supports=[{"rel_path": "notes/water.md", "heading_path": "# Water"}])])
    project.configure('target = "bot:answer"\nnotes = "vault"')
    project.run()
    result = project.rageval("explain", "latest", "wide")
    result.stdout.fnmatch_lines(["gold 1 covers 3 sections, the whole note: any of them is a hit"])


def test_a_gold_of_a_whole_note_is_named_where_it_is_converted(project: Project):
    project.write("vault/notes/water.md", "# Water\n\nWet.\n\n## Boiling\n\nAt 100.\n\n## Freezing\n\nAt 0.\n")
    project.configure('target = "bot:answer"\nnotes = "vault"')
    project.write("set.csv", "id,question,path,heading\nwide,When does it boil?,notes/water.md,# Water\n")
    places = ["--map", "gold.paths=path", "--map", "gold.headings=heading"]
    result = project.rageval("cases", "convert", "set.csv", "-o", "c.jsonl", *places)
    assert result.ret == 0
    result.stderr.fnmatch_lines(["1 gold covers a whole note*: wide (gold 1, 3 sections); name the section*"])
