"""README.md: short, true in its figures, and with links that work on the page of a package index too."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from pytest_rageval.judges.rubrics import rubric_names
from pytest_rageval.links import REPOSITORY, SITE
from pytest_rageval.metrics import load_registry

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
RAW = REPOSITORY.replace("https://github.com/", "https://raw.githubusercontent.com/") + "/main/"
MOST_LINES = 150


def test_it_can_be_read_in_one_go():
    assert README.count("\n") <= MOST_LINES


def test_every_link_is_absolute_and_leads_to_a_file_of_this_tree():
    links = re.findall(r"\]\(([^)\s]+)\)", README)
    assert len(links) > 15
    for link in links:
        if link.startswith(f"{SITE}/"):
            place = ROOT / "docs" / link.removeprefix(f"{SITE}/").replace(".html", ".md")
        else:
            place = ROOT / re.sub(rf"^({RAW}|{REPOSITORY}/(?:blob|tree)/main/)", "", link)
        assert place.exists(), link
        assert not link.startswith("docs"), link


def test_its_pictures_are_those_that_are_made_from_the_demo():
    pictures = re.findall(r"!\[([^\]]+)\]\(([^)]+)\)", README)
    assert [Path(link).name for _, link in pictures] == ["comment-worse.png", "report-worse-page-wide-light.png"]
    assert all(text for text, _ in pictures)


def test_its_figures_are_true():
    assert f"| {len([*load_registry()])} metrics with" in README
    assert f"| {len(rubric_names())} rubrics |" in README


def test_it_names_the_two_commands_of_the_repository():
    assert "\nmake demo " in README
    assert "\nmake test " in README


def project() -> dict[str, Any]:
    table: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return table


def test_the_addresses_of_the_package_are_those_of_its_messages():
    addresses = project()["urls"]
    assert addresses["Documentation"] == f"{SITE}/"
    assert addresses["Source"] == REPOSITORY
    for name, address in addresses.items():
        assert address.startswith((REPOSITORY, f"{SITE}/")), name
    for name in ("Changelog", "Security"):
        assert (ROOT / addresses[name].removeprefix(f"{REPOSITORY}/blob/main/")).is_file(), name


def test_the_licences_of_vendored_files_are_in_the_package():
    named = project()["license-files"]
    licences = [path for pattern in named for path in ROOT.glob(pattern)]
    assert ROOT / "LICENSE" in licences
    vendored = [path for path in (ROOT / "pytest_rageval").rglob("*") if LICENCE.search(path.name)]
    assert vendored
    assert {*vendored} <= {*licences}


def test_every_licence_of_others_is_listed():
    listed = (ROOT / "THIRD-PARTY.md").read_text(encoding="utf-8")
    folders = (ROOT / "pytest_rageval", ROOT / "tests" / "data")
    licences = [path for folder in folders for path in folder.rglob("*") if LICENCE.search(path.name)]
    assert len(licences) > 5
    assert [path for path in licences if path.name not in listed] == []
    assert [link for link in re.findall(r"\]\(([^)]+)\)", listed) if not (ROOT / link).is_file()] == []


LICENCE = re.compile(r"(?i)licen[cs]e|notice")
