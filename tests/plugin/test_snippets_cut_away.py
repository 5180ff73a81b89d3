"""A gold whose place was retrieved without its text, and causes that all failing cases share."""

from __future__ import annotations

from project import Project, lines_with

BOT = """
def answer(question):
    chunk = {"rel_path": "cards.md", "heading_path": "# Cards", "text": "A card costs 25 euros."}
    return {"answer": "A card costs 25 euros.", "retrieved_chunks": [chunk]}
"""
GOLD = {"rel_path": "cards.md", "heading_path": "# Cards", "snippets": ["costs 28 euros"]}


def test_a_chunk_without_the_snippet_is_named_as_the_cause(project: Project):
    project.write("bot.py", BOT)
    project.cases(
        [{"id": "card", "question": "What does a card cost?", "gold": {"answer": "28 euros"}, "gold_supports": [GOLD]}]
    )
    result = project.run("--rageval-run-id", "r")
    [cause] = project.metrics()["causes"]
    assert cause["kind"] == "snippet_not_retrieved"
    result.stdout.fnmatch_lines(["what to do: The right places are retrieved, without the gold's text*"])
    explained = project.rageval("explain", "r", "card")
    [note] = lines_with(explained, "but does not hold the snippet")
    assert "gold 1: chunk 1 from cards.md was retrieved, but does not hold the snippet `costs 28 euros`" in note


def test_another_document_is_no_cut_snippet(project: Project):
    project.write("bot.py", BOT.replace("cards.md", "other.md"))
    project.cases([{"id": "card", "question": "What does a card cost?", "gold_supports": [GOLD]}])
    project.run()
    assert [cause["kind"] for cause in project.metrics()["causes"]] == ["gold_not_retrieved"]


def test_a_tag_that_all_failing_cases_share_is_named(project: Project):
    cases = [
        {"id": f"c{number}", "question": f"boiling, {number}?", "tags": ["money", "all"] if number < 3 else ["all"],
         "gold": {"answer": "7 euros" if number < 3 else "100 degrees"}}
        for number in range(6)
    ]  # fmt: skip
    project.cases(cases)
    result = project.run("--rageval-run-id", "r")
    result.stdout.fnmatch_lines(["*all 3 failing cases have the tag money"])
    page = (project.path / "reports" / "runs" / "r" / "report.html").read_text(encoding="utf-8")
    assert "all 3 failing cases have the tag money" in page


def test_follow_ups_that_fail_alone_point_at_the_history(project: Project):
    turns = [
        {"question": "boiling?", "gold": {"answer": "100 degrees"}},
        {"question": "And why is it so?", "gold": {"answer": "100 degrees"}},
    ]
    project.cases([{"id": name, "turns": turns} for name in ("one", "two")])
    result = project.run()
    result.stdout.fnmatch_lines(["*only follow-ups fail*", "what to do: Only follow-ups fail: check that the system*"])
