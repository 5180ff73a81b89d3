"""What `rageval init` writes for CI, read as YAML and run as the service would run it."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from processes import PATIENCE_S
from project import Project

from pytest_rageval.make.ci_files import CI_FILES

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


@pytest.mark.parametrize(
    ("files", "installed"),
    [
        ({}, "pytest-rageval"),
        ({"requirements.txt": "x"}, "-r requirements.txt pytest-rageval"),
        ({"pyproject.toml": "[build-system]\nrequires = []\n"}, ". pytest-rageval"),
        ({"pyproject.toml": "not TOML"}, "pytest-rageval"),
        ({"pyproject.toml": "[tool.other]\n"}, "pytest-rageval"),
    ],
)
def test_the_project_is_installed_as_it_can_be(project: Project, files: dict[str, str], installed: str):
    for path in project.path.iterdir():
        path.unlink()
    for name, text in files.items():
        project.write(name, text)
    project.rageval("init", "--yes", "--ci", "github")
    content = yaml.safe_load((project.path / CI_FILES["github"]).read_text(encoding="utf-8"))
    assert scripts(content, "github")[0] == f"python -m pip install {installed}"


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
    return step["run"], step["env"]


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
