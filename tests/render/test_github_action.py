"""The action of this repository: its steps as a job of GitHub would run them, in bash, on a project of somebody's."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from fault_server import FaultServer, GitHub
from project import ALONE, SOME, Project, a_missed_case

ACTION = Path(__file__).parent.parent.parent / "action.yml"
STEP_LIMIT = 120.0
pytestmark = pytest.mark.child_process


class Step(NamedTuple):
    """A step of the action, as far as it is run here."""

    id: str
    script: str
    environment: dict[str, str]
    condition: str
    uses: str


def steps() -> list[Step]:
    """The steps, in order: the file is read line by line, as it is written."""
    text = ACTION.read_text(encoding="utf-8").partition("\n  steps:\n")[2]
    return [_step(part) for part in re.split(r"^    - ", text, flags=re.MULTILINE)[1:]]


def _step(text: str) -> Step:
    lines = re.sub(r"^      ", "", text, flags=re.MULTILINE)
    values = dict(re.findall(r"^(id|run|if|uses): (.+)$", lines, re.MULTILINE))
    block = re.search(r"^env:\n((?:  .+\n?)+)", lines, re.MULTILINE)
    environment = dict(re.findall(r"^  (\w+): (.+)$", block[1] if block else "", re.MULTILINE))
    return Step(values.get("id", ""), values.get("run", ""), environment, values.get("if", ""), values.get("uses", ""))


def evaluated(expression: str, values: dict[str, str]) -> str:
    """`${{ inputs.name }}` and the like by their values; what has none is empty, as on GitHub."""
    return re.sub(r"\$\{\{ ([\w.-]+) \}\}", lambda match: values.get(match[1], ""), expression)


class Job:
    """A job on a machine of GitHub's: files and variables that a step sees."""

    def __init__(self, project: Project, **variables: str) -> None:
        self.project = project
        self.summary = project.path / "summary-of-step.md"
        self._variables = {
            "GITHUB_ACTIONS": "true", "GITHUB_WORKSPACE": str(project.path), "GITHUB_STEP_SUMMARY": str(self.summary),
            "GITHUB_REPOSITORY": "o/r", "GITHUB_REF": "refs/pull/7/merge", **variables,
        }  # fmt: skip

    def run(self, step: Step, **inputs: str) -> subprocess.CompletedProcess[str]:
        """As `shell: bash` of a composite action does."""
        values = {f"inputs.{name.replace('_', '-')}": value for name, value in inputs.items()}
        environment = {name: evaluated(written, values) for name, written in step.environment.items()}
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step.script], cwd=self.project.path, check=False,
            env=os.environ | ALONE | self._variables | {"PATH": path} | environment, stdin=subprocess.DEVNULL,
            capture_output=True, encoding="utf-8", timeout=STEP_LIMIT,
        )  # fmt: skip


def test_no_script_of_the_action_holds_an_expression_and_every_foreign_one_is_of_a_version():
    assert [step.script for step in steps() if "${{" in step.script] == []
    assert [step.uses for step in steps() if step.uses and not re.fullmatch(r"[\w-]+/[\w-]+@v\d+", step.uses)] == []
    assert all(step.script or step.uses for step in steps())


def test_what_the_outputs_and_later_steps_name_is_there():
    text = ACTION.read_text(encoding="utf-8")
    named = set(re.findall(r"steps\.(\w+)\.", text))
    assert named <= {step.id for step in steps()}
    inputs = set(re.findall(r"^  ([\w-]+):\n    description", text.partition("outputs:")[0], re.MULTILINE))
    assert {name.removeprefix("inputs.") for name in re.findall(r"inputs\.[\w-]+", text)} == inputs


def test_its_steps_run_the_cases_fill_the_page_of_the_job_and_write_the_comment(project: Project):
    project.cases([*SOME, a_missed_case("missed")])
    run, artifact, comment = steps()
    job = Job(project)
    ended = job.run(run, arguments="evalcases -p rageval --rageval-description 'a run of two words' -q")
    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert "::error file=evalcases/a.jsonl,line=5,title=failing%3A missed::" in ended.stdout
    assert job.summary.read_text(encoding="utf-8").startswith("> [!CAUTION]\n> **Fails the build: 1 case fails.")
    assert "a run of two words" in job.summary.read_text(encoding="utf-8")
    assert "inputs.artifact" in artifact.condition
    assert list((project.path / "reports" / "runs").glob("*/report.html"))
    github = GitHub()
    with FaultServer(github) as server:
        job = Job(project, GITHUB_API_URL=server.url)
        written = job.run(comment, token="secret-token", name="faq")
    assert written.returncode == 0, written.stderr
    assert written.stdout.startswith("comment: https://github.com/o/r/pull/7#issuecomment-1")
    comment_text = github.comments[1]
    assert comment_text.startswith("<!-- pytest-rageval: faq -->\n> [!CAUTION]\n> **Fails the build: 1 case fails.")
    assert github.tokens == {"Bearer secret-token"}


def test_arguments_are_words_and_no_script(project: Project):
    project.cases(SOME)
    ended = Job(project).run(steps()[0], arguments="evalcases -p rageval -q $(touch owned) `touch owned`; touch owned")
    assert ended.returncode != 0
    assert not (project.path / "owned").exists()


def test_a_fork_without_a_token_gets_a_notice_and_a_green_step(project: Project):
    project.cases(SOME)
    project.run()
    ended = Job(project).run(steps()[2], token="", name="evaluation")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("::notice title=rageval::no comment was written: no GITHUB_TOKEN")
