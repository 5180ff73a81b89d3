"""Readers of foreign bytes under random changes: a value that strict JSON states, or an error in one line."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from odd_csv import CSV_FILES
from odd_jsonl import JSONL_FILES
from processes import python, rounds
from reliability import Tally
from test_odd_case_files import unaccounted

from pytest_rageval.cases.loading import load_file
from pytest_rageval.io.jmespaths import compiled
from pytest_rageval.io.strict_json import StrictJsonError, parse

SHORT = 3_000
"""Longer files of the table are no better to change, and slow."""
PIECES = [
    b"{", b"}", b"[", b"]", b'"', b"\\", b",", b":", b"0", b"-", b".", b"e9", b"NaN", b"Infinity", b"1e999", b"null",
    b"\xff", b"\xed\xa0\x80", b"\\ud800", b"\\u0000", b"\0", b"\n", b"\r", b"\xef\xbb\xbf", b'"id": "q1", ',
    b"<<<<<<< ",
    b" " * 40,
]  # fmt: skip


def changed(content: bytes, dice: random.Random) -> bytes:
    """One to four changes: pieces inserted, stretches left out, doubled and moved, bits flipped."""
    for _ in range(dice.randint(1, 4)):
        start, end = sorted((dice.randint(0, len(content)), dice.randint(0, len(content))))
        match dice.randrange(5):
            case 0:
                content = content[:start] + dice.choice(PIECES) + content[start:]
            case 1:
                content = content[:start] + content[start + dice.randint(1, 5) :]
            case 2:
                content = content[:end] + content[start:][:SHORT]
            case 3:
                content = content[:start] + content[end:] + content[start:end]
            case _ if content:
                at = start % len(content)
                content = content[:at] + bytes([content[at] ^ 1 << dice.randrange(8)]) + content[at + 1 :]
    return content


def plainly_read(content: bytes) -> Any:
    """By other means than the strict reader's: ValueError for all that is not strict."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) < len(pairs):
            raise ValueError("a key twice")
        return dict(pairs)

    def refuse(word: str) -> None:
        raise ValueError(word)

    value = json.loads(content.decode("utf-8-sig"), object_pairs_hook=unique, parse_constant=refuse)
    json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    return value


@pytest.mark.reliability("case files", "random changes of JSON in the strict reader")
def test_the_strict_reader_reads_what_is_strict_and_nothing_else(tally: Tally):
    dice = random.Random(5)
    lines = [line for _, content, *_ in JSONL_FILES if len(content) < SHORT for line in content.split(b"\n")]
    number = rounds(200_000, 4_000)
    tally.tried(number)
    for _ in range(number):
        content = changed(dice.choice(lines), dice)
        try:
            expected, is_strict = plainly_read(content), True
        except (ValueError, RecursionError):
            expected, is_strict = None, False
        try:
            value = parse(content)
        except StrictJsonError as refused:
            value, said = None, str(refused)
        else:
            said = ""
        assert bool(said) != is_strict, content
        assert "\n" not in said
        assert json.dumps(value) == json.dumps(expected)


@pytest.mark.reliability("case files", "random changes of case files")
@pytest.mark.parametrize(("name", "table"), [("a.jsonl", JSONL_FILES), ("a.csv", CSV_FILES)])
def test_no_line_of_a_changed_file_is_lost(tmp_path: Path, tally: Tally, name: str, table: list[Any]):
    dice = random.Random(6)
    contents = [content for _, content, *_ in table if len(content) < SHORT]
    number = rounds(20_000, 600)
    tally.tried(number)
    path = tmp_path / name
    for _ in range(number):
        content = changed(dice.choice(contents), dice)
        path.write_bytes(content)
        file = load_file(path, tmp_path)
        assert file.cases or file.problems, content
        assert all(problem.isprintable() for problem in file.problems), content
        if name == "a.jsonl":
            assert unaccounted(name, content, file) == [], content


LONG_EXPRESSIONS: dict[str, Callable[[int], str]] = {
    "brackets": lambda n: "[" * n,
    "closed brackets": lambda n: "a" + "[0]" * n,
    "names": lambda n: ".".join("a" * n),
    "functions": lambda n: "length(" * n + "a" + ")" * n,
    "choices": lambda n: " || ".join("a" * n),
    "quotes": lambda n: '"' + '\\"' * n,
    "literals": lambda n: "`" + "[" * n + "`",
    "filters": lambda n: "a[?" * n,
    "flattening": lambda n: "a" + "[]" * n,
    "stars": lambda n: "*" + ".*" * n,
}


@pytest.mark.reliability("bombs", "long expressions of JMESPath")
@pytest.mark.parametrize("name", LONG_EXPRESSIONS)
def test_a_long_expression_is_compiled_or_refused_in_little_time(name: str):
    began = time.process_time()
    for length in (50, 5_000):
        try:
            compiled(LONG_EXPRESSIONS[name](length))
        except ValueError as refused:
            said = str(refused)
        else:
            said = ""
        assert "\n" not in said
    assert time.process_time() - began < 10


FUZZED = """
import atheris, sys
with atheris.instrument_imports():
    from pytest_rageval.io.strict_json import StrictJsonError, parse
    from pytest_rageval.judges.judge_reply import read_reply
    from pytest_rageval.judges.rubrics import load_rubric
    from pytest_rageval.llm.json_exchange import UnreadableReply
RUBRIC = load_rubric("correctness")

def strict_json(data):
    try:
        parse(data)
    except StrictJsonError as error:
        assert "\\n" not in str(error)

def judge_reply(data):
    try:
        reply = read_reply(data.decode(errors="surrogateescape"), RUBRIC, "fence-0123456789abcdef")
    except UnreadableReply:
        return
    assert 0 <= reply.scores["correctness"] <= 5

atheris.Setup([sys.argv[0], "-runs={runs}", "-max_len=400", "-seed=1", "-max_total_time=240"], {reader})
atheris.Fuzz()
"""


@pytest.mark.torture
@pytest.mark.child_process
@pytest.mark.reliability("judge replies", "inputs that seek out new branches", costs="false green")
@pytest.mark.parametrize("reader", ["strict_json", "judge_reply"])
def test_a_fuzzer_guided_by_coverage_finds_no_other_exception(tmp_path: Path, tally: Tally, reader: str):
    pytest.importorskip("atheris", reason="atheris is not installed (pip install atheris)")
    tally.tried(30_000)
    ended = python("-c", FUZZED.format(runs=30_000, reader=reader), cwd=tmp_path, timeout=300)
    assert ended.returncode == 0, ended.stderr[-3000:]
