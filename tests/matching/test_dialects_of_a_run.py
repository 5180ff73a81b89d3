"""A run says what it matched in doubt, a filter finds it, and a baseline of other matches is compared fairly."""

from __future__ import annotations

import json

import pytest
from project import Project

GOLD = [{"rel_path": "a.md", "heading_path": "# A > ## B"}]


def a_project(path, **table: str) -> Project:
    project = Project(path)
    cases = [{"id": f"q{n}", "question": f"What is B {n}?", "gold_supports": GOLD} for n in range(4)]
    project.cases(cases)
    return project


def run(project: Project, *options: str, notes: str = "", **place: object):
    chunk = {"rel_path": "a.md", "text": "B is two.", **place}
    lines = [{"id": f"q{n}", "answer": "Two.", "retrieved_chunks": [chunk]} for n in range(4)]
    project.write("answers.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    known = f'notes = "{notes}"' if notes else ""
    project.configure(f'target = "answers:answers.jsonl"\nknown_failures = "ratchet"\n{known}')
    return project.rageval("run", "--metrics", "recall_any", *options)


def test_a_run_with_matches_by_document_says_so_and_a_filter_finds_them(tmp_path):
    project = a_project(tmp_path)
    ended = run(project, "--run-id", "documents")
    ended.stdout.fnmatch_lines(["*4 golds were matched by document;*"])
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
    ended.stdout.fnmatch_lines(["*4 cases fail gates not measured before*"])
    ended.stdout.fnmatch_lines(["4 cases are matched otherwise (doubt document, now none), and their retrieval*"])


def test_a_name_of_several_golds_of_the_run_is_no_match_in_any_process_and_when_scored_again(tmp_path):
    project = a_project(tmp_path)
    golds = [[{"rel_path": f"d{n}/README.md"}] for n in range(4)]
    project.cases([{"id": f"q{n}", "question": f"What is B {n}?", "gold_supports": golds[n]} for n in range(4)])
    ended = run(project, "--run-id", "one", rel_path="README.md")
    several = "*several files have the name: README.md (d0/README.md and d1/README.md); path_prefix names the folders*"
    ended.stdout.fnmatch_lines([several])
    project.rageval("score", "one")
    run(project, "--workers", "2", "--run-id", "two", rel_path="README.md").stdout.fnmatch_lines([several])
    project.run("-n2", "--rageval-run-id", "three").stdout.fnmatch_lines([several])
    for name in ("one", "two", "three"):
        assert {record["outcome"] for record in project.results(name)} == {"failed"}


@pytest.mark.child_process
def test_workers_of_pytest_know_the_names_of_several_golds_and_notes_of_the_whole_run(tmp_path):
    """Each worker sees half of the cases, and no worker both golds of a name at once."""
    project = a_project(tmp_path)
    golds = [[{"rel_path": f"d{n}/README.md"}] for n in range(3)] + [[{"rel_path": "d/only.md"}]]
    project.cases([{"id": f"q{n}", "question": f"What is B {n}?", "gold_supports": golds[n]} for n in range(4)])
    for note in ("d/only.md", "e/only.md", "d0/README.md", "d1/README.md", "d2/README.md"):
        project.write(f"notes/{note}", "# A\nB is two.\n")
    places = ["README.md", "README.md", "d2/README.md", "only.md"]
    answers = [{"id": f"q{n}", "answer": "", "retrieved_chunks": [{"rel_path": p}]} for n, p in enumerate(places)]
    project.write("answers.jsonl", "".join(json.dumps(line) + "\n" for line in answers))
    for notes, last in (("", "passed"), ('notes = "notes"', "failed")):
        project.configure(f'target = "answers:answers.jsonl"\nknown_failures = "ratchet"\n{notes}')
        said = {}
        for how in ((), ("-n", "2")):
            ended = project.run("--rageval-metrics", "recall_any", *how)
            said[how] = [line for line in ended.outlines if "several files have the name" in line]
            by_id = {key.rpartition("::")[2]: outcome for key, outcome in project.outcomes().items()}
            assert by_id == {"q0": "failed", "q1": "failed", "q2": "passed", "q3": last}
        assert said[()] == said["-n", "2"] != []


def test_every_reader_of_a_run_sees_the_matches_that_the_notes_decided(tmp_path):
    project = a_project(tmp_path)
    note = project.write("notes/a.md", "# A\nIntroduction.\n## B\nB is two.\n## C\nThe other.\n")
    run(project, "--run-id", "one", notes="notes", text="The other.")
    assert {record["outcome"] for record in project.results("one")} == {"failed"}
    note.write_text("# A\n## B\nThe other.\n", encoding="utf-8")
    project.rageval("score", "one")
    assert {record["outcome"] for record in project.results("one")} == {"failed"}
    qrels = project.rageval("export", "one", "--format", "trec-qrels", "--output", "-").stdout
    qrels.fnmatch_lines(["*::q0 0 a.md*B 1"])
    qrels.no_fnmatch_line("*::q0 0 a.md 1")
    project.rageval("explain", "one", "q0").stdout.fnmatch_lines(["*no gold among the one chunk*"])


def test_labels_that_change_are_matched_by_the_notes(tmp_path):
    project = a_project(tmp_path)
    project.write("notes/a.md", "# A\nIntroduction.\n## B\nB is two.\n## C\nThe other.\n")
    run(project, "--run-id", "one", notes="notes", text="The other.")
    gold = [{"rel_path": "a.md", "heading_path": "# A > ## C"}]
    project.cases([{"id": f"q{n}", "question": f"What is B {n}?", "gold_supports": gold} for n in range(4)])
    assert project.rageval("score", "one", "--cases", "evalcases").ret == 0
    assert {record["outcome"] for record in project.results("one")} == {"passed"}
    project.write("notes/a.md", "# A\n## C\nNothing of it.\n")
    project.rageval("score", "one")
    assert {record["outcome"] for record in project.results("one")} == {"passed"}


def test_strict_places_take_no_match_in_doubt(tmp_path):
    project = a_project(tmp_path)
    ended = run(project, heading_path="B")
    ended.stdout.fnmatch_lines(["4 golds were matched by the last heading only; doubt:last_heading filters*"])
    project.configure('target = "answers:answers.jsonl"\nstrict_places = true')
    assert project.rageval("run", "--metrics", "recall_any").ret == 1
    assert set(project.outcomes().values()) == {"failed"}


def test_golds_missed_though_a_chunk_holds_their_text_are_counted_with_both_spellings(tmp_path):
    project = a_project(tmp_path)
    gold = [{"rel_path": "a.md", "heading_path": "# A > ## B", "snippets": ["B is two"]}]
    project.cases([{"id": f"q{n}", "question": f"What is B {n}?", "gold_supports": gold} for n in range(4)])
    ended = run(project, "--run-id", "missed", rel_path="a.md", heading_path="Chapter: B")
    both = "chunk 1 is 'a.md > Chapter: B', the gold 'a.md > # A > ## B'"
    ended.stdout.fnmatch_lines([f"4 golds missed, though a chunk holds the text; as in: {both}"])
    flag = f"gold 1 is missed, though a chunk holds its text: {both}"
    assert project.records()["q0"]["flags"] == [flag]
    project.rageval("explain", "missed", "q0").stdout.fnmatch_lines([f"*note: {flag}"])
    audit = project.rageval("cases", "audit").stdout.str()
    assert f"was retrieved in none of 1 record, though {both}" in audit
