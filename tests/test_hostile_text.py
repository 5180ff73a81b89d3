"""Texts that attack what shows them stand there as text: terminal, log, Markdown, JUnit, HTML, CI."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html import unescape
from typing import Any
from xml.etree import ElementTree

import pytest
from hostile import COMMANDS, HOSTILE, SCRIPT, TERMINAL
from judge_server import JudgeServer
from markdown_it import MarkdownIt
from project import Project, a_case

from pytest_rageval.text import printable

pytestmark = pytest.mark.reliability("injection", "terminal, log, Markdown, JUnit and CI commands", costs="leak")

BOT = """
import json, logging, pathlib, sys, warnings
HOSTILE = json.loads(pathlib.Path("hostile.json").read_text())

def answer(question):
    name = question.split(":")[0]
    text = HOSTILE.get(name.removeprefix("raise "), "")
    print(text)
    print(text, file=sys.stderr)
    logging.getLogger("bot").warning("%s", text)
    warnings.warn(text)
    if name.startswith("raise"):
        raise ValueError(text)
    if name == "surrogate":
        return {"answer": "\\ud800 lone"}
    if name == "raise-surrogate":
        raise ValueError("\\udfff")
    if name == "long":
        text = "long " * 200_000
    chunk = {"chunk_id": text[-500:], "rel_path": text, "heading_path": text, "text": text}
    return {"answer": text, "abstained": True, "abstain_reason": text,
            "references": [{"chunk_id": text, "rel_path": text}],
            "debug": {"retrieved_chunks": [chunk], "trace": {"concepts": [text]},
                      "folder_selection": {"folders": [text], "reasoning": text}},
            "versions": {"llm": text}}
"""
UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
COMMAND = re.compile(r"^\s*::[a-z-]+.*?::|##[a-z]*\[", re.MULTILINE | re.IGNORECASE)


def hostile_cases() -> Iterator[dict[str, Any]]:
    for name, text in HOSTILE.items():
        fields = {"category": text, "difficulty": text, "domain": text, "tags": [text, f"{name} tag"]}
        yield a_case(f"{text[:60]} {name}", f"{name}: {text}", gold={"answer": text, "key_facts": [text]}, **fields)
        yield a_case(f"raises {name}", f"raise {name}: {text}", category=text)
    for name in ("surrogate", "raise-surrogate", "long"):
        yield a_case(name, f"{name}: what?")


@pytest.fixture
def project(project: Project) -> Project:
    """A project whose cases, bot and judge all attack."""
    project.write("bot.py", BOT)
    project.write("hostile.json", json.dumps(HOSTILE))
    project.cases(hostile_cases())
    project.configure('target = "bot:answer"', f"[tool.rageval.gates]\ncase = [{GATE}]\n")
    return project


GATE = json.dumps("token_f1 >= 0.99 tag ::error::tagged")


class HostileJudge(JudgeServer):
    """Reasons, claims and prose with every attack in them."""

    async def _route(self, connection: Any) -> None:
        text = "\n".join(HOSTILE.values())
        lists = {"supported_claims": [text], "unsupported_claims": [text], "claims": [text]}
        reply = {"score": 4, "reasoning": text, "abstained": False, **lists}
        self.replies = (text if "template" in connection.request.body.decode() else reply,)
        await super()._route(connection)


def run(project: Project, *arguments: str) -> pytest.RunResult:
    """A run as a CI service makes it, with all reports."""
    reports = ["-v", "--junitxml", "junit.xml", "--html", "report.html", "--self-contained-html"]
    with HostileJudge() as server:
        return project.run("--rageval-judge", f"openai:judge-1@{server.url}", *reports, *arguments)


OWN_ANNOTATION = re.compile(r"^::(?:error|warning) file=[^,:]*,line=\d+,title=[^,:\n]*::", re.MULTILINE)


def harmful(text: str) -> list[str]:
    """What would steer a terminal or a CI service."""
    found = [repr(text[max(0, one.start() - 40) : one.end() + 20]) for one in UNSAFE.finditer(text)]
    return found + [text[one.start() : one.end() + 40] for one in COMMAND.finditer(text)]


@pytest.mark.parametrize("how", [[], ["-n", "1"]], ids=["alone", "worker"])
def test_hostile_texts_are_text_wherever_a_run_shows_them(
    project: Project, monkeypatch: pytest.MonkeyPatch, how: list[str]
):
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("CI", "true")
    result = run(project, *how)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "INTERNALERROR" not in result.stdout.str()
    assert len(project.records()) == len(list(hostile_cases())), "each case has its record"
    shown = OWN_ANNOTATION.sub("", result.stdout.str())
    assert harmful(shown + result.stderr.str()) == []
    folder = project.runs[-1]
    assert harmful((folder / "run.log").read_text(encoding="utf-8")) == []
    summary = (folder / "summary.md").read_text(encoding="utf-8")
    assert harmful(summary) == []
    assert elements_of(summary) <= OURS
    assert set(re.findall(r'<a href="([^"]*)"', rendered(summary))) == {"report.html", "metrics.json"}
    ElementTree.fromstring((project.path / "junit.xml").read_text(encoding="utf-8"))
    assert markup_in_html(project) == []


OURS = frozenset(
    ("h1", "h2", "h3", "p", "table", "thead", "tbody", "tr", "th", "td", "ul", "li", "strong", "em", "code", "a")
)  # fmt: skip
"""What summary.md is made of."""


def elements_of(markdown: str) -> set[str]:
    """The elements that a renderer which lets HTML through makes of it."""
    html = rendered(markdown)
    assert "<code>code</code>" not in html
    assert "<strong>bold</strong>" not in html
    return set(re.findall(r"<([a-z][a-z0-9]*)", html))


def rendered(markdown: str) -> str:
    return MarkdownIt("gfm-like", {"html": True, "linkify": False}).render(markdown)


def markup_in_html(project: Project) -> list[str]:
    """Markup of ours to attack with that pytest-html's page would read as markup."""
    page = (project.path / "report.html").read_text(encoding="utf-8")
    blob = re.search(r'data-jsonblob="([^"]*)"', page)
    assert blob is not None
    found = [one for one in ("<img src=x", "<script>alert") if one in page]
    for tests in json.loads(unescape(blob[1]))["tests"].values():
        for test in tests:
            shown = [test["log"], *test["resultsTableRow"]]
            found += [text[:300] for text in shown if "<img src=x" in text or "<script>alert" in text]
    return found


