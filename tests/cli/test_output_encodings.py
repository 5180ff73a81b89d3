"""Output in any encoding: every verb and pytest end as in UTF-8, with signs and escapes for what is not there."""

from __future__ import annotations

import codecs
import io
import json
import os
import subprocess
import sys

import pytest
from project import ALONE, Project, a_case

from pytest_rageval.io.output_encoding import HANDLER, SIGNS, json_for, take_any_text

ENCODINGS = ["ascii", "latin-1", "cp1252", "cp949", "utf-16"]
VERBS = {
    "run": ["run", "--target", "bot:answer", "--gate", "run recall_any@5 >= 0.9"],
    "run, JSON": ["run", "--target", "bot:answer", "--json"],
    "explain": ["explain", "one", "missed — 서울"],
    "compare": ["compare", "one", "two"],
    "compare, Markdown": ["compare", "one", "two", "--format", "markdown"],
    "compare, JSON": ["compare", "one", "two", "--format", "json"],
    "report": ["report", "one"],
    "score": ["score", "one"],
    "gate": ["gate", "one"],
    "history": ["history"],
    "runs": ["runs", "list"],
    "export": ["export", "one"],
    "metrics": ["metrics"],
    "doctor": ["doctor"],
    "audit": ["audit"],
    "schema": ["schema"],
    "help": ["--help"],
    "a mistake": ["run", "--target", "bot:answer", "--metrics", "서울 ✘"],
    "no such run": ["explain", "서울 ✘"],
}


@pytest.fixture
def stored(project: Project) -> Project:
    """Two runs of cases whose texts no small encoding has."""
    elsewhere = [{"rel_path": "notes/서울.md", "heading_path": ""}]
    project.cases([a_case("boil é"), a_case("missed — 서울", "boiling 😀 “x”", gold_supports=elsewhere)])
    for run in ("one", "two"):
        project.rageval("run", "--target", "bot:answer", "--run-id", run)
    return project


def test_every_verb_ends_in_every_encoding_as_in_utf_8(stored: Project):
    differing: list[str] = []
    for name, arguments in VERBS.items():
        usual = stored.rageval(*arguments)
        for encoding in ENCODINGS:
            ended = stored.rageval(*arguments, PYTHONIOENCODING=encoding)
            counts = [len(result.outlines) for result in (ended, usual)]
            if ended.ret != usual.ret or abs(counts[0] - counts[1]) > 2:
                differing.append(f"{name} in {encoding}: exit {ended.ret} for {usual.ret}, {counts} lines")
    assert differing == []


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_signs_are_written_as_ascii_and_other_characters_are_escaped(stored: Project, encoding: str):
    result = stored.rageval("explain", "one", "missed — 서울", PYTHONIOENCODING=encoding)
    text = "\n".join(result.outlines)
    assert ("서울" in text) == (encoding in ("cp949", "utf-16"))
    assert ("\\uc11c\\uc6b8" in text) == (encoding not in ("cp949", "utf-16"))
    run = stored.rageval("run", "--target", "bot:answer", PYTHONIOENCODING=encoding)
    verdict = next(line for line in run.outlines if "Fails the build" in line or "Passes:" in line)
    assert "\\u" not in verdict


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_json_holds_the_same_in_every_encoding(stored: Project, encoding: str):
    def content(**environment: str) -> object:
        result = stored.rageval("explain", "one", "missed — 서울", "--json", **environment)
        return json.loads("\n".join(result.outlines).lstrip("\ufeff"))

    assert content(PYTHONIOENCODING=encoding) == content()


@pytest.mark.child_process
@pytest.mark.parametrize(
    ("encoding", "how"),
    [
        ("ascii", ()),
        ("cp1252", ()),
        pytest.param("utf-16", (), marks=pytest.mark.torture),
        # Not utf-16: execnet cannot start any worker in it, whatever the plugins.
        pytest.param("ascii", ("-n", "2"), marks=pytest.mark.torture),
        pytest.param("cp1252", ("-n", "2"), marks=pytest.mark.torture),
    ],
)
def test_pytest_ends_with_its_whole_summary_in_any_encoding(stored: Project, encoding: str, how: tuple[str, ...]):
    raw = in_process(stored, [*PYTEST, *how], PYTHONIOENCODING=encoding)
    text = raw.stdout.decode(encoding)
    assert raw.returncode == 1
    assert "UnicodeEncodeError" not in text
    assert "1 failed, 1 passed" in text
    assert "summary: reports/runs/" in text
    assert ("\\uc11c\\uc6b8" in text) == (encoding != "utf-16")


PYTEST = ["-m", "pytest", "-p", "rageval", "-p", "xdist", "--rageval-target", "bot:answer"]
POSIX = {"LC_ALL": "C", "PYTHONUTF8": "0"}


@pytest.mark.child_process
def test_a_locale_without_an_encoding_loses_no_case_and_no_end(stored: Project):
    raw = in_process(stored, PYTEST, **POSIX)
    assert b"1 failed, 1 passed" in raw.stdout
    assert b"UnicodeEncodeError" not in raw.stdout + raw.stderr
    assert stored.outcomes() == {"boil é": "passed", "missed — 서울": "failed"}
    command = in_process(stored, ["-m", "pytest_rageval", "run", "--target", "bot:answer"], **POSIX)
    assert command.returncode == 1
    assert b"summary: reports/runs/" in command.stdout
    assert (raw.stdout + command.stdout).isascii()


def in_process(project: Project, arguments: list[str], **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Run Python there with another encoding of its output than the tests have."""
    others = {name: value for name, value in os.environ.items() if not name.startswith(("LC_", "LANG", "PYTHONUTF8"))}
    return subprocess.run(
        [sys.executable, *arguments], cwd=project.path, env=others | ALONE | environment, capture_output=True,
        stdin=subprocess.DEVNULL, check=False, timeout=120,
    )  # fmt: skip


@pytest.mark.parametrize("encoding", [*ENCODINGS, "utf-8", "cp437", "shift_jis", "koi8-r", "utf-32", "cp500"])
def test_any_text_is_written_and_the_stream_is_given_back(encoding: str):
    beneath = io.BytesIO()
    stream = io.TextIOWrapper(beneath, encoding)
    undo = take_any_text(stream, is_for_click=True)
    stream.write("".join(map(chr, range(32, 0x3000))) + "".join(SIGNS) + "\ud800 😀\n")
    stream.flush()
    undo()
    assert (codecs.lookup(stream.encoding).name, stream.errors) == (codecs.lookup(encoding).name, "strict")
    beneath.getvalue().decode(encoding)


def test_what_stands_for_a_sign_is_ascii():
    assert all(sign.isascii() for sign in SIGNS.values())
    assert "a — 서 😀".encode("ascii", HANDLER) == b"a - \\uc11c \\ud83d\\ude00"
    assert json_for(io.TextIOWrapper(io.BytesIO(), "ascii"), '"— é 😀"') == '"\\u2014 \\u00e9 \\ud83d\\ude00"'
    assert json_for(None, '"—"') == '"—"'
