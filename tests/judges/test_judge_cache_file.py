"""The cache's file: what it keeps, many at once, and files that are broken, foreign, read-only or on a full disk."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from pytest_rageval.judges.cache.cache_key import KeyParts, key_parts
from pytest_rageval.judges.cache.sqlite_cache import LARGEST, LOOKED_AT, SqliteCache
from pytest_rageval.judges.judge import JudgementCache
from pytest_rageval.model import Judgement, JudgeRequest

A_JUDGEMENT = Judgement(
    rubric="groundedness",
    scores={"groundedness": 3.5},
    scale=(0.0, 5.0),
    reasoning='근거가 있다 \x00 😀\n"quoted"',
    supported_claims=("one", "two"),
    unsupported_claims=("three",),
    model="m/1",
    prompt_version="1+abc",
    tokens_in=100,
    tokens_out=20,
    cost_usd=0.001,
    latency_ms=12.5,
    extra={"raw": {"score": "3.5"}, "flags": ["marker quoted", None]},
)


_opened: list[SqliteCache] = []


@pytest.fixture
def path(tmp_path) -> Iterator[Path]:
    """Where a cache may be; whatever `a_cache` opened is closed at the end."""
    yield tmp_path / "deep" / "cache.sqlite"
    while _opened:
        _opened.pop().close()


def a_cache(path: Path) -> SqliteCache:
    _opened.append(SqliteCache(path))
    return _opened[-1]


def the_parts(question: str = "why?", **variables: object) -> KeyParts:
    given = {"question": question, "answer": "so", "contexts": [], **variables}
    return key_parts(JudgeRequest("groundedness", "1+abc", given), "m/1", {"temperature": 0})


def rows(path: Path, query: str) -> list[tuple]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


def change(path: Path, statement: str, *values: str | bytes) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement, values)


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """A folder that another user can reach, which tmp_path is not."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def a_filled(path: Path, count: int = 200) -> SqliteCache:
    cache = SqliteCache(path)
    for at in range(count):
        cache.put(f"key-{at}", A_JUDGEMENT)
    cache.close()
    assert cache.notes == []
    return cache


def set_aside(path: Path) -> list[Path]:
    return sorted(path.parent.glob("*.broken-*[0-9]"))


