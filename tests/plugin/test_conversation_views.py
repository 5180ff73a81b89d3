"""A conversation is one view in every face: turn by turn, with what was retrieved and where it broke first."""

from __future__ import annotations

import csv
import json

import pytest
from project import Project
from web_app import served

from pytest_rageval.comparison.baseline import side_of_run
from pytest_rageval.config.settings_sources import load_settings
from pytest_rageval.render.html.case_view import case_views
from pytest_rageval.render.html.page_run import PageRun, read_page
from pytest_rageval.render.html.report_page import fragments
from pytest_rageval.runs.reader import open_stored_run
from pytest_rageval.views.conversation import MOST_SHOWN

BOT = """
def answer(question, history):
    if "lost" in question:
        raise RuntimeError("gone")
    chunk = {"rel_path": "returns.md", "text": "A return costs 4 euros."}
    return {"answer": "A return costs 4 euros. <b>Sure</b>.", "retrieved_chunks": [chunk]}
"""


def a_turn(question: str, gold: str = "4 euros", **fields: object) -> dict[str, object]:
    return {"question": question, "gold": {"answer": gold}, "gold_supports": [{"rel_path": "returns.md"}], **fields}


@pytest.fixture
def talks(project: Project) -> Project:
    """A conversation that breaks at its second turn, one with an error, one that passes, and a single case."""
    broken = [a_turn("A return?"), a_turn("And from <i>Jeju</i>?", "6 euros"), a_turn("And by night?", "9 euros")]
    project.cases(
        [
            {"id": "broken", "turns": broken},
            {"id": "ended", "turns": [a_turn("A return?"), a_turn("And the lost one?"), a_turn("And now?")]},
            {"id": "two words", "turns": [a_turn("A return?"), a_turn("And an exchange?")]},
            {"id": "single", **a_turn("A return?")},
        ]
    )
    project.write("talking.py", BOT)
    project.configure('target = "talking:answer"')
    assert project.rageval("run", "--run-id", "one").ret == 1
    return project


def page_of(project: Project) -> PageRun:
    run = open_stored_run(project.path / "reports", "latest")
    return read_page(side_of_run(run), None, load_settings(project.path))


def pages(project: Project) -> dict[str, str]:
    """The pages of all cases in the report, by id."""
    page = page_of(project)
    return {case.id: html for case, html in zip(page.cases, fragments(page, page.cases), strict=True)}


def test_the_page_of_a_turn_shows_its_conversation(talks: Project):
    page = pages(talks)["broken[2]"]
    assert "1 of 3 turns pass, broke first at turn 2" in page
    assert page.count('class="badge">broke first<') == 1
    assert 'href="#/case/evalcases%2Fa.jsonl%3A%3Abroken%5B1%5D"' in page
    assert 'href="#/cases?q=conversation:broken"' in page
    assert "✔ returns.md" in page
    assert "And from &lt;i&gt;Jeju&lt;/i&gt;?" in page
    assert "<i>Jeju</i>" not in page
    assert "<b>Sure</b>" not in page


def test_a_conversation_of_two_words_leads_to_its_turns_and_a_single_case_has_none(talks: Project):
    shown = pages(talks)
    assert "2 of 2 turns pass" in shown["two words[1]"]
    assert 'href="#/cases?q=conversation:%22two%20words%22"' in shown["two words[1]"]
    assert "Conversation" not in shown["single"]


def test_blocked_turns_are_shown_after_the_error_that_broke_it(talks: Project):
    page = pages(talks)["ended[3]"]
    assert "1 of 3 turns pass, broke first at turn 2" in page
    assert "blocked: " in page


def test_explain_of_a_conversation_shows_all_its_turns(talks: Project):
    result = talks.rageval("explain", "one", "broken")
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        [
            "conversation broken   1 of 3 turns pass, broke first at turn 2",
            "evalcases/a.jsonl::broken[[]1]   passed",
            "question   A return?",
            "retrieved  1. returns.md  gold 1",
            "evalcases/a.jsonl::broken[[]2]   failed   broke first",
            "fails      gold_in_answer*",
            "evalcases/a.jsonl::broken[[]3]   failed",
        ]
    )
    assert result.outlines == talks.rageval("explain", "one", "evalcases/a.jsonl::broken").outlines
    turn = talks.rageval("explain", "one", "broken[3]")
    turn.stdout.fnmatch_lines(["conversation: 1 of 3 turns pass, broke first at turn 2", "  3  failed, this turn*"])


def test_explain_of_a_conversation_has_its_other_formats_and_suggests_near_ids(talks: Project):
    explained = json.loads(str(talks.rageval("explain", "one", "ended", "--json").stdout))
    assert (explained["conversation"], explained["broke_at"]) == ("ended", 2)
    assert [record["turn"] for record in explained["records"]] == [1, 2, 3]
    markdown = str(talks.rageval("explain", "one", "broken", "--format", "markdown").stdout)
    assert "turn | outcome | question and answer | retrieved" in markdown
    assert "2 | ✘ FAILED broke first | And from <i>Jeju</i>?" in markdown
    assert "did you mean 'broken'?" in str(talks.rageval("explain", "one", "brokn").stderr)


def test_an_id_of_two_conversations_is_asked_for_by_its_key(talks: Project):
    talks.cases([{"id": "broken", "turns": [a_turn("A return?")]}], "evalcases/b.jsonl")
    talks.rageval("run", "--run-id", "two")
    result = talks.rageval("explain", "two", "broken")
    assert result.ret == 2
    assert "write one of evalcases/a.jsonl::broken, evalcases/b.jsonl::broken" in str(result.stderr)
    assert "1 of 1 turn pass" in str(talks.rageval("explain", "two", "evalcases/b.jsonl::broken").stdout)


def test_the_browser_shows_the_conversation_and_groups_its_turns(talks: Project):
    with served(talks.path) as app:
        page = app.page("/runs/one/cases/evalcases/a.jsonl::broken[2]")
        assert "1 of 3 turns pass, broke first at turn 2" in page
        assert 'href="/runs/one/cases/evalcases%2Fa.jsonl%3A%3Abroken%5B1%5D"' in page
        listed = app.page("/runs/one")
        assert 'title="all turns of two words">turns</a>' in listed
        assert "3 cases of 9" in app.page("/runs/one?q=conversation:broken")


def test_a_turn_of_a_long_conversation_shows_those_around_it(talks: Project):
    turns = [a_turn(f"Return {number}?") for number in range(1, MOST_SHOWN + 21)]
    talks.cases([{"id": "long", "turns": turns}])
    talks.rageval("run", "--run-id", "long")
    page = page_of(talks)
    views = {view.head.id: view for view in case_views(page, page.cases) if view}
    for number in (1, 25, 50):
        conversation = views[f"long[{number}]"].conversation
        assert conversation is not None
        numbers = [turn.number for turn in conversation.turns]
        assert len(numbers) == MOST_SHOWN
        assert number in numbers
        assert conversation.left_out == f"turns {numbers[0]} to {numbers[-1]} are shown"
        assert conversation.title == "50 of 50 turns pass"


def test_exports_name_conversation_and_turn(talks: Project):
    talks.rageval("export", "one", "--format", "csv", "-o", "rows.csv")
    with (talks.path / "rows.csv").open(encoding="utf-8", newline="") as file:
        rows = {row["test_case_id"]: (row["conversation"], row["turn"]) for row in csv.DictReader(file)}
    assert rows["broken[2]"] == ("broken", "2")
    assert rows["single"] == ("", "")
