"""`rageval repl`: the session of the founding document, line by line, through a pipe and on a terminal."""

from __future__ import annotations

import json
import os
import re
import sys
from unittest import mock

import pytest
from processes import Terminal, wait_until
from project import FOUNDING, Project, a_case
from scored_bot import ScoredBot

NOTES_BOT = '''
"""Laboratory notes with authors, by words of the question."""
NOTES = [
    ("t01", "sarah", .847, "The VBO dataset has an off-by-one error in its frame timestamps, which shifts them."),
    ("t27", "ben", .612, "The ASUS VG248QE monitors we use have a 1-frame lag that has to be subtracted."),
    ("t04", None, .534, "Align on the photodiode."),
]

def answer(question, *, request):
    least = request.params.get("min_score", 0)
    notes = [note for note in NOTES if note[2] >= least] if "bug" in question else []
    chunks = [{"doc_id": name, "text": text, "score_final": score, **({"author": author} if author else {})}
              for name, author, score, text in notes[: request.k]]
    text = "The VBO dataset has an off-by-one error." if chunks else ""
    return {"answer": text, "abstained": not chunks, "references": chunks[:1], "debug": {"retrieved_chunks": chunks}}
'''
JUDGE = """
from pytest_rageval import Judgement

class FiveDimensions:
    model, heuristic, rubrics = "five/1", False, frozenset({"composite"})

    async def judge(self, request):
        scores = {"faithfulness": .95, "citation_accuracy": .9, "abstention_quality": 1, "synthesis": 1,
                  "relevance": .95}
        return Judgement("composite", scores, reasoning="Answer is well-grounded in t01")

    async def aclose(self):
        pass

five = FiveDimensions()
"""
CASES = [
    {"id": "vbo", "query": "What's the timestamp bug in the VBO dataset?", "relevant_ids": ["t01"],
     "category": "retrieval"},
    {"id": "pizza", "query": "What's the best pizza?", "relevant_ids": [], "category": "negative"},
]  # fmt: skip


@pytest.fixture
def lab(project: Project) -> Project:
    """A project whose system knows three notes."""
    project.write("lab.py", NOTES_BOT)
    project.write("judges.py", JUDGE)
    project.configure('target = "lab:answer"\njudge = "judges:five"')
    project.cases(CASES)
    return project


def piped(project: Project, *lines: str, code: int = 0, options: tuple[str, ...] = ()) -> list[str]:
    """What the session prints for lines from a pipe."""
    read, write = os.pipe()
    with os.fdopen(write, "w", encoding="utf-8") as pipe:
        pipe.write("".join(f"{line}\n" for line in lines))
    with os.fdopen(read, encoding="utf-8") as stream, mock.patch.object(sys, "stdin", stream):
        result = project.rageval("repl", *options)
    assert result.ret == code, result.outlines + result.errlines
    return list(result.outlines)


def test_a_question_lists_rank_id_score_author_and_the_start_of_the_text(lab: Project):
    assert piped(lab, "What's the timestamp bug?") == [
        "  1. [t01] score=0.847 (sarah) The VBO dataset has an off-by-one error in its...",
        "  2. [t27] score=0.612 (ben) The ASUS VG248QE monitors we use have a 1-frame...",
        "  3. [t04] score=0.534 Align on the photodiode.",
    ]
    assert piped(lab, "query What's the best pizza in Seattle?") == ["  (no results above threshold)"]


def test_a_case_by_its_number_or_id(lab: Project):
    lines = [
        "  Query:    What's the timestamp bug in the VBO dataset?",
        "  Category: retrieval",
        "  Expected: ['t01']",
        "  Got:      ['t01', 't27', 't04']",
        "  Scores:   ['0.847', '0.612', '0.534']",
        "  P=0.333 R=1.000 MRR=1.000",
    ]
    assert piped(lab, "eval 0") == lines
    assert piped(lab, "eval vbo mrr precision@2") == [
        *lines,
        "  mrr: 1.000 = 1 / rank 1",
        "  precision@2: 0.500 = 1 matching of 2 chunks returned in the top 2",
    ]


def test_an_answer_is_judged_in_five_dimensions(lab: Project):
    assert piped(lab, "judge 0") == [
        "  Generating answer for: What's the timestamp bug in the VBO dataset?",
        "  Answer: The VBO dataset has an off-by-one error.",
        "  Judging...",
        "  Faithfulness:      0.95",
        "  Citation accuracy: 0.90",
        "  Abstention:        1.00",
        "  Synthesis:         1.00",
        "  Relevance:         0.95",
        "  Composite:         0.96",
        "  Explanation: Answer is well-grounded in t01",
    ]


