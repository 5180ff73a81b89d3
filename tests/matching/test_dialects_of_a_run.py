"""A run says what it matched in doubt, a filter finds it, and a baseline of other matches is compared fairly."""

from __future__ import annotations

import json

from project import Project

GOLD = [{"rel_path": "a.md", "heading_path": "# A > ## B"}]


def a_project(path, **table: str) -> Project:
    project = Project(path)
    cases = [{"id": f"q{n}", "question": f"What is B {n}?", "gold_supports": GOLD} for n in range(4)]
    project.cases(cases)
    return project


def run(project: Project, *options: str, **place: object):
    chunk = {"rel_path": "a.md", "text": "B is two.", **place}
    lines = [{"id": f"q{n}", "answer": "Two.", "retrieved_chunks": [chunk]} for n in range(4)]
    project.write("answers.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    project.configure('target = "answers:answers.jsonl"\nknown_failures = "ratchet"')
    return project.rageval("run", "--metrics", "recall_any", *options)


def test_a_run_with_matches_by_document_says_so_and_a_filter_finds_them(tmp_path):
    project = a_project(tmp_path)
    ended = run(project, "--run-id", "documents")
    ended.stdout.fnmatch_lines(["*; 4 golds matched by document.*"])
    ended.stdout.fnmatch_lines(["headings are not reported; 4 golds were matched by document; doubt:document filters*"])
    record = project.records()["q0"]
    assert record["doubt"] == {"document": 1}
    assert record["retrieved_chunks"][0]["match"] == "document"
    again = run(project, "--only", "doubt:document", "--from", "documents", "--run-id", "some", heading_path="A / B")
    again.stdout.fnmatch_lines(["*4 of 4 pass*"])
    assert "doubt" not in project.results("some")[0]
    assert run(project, "--only", "doubt:last_heading", "--from", "documents").ret


def test_a_system_that_begins_to_report_headings_is_compared_fairly(tmp_path):
    project = a_project(tmp_path)
    run(project, "--update-baseline")
    ended = run(project, heading_path="A > C")
    ended.stdout.fnmatch_lines(["*0 cases newly fail*4 cases fail gates that the other run did not measure*"])
    ended.stdout.fnmatch_lines(["4 cases are matched otherwise (doubt document, now none), and their retrieval*"])


def test_strict_places_take_no_match_in_doubt(tmp_path):
    project = a_project(tmp_path)
    ended = run(project, heading_path="B")
    ended.stdout.fnmatch_lines(["4 golds were matched by the last heading only; doubt:last_heading filters*"])
    project.configure('target = "answers:answers.jsonl"\nstrict_places = true')
    assert project.rageval("run", "--metrics", "recall_any").ret == 1
    assert set(project.outcomes().values()) == {"failed"}
