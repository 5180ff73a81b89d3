"""Links and patterns that lead nowhere, and what cannot be read, are named by every command and fail the run."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from project import SOME, Project

from pytest_rageval.cases.discovery import dead_end, find_case_files, literal_folder, unmatched_globs

pytestmark = pytest.mark.reliability("case files", "links, pipes and patterns that lead nowhere", costs="false green")


def dangling(project: Project) -> str:
    (project.path / "evalcases" / "lost.jsonl").symlink_to("../gone.jsonl")
    return "evalcases/lost.jsonl: is a link to '../gone.jsonl', which does not exist; mend the link, or remove it"


def dangling_folder(project: Project) -> str:
    (project.path / "evalcases" / "more").symlink_to("../gone")
    return "evalcases/more: is a link to '../gone', which does not exist"


def loop(project: Project) -> str:
    (project.path / "evalcases" / "loop.jsonl").symlink_to("loop.jsonl")
    return "evalcases/loop.jsonl: is a link to 'loop.jsonl', which leads back to itself"


def pipe(project: Project) -> str:
    os.mkfifo(project.path / "evalcases" / "pipe.jsonl")
    return "evalcases/pipe.jsonl: is no regular file; remove it"


def deep(project: Project) -> str:
    (project.path / "evalcases" / "en").mkdir()
    (project.path / "evalcases" / "en" / "lost.csv").symlink_to("/nowhere/at/all.csv")
    return "evalcases/en/lost.csv: is a link to '/nowhere/at/all.csv', which does not exist"


LOST = [dangling, dangling_folder, loop, pipe, deep]
Lose = Callable[[Project], str]


@pytest.mark.parametrize("lose", LOST, ids=lambda lose: lose.__name__)
@pytest.mark.parametrize("others", [SOME, []], ids=["beside others", "alone"])
def test_what_leads_nowhere_fails_every_command(project: Project, lose: Lose, others: list[dict[str, object]]):
    (project.path / "evalcases").mkdir()
    if others:
        project.cases(others)
    said = lose(project)
    for result, status in (
        (project.run(), 2),
        (project.run("evalcases"), 2),
        (project.run("--collect-only"), 2),
        (project.rageval("run"), 2),
        (project.rageval("run", "evalcases"), 2),
        (project.rageval("cases", "validate"), 1),
        (project.rageval("cases", "validate", "evalcases"), 1),
        (project.rageval("doctor"), 1),
    ):
        shown = " ".join([*result.outlines, *result.errlines])
        assert said in " ".join(shown.split())
        assert "INTERNALERROR" not in shown
        assert result.ret == status
    assert not project.runs


@pytest.mark.child_process
@pytest.mark.parametrize("lose", [dangling, loop], ids=lambda lose: lose.__name__)
def test_what_leads_nowhere_fails_a_session_with_workers(project: Project, lose: Lose):
    project.cases(SOME)
    said = lose(project)
    result = project.run("-n", "2")
    assert said in result.stdout.str()
    assert result.ret == 2


def test_a_named_link_that_leads_nowhere_is_wrong_usage(project: Project):
    project.cases(SOME)
    dangling(project)
    result = project.rageval("run", "evalcases/lost.jsonl")
    assert result.ret == 2
    assert "is a link to '../gone.jsonl', which does not exist" in result.stderr.str() + result.stdout.str()
    assert project.rageval("cases", "validate", "evalcases/lost.jsonl").ret == 2
    assert project.run("evalcases/lost.jsonl").ret == 4  # said by pytest itself


def test_links_elsewhere_and_other_links_are_no_business_of_ours(project: Project):
    project.cases(SOME)
    for name in ("docs", "evalcases/notes.md", "evalcases/x.answers.jsonl", "node_modules", "other.jsonl"):
        (project.path / name).symlink_to("gone")
    (project.path / "evalcases" / "up").symlink_to("..")
    assert project.run().ret == 0
    assert project.rageval("run").ret == 0
    assert project.rageval("cases", "validate").ret == 0


def test_a_session_of_other_tests_says_nothing_of_links_among_the_cases(project: Project):
    project.cases(SOME)
    dangling(project)
    project.write("tests/test_other.py", "def test_other():\n    pass\n")
    assert project.run("tests").ret == 0


PATTERNS = 'target = "bot:answer"\ncases = ["evalcases/**/*.jsonl", "goldens/**/*.jsonl"]'
UNMATCHED = "pyproject.toml [tool.rageval]: cases: 'goldens/**/*.jsonl' matches no file; mend the pattern, or remove it"


def test_a_pattern_of_the_table_that_matches_nothing_fails_every_command(project: Project):
    project.cases(SOME)
    project.configure(PATTERNS)
    for result, status in (
        (project.run(), 2),
        (project.run("--collect-only"), 2),
        (project.rageval("run"), 2),
        (project.rageval("cases", "validate"), 2),
        (project.rageval("doctor"), 1),
    ):
        shown = " ".join(" ".join([*result.outlines, *result.errlines]).split())
        assert UNMATCHED in shown
        assert result.ret == status
    assert not project.runs


def test_a_pattern_of_the_table_is_no_matter_where_other_places_are_named(project: Project):
    project.cases(SOME)
    project.configure(PATTERNS)
    assert project.run("evalcases").ret == 0
    assert project.rageval("run", "evalcases").ret == 0


def test_patterns_that_all_match_nothing_fail_too(project: Project):
    project.configure('target = "bot:answer"\ncases = ["goldens/*.jsonl"]')
    project.write("test_other.py", "def test_other():\n    pass\n")
    result = project.run()
    assert result.ret == 2
    assert "cases: 'goldens/*.jsonl' matches no file" in result.stdout.str()
    assert project.rageval("run").ret == 2
    assert project.rageval("cases", "validate").ret == 2


def test_the_default_patterns_may_match_nothing_one_by_one(project: Project):
    project.cases(SOME)
    project.configure('target = "bot:answer"\ncases = ["evalcases/**/*.jsonl", "evalcases/**/*.csv"]')
    assert project.run().ret == 0


def test_patterns_are_told_apart(tmp_path: Path):
    (tmp_path / "a.jsonl").touch()
    globs = ["*.jsonl", "b/*.jsonl", "*.eval.jsonl"]
    assert unmatched_globs(tmp_path, globs, find_case_files(tmp_path, globs)) == ["b/*.jsonl"]
    assert [literal_folder(glob) for glob in ("a/b/*.x", "*/b/*.x", "x.y", "./a/**/b/*.z")] == ["a/b", "", "", "a"]
    assert dead_end(tmp_path / "a.jsonl") is None
    assert dead_end(tmp_path / "vanished.jsonl") is None


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can become another user")
def test_a_folder_without_permission_is_a_dead_end():
    # Not below pytest's own folder, which nobody else may enter.
    with TemporaryDirectory(prefix="rageval-") as made:
        root = Path(made)
        root.chmod(0o755)
        for name in ("evalcases/locked", "elsewhere"):
            (root / name).mkdir(parents=True)
            (root / name).chmod(0o700)
        (root / "evalcases" / "a.jsonl").touch()
        os.seteuid(65534)
        try:
            paths = find_case_files(root, ["evalcases/**/*.jsonl", "*.eval.jsonl"])
            reasons = [dead_end(path) for path in paths]
        finally:
            os.seteuid(0)
    assert [path.name for path in paths] == ["a.jsonl", "locked"]
    assert reasons == [None, "is a folder that cannot be read; give permission, or leave it out of `cases`"]
