"""The files of a project for CI: they install it, start its server if it has one, run the cases, keep the report."""

from __future__ import annotations

import ipaddress
import json
import shlex
import tomllib
from importlib.resources import files
from pathlib import Path
from urllib.parse import urlsplit

from pytest_rageval.config.options import HTTP, kind_of

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


def ci_file(ci: str, root: Path, target: str, start: str | None) -> str:
    """Return the file of a service: the server is started there if it is one of the same machine."""
    text = (files(__package__) / "templates" / f"{ci}.yml").read_text(encoding="utf-8")
    before, start_step, after = text.split("# --- the server\n")
    if kind_of(target) is not HTTP or not (start or _is_local(target)):
        start_step = ""
    script = START.format(
        command=start or ANY_COMMAND,
        remark="" if start else " # the command that starts your system",
        patience=PATIENCE_S,
    )
    indented = script.replace("\n", "\n" + INDENT[ci])
    url = shlex.quote(target) if ci == "gitlab" else json.dumps(target)
    written = start_step.replace("@START@", indented).replace("@URL@", url)
    return before.replace("@INSTALL@", _installation(root)) + written + after


def _is_local(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _installation(root: Path) -> str:
    """Return the words that install the project beside rageval."""
    if (root / "requirements.txt").is_file():
        return "-r requirements.txt pytest-rageval"
    if _is_package(root / "pyproject.toml"):
        return ". pytest-rageval"
    return "pytest-rageval # and what your system needs"


def _is_package(path: Path) -> bool:
    try:
        return "build-system" in tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return False
