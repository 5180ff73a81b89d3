"""`rageval label` as a person calls it: numbers by line, second opinions, drafts; what is wrong is one line."""

from __future__ import annotations

import importlib.util
import io
import json
import os
import sys
from typing import Any

import pytest
from label_desk import BOT
from labelling import write_cases
from project import Project

from pytest_rageval.cases.loading import load_file
from pytest_rageval.cli.label import _has_screen


@pytest.fixture
def desk(project: Project) -> Project:
    """A project whose bot gives five chunks, with three bare cases."""
    project.write("bot.py", BOT)
    project.cases([{"id": f"c{at}", "question": f"What is the price of {at}?"} for at in range(3)], "cases.jsonl")
    return project


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> Any:
    def type_lines(*lines: str) -> None:
        monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{line}\n" for line in lines)))

    return type_lines


def case(desk: Project, id: str, name: str = "cases.jsonl") -> Any:
    loaded = load_file(desk.path / name, desk.path)
    assert not loaded.problems
    return next(case for case in loaded.cases if case.id == id)


def numbers(result: pytest.RunResult) -> dict[str, int]:
    """The number of each note's chunk in the first list that was shown."""
    rows = [line.split() for line in result.outlines if "notes/" in line]
    return {row[-5].removeprefix("notes/").removesuffix(".md"): int(row[0]) for row in rows[:5]}


def test_numbers_by_line_mark_and_save(desk: Project, typed: Any):
    typed("1 2", "x 3", "g2 4", "v 5 2-2", "", "u", "", "?", "q")
    result = desk.rageval("label", "cases.jsonl", "--plain")
    assert result.ret == 0
    first = case(desk, "c0").gold
    assert len(first.supports) == 4
    assert first.supports[-1].snippets[0].startswith("the price is ")
    assert len(first.irrelevant_supports) == 1
    assert first.support_groups is not None
    assert case(desk, "c1").answerable is False
    assert result.outlines[-1] == "2 of 3 in cases.jsonl"
    assert (desk.path / "cases.jsonl.bak").exists()
    assert "Q  What is the price of 0?" in result.outlines


@pytest.mark.parametrize(
    ("category", "lines", "state", "groups"),
    [
        ("factual", ["1 2"], "golds: any of {1,2} ", None),
        ("multi_hop", ["1 2"], "golds: all of {1,2} ", None),
        ("factual", ["1 2", "g2 2", "z"], "golds: any of {1,2}   the next into group 2 ", None),
        ("factual", ["1 2", "g2 2"], "golds: group 1 = {1}   group 2 = {2} ", ((0,), (1,))),
        ("factual", ["1 2", "g2 2", "g1 2"], "golds: group 1 = all of {1,2}   group 2 = – ", ((0, 1),)),
        ("factual", ["g1 1 2"], "golds: group 1 = all of {1,2}   group 2 = – ", ((0, 1),)),
        ("factual", ["g1 1", "2"], "golds: group 1 = all of {1,2}   group 2 = – ", ((0, 1),)),
    ],
)
def test_the_state_says_how_many_golds_the_run_asks_for(
    desk: Project, typed: Any, category: str, lines: list[str], state: str, groups: object
):
    desk.cases([{"id": "c0", "question": "What is the price of 0?", "category": category}], "cases.jsonl")
    typed(*lines, "q")
    result = desk.rageval("label", "cases.jsonl", "--plain")
    last = [line for line in result.outlines if "golds: " in line][-1]
    assert state in last
    assert case(desk, "c0").gold.support_groups == groups


def test_all_words_of_the_plain_face(desk: Project, typed: Any):
    typed("1", "z", "Z", "w elder", "/ anything else", "show 1", "a", "s", "p", "t", "y", "99", "x", "g0 1", "v 1",
          "v 1 7", "%", "/", "u", "q")  # fmt: skip
    result = desk.rageval("label", "cases.jsonl", "--plain")
    text = result.stdout.str()
    for said in ("! y and n are for drafts", "! there is no chunk 99; there are 5", "is no list of chunk numbers",
                 "name a group from 1 to 9", "name a chunk and its lines", "has lines 1 to 2", "write what to ask",
                 "! 0 more chunks"):  # fmt: skip
        assert said in text, said
    assert result.ret == 0


def test_the_end_of_the_input_saves_what_was_marked(desk: Project, typed: Any):
    typed("1")
    assert desk.rageval("label", "cases.jsonl", "--plain").ret == 0
    assert case(desk, "c0").gold.supports


