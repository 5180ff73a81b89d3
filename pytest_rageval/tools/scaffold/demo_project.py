"""The project of the demo system as a folder: the shipped cases, their baseline, a configuration."""

from __future__ import annotations

import shutil
from pathlib import Path

from pytest_rageval.errors import SettingsError

PACKAGE = Path(__file__).parents[2]
CONFIGURATION = """\
# The shipped cases against the demo system inside the package.
target = "demo"
known_failures = "ratchet"  # the demo fails some cases; those are known from the baseline
ontology = "knowledge/ontology.toml"
"""


def demo_project(folder: Path) -> None:
    """Make the folder, unless it is one already; SettingsError where something else is there."""
    configuration = folder / "rageval.toml"
    if configuration.is_file() and (folder / "evalcases").is_dir():
        return
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise SettingsError(f"{folder}: is there already, and is no project of the demo; name another folder")
    try:
        (folder / "reports").mkdir(parents=True)
        (folder / "knowledge").mkdir()
        shutil.copytree(shipped("evalcases"), folder / "evalcases")
        shutil.copy(shipped("reports/baseline.json"), folder / "reports")
        shutil.copy(PACKAGE / "demo" / "knowledge" / "ontology.toml", folder / "knowledge")
        configuration.write_text(CONFIGURATION, encoding="utf-8")  # last: the mark of a whole project
    except OSError as error:
        raise SettingsError(f"{error.filename or folder}: cannot be written: {error.strerror}") from None


def shipped(name: str) -> Path:
    """Where a file of the demo's project is: in the package as installed, in the repository where that is used."""
    installed = PACKAGE / "demo" / "project" / name
    return installed if installed.exists() else PACKAGE.parent / name
