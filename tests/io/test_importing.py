"""Objects of the user's modules, by name."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pytest_rageval.errors import SettingsError
from pytest_rageval.io.importing import import_object


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "foreign_bots.py").write_text("class Bot:\n    def ask(self): ...\n\nanswer = Bot.ask\n")
    (tmp_path / "foreign_broken.py").write_text("raise SystemExit(3)\n")
    (tmp_path / "foreign_lacking.py").write_text("import no_such_library\n")
    return tmp_path


def test_an_object_is_found_below_others(root: Path):
    assert import_object("target x", "foreign_bots", "Bot.ask", root).__name__ == "ask"


@pytest.mark.parametrize(
    ("module", "name", "message"),
    [
        ("foreign_bots", "anwser", "target x: foreign_bots has no 'anwser'; did you mean 'answer'?"),
        ("foreign_bots", "Bot.tell", "target x: foreign_bots has no 'tell'"),
        ("foreign_broken", "ask", "target x: foreign_broken cannot be imported: SystemExit: 3 (at "),
        ("foreign_lacking", "ask", "target x: foreign_lacking cannot be imported: ModuleNotFoundError: No module"),
    ],
)
def test_what_cannot_be_had_is_one_line(root: Path, module: str, name: str, message: str):
    with pytest.raises(SettingsError) as error:
        import_object("target x", module, name, root)
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)


def test_a_package_that_is_not_there_is_left_to_the_caller(root: Path):
    with pytest.raises(ModuleNotFoundError):
        import_object("judge x", "foreign_gone", "judge", root)
