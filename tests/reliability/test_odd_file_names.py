"""Case files with odd names and of odd kinds: each is evaluated, or named, or by its name no case file."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from project import Project, a_case, a_missed_case
from reliability import Tally

EVALUATED = [
    "a b.jsonl", " leading.jsonl", "trailing .jsonl", "-n.jsonl", "--help.jsonl", "a[b].jsonl", "a{b}*.jsonl",
    "a?.jsonl",
    "a::b.jsonl", "a:1:2.jsonl", "a\nb.jsonl", "a\tb.jsonl", "\x1b[31m.jsonl", "caf\u00e9.jsonl", "cafe\u0301.jsonl",
    "한국어.jsonl", "\u202egnitirw.jsonl", "😀.jsonl", "a'b\"c.jsonl", "a$HOME`id`.jsonl", "%2e%2e.jsonl",
    "a&b<c>.jsonl",
    "a\\b.jsonl", "x" * 200 + ".jsonl", "a.b.c.jsonl", "CON.jsonl", "CASE.jsonl", "case.jsonl", "deep/er/a.jsonl",
    "a.jsonl/inner.jsonl", "{{7*7}}.jsonl", "=1+1.jsonl", "::error::x.jsonl", "__init__.jsonl", "conftest.jsonl",
    "~.jsonl",
]  # fmt: skip
COMMANDS = ["a\n::stop-commands::tok.jsonl", "a\x1b[31m.jsonl", "##teamcity[x].jsonl"]
NO_CASE_FILES = [
    "a.jsonl.bak", "a.jsonl~", "a.json", "jsonl", "x.answers.jsonl", "x.drafts.jsonl", "notes.txt", "a.jsonl.swp",
]  # fmt: skip


@pytest.mark.reliability("case files", "odd names of files", costs="false green")
def test_a_file_of_any_name_is_evaluated_and_every_record_names_it(project: Project, tally: Tally):
    tally.tried(len(EVALUATED) + len(NO_CASE_FILES))
    for name in EVALUATED:
        project.cases([a_case("q")], f"evalcases/{name}")
    for name in NO_CASE_FILES:
        project.cases([a_case("q")], f"evalcases/{name}")
    result = project.run("-q")
    assert result.ret == 0
    evaluated = sorted(record["case_key"] for record in project.results())
    assert evaluated == sorted(f"evalcases/{name}::q" for name in EVALUATED)
    again = project.rageval("run")
    assert again.ret == 0
    assert sorted(record["case_key"] for record in project.results()) == evaluated
    for key in evaluated:
        assert project.rageval("explain", "latest", key).ret == 0


def a_link(path: Path) -> None:
    (path.parent.parent / "elsewhere.jsonl").write_text(json.dumps(a_case("q")) + "\n")
    path.symlink_to("../elsewhere.jsonl")


def a_hard_link(path: Path) -> None:
    (path.parent.parent / "other.jsonl").write_text(json.dumps(a_case("q")) + "\n")
    os.link(path.parent.parent / "other.jsonl", path)


def a_linked_folder(path: Path) -> None:
    folder = path.parent.parent / "shared"
    folder.mkdir()
    (folder / "in.jsonl").write_text(json.dumps(a_case("q")) + "\n")
    path.with_suffix("").symlink_to("../shared")


def a_pipe(path: Path) -> None:
    os.mkfifo(path)


def a_loop_of_folders(path: Path) -> None:
    path.with_suffix("").symlink_to("..")


def a_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def an_endless_device(path: Path) -> None:
    path.symlink_to("/dev/urandom")


def a_file_of_the_kernel(path: Path) -> None:
    path.symlink_to("/proc/self/mem")


KINDS = [
    (a_link, 0), (a_hard_link, 0), (a_linked_folder, 0), (a_loop_of_folders, 0),
    (a_pipe, 2), (a_device, 2), (an_endless_device, 2), (a_file_of_the_kernel, 2),
]  # fmt: skip


@pytest.mark.reliability("case files", "links, devices and pipes", costs="false green")
@pytest.mark.parametrize(("make", "code"), KINDS, ids=[make.__name__ for make, _ in KINDS])
def test_what_is_no_plain_file_is_read_or_named(project: Project, make: Callable[[Path], None], code: int):
    project.cases([a_case("sound")])
    make(project.path / "evalcases" / "odd.jsonl")
    result = project.run("-q")
    shown = result.stdout.str() + result.stderr.str()
    assert result.ret == code, shown
    assert code == 0 or "evalcases/odd.jsonl" in shown
    assert "INTERNALERROR" not in shown


@pytest.mark.reliability("case files", "names of files that are commands to a CI service", costs="leak")
@pytest.mark.parametrize("how", [(), ("-v",), ("--co",), ("--co", "-q"), ("-rA", "--junitxml=j.xml")])
@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("content", ["failing", "broken"])
def test_no_name_of_a_file_begins_a_command(project: Project, name: str, how: tuple[str, ...], content: str):
    project.cases([a_missed_case("q")], f"evalcases/{name}")
    if content == "broken":
        project.write(f"evalcases/{name}", "{")
    result = project.run(*how)
    shown = result.stdout.str() + result.stderr.str()
    assert not re.search(r"^\s*::[a-z-]+.*::", shown, re.MULTILINE), shown
    assert "\x1b" not in shown
    assert "##teamcity[" not in shown
