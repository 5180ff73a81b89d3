"""Loading as such: names, streaming, the collector, and bytes that nobody thought of."""

from __future__ import annotations

import gc
import json
import os
import tracemalloc
from pathlib import Path

import pytest
from case_files import a_line, loaded
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from processes import rounds

from pytest_rageval.cases.loading import load_file

ROOM_TO_REPEAT = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=rounds(150, 40)
)
"""One folder serves all examples: each writes the same file anew."""


def test_a_file_is_named_relative_to_the_root_with_slashes(tmp_path: Path):
    assert loaded(tmp_path, a_line(), "evalcases/deep/a.jsonl").cases[0].source == ("evalcases/deep/a.jsonl", 1)


def test_a_relative_path_is_named_from_the_root_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    loaded(tmp_path, a_line(), "evalcases/a.jsonl")
    monkeypatch.chdir(tmp_path / "evalcases")
    assert load_file(Path("a.jsonl"), tmp_path).cases[0].key == "evalcases/a.jsonl::q1"
    assert load_file(tmp_path / "evalcases" / ".." / "evalcases" / "a.jsonl", Path("..")).cases[0].source.file == (
        "evalcases/a.jsonl"
    )


def test_a_file_outside_the_root_is_named_as_given(tmp_path: Path):
    path = tmp_path / "a.jsonl"
    path.write_text(a_line())
    assert load_file(path, tmp_path / "project").cases[0].source.file == path.as_posix()


def test_a_root_reached_through_a_link_is_still_the_root(tmp_path: Path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    path = tmp_path / "real" / "a.jsonl"
    path.write_text(a_line())
    assert load_file(path, tmp_path / "link").cases[0].source.file == "a.jsonl"


def test_bytes_of_a_name_that_are_no_text_never_become_lone_surrogates(tmp_path: Path):
    path = os.fsencode(tmp_path) + b"/\xff.jsonl"
    try:
        Path(os.fsdecode(path)).write_text(a_line())
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    assert load_file(Path(os.fsdecode(path)), tmp_path).cases[0].source.file == "\\xff.jsonl"


@pytest.mark.parametrize("is_enabled", [True, False])
def test_the_collector_is_left_as_it_was(tmp_path: Path, is_enabled: bool):
    before = gc.isenabled()
    try:
        gc.enable() if is_enabled else gc.disable()
        loaded(tmp_path, "{")
        assert gc.isenabled() is is_enabled
    finally:
        gc.enable() if before else gc.disable()


def test_a_line_of_many_megabytes_is_not_held_in_memory(tmp_path: Path):
    path = tmp_path / "a.jsonl"
    with path.open("w") as file:
        for _ in range(40):
            file.write("x" * 2**20)
        file.write("\n" + a_line())
    load_file(path, tmp_path)  # once before, so that imports do not count
    tracemalloc.start()
    try:
        cases = load_file(path, tmp_path).cases
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(cases) == 1
    assert peak < 20 * 2**20


@ROOM_TO_REPEAT
@given(content=st.binary(max_size=200) | st.text(max_size=100).map(lambda text: text.encode(errors="surrogatepass")))
@pytest.mark.parametrize("name", ["a.jsonl", "a.csv", "x.questions.csv"])
def test_no_bytes_raise_and_none_are_lost_in_silence(tmp_path: Path, name: str, content: bytes):
    (tmp_path / "x.references.csv").write_bytes(content)
    file = loaded(tmp_path, content, name)
    assert file.cases or file.problems
    assert all(problem.isprintable() for problem in file.problems)


KEYS = ["id", "question", "gold", "tags", "metadata", "gold_supports", "answerable", "answer", "x", "\ud800"]
odd_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(["\ud800", "q"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
    max_leaves=12,
)


@ROOM_TO_REPEAT
@given(records=st.lists(odd_json, min_size=1, max_size=4))
def test_every_line_of_odd_json_gives_a_case_or_a_problem(tmp_path: Path, records: list[object]):
    file = loaded(tmp_path, "\n".join(json.dumps(record) for record in records))
    lines = {int(problem.split(":")[1]) for problem in file.problems} | {case.source.line for case in file.cases}
    assert lines == set(range(1, len(records) + 1))
    assert all(problem.isprintable() for problem in file.problems)
    for case in file.cases:
        json.dumps(case.question + case.id, ensure_ascii=False).encode()