def run(source: str, *arguments: object, **options) -> str:
    """Run a piece of Python in a process of its own and return what it printed."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", source, *map(str, arguments)],
        capture_output=True, text=True, timeout=60, cwd=Path(__file__).parents[2], check=False, **options,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


# ── keeping ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_judgement_comes_back_as_it_was_kept_even_in_another_process_later(path):
    cache = a_cache(path)
    assert isinstance(cache, JudgementCache)
    cache.put("key", A_JUDGEMENT)
    assert cache.get("key") == A_JUDGEMENT
    cache.close()
    assert a_cache(path).get("key") == A_JUDGEMENT
    assert cache.notes == []


def test_an_unknown_key_is_none_and_looking_makes_no_file(path):
    assert a_cache(path).get("key") is None
    assert not path.parent.exists()


def test_what_is_put_again_replaces_what_was_there(path):
    cache = a_cache(path)
    cache.put("key", A_JUDGEMENT)
    cache.put("key", Judgement("relevance", {"relevance": 0.5}))
    assert cache.get("key") == Judgement("relevance", {"relevance": 0.5})


def test_the_file_holds_one_row_of_json_a_judgement(path):
    a_filled(path, 3)
    scores = "json_extract(judgement, '$.scores.groundedness')"
    assert rows(path, f"SELECT key, {scores} FROM judgements") == [("key-0", 3.5), ("key-1", 3.5), ("key-2", 3.5)]


def test_a_closed_cache_is_one_file(path):
    a_filled(path)
    assert [one.name for one in path.parent.iterdir()] == ["cache.sqlite"]


@pytest.mark.parametrize("text", ["\ud800", "half a \udc00 pair"])
def test_a_lone_surrogate_never_reaches_the_file(path, text):
    cache = a_cache(path)
    cache.put("key", Judgement("groundedness", {"groundedness": 4.0}, reasoning=text))
    assert cache.get("key") is None
    (note,) = cache.notes
    assert "cannot be written and is not kept" in note
    note.encode()


@pytest.mark.parametrize(
    "written",
    ["", "null", "[]", "{", '{"rubric": "g"}', '{"rubric": "g", "scores": {"g": "high"}}', '{"rubric": "\\ud800"}'],
)
def test_a_row_that_is_no_judgement_is_ignored_with_a_note(path, written):
    a_filled(path, 1)
    change(path, "UPDATE judgements SET judgement = ?", written)
    cache = a_cache(path)
    assert cache.get("key-0") is None
    assert "entry key-0 is unreadable and ignored" in cache.notes[0]
    cache.put("key-0", A_JUDGEMENT)
    assert cache.get("key-0") == A_JUDGEMENT


def test_beside_a_judgement_stand_its_time_and_what_its_key_was_made_of(path):
    cache, parts = a_cache(path), the_parts("왜 " * 300, references=["x"])
    cache.put(parts.key, A_JUDGEMENT, parts)
    ((written, created, rubric, model),) = rows(path, "SELECT parts, created, rubric, model FROM judgements")
    kept = KeyParts.read(json.loads(written))
    assert (kept, kept.key, kept.asked) == (parts, parts.key, ("왜 " * 300)[:200])
    assert (kept.sampling, kept.trial, kept.variables.keys()) == ({"temperature": 0}, 0, {"references"})
    assert (rubric, model) == ("groundedness", "m/1")
    assert abs(datetime.now(UTC) - datetime.fromisoformat(created)) < timedelta(minutes=5)


def test_what_is_too_large_is_not_kept_and_that_is_said(path):
    cache = a_cache(path)
    cache.put("key", replace(A_JUDGEMENT, reasoning="x" * LARGEST))
    assert cache.get("key") is None
    assert "is not kept: it is longer than 1,048,576 characters" in cache.notes[0]


@pytest.mark.parametrize("field", ["model", "prompt_version"])
def test_parts_that_are_no_text_are_not_kept(path, field):
    cache = a_cache(path)
    broken: dict[str, Any] = {field: "\ud800"}
    cache.put("key", A_JUDGEMENT, replace(the_parts(), **broken))
    assert cache.get("key") is None
    (note,) = cache.notes
    assert "cannot be written and is not kept" in note
    note.encode()


# ── the nearest entry ─────────────────────────────────────────────────────────────────────────────────────────


def test_the_nearest_is_one_of_the_same_question_before_all_others(path):
    cache = a_cache(path)
    kept = [the_parts(answer="else", contexts=[1], references=[]), the_parts("who?"), the_parts("how?")]
    for parts in kept:
        cache.put(parts.key, A_JUDGEMENT, parts)
    assert cache.nearest(the_parts()) == kept[0]
    assert cache.nearest(the_parts("when?")) in kept[1:]
    assert cache.nearest(replace(the_parts(), rubric="relevance")) is None


def test_so_many_entries_at_most_are_looked_at_whatever_there_is(path):
    cache = a_cache(path)
    for number in range(2 * LOOKED_AT):
        parts = the_parts(f"question {number}")
        cache.put(parts.key, A_JUDGEMENT, parts)
    assert cache.nearest(the_parts()) is not None
    plan = rows(path, "EXPLAIN QUERY PLAN SELECT parts FROM judgements WHERE rubric = 'g' AND question = 'q' LIMIT 9")
    assert "USING INDEX by_question" in plan[0][-1]


@pytest.mark.parametrize("written", ["", "{", "[]", "{}", "null", '{"rubric": 1}', "[" * 100_000, b"\xff"])
def test_parts_that_cannot_be_read_are_not_the_nearest(path, written):
    cache, parts = a_cache(path), the_parts()
    cache.put(parts.key, A_JUDGEMENT, parts)
    change(path, "UPDATE judgements SET parts = ?", written)
    assert cache.nearest(parts) is None
    assert cache.notes == []


def test_looking_for_the_nearest_makes_no_file(path):
    assert a_cache(path).nearest(the_parts()) is None
    assert not path.parent.exists()


# ── many at once ──────────────────────────────────────────────────────────────────────────────────────────────

FILL = """
import sys
from pathlib import Path
from pytest_rageval.judges.cache.sqlite_cache import SqliteCache
from pytest_rageval.judges.cache.cache_key import key_parts
from pytest_rageval.model import Judgement, JudgeRequest

def entry(at):
    parts = key_parts(JudgeRequest("groundedness", "1+abc", {"question": f"question {at}"}), "m/1")
    return parts, Judgement("groundedness", {"groundedness": at / 20}, (0.0, 5.0), reasoning=f"because {at}")

print("ready", flush=True)
for line in sys.stdin:
    cache = SqliteCache(Path(line.rstrip()))
    for at in range(100):
        parts, judgement = entry((at + 25 * int(sys.argv[1])) % 100)
        if cache.get(parts.key) is None:
            cache.put(parts.key, judgement, parts)
    assert all(cache.get(parts.key) == judgement for parts, judgement in map(entry, range(100)))
    cache.close()
    print(cache.notes, flush=True)
