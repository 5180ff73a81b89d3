"""README.md and the pages beside it: short, and with links that work on the page of a package index too."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from make_eval_page import eval_page

from pytest_rageval.cli.main import GROUP_OF
from pytest_rageval.links import REPOSITORY, SITE
from pytest_rageval.metrics import load_registry
from pytest_rageval.metrics.layer_titles import by_layer

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
        if link == f"{SITE}/sample-report.html":
            assert "sample-report.html" in (ROOT / "docs" / "make_site.py").read_text(encoding="utf-8")
            continue
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


def test_the_page_of_definitions_is_that_of_the_code():
    page = (ROOT / "EVAL.md").read_text(encoding="utf-8")
    assert page == eval_page(), "write it again: python docs/make_eval_page.py"
    for metric in load_registry():
        assert page.count(f"| `{metric.label}` |") == 1
    assert all(f"### {title}\n" in page for title in by_layer(load_registry()))


@pytest.mark.parametrize("name", ["AGENTS.md", "EVAL.md", "SECURITY.md", "THIRD-PARTY.md", "CONTRIBUTING.md"])
def test_links_between_files_of_the_repository_lead_somewhere(name: str):
    text = (ROOT / name).read_text(encoding="utf-8")
    links = re.findall(r"\]\((?!https?:)([^)#\s]+)", text)
    assert [link for link in links if not (ROOT / link).exists()] == []
    for topic in re.findall(re.escape(SITE) + r"/([\w-]+)\.html", text):
        assert (ROOT / "docs" / f"{topic}.md").is_file(), topic


def test_commands_for_coding_agents_exist():
    text = (ROOT / "AGENTS.md").read_text(encoding="utf-8")
    assert {*re.findall(r"^rageval ([\w-]+)", text, re.MULTILINE)} <= GROUP_OF.keys()
    targets = re.findall(r"^make (\w+)", text, re.MULTILINE)
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert targets
    assert [target for target in targets if f"\n{target}:" not in makefile] == []


def test_the_changelog_is_one_screen():
    assert (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").count("\n") <= 60
