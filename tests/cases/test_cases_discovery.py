"""Which files are ours: globs from the root, no file of a foreign tree, the same rule with and without walking."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from processes import python

from pytest_rageval.cases.discovery import find_case_files, is_case_file
from pytest_rageval.cases.loading import looks_like_cases

GLOBS = ("evalcases/**/*.jsonl", "evalcases/**/*.csv", "*.eval.jsonl")


def a_tree(root: Path, *files: str) -> Path:
    for file in files:
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text("")
    return root


def found(root: Path, *globs: str) -> list[str]:
    return [path.relative_to(root).as_posix() for path in find_case_files(root, globs or GLOBS)]


OURS = (
    "evalcases/LOUD.JSONL",
    "evalcases/a.jsonl",
    "evalcases/deep/er/b.csv",
    "evalcases/x.questions.csv",
    "src/z.eval.jsonl",
    "y.eval.jsonl",
)
FOREIGN = (
    "a.jsonl",
    "src/evalcases/a.jsonl",
    "evalcases/notes.md",
    "evalcases/x.references.csv",
    "evalcases/x.answers.jsonl",
    "evalcases/x.drafts.jsonl",
    "evalcases/x.labels.ann.jsonl",
    "evalcases/.hidden.jsonl",
    "evalcases/.git/a.jsonl",
    ".venv/z.eval.jsonl",
    "node_modules/p/z.eval.jsonl",
    "venv/z.eval.jsonl",
    "build/z.eval.jsonl",
    "dist/z.eval.jsonl",
    "a.egg-info/z.eval.jsonl",
    "src/__pycache__/z.eval.jsonl",
    "eval.jsonl",
    ".eval.jsonl",
)


def test_only_what_the_globs_name_is_found_sorted(tmp_path: Path):
    assert found(a_tree(tmp_path, *OURS, *FOREIGN)) == sorted(OURS)


def test_one_path_is_judged_by_the_same_rule(tmp_path: Path):
    assert all(is_case_file(tmp_path / path, tmp_path, GLOBS) for path in OURS)
    assert not any(is_case_file(tmp_path / path, tmp_path, GLOBS) for path in FOREIGN)


@pytest.mark.parametrize(
    ("glob", "matching"),
    [
        ("*.jsonl", ["a.jsonl", "d/b.jsonl", "d/e/f/c.jsonl"]),
        ("./*.jsonl", ["a.jsonl"]),
        ("d/*.jsonl", ["d/b.jsonl"]),
        ("d/**/*.jsonl", ["d/b.jsonl", "d/e/f/c.jsonl"]),
        ("**/e/**", ["d/e/f/c.jsonl"]),
        ("d/**", ["d/b.jsonl", "d/e/f/c.jsonl"]),
        ("**/?.jsonl", ["a.jsonl", "d/b.jsonl", "d/e/f/c.jsonl"]),
        ("[ab].jsonl", ["a.jsonl", "d/b.jsonl"]),
        ("[!a].jsonl", ["d/b.jsonl", "d/e/f/c.jsonl"]),
        ("d/*/f/c.jsonl", ["d/e/f/c.jsonl"]),
        ("d/*/c.jsonl", []),
        ("[z-a].jsonl", []),
        ("[.jsonl", []),
        ("", []),
        ("/a.jsonl", ["a.jsonl"]),
    ],
)
def test_globs(tmp_path: Path, glob: str, matching: list[str]):
    a_tree(tmp_path, "a.jsonl", "d/b.jsonl", "d/e/f/c.jsonl")
    assert found(tmp_path, glob) == matching


def test_a_folder_that_a_glob_names_literally_is_searched(tmp_path: Path):
    a_tree(tmp_path, ".evals/a.jsonl", "build/cases/b.jsonl", "build/other/c.jsonl")
    assert found(tmp_path, ".evals/*.jsonl", "build/cases/*.jsonl") == [".evals/a.jsonl", "build/cases/b.jsonl"]


def test_a_path_outside_the_root_is_none(tmp_path: Path):
    assert not is_case_file(tmp_path / "y.eval.jsonl", tmp_path / "inner", GLOBS)


def test_links_are_followed_once_and_loops_end(tmp_path: Path):
    a_tree(tmp_path, "evalcases/a.jsonl", "outside/b.jsonl")
    (tmp_path / "evalcases" / "loop").symlink_to(tmp_path / "evalcases")
    (tmp_path / "evalcases" / "linked").symlink_to(tmp_path / "outside")
    (tmp_path / "evalcases" / "up").symlink_to(tmp_path)
    (tmp_path / "evalcases" / "self").symlink_to("self")
    (tmp_path / "evalcases" / "gone.jsonl").symlink_to("nowhere")
    (tmp_path / "aaa").symlink_to("evalcases")
    assert found(tmp_path) == ["evalcases/a.jsonl", "evalcases/gone.jsonl", "evalcases/self"]  # two that lead nowhere
    assert found(tmp_path, "*.jsonl") == ["evalcases/a.jsonl", "evalcases/gone.jsonl", "outside/b.jsonl"]


def test_what_is_linked_from_outside_the_tree_is_found_under_the_links_name(tmp_path: Path):
    a_tree(tmp_path / "elsewhere", "b.jsonl")
    (tmp_path / "project" / "evalcases").mkdir(parents=True)
    (tmp_path / "project" / "evalcases" / "linked").symlink_to(tmp_path / "elsewhere")
    assert found(tmp_path / "project") == ["evalcases/linked/b.jsonl"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs here")
def test_what_is_no_regular_file_is_found_to_be_reported(tmp_path: Path):
    a_tree(tmp_path, "evalcases/a.jsonl")
    os.mkfifo(tmp_path / "evalcases" / "b.jsonl")
    (tmp_path / "evalcases" / "c.jsonl").mkdir()
    assert found(tmp_path) == ["evalcases/a.jsonl", "evalcases/b.jsonl"]


def test_a_root_that_is_not_there_holds_nothing(tmp_path: Path):
    assert find_case_files(tmp_path / "gone", GLOBS) == []


@pytest.mark.child_process
def test_discovery_loads_nothing_beyond_the_standard_library_and_no_loader():
    code = (
        "import sys; from pytest_rageval.cases.discovery import is_case_file; "
        "print(sorted(m for m in sys.modules if m.split('.')[0] in ('pydantic', 'click', 'json', 'csv') "
        "or m.startswith('pytest_rageval.cases.')))"
    )
    run = python("-c", code, check=True)
    assert run.stdout.strip() == "['pytest_rageval.cases.discovery']"


@pytest.mark.parametrize(
    ("name", "content", "is_ours"),
    [
        ("a.jsonl", '\n{"id": "q1", "question": "Why?"}\n{broken', True),
        ("a.jsonl", '{"query": "Why?", "relevant_ids": []}', True),
        ("a.csv", "question,reference\nWhy?,Because.\n,\n", True),
        ("a.jsonl", '{"id": "q1", "answer": "Because."}', False),
        ("a.jsonl", '{"question": "Why?", "answer": "Because."}', False),
        ("a.jsonl", '{broken\n{"question": "Why?"}', False),
        ("a.jsonl", '["question"]', False),
        ("a.jsonl", "", False),
        ("a.csv", "name,price\nx,1\n", False),
        ("a.csv", "question\n", False),
        ("a.txt", '{"question": "Why?"}', False),
        ("x.references.csv", "id,question\nq1,Why?\n", False),
        ("x.answers.jsonl", '{"question": "Why?"}', False),
        ("x.questions.csv", "id,question\nq1,Why?\n", True),
    ],
)
def test_a_named_file_is_ours_if_its_first_record_is_a_case(tmp_path: Path, name: str, content: str, is_ours: bool):
    (tmp_path / name).write_text(content, encoding="utf-8")
    assert looks_like_cases(tmp_path / name) is is_ours


def test_a_named_file_that_is_not_there_is_not_ours(tmp_path: Path):
    assert not looks_like_cases(tmp_path / "gone.jsonl")
