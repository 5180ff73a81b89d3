"""What stands beside the package: notes for contributors, the glossary, hooks, tests that wait with an end."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import python

ROOT = Path(__file__).parents[1]
WORDS = [
    *("conversation", "turn", "scenario", "rewrite", "blocked"),
    *("case", "trial", "attempt", "target", "answer", "chunk", "gold", "anchor", "assertion", "tool call", "search"),
    *("abstention", "announcement", "undecided"),
    *("observation", "score", "operation", "gate", "verdict", "outcome", "pass rule", "flaky"),
    *("independent", "record"),
    *("judge", "rubric", "judgement", "claim", "label", "calibration", "spot check"),
    *("run", "baseline", "comparison", "regression", "flip", "known failure", "sweep"),
    *("pairwise comparison", "win rate", "position flip"),
    *("draft", "layer", "overall score", "folder mode", "prefetch", "canary", "fence", "partial run", "vault"),
    *("reservation", "cause"),
]


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_what_contributing_names_is_there():
    paths = set(re.findall(r"`([\w./-]*/[\w./-]*|[\w-]+\.(?:md|toml|py))`", text_of("CONTRIBUTING.md"))) - {".venv/bin"}
    assert len(paths) > 50
    assert sorted(path for path in paths if not (ROOT / path).exists()) == []


def test_every_room_of_the_package_is_in_contributing():
    rooms = {path.parent.name for path in (ROOT / "pytest_rageval").glob("*/__init__.py")}
    assert {room for room in rooms if f"| `pytest_rageval/{room}/` |" not in text_of("CONTRIBUTING.md")} == set()


@pytest.mark.parametrize("target", re.findall(r"`make (\w+)`", text_of("CONTRIBUTING.md")))
def test_a_make_target_that_is_spoken_of_exists(target: str):
    assert re.search(rf"^{target}:", text_of("Makefile"), re.MULTILINE)


def test_the_glossary_explains_each_word_once_in_one_sentence():
    rows = re.findall(r"^\| \*\*([\w ]+)\*\* \| (.+) \|$", text_of("docs/glossary.md"), re.MULTILINE)
    assert sorted(word for word, _ in rows) == sorted(WORDS)
    assert [word for word, meaning in rows if ". " in meaning or meaning.endswith(".")] == []


@pytest.mark.child_process
def test_the_hook_for_case_files_runs_a_command_that_refuses_a_broken_one(tmp_path: Path):
    entry = re.search(r"^  entry: (.+)$", text_of(".pre-commit-hooks.yaml"), re.MULTILINE)
    assert entry is not None
    command = ["-m", "pytest_rageval", *entry[1].split()[1:]]
    good, broken = tmp_path / "good.jsonl", tmp_path / "broken.jsonl"
    good.write_text('{"id": "a", "question": "Why?"}\n', encoding="utf-8")
    broken.write_text('{"id": "a"}\n', encoding="utf-8")
    assert python(*command, good).returncode == 0
    assert python(*command, good, broken).returncode == 1


@pytest.mark.child_process
def test_the_shipped_cases_are_collected_where_only_the_plugin_is_installed():
    alone = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    collect = ("evalcases", "--collect-only", "-q", "-p", "no:cacheprovider", "-p", "rageval", "-p", "xdist")
    ran = python("-m", "pytest", *collect, cwd=ROOT, env=alone)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.child_process
@pytest.mark.parametrize(
    ("versions", "chosen"),
    [
        ({"python3.11": 11, "python3.13": 13}, "python3.11"),
        ({"python3.10": 10, "python3.12": 12, "python3": 10}, "python3.12"),
        ({"python3.11": None, "python3.14": 14}, "python3.14"),
        ({"python3": 15}, "python3"),
        ({"python3": 9}, None),
    ],
)
def test_make_takes_the_first_python_that_is_new_enough(
    tmp_path: Path, versions: dict[str, int | None], chosen: str | None
):
    for name, minor in versions.items():  # each answers the Makefile's question as that version would
        new = minor is not None and minor >= 11
        (tmp_path / name).write_text(f"#!/bin/sh\nexit {0 if new else 1}\n", encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    for tool in ("make", "sh", "test"):
        (tmp_path / tool).symlink_to(str(shutil.which(tool)))
    ran = subprocess.run(
        ["make", "demo", f"VENV={tmp_path}/venv", f"BIN={tmp_path}", *(["-n"] if chosen else [])],
        cwd=ROOT, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    if chosen is None:
        assert (ran.returncode, "Python 3.11 or later is needed" in ran.stdout) == (2, True)
    else:
        assert f"{chosen} -m venv" in ran.stdout, ran.stderr


TESTS = Path(__file__).parent
STARTS = ("run", "check_output", "check_call", "call")
"""Functions of subprocess that wait for what they start."""
ARGUMENTS_BEFORE_LIMIT = {"communicate": 1, "wait": 0, "join": 0}
"""Methods of processes and threads that wait for ever where no limit is given."""
LIMITED_ELSEWHERE = ("everybody", "meeting")
"""An event of a loop whose run has a limit, and a barrier that was made with one."""


def unbounded(tree: ast.Module) -> Iterator[int]:
    """Lines of calls that may wait for ever."""
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        name = node.func.attr
        owner = node.func.value.id if isinstance(node.func.value, ast.Name) else ""
        if {keyword.arg for keyword in node.keywords} & {"timeout", None}:
            continue
        if owner == "subprocess":
            is_unbounded = name in STARTS
        else:
            limit_at = ARGUMENTS_BEFORE_LIMIT.get(name)
            is_unbounded = limit_at is not None and len(node.args) <= limit_at and owner not in LIMITED_ELSEWHERE
        if is_unbounded:
            yield node.lineno


def test_nothing_waits_without_an_end():
    places = [
        f"{path.relative_to(TESTS)}:{line}"
        for path in sorted(TESTS.rglob("*.py"))
        for line in unbounded(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert places == []


@pytest.mark.parametrize(
    "call",
    ["subprocess.run(['x'])", "process.wait()", "a.process.communicate()", "p.communicate('input')", "thread.join()"],
)
def test_a_wait_without_an_end_is_seen(call: str):
    assert [*unbounded(ast.parse(call))] == [1]


def test_the_demo_installs_no_development_tools_and_the_tests_do():
    rules = dict(re.findall(r"^([$()\w/.]+): ?([^\n]*(?:\n\t[^\n]*)*)", text_of("Makefile"), re.MULTILINE))
    core, ready = rules["$(VENV)/.core"], rules["$(VENV)/.ready"]
    assert "--editable ." in core
    assert "[" not in core.partition("--editable")[2]
    assert "--require-hashes --requirement requirements/dev.txt" in ready
    assert rules["demo"].startswith("$(VENV)/.core")
    for target in ("test", "quick", "lint", "torture", "docs"):
        assert rules[target].startswith("$(VENV)/.ready"), target
