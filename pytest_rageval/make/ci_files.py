"""The files of a project for CI: they install it, start its server if it has one, run the cases, keep the report."""

from __future__ import annotations

import contextlib
import ipaddress
import json
import re
import shlex
import tomllib
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from urllib.parse import urlsplit

from pytest_rageval.cases.discovery import find_case_files
from pytest_rageval.config.files import case_globs
from pytest_rageval.config.options import HTTP, kind_of
from pytest_rageval.llm.credentials import TARGET_TOKEN

CI = ("github", "gitlab", "none")
CI_FILES = {"github": ".github/workflows/rageval.yml", "gitlab": ".gitlab-ci.yml"}
INDENT = {"github": " " * 10, "gitlab": " " * 6}
"""Where the lines of a script stand in each template."""
ANY_COMMAND = "python -m your_bot"
"""What a person replaces by the command that starts their server."""
PATIENCE_S = 60
START = """\
({command}) > bot.log 2>&1 &{remark}
waiting='until curl --silent --output /dev/null "$URL"; do sleep 1; done'
timeout {patience} sh -c "$waiting" || {{ cat bot.log; exit 1; }}"""
US = "pytest-rageval"
_OURS = re.compile(r"pytest[-_.]+rageval(?![\w-])", re.IGNORECASE)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLAIN_FOLDER = re.compile(r"\w[\w./-]*", re.ASCII)


def ci_file(ci: str, root: Path, target: str, start: str | None, headers: Mapping[str, str]) -> str:
    """Return the file of a service: the server is started there if it is one of the same machine."""
    text = (files(__package__) / "templates" / f"{ci}.yml").read_text(encoding="utf-8")
    is_server = bool(target) and kind_of(target) is HTTP
    is_started = is_server and bool(start or _is_local(target))
    keys = keys_of_ci(headers)
    if is_server and not keys:
        keys = [TARGET_TOKEN]
    text = _with_parts(text, "the server", is_kept=is_started)
    text = _with_parts(text, "keys", is_kept=bool(keys))
    text = _with_parts(text, "no keys", is_kept=not keys)
    script = START.format(
        command=start or ANY_COMMAND,
        remark="" if start else " # the command that starts your system",
        patience=PATIENCE_S,
    )
    values = {
        "@INSTALL@": _installation(root),
        "@CASES@": " ".join(["", *_case_folders(root)]),
        "@KEYS@": f"\n{INDENT[ci]}".join(f"{key}: ${{{{ secrets.{key} }}}}" for key in keys),
        "@KEY_NAMES@": ", ".join(keys),
        "@URL@": shlex.quote(target) if ci == "gitlab" else json.dumps(target),
        # Last, because the command is a person's own text.
        "@START@": script.replace("\n", "\n" + INDENT[ci]),
    }
    for place, value in values.items():
        text = text.replace(place, value)
    return text


def misplaced(ci: str, root: Path) -> str:
    """Return that CI does not read the file of a project below the top of its repository; '' for one at the top."""
    if ci == "none" or (root / ".git").exists():
        return ""
    top = next((folder for folder in root.parents if (folder / ".git").exists()), None)
    if top is None:
        return ""
    below = root.relative_to(top).as_posix()
    if ci == "gitlab":
        return (
            f"GitLab reads {CI_FILES[ci]} at the top of the repository alone: include {below}/{CI_FILES[ci]} there, "
            f"and begin its script with: cd {shlex.quote(below)}"
        )
    return (
        f"GitHub reads workflows at the top of the repository alone: move {CI_FILES[ci]} to {top}, put "
        f"`defaults: {{ run: {{ working-directory: {below} }} }}` into it, and {below}/ before its paths of reports/"
    )


def keys_of_ci(headers: Mapping[str, str]) -> list[str]:
    """Return the environment variables that headers name, which CI has to give."""
    named = [value.removeprefix("env:") for value in headers.values() if value.startswith("env:")]
    return [name for name in dict.fromkeys(named) if _VARIABLE.fullmatch(name)]


def _with_parts(text: str, subject: str, *, is_kept: bool) -> str:
    """Return a template with its parts between two marks of this subject kept, or left out."""
    parts = text.split(f"# --- {subject}\n")
    if is_kept:
        return "".join(parts)
    return "".join(parts[::2])


def _is_local(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _case_folders(root: Path) -> Sequence[str]:
    """Return the folders of the cases as arguments of pytest, none if they are not all in folders of their own.

    Without an argument, pytest runs the unit tests of the project as well.
    """
    folders: list[str] = []
    for glob in case_globs(root):
        if not find_case_files(root, [glob]):
            continue
        folder = _folder_of(glob)
        if not _PLAIN_FOLDER.fullmatch(folder):
            return ()
        if folder not in folders:
            folders.append(folder)
    return folders or ("evalcases",)


def _folder_of(glob: str) -> str:
    """Return the folder that all files of a glob are in; empty if it is the root."""
    plain: list[str] = []
    for part in glob.split("/")[:-1]:
        if re.search(r"[*?\[]", part):
            break
        plain.append(part)
    return "/".join(plain)


def _installation(root: Path) -> str:
    """Return the words that install the project beside rageval."""
    requirements = _text_of(root / "requirements.txt")
    package = _package(root)
    words: list[str] = []
    if requirements is not None:
        words.append("-r requirements.txt")
    if package is not None:
        words.append("-e .")
    required = [*(requirements or "").splitlines(), *(package or ())]
    if any(_OURS.match(line.strip()) for line in required):
        # The project names the version itself; two requirements of one package could contradict each other.
        words.append(US)
    else:
        words.append(pinned())
    if len(words) == 1:
        words.append("# and what your system needs")
    return " ".join(words)


def pinned() -> str:
    """Return the requirement of this version and its later fixes, for a file that is committed.

    A release with another minor number may have other default gates, which would fail an unchanged project.
    """
    return f"{US}~={version(US).partition('+')[0]}"


def _text_of(path: Path) -> str | None:
    """Return a file's text, empty if it is not UTF-8; None if there is no such file."""
    if not path.is_file():
        return None
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def _package(root: Path) -> Sequence[str] | None:
    """Return the requirements of the project that pyproject.toml lists; None if the project is no package."""
    table: Mapping[str, object] = {}
    with contextlib.suppress(tomllib.TOMLDecodeError):
        table = tomllib.loads(_text_of(root / "pyproject.toml") or "")
    if "build-system" not in table and not (root / "setup.py").is_file():
        return None
    project = table.get("project")
    required = project.get("dependencies") if isinstance(project, dict) else None
    if not isinstance(required, list):
        return ()
    return [line for line in required if isinstance(line, str)]
