"""The cache's file: what it keeps, what is nearest to a key, and many at once."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cache_files import A_JUDGEMENT, a_cache, a_filled, change, close_all, rows, the_parts
from processes import PATIENCE_S, rounds, running

from pytest_rageval.judges.cache.cache_key import PARTS
from pytest_rageval.judges.cache.sqlite_cache import LARGEST, LOOKED_AT
from pytest_rageval.judges.judge import JudgementCache


@pytest.fixture
def path(tmp_path) -> Iterator[Path]:
    """Where a cache may be; whatever `a_cache` opened is closed at the end."""
    yield tmp_path / "deep" / "cache.sqlite"
    close_all()


def test_a_judgement_comes_back_as_it_was_kept_even_in_another_process_later(path):
    cache = a_cache(path)
    assert isinstance(cache, JudgementCache)
    cache.put("key", A_JUDGEMENT)
    assert cache.get("key") == A_JUDGEMENT
    cache.close()
    assert a_cache(path).get("key") == A_JUDGEMENT
    assert cache.notes == []


@pytest.mark.reliability("cache", "corrupt, foreign, truncated, read-only and full")
def test_of_judgements_kept_together_one_that_is_no_text_costs_that_one_alone(path):
    cache = a_cache(path)
    cache.put_all(
        [("a", A_JUDGEMENT, None), ("b", replace(A_JUDGEMENT, reasoning="\ud800"), None), ("c", A_JUDGEMENT, None)]
    )
    assert (cache.get("a"), cache.get("b"), cache.get("c")) == (A_JUDGEMENT, None, A_JUDGEMENT)
    assert len(cache.notes) == 1
    assert "entry b cannot be written and is not kept" in cache.notes[0]


@pytest.mark.reliability("cache", "corrupt, foreign, truncated, read-only and full")
def test_judgements_that_cannot_be_written_together_are_not_kept_and_what_comes_later_is_read(path):
    cache = a_filled(path, 1)
    change(path, "CREATE TRIGGER full BEFORE INSERT ON judgements BEGIN SELECT RAISE(ABORT, 'no room'); END")
    cache.put_all([("a", A_JUDGEMENT, None), ("b", A_JUDGEMENT, None)])
    assert cache.get("a") is None
    assert any("cannot be written (no room); judgements are no longer kept" in note for note in cache.notes)
    assert rows(path, "SELECT count(*) FROM judgements") == [(1,)]


@pytest.mark.reliability("cache", "corrupt, foreign, truncated, read-only and full")
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
    kept = PARTS.read(json.loads(written))
    assert (kept, kept.key, kept.asked) == (parts, parts.key, ("왜 " * 300)[:200])
    assert (kept.sampling, kept.trial, kept.variables.keys()) == ({"temperature": 0}, 0, {"references"})
    assert (rubric, model) == ("groundedness", "m/1")
    assert abs(datetime.now(UTC) - datetime.fromisoformat(created)) < timedelta(minutes=5)


@pytest.mark.reliability("cache", "corrupt, foreign, truncated, read-only and full")
def test_what_is_too_large_is_not_kept_and_that_is_said(path):
    cache = a_cache(path)
    cache.put("key", replace(A_JUDGEMENT, reasoning="x" * LARGEST))
    assert cache.get("key") is None
    assert "is not kept: it is longer than 1,048,576 characters" in cache.notes[0]


def test_the_nearest_has_the_same_answer_else_the_same_contexts_else_the_same_question(path):
    cache = a_cache(path)
    same_question = the_parts(answer="else", contexts=[1], references=[])
    same_contexts = replace(the_parts("who?", answer="else"), prompt_version="2+abc", trial=1)
    same_answer = replace(the_parts("how?", contexts=[2]), prompt_version="2+abc", trial=1, model="another")
    for kept in (same_question, same_contexts, same_answer):
        cache.put(kept.key, A_JUDGEMENT, kept)
        assert cache.nearest(the_parts()) == kept
    assert cache.nearest(the_parts("when?", answer="neither", contexts=[3])) is not None
    assert cache.nearest(replace(the_parts(), rubric="relevance")) is None


def test_of_the_same_answer_the_one_to_the_same_contexts_is_nearest_however_many_there_are(path):
    cache = a_cache(path)
    for number in range(3 * LOOKED_AT):
        parts = the_parts(f"question {number}", contexts=[7] if number == 2 * LOOKED_AT else [number, number])
        cache.put(parts.key, A_JUDGEMENT, parts)
    nearest = cache.nearest(the_parts(contexts=[7]))
    assert nearest is not None
    assert nearest.asked == f"question {2 * LOOKED_AT}"


@pytest.mark.reliability("cache", "corrupt, foreign, truncated, read-only and full")
@pytest.mark.parametrize("written", ["", "{", "[]", "{}", "null", '{"rubric": 1}', "[" * 100_000, b"\xff"])
def test_parts_that_cannot_be_read_are_not_the_nearest(path, written):
    cache, parts = a_cache(path), the_parts()
    cache.put(parts.key, A_JUDGEMENT, parts)
    change(path, "UPDATE judgements SET parts = ?", written)
    assert cache.nearest(parts) is None
    assert cache.notes == []


FILL = """
import sys
from pathlib import Path
from pytest_rageval.judges.cache import sqlite_cache
from pytest_rageval.judges.cache.sqlite_cache import SqliteCache
from pytest_rageval.judges.cache.cache_key import key_parts
from pytest_rageval.model import Judgement, JudgeRequest

def entry(at):
    parts = key_parts(JudgeRequest("groundedness", "1+abc", {"question": f"question {at}"}), "m/1")
    return parts, Judgement("groundedness", {"groundedness": at / 20}, (0.0, 5.0), reasoning=f"because {at}")

sqlite_cache.OPENING_S = sqlite_cache.BUSY_S = 60  # nobody gives up on a slow machine
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
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    command = [sys.executable, "-W", "error", "-c", FILL]
    with contextlib.ExitStack() as stack:
        root = Path(__file__).parents[2]
        yield [stack.enter_context(running([*command, str(at)], cwd=root, **pipes)) for at in range(8)]


@pytest.mark.reliability("cache", "many at once on one fresh file")
@pytest.mark.child_process
def test_eight_processes_on_one_fresh_file_keep_every_key_once_in_each_round(fillers, tmp_path, tally):
    assert [process.stdout.readline() for process in fillers] == ["ready\n"] * 8
    for number in range(rounds(20, 5)):
        tally.tried()
        path = tmp_path / f"round-{number}" / "cache.sqlite"
        for process in fillers:
            process.stdin.write(f"{path}\n")
            process.stdin.flush()
        assert [process.stdout.readline() for process in fillers] == ["[]\n"] * 8
        found = rows(path, "SELECT count(*), count(DISTINCT key), count(parts) FROM judgements")
        assert found == [(100, 100, 100)]
        assert [one.name for one in path.parent.iterdir()] == ["cache.sqlite"]


@pytest.mark.reliability("cache", "many at once on one fresh file")
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
        thread.join(PATIENCE_S)
    assert cache.notes == []
    assert all(cache.get(f"key-{at}") == A_JUDGEMENT for at in range(60))
