"""observations.jsonl that lost lines, or is that of another run: nothing is computed from it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from project import SOME, StoredProject, a_missed_case, rageval

pytestmark = pytest.mark.reliability("disk", "answers that are missing or of another run", costs="false green")

CASES = [*SOME, a_missed_case("missed-1"), a_missed_case("missed-2")]
OTHER_BOT = """
import bot
def answer(question):
    return {**bot.answer(question), "answer": "It is 7."}
"""
Lines = list[str]
DAMAGES: dict[str, tuple[Callable[[Lines, Lines], Lines], str]] = {
    "without failures": (
        lambda lines, _: [line for line in lines if "missed-" not in line],
        "lacks 2 of 6 answers (evalcases/a.jsonl::missed-1, evalcases/a.jsonl::missed-2)",
    ),
    "empty": (lambda _lines, _other: [], "lacks 6 of 6 answers"),
    "of another run": (lambda _, other: other, "has other answers than results.jsonl for evalcases/a.jsonl::boil"),
    "one of another run": (
        lambda lines, other: [*lines[:-1], other[-1]],
        "has other answers than results.jsonl for evalcases/a.jsonl::missed-2;",
    ),
}
VERBS = {
    "score": ("score", "one"),
    "judge": ("judge", "one", "--judge", "lexical"),
    "trec": ("export", "one", "--format", "trec-run", "-o", "ranking.txt"),
    "pairwise": ("compare", "two", "one", "--pairwise", "--judge", "openai:m@http://127.0.0.1:9/v1"),
}


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory: pytest.TempPathFactory) -> StoredProject:
    """The same cases, answered by two systems."""
    project = StoredProject.new(tmp_path_factory.mktemp("two") / "project", CASES)
    project.write("other.py", OTHER_BOT)
    project.pytest(run_id="one")
    project.pytest("--rageval-target", "other:answer", run_id="two")
    return project


def lines_of(project: StoredProject, run_id: str) -> Lines:
    path = project.folder(run_id) / "observations.jsonl"
    return path.read_text(encoding="utf-8").splitlines(keepends=True)


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("damage", DAMAGES)
def test_nothing_is_computed_from_answers_that_are_not_the_run_s(
    two_runs: StoredProject, tmp_path: Path, damage: str, verb: str
):
    project = two_runs.copied(tmp_path / "project")
    spoil, said = DAMAGES[damage]
    path = project.folder("one") / "observations.jsonl"
    path.write_text("".join(spoil(lines_of(project, "one"), lines_of(project, "two"))), encoding="utf-8")
    before = project.files("one")
    done = rageval(project.path, *VERBS[verb])
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    if (damage, verb) != ("empty", "trec"):  # which says that there is nothing at all
        assert f"run one: observations.jsonl {said}" in done.stderr
        assert done.stderr.rstrip().endswith("the run is not whole: run the cases again")
    assert project.files("one") == before


def test_a_whole_run_is_read_by_all_of_them(two_runs: StoredProject, tmp_path: Path):
    project = two_runs.copied(tmp_path / "project")
    for verb in ("score", "judge", "trec"):
        done = rageval(project.path, *VERBS[verb])
        assert done.returncode in (0, 1), done.stderr
