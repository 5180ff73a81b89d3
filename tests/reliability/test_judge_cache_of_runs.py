"""A judge cache that is broken, foreign, in the way, on a full or a read-only disk: the run's scores are the same."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from file_systems import SmallDisk, small_disk
from judge_server import JudgeServer
from project import SOME, Project

pytestmark = pytest.mark.reliability("cache", "corrupt, foreign, truncated, read-only and full")

CACHE = Path("reports/cache/judge_cache.sqlite")
TABLE = """
target = "bot:answer"
judge = "openai:judge-1@URL/v1"
metrics.enabled = ["groundedness", "correctness"]
"""


def foreign(path: Path) -> None:
    path.unlink()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE bookmarks (url TEXT)")


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


DAMAGES: dict[str, Callable[[Path], object]] = {
    "garbage": lambda path: path.write_bytes(b"no database " * 1000),
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:5000]),
    "empty": lambda path: path.write_bytes(b""),
    "foreign": foreign,
    "a folder": folder,
    "gone": lambda path: path.unlink(),
}


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with JudgeServer(score=4) as server:
        yield server


def scores(project: Project, server: JudgeServer, *arguments: str) -> dict[str, dict[str, float]]:
    """The judged scores of a run by case; the run passes and shows no traceback."""
    project.configure(TABLE.replace("URL", server.url))
    result = project.run("-q", *arguments)
    output = result.stdout.str() + result.stderr.str()
    assert result.ret == 0, output
    assert "Traceback" not in output
    return {key: record["scores"] for key, record in project.records().items()}


@pytest.mark.parametrize("name", DAMAGES)
@pytest.mark.parametrize("how", [(), pytest.param(("-n", "2"), marks=pytest.mark.torture)], ids=["alone", "workers"])
def test_a_damaged_cache_changes_no_score_and_is_used_again(
    project: Project, server: JudgeServer, name: str, how: tuple[str, ...]
):
    project.cases(SOME)
    before = scores(project, server)
    asked = len(server.chats)
    assert asked > 0
    DAMAGES[name](project.path / CACHE)
    assert scores(project, server, *how) == before
    assert len(server.chats) == 2 * asked
    if name != "a folder":
        assert scores(project, server) == before
        assert len(server.chats) == 2 * asked


@pytest.fixture
def disk(project: Project) -> Iterator[SmallDisk]:
    """The cache on a disk of its own."""
    with small_disk(project.path / CACHE.parent, "1m") as disk:
        yield disk


@pytest.mark.child_process
@pytest.mark.parametrize("state", ["full", "read-only"])
@pytest.mark.parametrize("is_filled", [False, True], ids=["without a file", "with judgements"])
def test_a_disk_that_takes_no_judgement_changes_no_score(
    project: Project, server: JudgeServer, disk: SmallDisk, state: str, is_filled: bool
):
    project.cases(SOME[:2] if is_filled else SOME)
    if is_filled:
        scores(project, server)
        project.cases(SOME)
    if state == "full":
        disk.leave(0)
    else:
        disk.make_read_only()
    first = scores(project, server)
    disk.make_room() if state == "full" else disk.make_writable()
    assert set(first) == {case["id"] for case in SOME}
    assert scores(project, server, "--rageval-judge-cache=refresh") == first
