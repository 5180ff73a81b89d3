"""Secrets put where a run may come upon them, and the search for what is left of them in files and on the screen."""

from __future__ import annotations

import base64
from collections.abc import Sequence

import pytest
from project import Project

CORE = "Zq7Xw9Kp3Lm5"
"""Stands in every secret here: found in whatever spelling the rest of it has."""
TARGET_TOKEN = f"tt+{CORE}/target=="
JUDGE_TOKEN = f"jt+{CORE}/judge=="
HEADER_KEY = f"hk.{CORE}&header"
COOKIE = f"session={CORE}-cookie"
PASSWORD = f"pw-{CORE}-url"
QUERY_KEY = f"qk-{CORE}-query"
PARAM = f"pa'{CORE}<param>"
BOT_KEY = f"bk_{CORE}_of_the_bot"
ENVIRONMENT = {
    "RAGEVAL_TARGET_TOKEN": TARGET_TOKEN,
    "RAGEVAL_JUDGE_TOKEN": JUDGE_TOKEN,
    "OPENAI_API_KEY": f"sk-{CORE}-openai",
    "ANTHROPIC_API_KEY": f"sk-ant-{CORE}",
    "GATEWAY": HEADER_KEY,
    "BOT_API_KEY": BOT_KEY,
}
TRACES = (CORE, base64.b64encode(f"ann:{PASSWORD}".encode()).decode()[:16], "\\u005a")
WRITTEN_HERE = {"pyproject.toml", "bot.py", "conftest.py"}
REPORTS = [
    "-v",
    "--junitxml",
    "junit.xml",
    "--html",
    "report.html",
    "--self-contained-html",
    "--rageval-store-full-text",
]
ALONE_AND_ON_A_WORKER = pytest.mark.parametrize("how", [[], ["-n", "1"]], ids=["alone", "worker"])


def leaks(project: Project, *results: pytest.RunResult, traces: Sequence[str] = TRACES) -> list[str]:
    """Where a trace of a secret stands: files below the project, and lines on the screen."""
    found = []
    for path in project.path.rglob("*"):
        if path.is_file() and path.name not in WRITTEN_HERE:
            content = path.read_bytes()
            found += [
                f"{path.relative_to(project.path)}: {_around(content, one)!r}"
                for one in traces
                if one.encode() in content
            ]
    for result in results:
        found += [line for line in [*result.outlines, *result.errlines] if any(one in line for one in traces)]
    return found


def _around(content: bytes, trace: str) -> bytes:
    at = content.index(trace.encode())
    return content[max(0, at - 60) : at + 40]
