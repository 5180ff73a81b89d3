"""`rageval init` called again after it ended with 1: what nobody edited is replaced, what somebody did is kept."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from fault_server import Connection, FaultServer
from project import Project, a_case

KEY = "q7Xw9-Kp3Lm5zR"
REPLY = b'{"answer": "Water boils at 100 degrees.", "sources": [{"path": "water.md", "text": "at sea level"}]}'
AWAY = "http://127.0.0.1:9"
"""Nothing listens there."""


@pytest.fixture
def empty(project: Project) -> Project:
    """A folder with nothing in it."""
    for path in project.path.iterdir():
        path.unlink()
    return project


def files(folder: Path) -> dict[str, bytes]:
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def beside(folder: Path) -> list[str]:
    """The files that were written beside others."""
    return [name for name in files(folder) if ".new" in name]


async def wants_a_key(connection: Connection) -> None:
    if connection.request.headers.get("x-api-key") == KEY:
        await connection.reply(200, REPLY)
    else:
        await connection.reply(401, b'{"error": "no key"}')


@pytest.mark.parametrize("stops", [1, 2])
def test_after_a_refusal_the_next_call_leaves_one_set_of_files(
    empty: Project, monkeypatch: pytest.MonkeyPatch, stops: int
):
    empty.write("notes/water.md", "# Water\n## Boiling\nAt 100 degrees.\n")
    with FaultServer(wants_a_key) as server:
        command = ["init", "--yes", "--target", server.url, "--ci", "github"]
        for _ in range(stops):
            assert empty.rageval(*command).ret == 1
        monkeypatch.setenv("BOT_KEY", KEY)
        mended = empty.rageval(*command, "--header", "X-Api-Key=env:BOT_KEY", "--notes", "notes")
        assert mended.ret == 0
        assert beside(empty.path) == []
        table = tomllib.loads((empty.path / "rageval.toml").read_text(encoding="utf-8"))
        assert table["target"]["mapping"]["response"]["answer"] == "answer"
        assert table["headers"] == {"X-Api-Key": "env:BOT_KEY"}
        first = (empty.path / "evalcases/first.jsonl").read_text(encoding="utf-8")
        assert json.loads(first.splitlines()[0])["id"] == "note-1"
        assert "BOT_KEY" in (empty.path / ".github/workflows/rageval.yml").read_text(encoding="utf-8")
        shown = {line.partition("  ")[0]: line for line in mended.outlines}
        for name in ("rageval.toml", "evalcases/first.jsonl", ".github/workflows/rageval.yml"):
            assert "replaced: written by the last `rageval init`, and edited by nobody" in shown[name]
        assert "was there already" in shown["reports/.gitignore"]


def test_a_sample_without_a_path_is_mended_in_place(empty: Project):
    empty.write("reply.json", REPLY.decode())
    command = ["init", "--yes", "--target", AWAY, "--reply", "reply.json", "--json"]
    assert empty.rageval(*command).ret == 1
    mended = empty.rageval(*command, "--path", "/ask")
    assert mended.ret == 0
    states = {file["path"]: file["state"] for file in json.loads(mended.stdout.str())["files"]}
    assert states["rageval.toml"].startswith("replaced")
    assert beside(empty.path) == []


def test_an_edited_file_is_kept_and_a_new_one_beside_it_is_replaced(empty: Project):
    assert empty.rageval("init", "--yes", "--target", f"{AWAY}/a").ret == 1
    mine = (empty.path / "rageval.toml").read_bytes() + b"k = 7\n"
    (empty.path / "rageval.toml").write_bytes(mine)
    empty.cases([a_case("mine")], "evalcases/first.jsonl")
    cases = (empty.path / "evalcases/first.jsonl").read_bytes()
    for place in ("b", "c"):
        assert empty.rageval("init", "--yes", "--target", f"{AWAY}/{place}").ret == 1
    after = files(empty.path)
    assert after["rageval.toml"] == mine
    assert after["evalcases/first.jsonl"] == cases
    assert beside(empty.path) == ["rageval.toml.new"]
    assert f'"{AWAY}/c"'.encode() in after["rageval.toml.new"]


def test_nothing_is_replaced_after_an_init_that_ended_well(empty: Project):
    assert empty.rageval("init", "--yes", "--target", AWAY).ret == 1
    assert empty.rageval("init", "--yes").ret == 0
    done = files(empty.path)
    assert not any("cache" in name for name in done), "what was remembered has served"
    assert empty.rageval("init", "--yes", "--target", AWAY).ret == 1
    assert beside(empty.path) != []
    assert {name: content for name, content in files(empty.path).items() if name in done} == done


def test_a_file_for_ci_alone_ends_no_unfinished_project(empty: Project):
    assert empty.rageval("init", "--yes", "--target", AWAY).ret == 1
    assert empty.rageval("init", "--ci", "github").ret == 0
    assert empty.rageval("init", "--yes").ret == 0
    assert beside(empty.path) == []
    assert b'target = "demo"' in files(empty.path)["rageval.toml"]


@pytest.mark.parametrize(
    "remembered", ["", "[]", '{"files": 3}', '{"files": {"rageval.toml": null}}', "\ufeff{", "[" * 5000]
)
def test_a_damaged_memory_replaces_nothing(empty: Project, remembered: str):
    assert empty.rageval("init", "--yes", "--target", AWAY).ret == 1
    memory = empty.path / "reports" / "cache" / "init.json"
    assert memory.is_file()
    memory.write_text(remembered, encoding="utf-8")
    before = (empty.path / "rageval.toml").read_bytes()
    result = empty.rageval("init", "--yes")
    assert result.ret == 0, result.stderr.str()
    assert (empty.path / "rageval.toml").read_bytes() == before
    assert "rageval.toml.new" in beside(empty.path)


def test_a_link_is_not_written_through(empty: Project):
    assert empty.rageval("init", "--yes", "--target", AWAY).ret == 1
    shared = empty.path / "shared.toml"
    (empty.path / "rageval.toml").rename(shared)
    (empty.path / "rageval.toml").symlink_to(shared)
    before = shared.read_bytes()
    assert empty.rageval("init", "--yes").ret == 0
    assert shared.read_bytes() == before
    assert (empty.path / "rageval.toml").is_symlink()
    assert beside(empty.path) == ["rageval.toml.new"]
