"""Templates are compiled once, and kept as Python keeps compiled modules."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from jinja2.environment import Environment

from pytest_rageval.render.html.environment import environment, rendered


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder where Python keeps what it compiles, and nothing in memory yet."""
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path / "compiled"))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    environment.cache_clear()
    return tmp_path / "compiled"


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """The names of templates that Jinja compiles from now on."""
    names: list[str | None] = []
    parse = Environment._parse

    def noted(self: Environment, source: str, name: str | None, filename: str | None) -> object:
        names.append(name)
        return parse(self, source, name, filename)

    monkeypatch.setattr(Environment, "_parse", noted)
    return names


def a_page() -> str:
    environment.cache_clear()
    return rendered("unreadable.html", run_id="r", problem="gone", files=[], policy="", style="", state="broken")


def test_the_second_process_compiles_nothing(cache: Path, compiled: list[str | None]):
    first = a_page()
    assert "unreadable.html" in compiled
    compiled.clear()
    assert a_page() == first
    assert compiled == []


@pytest.mark.parametrize("kept_bytes", [0, 2, 30, 60, 200])
def test_a_file_that_is_damaged_is_made_anew(cache: Path, compiled: list[str | None], kept_bytes: int):
    first = a_page()
    whole = {path: path.read_bytes() for path in cache.rglob("*.template")}
    assert whole
    for path, content in whole.items():
        path.write_bytes(content[:kept_bytes])
    compiled.clear()
    assert a_page() == first
    assert "unreadable.html" in compiled
    assert all(path.read_bytes() == content for path, content in whole.items())


def test_nothing_is_kept_where_python_keeps_nothing(cache: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert a_page()
    assert not cache.exists()


def test_a_folder_that_cannot_be_written_costs_nothing_but_time(cache: Path):
    cache.write_text("a file where the folder would be")
    assert "gone" in a_page()
