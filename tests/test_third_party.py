"""Files and packages of others: unchanged, named with version and licence, and none of the GPL family."""

from __future__ import annotations

import re
import runpy
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest

pytestmark = pytest.mark.reliability("supply chain", "changed files of others, missing and copyleft licences")

ROOT = Path(__file__).parents[1]
DATA = ROOT / "tests" / "data"
NOTICES = (ROOT / "THIRD-PARTY.md").read_text(encoding="utf-8")
SUMS: dict[str, str] = {}
"""Checksums by path, in the form of `sha256sum`."""
for line in (ROOT / "THIRD-PARTY.sha256").read_text(encoding="utf-8").splitlines():
    checksum, _, name = line.partition("  ")
    SUMS[name] = checksum
LICENCE = re.compile(r"CC BY(?:-SA)? \d\.\d|Apache(?:-| License )\d\.\d|\bBSD\b|\bGPL")
"""What a README says of files that are not under the licence of the project."""
OF_OTHERS = [
    folder
    for folder in sorted(DATA.iterdir())
    if f"[tests/data/{folder.name}]" in NOTICES and folder.name != "frozen-input"
]


def rows_of(folder: str) -> str:
    """The lines of the table about a folder of the tests' data."""
    rows: list[str] = []
    current = ""
    for line in NOTICES.splitlines():
        named = re.match(r"\| \[tests/data/([\w-]+)\]", line)
        current = named[1] if named else current
        if current == folder and line.startswith("|"):
            rows.append(line)
    return "\n".join(rows)


@pytest.mark.parametrize("name", SUMS)
def test_a_file_of_others_is_as_it_was_taken(name: str):
    assert sha256((ROOT / name).read_bytes()).hexdigest() == SUMS[name]


def test_every_file_of_others_has_a_checksum():
    taken = [path for path in (ROOT / "pytest_rageval").rglob("*") if ".min." in path.name or "LICENSE" in path.name]
    for folder in OF_OTHERS:
        taken += [path for path in folder.iterdir() if path.is_file() and path.name != "README.md"]
    assert {path.relative_to(ROOT).as_posix() for path in taken} == set(SUMS)


@pytest.mark.parametrize(
    "folder", [path for path in sorted(DATA.iterdir()) if path.is_dir()], ids=lambda path: path.name
)
def test_each_licence_of_the_test_data_is_named(folder: Path):
    texts = [path.name for path in folder.glob("LICENSE*")]
    readme = folder / "README.md"
    said = readme.read_text(encoding="utf-8") if readme.exists() else ""
    rows = rows_of(folder.name)
    if texts or LICENCE.search(said):
        assert rows, f"{folder.name} holds files of others: name them in THIRD-PARTY.md"
    if folder.name != "frozen-input":  # parts of the other folders
        assert [name for name in texts if f"`{name}`" not in rows] == []
        licences = {found.replace(" License ", "-") for found in LICENCE.findall(said)}
        assert [licence for licence in licences if licence not in rows] == []
    for commit in re.findall(r"\| ([0-9a-f]{7,40}) \|", rows):
        assert any(commit in path.read_text(encoding="utf-8") for path in DATA.glob("*/README.md")), commit


def locked(name: str) -> list[str]:
    text = (ROOT / "requirements" / name).read_text(encoding="utf-8")
    return re.findall(r"^([\w.-]+)==", text, re.MULTILINE)


@pytest.mark.parametrize("name", locked("web.txt"))
def test_what_users_get_has_a_licence_that_is_not_of_the_gpl_family(name: str):
    try:
        package = distribution(name).metadata
    except PackageNotFoundError:
        pytest.skip(f"{name} is not installed")
    classifiers = [line for line in package.get_all("Classifier", []) if line.startswith("License ::")]
    stated = [*package.get_all("License-Expression", []), *package.get_all("License", [])]
    licence = " ".join([*stated, *classifiers])
    assert licence
    copyleft = runpy.run_path(str(ROOT / ".ci" / "supply_chain.py"))["COPYLEFT"]
    assert not copyleft.search(licence)


@pytest.mark.parametrize("name", ["dev.txt", "web.txt"])
def test_every_locked_package_has_a_hash(name: str):
    text = (ROOT / "requirements" / name).read_text(encoding="utf-8")
    entries = re.split(r"^(?=[\w.-]+==)", text, flags=re.MULTILINE)[1:]
    assert len(entries) > 20
    assert [entry.split("==")[0] for entry in entries if "--hash=sha256:" not in entry] == []
