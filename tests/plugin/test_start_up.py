"""A suite that has nothing to do with us does not notice the plugin; what starting costs, counted in modules."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable

import pytest
from project import Project, a_case, lines_with

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


COUNTED = """
import atexit, runpy, sys
atexit.register(lambda: print("\\nMODULES", *sys.modules))
del sys.argv[0]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""
HOOKS = ("-p", "pytest_rageval.plugin.hooks")
OF_A_GUEST = {
    "pytest_rageval",
    "pytest_rageval.cases",
    "pytest_rageval.cases.discovery",
    "pytest_rageval.config",
    "pytest_rageval.config.files",
    "pytest_rageval.config.options",
    "pytest_rageval.errors",
    "pytest_rageval.io",
    "pytest_rageval.io.collector",
    "pytest_rageval.plugin",
    "pytest_rageval.plugin.entry",
    "pytest_rageval.plugin.fixtures",
    "pytest_rageval.plugin.hooks",
    "pytest_rageval.plugin.hookspecs",
    "pytest_rageval.plugin.light_session",
    "pytest_rageval.providers",
}
"""All that a suite without cases loads of us."""
OF_THE_COMMAND = {f"pytest_rageval.cli.{name}" for name in ("main", "options", "terminal")}
NEVER = ("click", "fastapi", "httpcore", "httpx", "jmespath", "markdown_it", "rich.console")
NOT_FOR_HELP = ("asyncio", "httpx", "jinja2", "pydantic", "pytest", "rich", "sqlite3")
OURS = re.compile(r"pytest_rageval(\.|$)")


def imported(project: Project, *command: str) -> set[str]:
    """The modules that a module run by Python has loaded at its end."""
    project.write("counted.py", COUNTED)
    # Other plugins of this environment import what they like, so only ours is loaded.
    shown = project.process(
        sys.executable, "counted.py", *command, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1", PYTEST_ADDOPTS=""
    )
    (line,) = (line for line in shown.outlines if line.startswith("MODULES"))
    return {*line.split()[1:]}


def ours(modules: Iterable[str]) -> set[str]:
    return {module for module in modules if OURS.match(module)}


@pytest.mark.child_process
def test_a_suite_without_cases_loads_15_small_modules_and_of_others_the_standard_library(guest: Project):
    with_us = imported(guest, "pytest", *HOOKS)
    assert ours(with_us) == OF_A_GUEST
    foreign = {module.partition(".")[0] for module in with_us - imported(guest, "pytest") - OF_A_GUEST}
    assert foreign <= sys.stdlib_module_names


@pytest.mark.child_process
def test_the_version_of_pytest_costs_no_more_than_that(guest: Project):
    assert ours(imported(guest, "pytest", *HOOKS, "--version")) <= OF_A_GUEST


@pytest.mark.child_process
@pytest.mark.parametrize("target", ["bot:answer", "answers:answers.jsonl"])
def test_a_run_of_one_case_loads_no_client_and_nothing_that_only_other_runs_need(project: Project, target: str):
    project.cases([a_case("boil")])
    project.write("answers.jsonl", '{"id": "boil", "answer": "Water boils at 100 degrees."}\n')
    project.configure(f'target = "{target}"')
    modules = imported(project, "pytest", *HOOKS)
    assert project.records().keys() == {"boil"}
    assert not modules & {*NEVER}
    of_other_faces = re.compile(r"pytest_rageval\.(cli|demo|api|label|web|tools\.(?!calibration_record))")
    assert not [module for module in modules if of_other_faces.match(module)]


@pytest.mark.child_process
def test_a_run_without_a_page_loads_no_templates(project: Project):
    project.cases([a_case("boil")])
    project.configure('target = "bot:answer"\nreport = false')
    modules = imported(project, "pytest", *HOOKS)
    assert "jinja2" not in modules
    assert {module for module in modules if module.startswith("pytest_rageval.render.html.")} == {
        "pytest_rageval.render.html.report_file"
    }


@pytest.mark.child_process
def test_the_help_of_the_command_loads_none_of_its_verbs(project: Project):
    modules = imported(project, "pytest_rageval", "--help")
    assert not modules & {*NOT_FOR_HELP}
    loaded = ours(modules)
    assert not loaded & {"pytest_rageval.model", "pytest_rageval.io.masking", "pytest_rageval.config.settings"}
    assert {name for name in loaded if name.startswith("pytest_rageval.cli.")} == OF_THE_COMMAND


@pytest.mark.child_process
def test_a_second_session_of_the_same_process_freezes_nothing_more_and_says_nothing_of_rewriting(project: Project):
    """What was loaded is left out of the collector's looks; what sessions leave behind is garbage like any other."""
    project.cases([a_case("boil")])
    project.write(
        "twice.py",
        "import gc, pytest\n"
        "for _ in range(2):\n"
        f"    assert pytest.main([*{HOOKS!r}]) == 0\n"
        "    print('FROZEN', gc.get_freeze_count())\n",
    )
    result = project.process(sys.executable, "twice.py", PYTEST_DISABLE_PLUGIN_AUTOLOAD="1", PYTEST_ADDOPTS="")
    assert "rewritten" not in result.stdout.str()
    first, second = (int(line.split()[1]) for line in result.outlines if line.startswith("FROZEN"))
    assert first >= second > 10_000
