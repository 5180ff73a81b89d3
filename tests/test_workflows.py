"""What runs elsewhere: workflows, the Action, the template for GitLab, the container, locked dependencies."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from processes import PATIENCE_S, python

from pytest_rageval.links import REPOSITORY, SITE

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def jobs(path: Path) -> dict[str, Any]:
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    found: dict[str, Any] = content["jobs"]
    return found


@pytest.mark.parametrize("path", [*WORKFLOWS, ROOT / "action.yml", ROOT / "templates" / "gitlab.yml"], ids=str)
def test_it_can_be_read_as_yaml(path: Path):
    assert yaml.safe_load(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_each_job_has_a_limit_of_time_and_few_rights(path: Path):
    assert yaml.safe_load(path.read_text(encoding="utf-8"))["permissions"] == {"contents": "read"}
    for name, job in jobs(path).items():
        assert job["timeout-minutes"] > 0, name
        for step in job["steps"]:
            assert "${{" not in step.get("run", ""), f"{name}: an expression in a script is a way in"
            uses = step.get("uses", "./")
            assert re.fullmatch(r"\./|actions/[\w-]+@v\d+", uses), uses


def test_every_session_that_a_workflow_calls_is_one_of_nox():
    sessions = {*re.findall(r"^def (\w+)\(session", text_of("noxfile.py"), re.MULTILINE)}
    called = {word for path in WORKFLOWS for word in re.findall(r"nox --session ([\w.-]+)", path.read_text("utf-8"))}
    called |= {*jobs(ROOT / ".github/workflows/ci.yml")["sessions"]["strategy"]["matrix"]["session"]}
    assert {re.sub(r"-3\.\d+$", "", session) for session in called} <= sessions
    assert {"lint", "lowest", "newest", "docs", "torture", "portable", "wheel-3.11", "supply_chain"} <= called


def test_every_supported_python_is_tested():
    versions = [line.rpartition(" ")[2] for line in PYPROJECT["classifiers"] if re.search(r":: 3\.\d+$", line)]
    assert jobs(ROOT / ".github/workflows/ci.yml")["tests"]["strategy"]["matrix"]["python"] == versions


def test_the_tag_of_the_action_in_the_docs_is_the_one_that_a_release_moves():
    major = "v" + PYPROJECT["version"].partition(".")[0]
    name = REPOSITORY.removeprefix("https://github.com/")
    advertised = {
        tag for path in (ROOT / "docs").rglob("*.md") for tag in re.findall(rf"{name}@(\S+)", path.read_text("utf-8"))
    }
    assert advertised == {major}
    assert f"{name}/{major}/templates/gitlab.yml" in text_of("templates/gitlab.yml")
    release = text_of(".github/workflows/release.yml")
    assert 'major="${GITHUB_REF_NAME%%.*}"' in release
    assert "--trusted-publishing always" in release


@pytest.mark.child_process
def test_a_tag_of_another_version_is_not_released():
    version = PYPROJECT["version"]
    wrong = python(ROOT / ".ci" / "released_version.py", "v99.0.0")
    assert wrong.returncode == 1
    assert wrong.stderr.strip() == (
        f"the tag is v99.0.0, but pyproject.toml has version {version}; tag v{version}, or change the version"
    )
    is_dated = re.search(r"^## \S+ \(\d{4}-\d\d-\d\d\)$", text_of("CHANGELOG.md"), re.MULTILINE) is not None
    assert (python(ROOT / ".ci" / "released_version.py", f"v{version}").returncode == 0) is is_dated


@pytest.mark.child_process
def test_the_template_for_gitlab_starts_a_server_and_waits_for_it(tmp_path: Path):
    script = yaml.safe_load(text_of("templates/gitlab.yml"))[".rageval"]["script"][1]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    variables = {"RAGEVAL_START": f"sleep 1; exec timeout 15 {sys.executable} -m http.server {port}",
                 "RAGEVAL_URL": f"http://127.0.0.1:{port}", "PATH": "/usr/local/bin:/usr/bin:/bin"}  # fmt: skip
    script += '\ncurl --silent "$RAGEVAL_URL" | head -c 9; kill $(jobs -p)'
    ran = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", script], cwd=tmp_path, env=variables, capture_output=True, encoding="utf-8",
        timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    assert "<!DOCTYPE" in ran.stdout, ran.stdout + ran.stderr


def test_the_container_gets_every_file_that_it_copies_and_is_no_root():
    dockerfile = text_of("Dockerfile")
    ignored = [line for line in text_of(".dockerignore").splitlines() if line and line[0] != "#"]
    for line in re.findall(r"^COPY (?!--from)(.+)$", dockerfile, re.MULTILINE):
        for source in line.split()[:-1]:
            assert (ROOT / source).exists(), source
            assert f"!{source}" in ignored, source
            assert not [one for one in ignored if one[0] not in "!*" and fnmatch(source, one)], source
    instructions = re.findall(r"^([A-Z]+) (.*)$", dockerfile, re.MULTILINE)
    users = [rest for name, rest in instructions if name == "USER"]
    assert users == ["10001"]
    assert dockerfile.count("\nFROM ") == 2


@pytest.mark.parametrize(("name", "extras"), [("dev", ["dev", "docs"]), ("web", ["web"])])
def test_every_dependency_is_locked_in_a_version_that_fits_with_hashes(name: str, extras: list[str]):
    lock = text_of(f"requirements/{name}.txt")
    entries = re.findall(r"^([\w.-]+)==([\w.+!-]+)([^\n]*\n(?:    --hash[^\n]*\n)+)", lock, re.MULTILINE)
    assert len(entries) == len(re.findall(r"^\S", lock, re.MULTILINE)), "an entry without a hash"
    locked: dict[str, list[str]] = {}
    for package, version, _ in entries:
        locked.setdefault(canonicalize_name(package), []).append(version)
    needed = [*PYPROJECT["dependencies"]]
    for extra in extras:
        needed += PYPROJECT["optional-dependencies"][extra]
    for requirement in map(Requirement, needed):
        versions = locked.get(canonicalize_name(requirement.name), [])
        assert versions, f"{requirement} is not locked: make lock"
        assert all(requirement.specifier.contains(version) for version in versions), f"{requirement}: make lock"


def test_the_site_is_built_where_messages_say_that_it_is():
    project = SITE.removeprefix("https://").partition(".")[0]
    assert f"https://{project}.readthedocs.io/en/latest" == SITE
    commands = yaml.safe_load(text_of(".readthedocs.yaml"))["build"]["commands"]
    assert any("docs/make_site.py" in command for command in commands)
