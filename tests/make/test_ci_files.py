"""What `rageval init` writes for CI, read as YAML and run as the service would run it."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.specifiers import SpecifierSet
from processes import PATIENCE_S
from project import Project

from pytest_rageval.make.ci_files import CI_FILES

ROOT = Path(__file__).parents[2]
EXAMPLES = [path.relative_to(ROOT).as_posix() for path in ROOT.glob("docs/examples/*/.github/workflows/*.yml")]
TWO_FOLDERS = " tests/cases more"
LOCAL = "http://localhost:8080"


def written(project: Project, ci: str, *options: str) -> dict[str, Any]:
    """The file of a service, after `rageval init` in an empty folder."""
    for path in project.path.iterdir():
        path.unlink()
    project.rageval("init", "--yes", "--ci", ci, *options)
    text = (project.path / CI_FILES[ci]).read_text(encoding="utf-8")
    assert "@" not in text.replace("@v4", "").replace("@v5", "")
    assert "# ---" not in text
    content = yaml.safe_load(text)
    assert isinstance(content, dict)
    return content


def scripts(content: dict[str, Any], ci: str) -> list[str]:
    if ci == "gitlab":
        return [str(line) for line in content["evaluation"]["script"]]
    return [step["run"] for step in content["jobs"]["evaluation"]["steps"] if "run" in step]


@pytest.mark.parametrize("ci", ["github", "gitlab"])
@pytest.mark.parametrize(
    ("options", "is_started"),
    [
        (["--target", LOCAL], True),
        (["--target", "http://127.0.0.1:9/ask"], True),
        (["--target", "http://bot.example:9", "--start", "docker compose up bot"], True),
        (["--target", "https://bot.example.test"], False),
        (["--target", "demo"], False),
        (["--target", "bot:answer"], False),
    ],
)
def test_a_server_of_the_same_machine_is_started_before_the_cases(
    project: Project, ci: str, options: list[str], is_started: bool
):
    commands = scripts(written(project, ci, *options), ci)
    starting = [number for number, command in enumerate(commands) if "bot.log" in command]
    asking = next(number for number, command in enumerate(commands) if "-m pytest" in command)
    assert len(starting) == is_started
    assert all(number < asking for number in starting)


PINNED = f"pytest-rageval~={version('pytest-rageval')}"
PACKAGE = "[build-system]\nrequires = []\n"


@pytest.mark.parametrize(
    ("files", "installed"),
    [
        ({}, PINNED),
        ({"requirements.txt": "x"}, f"-r requirements.txt {PINNED}"),
        ({"pyproject.toml": PACKAGE}, f"-e . {PINNED}"),
        ({"setup.py": "", "requirements.txt": "x"}, f"-r requirements.txt -e . {PINNED}"),
        ({"pyproject.toml": "not TOML"}, PINNED),
        ({"pyproject.toml": "[tool.other]\n"}, PINNED),
        ({"requirements.txt": "x\nPytest_RagEval[yaml]==9\n"}, "-r requirements.txt pytest-rageval"),
        ({"requirements.txt": "pytest-rageval-extra\n# pytest-rageval\n"}, f"-r requirements.txt {PINNED}"),
        (
            {"pyproject.toml": f'{PACKAGE}[project]\nname = "a"\ndependencies = ["pytest-rageval >= 9"]\n'},
            "-e . pytest-rageval",
        ),
        ({"pyproject.toml": f"{PACKAGE}[project]\ndependencies = 7\n"}, f"-e . {PINNED}"),
        ({"pyproject.toml": f"project = 7\n{PACKAGE}"}, f"-e . {PINNED}"),
    ],
)
@pytest.mark.parametrize("ci", ["github", "gitlab"])
def test_the_project_is_installed_as_it_can_be_beside_a_version_that_stays(
    project: Project, ci: str, files: dict[str, str], installed: str
):
    for path in project.path.iterdir():
        path.unlink()
    for name, text in files.items():
        project.write(name, text)
    project.rageval("init", "--yes", "--ci", ci)
    content = yaml.safe_load((project.path / CI_FILES[ci]).read_text(encoding="utf-8"))
    assert scripts(content, ci)[0] == f"python -m pip install {installed}"


def test_the_requirement_takes_later_fixes_and_no_later_rules():
    name, _, specifier = PINNED.partition("~")
    allowed = SpecifierSet(f"~{specifier}")
    assert name == "pytest-rageval"
    assert [number for number in ("0.0.9", "0.1.0", "0.1.7", "0.2.0", "1.0.0") if number in allowed] == [
        "0.1.0",
        "0.1.7",
    ]


@pytest.mark.parametrize("page", ["docs/ci.md", "docs/scale.md", "templates/gitlab.yml", *EXAMPLES], ids=str)
def test_what_the_documentation_installs_in_ci_is_pinned_as_well(page: str):
    text = (ROOT / page).read_text(encoding="utf-8")
    installing = [line for line in text.splitlines() if re.search(r"pip install (?!\$)|RAGEVAL_INSTALL: ", line)]
    assert installing
    assert all(PINNED in line for line in installing)


@pytest.mark.parametrize("ci", ["github", "gitlab"])
@pytest.mark.parametrize(
    ("table", "files", "arguments"),
    [
        ("", [], " evalcases"),
        ("", ["evalcases/sub/a.jsonl"], " evalcases"),
        ("", ["evalcases/a.jsonl", "b.eval.jsonl"], ""),
        (
            'cases = ["tests/cases/**/*.jsonl", "more/*.csv"]\n',
            ["tests/cases/a.jsonl", "more/b.csv"],
            " tests/cases more",
        ),
        ('cases = ["-p/*.jsonl"]\n', ["-p/a.jsonl"], ""),
        ('cases = ["**/*.jsonl"]\n', ["some/a.jsonl"], ""),
        ('cases = ["a ${{ b/*.jsonl"]\n', ["a ${{ b/a.jsonl"], ""),
    ],
)
def test_pytest_is_given_the_folders_of_the_cases(
    project: Project, ci: str, table: str, files: list[str], arguments: str
):
    configured(project, f'target = "bot:answer"\n{table}')
    for file in files:
        project.write(file, '{"id": "a", "question": "What?"}\n')
    command = next(command for command in scripts(added(project, ci), ci) if "-m pytest" in command)
    asking, _, looking = command.partition(" && ")
    assert asking.removesuffix(" --junitxml=report.xml") == f"python -m pytest{arguments}"
    # Code of the system can end the first process with exit code 0.
    assert looking == "rageval gate latest"


def configured(project: Project, table: str) -> None:
    for path in project.path.iterdir():
        path.unlink()
    project.write("rageval.toml", table)


def added(project: Project, ci: str, *options: str) -> dict[str, Any]:
    """The file of a service, which `rageval init` adds to a configured project."""
    before = {path: path.read_bytes() for path in project.path.rglob("*") if path.is_file()}
    result = project.rageval("init", "--ci", ci, *options)
    assert result.ret == 0, result.stderr.str()
    files = {path for path in project.path.rglob("*") if path.is_file()}
    assert files - before.keys() == {project.path / CI_FILES[ci]}
    assert all(path.read_bytes() == content for path, content in before.items())
    content = yaml.safe_load((project.path / CI_FILES[ci]).read_text(encoding="utf-8"))
    assert isinstance(content, dict)
    return content


KEYED = """\
headers = { X-Api-Key = "env:BOT_KEY", X-Team = "search" }
[target]
url = "http://127.0.0.1:9/ask"
[target.mapping]
request = { q = "{question}" }
response = { answer = "a" }
"""


@pytest.mark.parametrize("ci", ["github", "gitlab"])
def test_a_configured_project_gets_the_file_for_ci_alone_with_its_server_and_keys(
    project: Project, ci: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("BOT_KEY", raising=False)
    configured(project, KEYED)
    project.write("evalcases/first.jsonl", '{"id": "mine", "question": "What?"}\n')
    content = added(project, ci, "--start", "python -m mybot")
    assert any("(python -m mybot) > bot.log" in command for command in scripts(content, ci))
    text = (project.path / CI_FILES[ci]).read_text(encoding="utf-8")
    assert "http://127.0.0.1:9/ask" in text
    assert "RAGEVAL_TARGET_TOKEN" not in text
    if ci == "gitlab":
        assert "masked: BOT_KEY\n" in text
        assert content["evaluation"]["artifacts"]["paths"] == ["reports/runs", "bot.log"]
        return
    steps = content["jobs"]["evaluation"]["steps"]
    asking = next(step for step in steps if "-m pytest" in step.get("run", ""))
    assert asking["env"] == {"BOT_KEY": "${{ secrets.BOT_KEY }}"}
    starting = next(step for step in steps if "bot.log" in step.get("run", ""))
    assert starting["env"] == {"URL": "http://127.0.0.1:9/ask", "BOT_KEY": "${{ secrets.BOT_KEY }}"}
    stored = next(step for step in steps if "upload-artifact" in step.get("uses", ""))
    assert stored["with"]["path"].split() == ["reports/runs", "bot.log"]
    assert content["concurrency"]["group"] == "evaluation-${{ github.ref }}"


def test_a_broken_configuration_is_named_before_a_file_for_ci_is_written(project: Project):
    configured(project, 'taget = "bot:answer"\n')
    result = project.rageval("init", "--ci", "github")
    assert result.ret == 2
    assert "rageval.toml: taget is not a known key; did you mean 'target'?" in result.stderr.str()
    assert not (project.path / CI_FILES["github"]).exists()


def test_a_start_needs_a_server_in_the_configuration_too(project: Project):
    configured(project, 'target = "bot:answer"\n')
    result = project.rageval("init", "--ci", "github", "--start", "x")
    assert result.ret == 2
    assert "--start goes with --ci and a server" in result.stderr.str()


@pytest.mark.child_process
@pytest.mark.parametrize("ci", ["github", "gitlab"])
def test_the_steps_start_the_server_and_wait_until_it_answers(project: Project, ci: str):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    start = f"sleep 1; timeout 15 {sys.executable} -m http.server {port}"
    script, environment = _start_step(project, ci, f"http://127.0.0.1:{port}", start)
    reached = f"{script}\ncurl --silent http://127.0.0.1:{port} | head -c 15; kill $(pgrep -P $(jobs -p))"
    ran = _bash(project.path, reached, environment)
    assert "<!DOCTYPE" in ran.stdout, ran.stdout + ran.stderr


@pytest.mark.child_process
def test_a_server_that_never_answers_ends_the_step_with_its_log(project: Project):
    script, environment = _start_step(project, "github", "http://127.0.0.1:9", "echo no such model")
    ran = _bash(project.path, script.replace("timeout 60", "timeout 2"), environment)
    assert ran.returncode == 1
    assert "no such model" in ran.stdout


def _start_step(project: Project, ci: str, url: str, start: str) -> tuple[str, dict[str, str]]:
    content = written(project, ci, "--target", url, "--start", start)
    if ci == "gitlab":
        return next(script for script in scripts(content, ci) if "bot.log" in script), {}
    step = next(step for step in content["jobs"]["evaluation"]["steps"] if "bot.log" in step.get("run", ""))
    return step["run"], {"URL": step["env"]["URL"]}


def _bash(folder: Path, script: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a script as a step of either service runs it: the first failing command ends it."""
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
    path = {"PATH": "/usr/local/bin:/usr/bin:/bin"}
    return subprocess.run(
        command, cwd=folder, env=path | environment, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8",
        timeout=PATIENCE_S, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--target", LOCAL, "--start", "x"], "--start goes with --ci and a server"),
        (["--ci", "github", "--target", "demo", "--start", "x"], "--start goes with --ci and a server"),
        (["--ci", "github", "--target", LOCAL, "--start", "a\nb"], "--start: expected one line"),
        (["--ci", "github", "--target", LOCAL, "--start", ""], "--start: expected one line"),
        (["--ci", "github", "--target", LOCAL, "--start", "x ${{ secrets.KEY }}"], "--start: expected one line"),
    ],
)
def test_a_start_that_cannot_be_written_is_a_line(project: Project, options: list[str], problem: str):
    result = project.rageval("init", "--yes", *options)
    assert result.ret == 2
    assert problem in result.stderr.str()