"""


@pytest.fixture
def fillers() -> Iterator[list[subprocess.Popen[str]]]:
    """Eight processes that fill the cache whose path they are told, and say what they noted."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-W", "error", "-c", FILL, str(at)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2],
        )
        for at in range(8)
    ]  # fmt: skip
    yield processes
    for process in processes:
        process.communicate(timeout=60)


def test_eight_processes_on_one_fresh_file_keep_every_key_once_in_each_of_20_rounds(fillers, tmp_path):
    assert [process.stdout.readline() for process in fillers] == ["ready\n"] * 8
    for number in range(20):
        path = tmp_path / f"round-{number}" / "cache.sqlite"
        for process in fillers:
            process.stdin.write(f"{path}\n")
            process.stdin.flush()
        assert [process.stdout.readline() for process in fillers] == ["[]\n"] * 8
        found = rows(path, "SELECT count(*), count(DISTINCT key), count(parts) FROM judgements")
        assert found == [(100, 100, 100)]
        assert [one.name for one in path.parent.iterdir()] == ["cache.sqlite"]


def test_many_threads_share_one_cache(path):
    cache = a_cache(path)

    def work(start: int) -> None:
        for at in range(50):
            cache.put(f"key-{(start + at) % 60}", A_JUDGEMENT)
            assert cache.get(f"key-{(start + at) % 60}") == A_JUDGEMENT

    threads = [threading.Thread(target=work, args=(10 * at,)) for at in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert cache.notes == []
    assert all(cache.get(f"key-{at}") == A_JUDGEMENT for at in range(60))


# ── broken and foreign files ──────────────────────────────────────────────────────────────────────────────────


def _garbage(path: Path) -> None:
    path.write_bytes(b"this is no database, but somebody's notes\n" * 100)


def _a_few_bytes(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:50])


def _half(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _header_only(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:4096])