def test_what_has_no_judgement_says_why_and_is_no_zero(lab: Project):
    lines = piped(lab, "judge 1")
    assert "  Faithfulness:      –  (the system abstained)" in lines
    lexical = piped(lab, "judge 0", options=("--judge", "lexical"))
    assert any(line.startswith("  Citation accuracy: –  (") for line in lexical)


def test_the_report_has_the_lines_of_the_founding_document(lab: Project):
    lines = piped(lab, "report")
    document = (FOUNDING / "repl.txt").read_text(encoding="utf-8")
    expected = document.partition("domesday> report\n")[2].splitlines()
    figures = re.compile(r"(?<==)[\d.–]+|(?<=: )\s*[\d.–]+$")
    shapes = [figures.sub("#", line) for line in expected if "synthesis" not in line and "specificity" not in line]
    shapes = [shape for shape in shapes if shape]
    assert [re.sub(r"n=#\s+", "n=# ", figures.sub("#", line)) for line in lines] == [
        re.sub(r"n=#\s+", "n=# ", shape) for shape in shapes
    ]
    assert "    Recall:        1.000" in lines
    assert "    negative         n=1   P=–  R=–  MRR=–" in lines


def test_the_report_lists_categories_in_the_order_of_the_founding_document(lab: Project):
    """Whatever their order in the files is; categories of other kinds follow."""
    shuffled = ("own", "negative", "specificity", "retrieval", "synthesis")
    gold = {name: [] if name == "negative" else ["t01"] for name in shuffled}
    lab.cases([{"id": name, "query": f"{name}?", "relevant_ids": gold[name], "category": name} for name in shuffled])
    listed = [line.split()[0] for line in piped(lab, "report") if " n=1 " in line]
    document = (FOUNDING / "repl.txt").read_text(encoding="utf-8")
    assert listed == [*re.findall(r"^    (\w+) +n=", document, re.MULTILINE), "own"]


def test_failures_are_named(lab: Project):
    lab.cases([{**CASES[0], "relevant_ids": ["t99"]}])
    lines = piped(lab, "report")
    assert "    ✗ 1 failure" in lines
    assert any(line.startswith("      vbo: context_recall@5 is 0, gate >= 0.8") for line in lines)


def test_parameters_change_on_the_way_and_diff_shows_what_that_does(lab: Project):
    lines = piped(lab, "the bug?", "set min_score .6", "diff", "set k 1", "diff", "set min_score", "set")
    assert lines[3:] == [
        "  k 5, min_score 0.6",
        "  Query:    the bug?",
        "  min_score: (server default) → 0.6",
        "    1 → 1   [t01]",
        "    2 → 2   [t27]",
        "    3 → –   [t04] gone",
        "  k 1, min_score 0.6",
        "  Query:    the bug?",
        "  k: 5 → 1",
        "    1 → 1   [t01]",
        "    2 → –   [t27] gone",
        "  k 1",
        "  k 1",
    ]


def test_a_question_is_saved_as_a_draft_that_no_run_takes_for_a_case(lab: Project):
    lines = piped(lab, "Where is the 서울 bug?", "save", "save", code=1)
    path = lab.path / "evalcases" / "a.drafts.jsonl"
    (draft,) = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert draft["question"] == "Where is the 서울 bug?"
    assert f"  saved as {draft['id']} in {path}" in lines
    assert f"this question is there already, as {draft['id']}" in lines[-1]
    lab.run()
    assert set(lab.records()) == {"vbo", "pizza"}


