"""What a person reads first of a failing case: its key facts, what was said before it, and the kind of each name."""

from __future__ import annotations

import pytest
from project import Project

FEES = """
def answer(question):
    chunk = {"rel_path": "notes/fees.md", "text": "A day costs 10 cents, at most 5 euros."}
    return {"answer": "A late book costs 10 cents a day.", "abstained": False, "retrieved_chunks": [chunk]}
"""
FACTS = ["10 cents a day", "at most 5 euros", "free for children"]


@pytest.fixture(scope="module")
def fees(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, list[str]]:
    """A run of a case whose answer states one of three key facts, and of one that has no answer."""
    project = Project(tmp_path_factory.mktemp("fees"))
    project.write("fees.py", FEES)
    project.configure('target = "fees:answer"')
    supports = [{"rel_path": "notes/fees.md"}]
    project.cases(
        [
            {"id": "fees", "question": "Fees?", "gold_supports": supports, "expected_key_facts": FACTS},
            {"id": "none", "question": "And on the moon?", "answerable": False},
        ]
    )
    return project, project.run("--rageval-run-id", "one").outlines


def test_missing_key_facts_stand_first_on_the_screen(fees: tuple[Project, list[str]]):
    _, lines = fees
    first = lines.index("  key facts  ✘ at most 5 euros")
    assert lines[first + 1 : first + 3] == ["             ✘ free for children", "             ✔ 10 cents a day"]


def test_key_facts_are_what_summary_expects(fees: tuple[Project, list[str]]):
    project, _ = fees
    summary = (project.path / "reports/runs/one/summary.md").read_text(encoding="utf-8")
    assert "<code>✘ at most 5 euros / ✘ free for children / ✔ 10 cents a day</code>" in summary


def test_explain_marks_each_key_fact(fees: tuple[Project, list[str]]):
    project, _ = fees
    explained = project.rageval("explain", "one", "fees").outlines
    assert "  key_facts  ✔ 10 cents a day" in explained
    assert "  key_facts  ✘ free for children" in explained
    assert any("key_fact_recall" in line and "1 of 3 key facts" in line for line in explained)


def test_explain_says_that_an_abstention_is_expected(fees: tuple[Project, list[str]]):
    project, _ = fees
    explained = project.rageval("explain", "one", "none").outlines
    assert explained[explained.index("expected") + 1] == "  an abstention  the documents hold no answer"


TALK = """
def answer(question, history):
    notes = ["fees"] if "fee" in question else ["hours"]
    chunks = [{"rel_path": f"notes/{note}.md", "text": note} for note in notes]
    return {"answer": f"See {notes[0]}.", "abstained": False, "retrieved_chunks": chunks}
"""


def a_follow_up(**fields: str) -> dict[str, object]:
    gold = {"gold_supports": [{"rel_path": "notes/fees.md"}]}
    first = {"question": "What is the fee for a late book?", **gold}
    return {"id": "talk", "turns": [first, {"question": "How much is that at most?", **gold, **fields}]}


@pytest.fixture
def talk(project: Project) -> Project:
    project.write("talk.py", TALK)
    project.configure('target = "talk:answer"')
    return project


def test_a_failed_turn_shows_what_was_said_before_it(talk: Project):
    talk.cases([a_follow_up()])
    lines = talk.run().outlines
    question = lines.index("  question   How much is that at most?")
    assert lines[question + 1] == "  before     What is the fee for a late book? → See fees."
    assert not any(line.startswith("  before") for line in lines[:question])


def test_a_failed_turn_shows_its_rewrite_and_how_that_scores_alone(talk: Project):
    talk.cases([a_follow_up(rewrite="What is the highest fee for a late book?")])
    lines = talk.run("--rageval-rewrites").outlines
    question = lines.index("  question   How much is that at most?")
    assert lines[question + 1 : question + 3] == [
        "  rewrite    What is the highest fee for a late book?",
        "  alone      the rewrite scores recall_any@5 1.000: the system does not resolve the reference",
    ]
    end = "\n".join(lines)
    assert "1 × passes only as its rewrite (L2_doc_retrieval_fail): talk[2]" in end
    assert "what to do: The rewrite alone passes: the system does not resolve the reference." in end


def test_a_rewrite_that_fails_as_well_is_no_lost_reference(talk: Project):
    talk.cases([a_follow_up(rewrite="When does the library open?")])
    text = "\n".join(talk.run("--rageval-rewrites").outlines)
    assert "  rewrite    When does the library open?" in text
    assert "  alone" not in text
    assert "the gold was not retrieved" in text


def test_an_id_of_a_chunk_is_not_read_as_a_number_of_chunks(project: Project):
    project.write("ids.py", "def answer(q):\n    return {'answer': 'x', 'retrieved_chunks': [{'chunk_id': '0'}]}\n")
    project.configure('target = "ids:answer"')
    project.cases([{"id": "q", "question": "Fees?", "gold": {"chunk_ids": ["1"]}}])
    lines = project.run().outlines
    assert "  expected   chunk 1" in lines
    assert "  retrieved  1. chunk 0" in lines
    explained = project.rageval("explain", "latest", "q")
    explained.stdout.fnmatch_lines(["retrieved", "  1  chunk 0*", "  –  chunk 1 * gold 1 of 1 was not retrieved"])
    assert "came" not in explained.stdout.str()


def test_the_terminal_says_how_rewrites_score_even_if_gaps_cancel(talk: Project):
    gold = {"gold_supports": [{"rel_path": "notes/hours.md"}]}
    opposite = {
        "id": "hours",
        "turns": [
            {"question": "When is it open?", **gold},
            {"question": "And on Sunday?", "rewrite": "What is the fee on Sunday?", **gold},
        ],
    }
    talk.cases([a_follow_up(rewrite="What is the highest fee?"), opposite])
    lines = talk.run("--rageval-rewrites").outlines
    means = "rewrites: 2 follow-ups, recall_any@5 0.500 as rewrites, 0.500 in conversation"
    assert f"{means}; 1 higher as the rewrite, 1 lower" in " ".join(lines)
    assert "rewrites: " not in " ".join(talk.run().outlines)


def test_the_arithmetic_of_f1_counts_ranks_that_bring_a_new_gold(project: Project):
    chunks = [{"rel_path": "notes/fees.md", "text": text} for text in ("10 cents", "5 euros")]
    project.write("two.py", f"def answer(q):\n    return {{'answer': 'x', 'retrieved_chunks': {chunks}}}\n")
    project.configure('target = "two:answer"')
    project.cases([{"id": "q", "question": "Fees?", "gold_supports": [{"rel_path": "notes/fees.md"}]}])
    project.run("--rageval-run-id", "one")
    explained = " ".join(project.rageval("explain", "one", "q").stdout.str().split())
    assert "f1@5 0.667 1 rank brings a new gold, of 2 chunks returned in the top 5; 1 of 1 gold found" in explained
    text = project.rageval("compare", "one", "one").stdout.str()
    measured = sum(metric["mean"] is not None for metric in project.metrics()["metrics"].values())
    unmeasured = sum(metric["mean"] is None for metric in project.metrics()["metrics"].values())
    assert f"{measured} metrics did not move; {unmeasured} have no value in either run" in text