def _scribbled(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[4096:] = os.urandom(len(content) - 4096)
    path.write_bytes(content)


def _foreign(path: Path) -> None:
    path.unlink()
    change(path, "CREATE TABLE bookmarks (url TEXT)")


def _same_table_of_somebody_else(path: Path) -> None:
    path.unlink()
    change(path, "CREATE TABLE judgements (key TEXT, judgement TEXT)")


def _older(path: Path) -> None:
    path.unlink()
    change(path, "CREATE TABLE judgements (key TEXT PRIMARY KEY, judgement TEXT NOT NULL) WITHOUT ROWID")
    change(path, "PRAGMA application_id = 0x52414745")
    change(path, "PRAGMA user_version = 1")


def _newer(path: Path) -> None:
    change(path, "PRAGMA user_version = 99")


def _without_table(path: Path) -> None:
    change(path, "DROP TABLE judgements")


@pytest.mark.parametrize(
    "spoil",
    [_garbage, _a_few_bytes, _half, _header_only, _scribbled, _foreign, _same_table_of_somebody_else, _older,
     _newer, _without_table],
)  # fmt: skip
def test_a_broken_or_foreign_file_is_set_aside_untouched_and_a_new_one_begun(path, spoil):
    a_filled(path)
    spoil(path)
    content = hashlib.sha256(path.read_bytes()).hexdigest()
    cache = a_cache(path)
    for at in range(200):
        cache.get(f"key-{at}")
    cache.put("key", A_JUDGEMENT)
    assert cache.get("key") == A_JUDGEMENT
    (aside,) = set_aside(path)
    assert hashlib.sha256(aside.read_bytes()).hexdigest() == content
    (note,) = cache.notes
    assert note.startswith(f"{path}: not a usable judge cache (")
    assert f"set aside as {aside.name}, a new one is begun" in note


def test_a_file_of_an_older_layout_is_said_to_be_one(path):
    a_filled(path)
    _older(path)
    cache = a_cache(path)
    cache.get("key-0")
    assert "(its layout is 1, not 2); set aside as " in cache.notes[0]


def test_an_entry_that_is_no_utf_8_costs_that_entry_alone(path):
    a_filled(path, 2)
    change(path, "UPDATE judgements SET judgement = CAST(? AS TEXT) WHERE key = 'key-0'", b"{\xff")
    cache = a_cache(path)
    assert (cache.get("key-0"), cache.get("key-1")) == (None, A_JUDGEMENT)
    assert "entry key-0 is unreadable and ignored" in cache.notes[0]


def test_an_empty_file_becomes_the_cache(path):
    path.parent.mkdir()
    path.touch()
    cache = a_cache(path)
    cache.put("key", A_JUDGEMENT)
    assert cache.get("key") == A_JUDGEMENT
    assert cache.notes == []


def test_two_that_find_the_same_file_broken_set_aside_one(path):
    a_filled(path)
    first, second = a_cache(path), a_cache(path)
    assert first.get("key-0") == second.get("key-0") == A_JUDGEMENT
    first.close()
    second.close()
    _scribbled(path)
    first.put("new", A_JUDGEMENT)
    second.put("newer", A_JUDGEMENT)
    assert len(set_aside(path)) == 1
    assert first.get("newer") == second.get("new") == A_JUDGEMENT


def test_files_broken_within_one_second_are_all_kept(path):
    path.parent.mkdir()
    for _ in range(3):
        _garbage(path)
        cache = a_cache(path)
        cache.put("key", A_JUDGEMENT)
        cache.close()
    assert len(list(path.parent.glob("cache.sqlite.broken-*"))) == 3


# ── where nothing can be kept ─────────────────────────────────────────────────────────────────────────────────


def test_a_folder_in_the_place_of_the_file_is_a_note_and_no_exception(path):
    path.mkdir(parents=True)
    cache = a_cache(path)
    cache.put("key", A_JUDGEMENT)
    assert cache.get("key") is None
    (note,) = cache.notes
    assert "judgements are neither looked up nor kept" in note


def test_a_file_in_the_place_of_the_folder_is_a_note_and_no_exception(path):
    path.parent.touch()
    cache = a_cache(path)
    cache.put("key", A_JUDGEMENT)
    assert cache.get("key") is None
    assert "judgements are neither looked up nor kept" in cache.notes[0]


READ_ONLY = """
import os, sys
from pathlib import Path
from pytest_rageval.judges.cache.sqlite_cache import SqliteCache
from pytest_rageval.judges.cache.judgement_json import judgement_to_json
from pytest_rageval.model import Judgement
judgement_to_json(Judgement("groundedness", {}))  # imports what only the superuser may be able to read
if os.geteuid() == 0:  # permissions do not bind the superuser
    os.setgroups([]), os.setgid(65534), os.setuid(65534)
cache = SqliteCache(Path(sys.argv[1]))
assert cache.get("key-7") is not None and cache.get("other") is None
for _ in range(3):
    cache.put("other", Judgement("groundedness", {"groundedness": 4.0}))
assert cache.get("other") is None and cache.get("key-7") is not None
print(*cache.notes, sep="\\n")
"""


@pytest.mark.parametrize("folder_mode", [0o555, 0o755])
def test_a_read_only_file_is_read_and_the_rest_is_a_note(public_folder, folder_mode):
    path = public_folder / "cache.sqlite"
    a_filled(path)
    path.chmod(0o444)
    public_folder.chmod(folder_mode)
    (note,) = run(READ_ONLY, path).splitlines()
    public_folder.chmod(0o755)
    assert "cannot be written" in note
    assert "judgements are no longer kept" in note


FULL = """
import resource, sys
from pathlib import Path
from pytest_rageval.judges.cache.sqlite_cache import SqliteCache
from pytest_rageval.model import Judgement
cache = SqliteCache(Path(sys.argv[1]))
cache.put("early", Judgement("groundedness", {"groundedness": 4.0}))
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
for at in range(200):
    cache.put(f"key-{at}", Judgement("groundedness", {"groundedness": 4.0}, reasoning="long " * 2000))
assert cache.get("early") is not None
print(*cache.notes, sep="\\n")
"""


def test_a_disk_without_room_stops_the_keeping_and_nothing_else(path):
    (note,) = run(FULL, path).splitlines()
    assert "cannot be written" in note
    assert a_cache(path).get("early") is not None


@pytest.fixture
def full_disk(tmp_path) -> Iterator[Path]:
    """A file system with room for half a megabyte; only the superuser can make one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "none", folder], capture_output=True, check=False)
    if made.returncode:
        pytest.skip("a file system of its own needs the superuser")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_file_system_that_is_full_stops_the_keeping_and_nothing_else(full_disk):
    cache = SqliteCache(full_disk / "cache.sqlite")
    large = replace(A_JUDGEMENT, reasoning="long " * 2000)
    for at in range(200):
        cache.put(f"key-{at}", large)
    assert (cache.get("key-0"), cache.get("key-199")) == (large, None)
    cache.close()
    (note,) = cache.notes
    assert "cannot be written (database or disk is full); judgements are no longer kept" in note
