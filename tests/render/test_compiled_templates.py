"""Templates are compiled once, and kept as Python keeps compiled modules."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from jinja2.environment import Environment
from markupsafe import Markup, escape

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


@pytest.mark.parametrize("content", [b"", b"0\n", b"junk"])
def test_a_file_that_is_not_of_this_source_is_made_anew(cache: Path, compiled: list[str | None], content: bytes):
    first = a_page()
    kept = list(cache.rglob("*.template"))
    assert kept
    for path in kept:
        path.write_bytes(content)
    compiled.clear()
    assert a_page() == first
    assert "unreadable.html" in compiled
    assert all(path.read_bytes() != content for path in kept)


def test_a_file_that_was_cut_is_made_anew(cache: Path, compiled: list[str | None]):
    first = a_page()
    for path in cache.rglob("*.template"):
        path.write_bytes(path.read_bytes()[:80])
    compiled.clear()
    assert a_page() == first
    assert "unreadable.html" in compiled


def test_nothing_is_kept_where_python_keeps_nothing(cache: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert a_page()
    assert not cache.exists()


def test_a_folder_that_cannot_be_written_costs_nothing_but_time(cache: Path):
    cache.write_text("a file where the folder would be")
    assert "gone" in a_page()


class Quoted(str):
    """A text with HTML of its own."""

    def __html__(self) -> str:
        return f"<q>{escape(str(self))}</q>"


@pytest.mark.parametrize(
    "value", ["plain", "a & b", "<b>", 'say "x"', "it's", "", 7, 1.5, None, True, Markup("<b>&amp;</b>"), Quoted("<x>")]
)
def test_a_value_is_escaped_as_by_markupsafe(value: object):
    assert environment().from_string("{{ value }}").render(value=value) == escape(value)
