"""The commit, the branch and the changes of the tested project, in config.json and in the head of the page."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from processes import PATIENCE_S
from project import Project, a_case

from pytest_rageval.runs.config import project_version


def git(folder: Path, *arguments: str) -> str:
    names = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org", "-c", "commit.gpgsign=false")
    command = ["git", "-C", str(folder), *names, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=PATIENCE_S).stdout.strip()


def test_a_folder_without_a_repository_has_no_version(tmp_path: Path):
    assert project_version(tmp_path) is None


def test_a_version_is_commit_branch_and_whether_tracked_files_were_changed(tmp_path: Path):
    git(tmp_path, "init", "-q", "-b", "trunk")
    (tmp_path / "bot.py").write_text("one")
    assert project_version(tmp_path) == {"commit": None, "branch": "trunk", "is_changed": False}
    git(tmp_path, "add", "bot.py")
    git(tmp_path, "commit", "-q", "-m", "one")
    commit = git(tmp_path, "rev-parse", "HEAD")
    (tmp_path / "untracked.txt").write_text("beside")
    assert project_version(tmp_path) == {"commit": commit, "branch": "trunk", "is_changed": False}
    (tmp_path / "bot.py").write_text("two")
    git(tmp_path, "checkout", "-q", "--detach")
    assert project_version(tmp_path) == {"commit": commit, "branch": None, "is_changed": True}


def test_a_run_says_which_commit_it_tested(project: Project):
    project.cases([a_case("boil")])
    git(project.path, "init", "-q", "-b", "trunk")
    git(project.path, "add", ".")
    git(project.path, "commit", "-q", "-m", "one")
    project.run()
    tested = project.config()["project"]
    assert tested["branch"] == "trunk"
    page = (project.runs[-1] / "report.html").read_text(encoding="utf-8")
    about = re.findall(r'<span class="about">(.*?)</span>', page)[0]
    assert f"trunk {tested['commit'][:7]}" in about
