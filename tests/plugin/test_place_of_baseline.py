"""There is no baseline yet only where nothing stands in its place: anything else there is a usage error."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from project import Project, a_case, lines_with

import pytest_rageval
from pytest_rageval.errors import SettingsError


def without_cases(path: Path) -> None:
    """A baseline that was one, without its cases."""
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | {"cases": {}}), encoding="utf-8")


def replaced(make: Callable[[Path], object]) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        path.unlink()
        make(path)

    return change


PLACES: dict[str, tuple[Callable[[Path], object], str]] = {
    "a dangling link": (replaced(lambda path: path.symlink_to("gone.json")), "is a link that leads to no file; remove"),
    "a link to itself": (replaced(lambda path: path.symlink_to(path.name)), "is a link that leads to no file; remove"),
    "a folder": (replaced(lambda path: path.mkdir()), "is a folder; remove it, name a file, or say none"),
    "a link to a folder": (replaced(lambda path: path.symlink_to(".")), "is a folder; remove it, name a file"),
    "a pipe": (replaced(os.mkfifo), "is no regular file; remove it, name a file, or say none"),
    "no cases": (without_cases, "holds no case; make a new one with --"),
    "nothing": (lambda path: path.write_text(""), "make a new one with --"),
    "another file": (lambda path: path.write_text("{}"), "make a new one with --"),
    "a binary file": (lambda path: path.write_bytes(b"\x00\xff"), "make a new one with --"),
}


@pytest.fixture
def noting(project: Project) -> Project:
    """A project with a baseline, whose bot notes that it is asked."""
    project.cases([a_case("boil")])
    project.run("--rageval-update-baseline")
    project.write(
        "noting.py",
        "import bot, pathlib\ndef answer(question):\n"
        "    pathlib.Path('asked').touch()\n    return bot.answer(question)\n",
    )
    project.configure('target = "noting:answer"')
    return project


@pytest.mark.parametrize("place", PLACES)
def test_what_is_no_baseline_is_a_usage_error_before_anything_is_asked(noting: Project, place: str):
    file = noting.path / "reports/baseline.json"
    change, message = PLACES[place]
    change(file)
    result = noting.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert [line for line in lines_with(result, "baseline.json") if message in line]
    assert not lines_with(result, "no baseline")
    for arguments, code in ((["run"], 4), (["compare", "baseline", "latest"], 2)):
        result = noting.rageval(*arguments)
        assert result.ret == code
        assert len([line for line in lines_with(result, "baseline.json") if message in line]) == 1
    with contextlib.chdir(noting.path), pytest.raises(SettingsError, match=message):
        pytest_rageval.evaluate("evalcases/a.jsonl", lambda question: Path("asked").write_text(question))
    assert not (noting.path / "asked").exists()


@pytest.mark.parametrize("place", ["a dangling link", "a folder", "no cases"])
def test_a_baseline_is_made_anew_in_place_of_a_file_and_of_nothing_else(noting: Project, place: str):
    PLACES[place][0](noting.path / "reports/baseline.json")
    result = noting.run("--rageval-update-baseline")
    assert result.ret == (0 if place == "no cases" else pytest.ExitCode.USAGE_ERROR)
    assert (noting.path / "asked").exists() == (place == "no cases")


def test_without_anything_in_its_place_there_is_no_baseline_yet(noting: Project):
    (noting.path / "reports/baseline.json").unlink()
    result = noting.run()
    assert result.ret == 0
    assert lines_with(result, "no baseline to compare with yet")
