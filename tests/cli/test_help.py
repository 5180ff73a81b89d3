"""`rageval help`: pages of the documentation in the terminal, and the links to them that messages hold."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import Terminal
from project import Project

from pytest_rageval.cli.help import PACKAGE, documentation, rendered
from pytest_rageval.links import SITE, docs_page

ROOT = PACKAGE.parent


def test_every_page_is_a_topic_and_is_shown_as_it_stands(project: Project):
    listed = project.rageval("help")
    assert listed.ret == 0
    topics = [line.split()[0] for line in listed.outlines if line][:-1]
    assert topics == sorted(path.stem for path in (ROOT / "docs").glob("*.md") if path.stem != "SKILL")
    shown = project.rageval("help", "gates")
    assert shown.stdout.str().strip() == (ROOT / "docs" / "gates.md").read_text(encoding="utf-8").strip()


@pytest.mark.parametrize("written", ["Gates", "gates.md", "docs/gates.md", "gates.html", "model judges"])
def test_a_topic_is_found_as_people_write_it(project: Project, written: str):
    assert project.rageval("help", written).ret == 0


@pytest.mark.parametrize(
    ("topic", "remedy"),
    [
        ("gaets", "; did you mean 'gates'?"),
        ("faithfulness", "; `rageval help words` says where it is"),
        ("Semantic similarity", "; `rageval help words` says where it is"),
        ("explain", "; `rageval explain --help` tells all of that verb"),
        ("known failures", "; there is a section about it in: gates"),
        ("quxquux", "; `rageval help` lists all topics"),
        ("../pyproject", "; `rageval help` lists all topics"),
    ],
)
def test_an_unknown_topic_gets_what_is_near(project: Project, topic: str, remedy: str):
    result = project.rageval("help", topic)
    assert result.ret == 2
    assert f"there is no page {topic!r}{remedy}" in result.stderr.str()


def test_a_page_in_a_terminal_names_the_commands_behind_its_links():
    page = (
        'See [the gates](gates.md#known) and [below](#below).\n\n```json title="a.json"\n{"a": 1}\n```\n![Red](x.png)\n'
    )
    shown = re.sub(r"\x1b\[[\d;]*m", "", rendered(page))
    assert "See the gates (rageval help gates) and below." in shown
    assert '{"a": 1}' in shown
    assert "title=" not in shown


@pytest.mark.child_process
def test_a_page_in_a_real_terminal_is_set_and_has_no_markdown(project: Project):
    with Terminal(project.path, "-m", "pytest_rageval", "help", "glossary") as terminal:
        terminal.until("Glossary")
        terminal.type("q")
        assert terminal.ended() == 0
    assert "| **case** |" not in terminal.written


def linked() -> Iterator[tuple[str, str]]:
    """The pages that messages of the package name, with the file of each."""
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == docs_page.__name__:
                (topic,) = node.args
                assert isinstance(topic, ast.Constant), path
                yield str(topic.value), path.name


def test_messages_name_pages_that_exist_and_no_files_that_no_wheel_holds():
    pages = documentation()
    assert [(topic, name) for topic, name in linked() if topic not in pages] == []
    assert len({*linked()}) >= 4
    templates = [path for path in (PACKAGE / "make" / "templates").iterdir() if path.is_file()]
    texts = [(path.name, path.read_text(encoding="utf-8")) for path in templates]
    for path in PACKAGE.rglob("*.py"):
        texts += [(path.name, text) for text in strings(path)]
    assert [(name, text) for name, text in texts if re.search(r"\bdocs/[\w-]+\.md\b", text)] == []
    named = re.findall(r"rageval help ([\w-]+)", "\n".join(text for name, text in texts if name.endswith("toml")))
    assert {*named} <= pages.keys()


def strings(path: Path) -> Iterator[str]:
    """The texts of a module, without its docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docstrings = {ast.get_docstring(node, clean=False) for node in ast.walk(tree) if isinstance(node, DOCUMENTED)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value not in docstrings:
            yield node.value


DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def test_the_wheel_holds_the_pages_where_the_verb_looks_for_them():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert "/docs/**/*.md" in wheel["include"]
    assert wheel["sources"] == {"docs": "pytest_rageval/documentation"}


def test_a_link_of_a_message_leads_to_the_page_on_the_site_too():
    assert docs_page("gates") == f"`rageval help gates` or {SITE}/gates.html"
    site = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]
    assert site["site_url"] == f"{SITE}/"
    assert site["use_directory_urls"] is False