def test_the_sweep_within_asks_the_cases_of_the_session(project: Project):
    bot = ScoredBot(project)
    text = (project.path / "evalcases" / "a.jsonl").read_text(encoding="utf-8")
    questions = {json.loads(line)["question"] for line in text.splitlines()}
    others = [a_case(f"other{number}", f"Another question {number}?") for number in range(2)]
    project.cases(others, "other/b.jsonl")
    piped(project, "sweep", options=("other/b.jsonl",))
    asked = {call["question"] for call in bot.calls}
    assert asked == {case["question"] for case in others}
    assert not asked & questions


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("eval", "eval: write the number or the id of a case behind it, as in eval 0"),
        ("eval 2", "there is no case '2'; cases are numbered 0 to 1"),
        ("eval vbi", "there is no case 'vbi'; did you mean 'vbo'?"),
        ("eval 0 mrrr", "unknown metric 'mrrr'; did you mean 'mrr'?"),
        ("judge", "judge: write the number or the id of a case behind it, as in judge 0"),
        ("set k many", "set: k is 'many'"),
        ("set question x", "set: 'question' cannot be set"),
        ("set min_score", "set: 'min_score' was not set"),
        ("diff", "diff: nothing was asked yet; write a question first"),
        ("save", "save: nothing was asked yet; write a question first"),
        ("query", "query: write a question behind it"),
    ],
)
def test_a_line_that_cannot_be_done_costs_nothing_but_itself(lab: Project, line: str, message: str):
    failed, *rest = piped(lab, line, "", "the bug?", code=1)
    assert failed.startswith(f"  {message}")
    assert rest[0].startswith("  1. [t01]")


def test_a_system_that_fails_ends_no_session(lab: Project):
    lab.write("lab.py", NOTES_BOT.replace("    least =", "    assert 'crash' not in question\n    least =", 1))
    lines = piped(lab, "crash?", "judge crash the judge", "the bug?", code=1)
    assert lines[0].startswith("  exception: lab:answer: AssertionError")
    assert lines[-3].startswith("  1. [t01]")


def test_a_line_that_only_begins_like_a_command_is_a_question(lab: Project):
    assert (
        piped(lab, "report the bug", "judge this bug", "save the bug")[::3]
        == [
            "  1. [t01] score=0.847 (sarah) The VBO dataset has an off-by-one error in its...",
        ]
        * 3
    )


def test_redact_keeps_questions_out_of_files(lab: Project):
    lab.configure('target = "lab:answer"\nredact = true')
    assert "  save: redact keeps questions out of all files" in piped(lab, "the bug?", "save", code=1)
    assert not list(lab.path.rglob("*.drafts.jsonl"))


def repl(lab: Project) -> Terminal:
    """A session on a terminal."""
    return Terminal(lab.path, "-m", "pytest_rageval", "repl", TERM="dumb", COLUMNS="160")


@pytest.mark.child_process
def test_the_session_of_the_founding_document_on_a_terminal(lab: Project):
    document = (FOUNDING / "repl.txt").read_text(encoding="utf-8").replace("domesday", "rageval")
    with repl(lab) as terminal:
        banner = terminal.until("rageval> ").splitlines()
        assert banner[:2] == document.splitlines()[:2]
        for question in re.findall(r"^rageval> (.*)$", document, re.MULTILINE):
            terminal.type(f"{question}\n")
            shown = terminal.until("rageval> ")
            after = document.partition(f"rageval> {question}\n")[2].splitlines()
            expected = after[0].split(":")[0].split("score=")[0]
            assert expected in shown
        terminal.type("quit\n")
        assert terminal.ended() == 0


@pytest.mark.child_process
def test_tab_history_and_ctrl_c_on_a_terminal(lab: Project):
    slow = NOTES_BOT.replace(
        "    least =",
        "    import pathlib, time\n    if 'slow' in question:\n"
        "        pathlib.Path('asked').touch()\n        time.sleep(600)\n    least =",
        1,
    )
    lab.write("lab.py", slow)
    with repl(lab) as terminal:
        terminal.until("rageval> ")
        terminal.type("ev\tpi\t\n")
        assert "Query:    What's the best pizza?" in terminal.until("rageval> ")
        terminal.type("set min\t .6\n")
        assert "k 5, min_score 0.6" in terminal.until("rageval> ")
        terminal.type("a slow bug\n")
        wait_until((lab.path / "asked").exists, "the question is asked", terminal.process)
        assert "(interrupted)" in terminal.press_ctrl_c("rageval> ")
        terminal.type("half a li")
        terminal.until("half a li")
        terminal.press_ctrl_c("rageval> ")
        terminal.type("the bug?\n")
        assert "[t01]" in terminal.until("rageval> ")
        terminal.type("\x04")
        assert terminal.ended() == 0
    history = (lab.path / "reports" / "cache" / "repl_history").read_text(encoding="utf-8").splitlines()
    assert history == ["eval pizza", "set min_score .6", "a slow bug", "the bug?"]
