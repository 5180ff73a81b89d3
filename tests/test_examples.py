"""The projects in docs/examples: each is green as it stands, red where its system is broken, and ready for CI."""

from __future__ import annotations

import re
import shutil
import socket
import sys
import tomllib
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
import yaml
from processes import running, wait_until
from project import run_pytest

from pytest_rageval.links import REPOSITORY
from pytest_rageval.make.ci_files import CI_FILES, ci_file

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "docs" / "examples"
NAMES = sorted(path.name for path in EXAMPLES.iterdir() if path.is_dir())
SERVERS = {"http_bot": "8080", "threaded_bot": "8081"}
"""The examples that are servers, with their ports."""


@pytest.fixture
def example(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of an example; a server in it gets a free port."""
    folder = tmp_path / "example"
    shutil.copytree(EXAMPLES / request.param, folder, ignore=shutil.ignore_patterns("__pycache__", "reports"))
    for line in required(folder):
        name = re.split(r"[<>=]", line)[0]
        try:
            version(name)
        except PackageNotFoundError:
            pytest.skip(f"{name} is not installed; it is one of the development dependencies")
    if request.param in SERVERS:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = str(free.getsockname()[1])
        for path in (folder / "bot.py", folder / "rageval.toml"):
            path.write_text(path.read_text(encoding="utf-8").replace(SERVERS[request.param], port), encoding="utf-8")
    return folder


def required(folder: Path) -> list[str]:
    path = folder / "requirements.txt"
    return path.read_text(encoding="utf-8").split() if path.is_file() else []


@contextmanager
def served(folder: Path) -> Iterator[None]:
    """The server of an example, if it has one."""
    bot = folder / "bot.py"
    if not bot.is_file():
        yield
        return
    found = re.search(r"PORT = (\d+)", bot.read_text(encoding="utf-8"))
    assert found is not None
    with running([sys.executable, "bot.py"], cwd=folder) as process:
        wait_until(lambda: is_open(int(found[1])), "the server takes connections", process)
        yield


def is_open(port: int) -> bool:
    with suppress(OSError), closing(socket.create_connection(("127.0.0.1", port), timeout=1)):
        return True
    return False


@pytest.mark.child_process
@pytest.mark.parametrize("example", NAMES, indirect=True)
def test_an_example_is_green_as_it_stands_and_red_where_its_system_is_broken(example: Path):
    with served(example):
        accepted = run_pytest(example, "--rageval-update-baseline")
    assert accepted.returncode == 0, accepted.stdout
    assert re.search(r"4 cases( \(4 turns of 2 conversations\))?: 4 passed", accepted.stdout)
    place = next(path for path in (example / "answers.csv", example / "notes" / "returns.md") if path.is_file())
    text = place.read_text(encoding="utf-8")
    place.write_text(text.replace("30 days", "20 days"), encoding="utf-8")
    with served(example):
        broken = run_pytest(example)
    assert broken.returncode == 1, broken.stdout
    assert "Fails the build: 1 case newly fails. 3 of 4 pass, was 4." in broken.stdout
    assert "`30 days` is not in the answer; it says 20 days" in broken.stdout


@pytest.mark.child_process
@pytest.mark.parametrize("example", ["threaded_bot"], indirect=True)
def test_a_bot_that_loses_its_threads_fails_its_follow_ups_and_their_gap(example: Path):
    with served(example):
        assert run_pytest(example, "--rageval-update-baseline").returncode == 0
    bot = example / "bot.py"
    text = bot.read_text(encoding="utf-8")
    bot.write_text(text.replace("LAST_NOTES[thread] = found[0][1]", "pass"), encoding="utf-8")
    with served(example):
        broken = run_pytest(example)
    assert broken.returncode == 1, broken.stdout
    assert "run gate rewrite_gap@recall_any@5 1.0 > 0.1" in broken.stdout
    assert "2 of 4 pass, was 4." in broken.stdout
    assert "returns[2]" in broken.stdout


@pytest.mark.parametrize("name", NAMES)
def test_the_workflow_of_an_example_is_what_init_writes(name: str):
    table = tomllib.loads((EXAMPLES / name / "rageval.toml").read_text(encoding="utf-8"))
    target = table["target"]
    url = target["url"] if isinstance(target, dict) else target
    start = "python bot.py" if name in SERVERS else None
    text = (EXAMPLES / name / CI_FILES["github"]).read_text(encoding="utf-8")
    assert text == ci_file("github", EXAMPLES / name, url, start, table.get("headers", {}))
    installing = next(step["run"] for step in yaml.safe_load(text)["jobs"]["evaluation"]["steps"] if "run" in step)
    assert ("requirements.txt" in installing) == bool(required(EXAMPLES / name))


def test_every_example_is_in_the_list_and_in_the_readme_of_the_project():
    listed = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert [name for name in NAMES if f"| [{name}]({name}) |" not in listed] == []
    assert f"{REPOSITORY}/tree/main/docs/examples" in (ROOT / "README.md").read_text(encoding="utf-8")
