"""In a test suite that has nothing to do with us, the plugin is not noticed."""

from __future__ import annotations

import sys

import pytest
from project import Project, lines_with

HEAVY = ("pydantic", "httpx", "rich", "click", "sqlite3", "asyncio", "anyio", "pytest_rageval.model")


@pytest.fixture
def guest(project: Project) -> Project:
    (project.path / "pyproject.toml").unlink()
    (project.path / "bot.py").unlink()
    project.write("test_theirs.py", "def test_one():\n    pass\ndef test_two():\n    assert 1 == 2\n")
    project.write("data/theirs.jsonl", '{"id": 1}\n')
    project.write("data/theirs.csv", "a,b\n1,2\n")
    return project


@pytest.mark.parametrize("how", [[], ["-n", "1"]])
def test_no_line_and_no_file_of_ours(guest: Project, how: list[str]):
    result = guest.run(*how)
    result.assert_outcomes(passed=1, failed=1)
    assert not [line for line in lines_with(result, "rageval") if not line.startswith("plugins:")]
    assert not (guest.path / "reports").exists()


@pytest.mark.child_process
def test_nothing_heavy_is_imported(guest: Project, monkeypatch: pytest.MonkeyPatch):
    guest.write(
        "conftest.py",
        "import sys\ndef pytest_unconfigure(config):\n"
        f"    print('HEAVY', [name for name in {HEAVY!r} if name in sys.modules])\n",
    )
    # Other plugins of this environment import what they like, so only ours is loaded.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    result = guest.process(sys.executable, "-m", "pytest", "-p", "pytest_rageval.plugin.hooks", "-s")
    assert lines_with(result, "HEAVY []")


def test_options_are_in_one_group_of_the_help(guest: Project):
    result = guest.run("--help")
    result.stdout.fnmatch_lines(["evaluation of RAG systems:", "*--rageval-target=SPEC*"])


def test_our_marker_is_registered(guest: Project):
    assert lines_with(guest.run("--markers"), "@pytest.mark.rageval(path=None, select=None")