def test_commands_show_such_a_run_as_text(project: Project):
    run(project, "--rageval-run-id", "a", "--rageval-description", (TERMINAL + COMMANDS + SCRIPT).replace("\0", ""))
    records = project.records()
    for id in ("raises terminal", next(id for id in records if id.endswith(" terminal") and "raises" not in id)):
        for form in ("text", "json"):
            result = project.rageval("explain", "a", id, "--format", form)
            assert result.ret == 0
            assert harmful(result.stdout.str()) == [], (id, form)
    for command in COMMANDS_OVER_RUNS:
        result = project.rageval(*command)
        assert "Traceback" not in result.stderr.str(), command
        assert harmful(result.stdout.str() + result.stderr.str()) == [], command
    for path in [*project.path.rglob("*.json"), *project.path.rglob("summary.md")]:
        if path.name != "hostile.json":
            assert harmful(path.read_text(encoding="utf-8")) == [], path
    assert json.loads((project.runs[-1] / "metrics.json").read_text(encoding="utf-8"))["description"].startswith(
        "\x1b[31m"
    )


@pytest.mark.parametrize("text", [*HOSTILE.values(), "%0A::error::x"], ids=[*HOSTILE, "percent"])
def test_case_files_that_cannot_be_read_are_said_as_text(project: Project, text: str):
    unknown = a_case(f"{text} 1") | {text: 1}
    wrong = a_case(f"{text} 2", gold_supports=[{"rel_path": 1, text: text}], tags=text, answerable=text)
    project.cases([unknown, wrong, a_case(text, text), a_case(text, text)])
    project.write("evalcases/b.csv", f"id,question,{json.dumps(text.replace(chr(34), ''))}\n1,{json.dumps(text)},2\n")
    run_of_it = project.run()
    assert run_of_it.ret in (pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.INTERRUPTED)
    for result in (run_of_it, project.rageval("cases", "validate"), project.rageval("cases", "validate", "--json")):
        assert "Traceback" not in result.stdout.str() + result.stderr.str()
        assert harmful(result.stdout.str() + result.stderr.str()) == []


COMMANDS_OVER_RUNS = [
    ["compare", "a", "a"], ["compare", "a", "a", "--format", "json"], ["compare", "a", "a", "--format", "markdown"],
    ["compare", "a", "a", "--format", "html"], ["history"], ["history", "--format", "json"], ["runs", "list"],
    ["runs", "show", "a"], ["runs", "show", "a", "--json"], ["runs", "list", "--json"],
    ["export", "a", "--format", "json"], ["gate", "a", "--gate", "mrr >= 2"], ["score", "a"], ["merge", "a", "a"],
    ["cases", "validate"], ["cases", "stats"], ["cases", "stats", "--json"], ["judge-cache", "stats"],
    ["judge-cache", "stats", "--json"], ["cases", "list"], ["runs", "show", COMMANDS],
    ["explain", "a", TERMINAL.replace("\0", "")],
    ["metrics", TERMINAL.replace("\0", "")],
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("::error::x", "\\x3a:error::x"),
        ("  ::add-mask::x", "  \\x3a:add-mask::x"),
        ("a\n::error file=x::y", "a\n\\x3a:error file=x::y"),
        ("x ##vso[task]y", "x \\x23#vso[task]y"),
        ("x ##teamcity[buildStatus text='y']", "x \\x23#teamcity[buildStatus text='y']"),
        ("x ##TeamCity[y]", "x \\x23#TeamCity[y]"),
        ("## Heading [1] ##", "## Heading [1] ##"),
        ("##[group]y", "\\x23#[group]y"),
        ("evalcases/a.jsonl::q1", "evalcases/a.jsonl::q1"),
        ("# A > ## B", "# A > ## B"),
        ("s[::-1]", "s[::-1]"),
    ],
)
def test_what_a_ci_service_would_obey_is_escaped(text: str, shown: str):
    assert printable(text) == shown