def test_only_unlabelled_cases_and_one_to_begin_with(desk: Project, typed: Any):
    typed("u", "q")
    assert "c1 · 2 of 3 · 0 labelled" in desk.rageval("label", "cases.jsonl", "--plain", "--case", "c1").outlines
    typed("q")
    result = desk.rageval("label", "cases.jsonl", "--plain", "--unlabelled")
    assert "c0 · 1 of 2 · 0 labelled" in result.outlines
    desk.cases([{"id": "a", "question": "q", "answerable": False}], "cases.jsonl")
    assert desk.rageval("label", "cases.jsonl", "--unlabelled", "--plain").outlines == [
        "cases.jsonl: every case is labelled"
    ]


def test_a_second_target_and_a_search_are_pooled_and_what_only_the_search_found_is_marked(desk: Project, typed: Any):
    desk.write("notes/price.md", "# Prices\nthe price is high\n")
    desk.write("other.py", BOT.replace("apple", "zebra"))
    desk.configure('target = "bot:answer"\nnotes = "notes"')
    typed("q")
    result = desk.rageval("label", "cases.jsonl", "--plain", "--target", "bot:answer", "--target", "other:answer")
    rows = [line for line in result.outlines if "notes/" in line]
    assert len(rows) == 7
    assert [row for row in rows if ") S notes/price.md > # Prices" in row]


def test_opinions_are_compared_and_only_disagreements_opened(desk: Project, typed: Any):
    for name, marks in {"anna": ("1", "1", "u"), "ben": ("1", "2", "1")}.items():
        typed(*(line for mark in marks for line in (mark, "")))
        assert desk.rageval("label", "cases.jsonl", "--plain", "--blind", name).ret == 0
    typed("q")
    result = desk.rageval("label", "cases.jsonl", "--agree", "--plain")
    (line,) = [line for line in result.outlines if line.startswith("anna and ben")]
    # Golds 2 and 3 of 15, one in common: (12/15 - 162/225) / (1 - 162/225).
    assert line.startswith("anna and ben: 3 cases, 15 places; agreement 80%, kappa 0.29 [")
    assert line.endswith("] (fair)")
    assert "  c2: answerable, says ben alone" in result.outlines
    assert "c1 · 1 of 2 · 0 labelled" in result.outlines
    as_json = json.loads(desk.rageval("label", "cases.jsonl", "--agree", "--json").stdout.str())
    assert [a["places"] for a in as_json["agreements"]] == [0, 0, 15]
    assert {d["case"] for d in as_json["agreements"][2]["differences"]} == {"c1", "c2"}
    assert "nothing that both labelled" in result.stdout.str()


def test_drafts_are_accepted_one_by_one_and_never_collected(desk: Project, typed: Any):
    desk.cases([{"id": f"d{at}", "question": "q"} for at in range(2)], "evalcases/x.drafts.jsonl")
    for name in ("apple", "banana", "cherry", "date", "elder"):
        desk.write(f"notes/{name}.md", "# Top\n")
    typed("1", "y", "n")
    result = desk.rageval("label", "evalcases/x.drafts.jsonl", "--plain", "--notes", "notes")
    assert result.ret == 0
    assert len(case(desk, "d0", "evalcases/x.jsonl").metadata["note_hashes"]) == 1
    assert [case.id for case in load_file(desk.path / "evalcases/x.jsonl", desk.path).cases] == ["d0"]
    desk.cases([{"id": "later", "question": "q"}], "evalcases/x.drafts.jsonl")
    desk.run()
    assert set(desk.outcomes()) == {"d0"}


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["missing.jsonl", "--plain"], "missing.jsonl: there is no such file"),
        (["case.jsonl", "--plain"], "case.jsonl: there is no such file; did you mean 'cases.jsonl'?"),
        (["cases.jsonl", "--plain", "--target", "nope"], "unknown target 'nope'"),
        (["cases.jsonl", "--plain", "--target", "nowhere:f"], "target nowhere:f: nowhere cannot be imported"),
        (["cases.jsonl", "--plain", "--target", "http://127.0.0.1:1"], "http://127.0.0.1:1"),
        (["cases.jsonl", "--plain", "--case", "x"], "there is no case 'x' to label"),
        (["cases.jsonl", "--plain", "--blind", "a/b"], "--blind 'a/b': a name is needed"),
        (["cases.jsonl", "--agree"], "cases.jsonl: there is no second opinion (cases.labels.NAME.jsonl)"),
        (["cases.jsonl"], "no terminal here; --plain reads commands by line"),
        (["broken.jsonl", "--plain"], "broken.jsonl:1:"),
        (["cases.jsonl", "--json"], "--json goes with --agree"),
        (["cases.jsonl", "--agree", "--blind", "x"], "--blind writes an opinion"),
        (["x.drafts.jsonl", "--agree"], "are for cases, not for drafts"),
        (["cases.jsonl", "--notes", "nowhere"], "Directory 'nowhere' does not exist"),
    ],
)
def test_what_is_wrong_is_one_line_and_nothing_is_written(
    desk: Project, typed: Any, arguments: list[str], problem: str
):
    desk.write("broken.jsonl", "{\n")
    typed("1", "q")
    before = (desk.path / "cases.jsonl").read_bytes()
    result = desk.rageval("label", *arguments)
    assert result.ret == 2
    lines = [line for line in result.errlines if line and not line.startswith(("Usage:", "Try "))]
    assert len(lines) == 1
    assert problem in lines[0]
    assert (desk.path / "cases.jsonl").read_bytes() == before


