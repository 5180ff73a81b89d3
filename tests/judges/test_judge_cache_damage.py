"""Where the cache's file is broken, foreign, read-only or on a full disk: a note, and no exception."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cache_files import A_JUDGEMENT, a_cache, a_filled, change, close_all, run, set_aside

pytestmark = pytest.mark.reliability("cache", "corrupt, foreign, truncated, read-only and full")
Spoil = Callable[[Path], object]
"""Does something to a file."""


@pytest.fixture
def path(tmp_path) -> Iterator[Path]:
    """Where a cache may be; whatever `a_cache` opened is closed at the end."""
    yield tmp_path / "deep" / "cache.sqlite"
    close_all()


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """A folder that another user can reach, which tmp_path is not."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def _garbage(path: Path) -> None:
    path.write_bytes(b"this is no database, but somebody's notes\n" * 100)


def _scribbled(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:4096] + os.urandom(path.stat().st_size - 4096))


def _cut(length: int) -> Spoil:
    return lambda path: path.write_bytes(path.read_bytes()[:length])


def _of_others(*statements: str) -> Spoil:
    def spoil(path: Path) -> None:
        path.unlink()
        for statement in statements:
            change(path, statement)

    return spoil


_older = _of_others(
    "CREATE TABLE judgements (key TEXT PRIMARY KEY, judgement TEXT NOT NULL) WITHOUT ROWID",
    "PRAGMA application_id = 0x52414745",
    "PRAGMA user_version = 1",
)
SPOILT: dict[str, Spoil] = {
    "garbage": _garbage,
    "a few bytes": _cut(50),
    "a half": lambda path: _cut(path.stat().st_size // 2)(path),
    "the header alone": _cut(4096),
    "scribbled over": _scribbled,
    "foreign": _of_others("CREATE TABLE bookmarks (url TEXT)"),
    "the same table of somebody else": _of_others("CREATE TABLE judgements (key TEXT, judgement TEXT)"),
    "older": _older,
    "newer": lambda path: change(path, "PRAGMA user_version = 99"),
    "without its table": lambda path: change(path, "DROP TABLE judgements"),
}


@pytest.mark.parametrize("spoil", SPOILT.values(), ids=SPOILT)
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


def test_an_entry_that_is_no_utf_8_costs_that_entry_alone(path):
    a_filled(path, 2)
    change(path, "UPDATE judgements SET judgement = CAST(? AS TEXT) WHERE key = 'key-0'", b"{\xff")
    cache = a_cache(path)
    assert (cache.get("key-0"), cache.get("key-1")) == (None, A_JUDGEMENT)
    assert "entry key-0 is unreadable and ignored" in cache.notes[0]


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


def test_a_folder_in_the_place_of_the_file_is_a_note_and_no_exception(path):
    path.mkdir(parents=True)
    cache = a_cache(path)
    cache.put("key", A_JUDGEMENT)
    assert cache.get("key") is None
    (note,) = cache.notes
    assert "judgements are neither looked up nor kept" in note


READ_ONLY = """
import fcntl, os, sys  # the first for the lock, while it can be read
from pathlib import Path
from pytest_rageval.judges.cache.sqlite_cache import SqliteCache
from pytest_rageval.judges.cache.sqlite_cache import judgement_to_json
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


@pytest.mark.child_process
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


@pytest.mark.child_process
def test_a_disk_without_room_stops_the_keeping_and_nothing_else(path):
    (note,) = run(FULL, path).splitlines()
    assert "cannot be written" in note
    assert a_cache(path).get("early") is not None