def test_without_a_system_notes_alone_are_enough_and_without_both_the_remedy_is_said(desk: Project, typed: Any):
    desk.configure("")
    result = desk.rageval("label", "cases.jsonl", "--plain")
    assert (result.ret, "name one with --target" in result.stderr.str()) == (2, True)
    desk.write("notes/price.md", "# Prices\nthe price of 0 is high\n")
    typed("1", "q")
    assert desk.rageval("label", "cases.jsonl", "--plain", "--notes", "notes").ret == 0
    assert case(desk, "c0").gold.supports[0].rel_path == "price.md"


def test_a_file_that_cannot_be_written_is_said_before_anything_is_asked(
    desk: Project, typed: Any, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    typed("1", "q")
    result = desk.rageval("label", "cases.jsonl", "--plain")
    assert (result.ret, len(result.errlines)) == (2, 1)
    assert "cases.jsonl: cannot be written" in result.errlines[0]


def test_marks_that_cannot_be_saved_are_said_at_the_end(desk: Project, typed: Any):
    desk.write("cases.csv", "id,question\na,Why?\n")
    typed("1", "q")
    result = desk.rageval("label", "cases.csv", "--plain")
    assert result.ret == 2
    assert "the header lacks the column gold_supports" in result.errlines[-1]


def test_without_the_extra_there_are_numbers_by_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert _has_screen(is_plain=False) is False
    line = "the full screen needs pip install 'pytest-rageval[cli]'; numbers by line instead\n"
    assert capsys.readouterr().err == line


def test_the_plain_face_shows_the_expected_answer_and_o_the_rest_of_a_long_question(desk: Project, typed: Any):
    question = "What does the cream " + "from the island " * 60 + "cost?"
    write_cases(desk.path / "cases.jsonl", {"id": "c0", "question": question, "gold": {"answer": "32,000 won"}})
    typed("o", "q")
    lines = desk.rageval("label", "cases.jsonl", "--plain").outlines
    assert [line for line in lines if line.endswith("… (o shows the rest)")]
    assert f"Q  {question}" in lines
    assert lines.count("A  32,000 won") == 2


BY_URL = """
def answer(question):
    place = {"rel_path": "https://lib.example/notes/films.md", "heading_path": "# Films > ## Loan"}
    return {"answer": "7 days", "retrieved_chunks": [{**place, "text": "Films are lent for 7 days."}]}
"""


def test_a_passage_of_a_note_that_the_system_names_by_url_is_shown_once_and_labelled_by_the_note(
    desk: Project, typed: Any
):
    desk.cases([{"id": "f", "question": "How long are films lent?"}], "cases.jsonl")
    desk.write("by_url.py", BY_URL)
    desk.write("pages/films.md", "# Films\n\n## Loan\nFilms are lent for 7 days.\n")
    desk.configure('target = "by_url:answer"\nnotes = "pages"')
    typed("1", "", "q")
    result = desk.rageval("label", "cases.jsonl", "--plain")
    assert result.outlines.count("        Films are lent for 7 days.") == 1
    (gold,) = case(desk, "f").gold.supports
    assert (gold.rel_path, gold.heading_path) == ("films.md", "# Films > ## Loan")
    assert desk.rageval("run", "cases.jsonl", "--gate", "recall_any@5 >= 1").ret == 0
