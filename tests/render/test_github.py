"""What a job of GitHub Actions shows of a run: annotations, its summary, and the comment on the pull request."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest
from fault_server import FaultServer, GitHub
from large_digest import MANY, large_digest
from markdown_it import MarkdownIt
from project import SOME, Project, a_case, a_missed_case

from pytest_rageval.render.markdown.run_markdown import run_markdown

ATTACK = "::set-output name=x::y\n::error::owned %0A<img src=x onerror=alert(1)> @everyone #1 [a](http://b.c)"
BROKEN = """
import bot
def answer(question):
    if "broken" in question:
        raise ValueError(question)
    return bot.answer("nothing" if "worse" in question else question)
"""
COMMAND = re.compile(r"^::error file=(?P<file>[^,:]*),line=(?P<line>\d+),title=(?P<title>[^:\n]*)::(?P<text>.*)$")


@pytest.fixture
def on_github(project: Project, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The environment of a job; the file of its summary."""
    summary = project.path / "step-summary.md"
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(project.path))
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    return summary


def worse_run(project: Project, *arguments: str) -> pytest.RunResult:
    """A baseline of four passing cases, then a run in which two of them miss their gold."""
    project.cases([*SOME, a_missed_case("never")])
    project.run("--rageval-update-baseline", "--rageval-known-failures", "ratchet")
    project.write("worse.py", "import bot\ndef answer(question):\n    return bot.answer(question) | {'answer': 'no'}")
    return project.run(
        "--rageval-target", "worse:answer", "--rageval-known-failures", "ratchet", *arguments,
    )  # fmt: skip


def commands(result: pytest.RunResult) -> list[re.Match[str]]:
    matches = [COMMAND.match(line) for line in result.outlines if line.lstrip().startswith("::")]
    assert all(matches), "a line is a command that is none of ours"
    return [match for match in matches if match]


def test_of_many_failing_cases_equal_causes_are_one_annotation(project: Project, on_github: Path):
    project.cases([*(a_missed_case(f"miss-{number:02}") for number in range(12)), a_case("down", "Boiling broken?")])
    project.write("broken.py", BROKEN)
    annotated = commands(project.run("--rageval-target", "broken:answer"))
    assert [match["title"] for match in annotated] == ["12 × the gold was not retrieved", "error%3A down"]
    assert annotated[0]["line"] == "1"
    first, second = annotated[0]["text"].split("%0A")[:2]
    assert first.endswith("a.jsonl::miss-02 and 9 more")
    assert second.startswith("recall_any@5 is 0, gate >= 1")
    assert on_github.read_text(encoding="utf-8").count("<details>") == 10


def test_ten_failing_cases_are_ten_annotations(project: Project, on_github: Path):
    project.cases([a_missed_case(f"miss-{number:02}") for number in range(10)])
    assert [match["title"] for match in commands(project.run())] == [f"failing%3A miss-{n:02}" for n in range(10)]


def test_of_many_different_causes_ten_lines_are_printed_and_the_last_says_how_many_more(
    project: Project, on_github: Path
):
    names = [chr(ord("a") + number) * 3 for number in range(14)]
    project.cases([a_case(f"down-{name}", f"broken {name}") for name in names])
    project.write("broken.py", BROKEN)
    annotated = commands(project.run("--rageval-target", "broken:answer"))
    assert len(annotated) == 10
    assert annotated[-1]["text"].startswith("and 5 more: Fails the build: ")


def test_gates_come_first_then_what_newly_fails_then_errors_then_the_rest(project: Project, on_github: Path):
    project.cases([a_missed_case("a-old"), a_case("b-new", "Boiling worse?"), a_case("c-broken", "Boiling broken?")])
    project.run("--rageval-update-baseline")
    project.write("broken.py", BROKEN)
    assert [match["title"] for match in commands(project.run("--rageval-target", "broken:answer"))] == [
        "gate recall_any@5 drop", "newly failing%3A b-new", "error%3A c-broken", "failing%3A a-old",
    ]  # fmt: skip


def test_texts_of_cases_and_answers_are_never_commands_nor_markup(project: Project, on_github: Path):
    project.cases([a_missed_case("a,b:c%0A::error::x", question="boiling " + ATTACK)])
    [annotated] = commands(project.run())
    assert (annotated["file"], annotated["line"]) == ("evalcases/a.jsonl", "1")
    assert "recall_any@5 is 0, gate >= 1" in annotated["text"]
    summary = on_github.read_text(encoding="utf-8")
    assert "\n::" not in summary
    rendered = MarkdownIt("gfm-like", {"html": True, "linkify": False}).render(summary)
    assert {*re.findall(r"<([a-z0-9]+)", rendered)} == {
        "blockquote", "p", "strong", "details", "summary", "ul", "li", "code",
    }  # fmt: skip


def test_the_summary_of_a_job_is_bounded_and_added_to_what_stands_there(project: Project, on_github: Path):
    on_github.write_text("before\n" + "x" * 900_000, encoding="utf-8")
    project.cases([a_missed_case(f"miss-{number}", question="boiling " + "물" * 180) for number in range(60)])
    project.run("--rageval-store-full-text")
    text = on_github.read_text(encoding="utf-8")
    before, alert, added = text.partition("> [!CAUTION]\n> **Fails the build: 60 cases fail")
    assert before.startswith("before\n")
    assert alert
    assert "and 50 more cases" in added
    assert len(added) < 10_000
    on_github.write_text("x" * 970_000, encoding="utf-8")
    project.run()
    assert on_github.stat().st_size == 970_000, "a page without room is left as it is"


def test_nothing_of_it_is_done_elsewhere_and_the_plugin_that_annotates_is_left_its_work(
    project: Project, monkeypatch: pytest.MonkeyPatch
):
    project.cases([a_missed_case("miss")])
    assert commands(project.run()) == []
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    project.write("pytest_github_actions_annotate_failures.py", "")
    assert commands(project.run("-p", "pytest_github_actions_annotate_failures")) == []


def test_a_summary_that_cannot_be_written_is_a_line(project: Project, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(project.path))
    project.cases([a_missed_case("miss")])
    result = project.run()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["rageval: *: no summary was written: Is a directory"])


def test_terminal_junit_summary_and_github_say_the_same_sentence(project: Project, on_github: Path):
    result = worse_run(project, "--junitxml", "junit.xml")
    sentence = project.metrics()["verdict"]["sentence"]
    assert sentence.startswith("Fails the build: 3 cases newly fail")
    assert any(line.endswith(sentence) for line in result.outlines)
    suite = ElementTree.fromstring((project.path / "junit.xml").read_text(encoding="utf-8"))
    properties = {each.get("name"): each.get("value") for each in suite.iter("property")}
    assert properties["rageval.verdict"] == sentence
    plain = [text.replace("\\", "") for text in (on_github.read_text(), (project.runs[-1] / "summary.md").read_text())]
    assert all(sentence in text for text in plain)
    assert sentence in project.rageval("comment").stdout.str().replace("\\", "")


def test_a_test_that_fails_beside_the_cases_fails_the_build_in_the_verdict(project: Project):
    project.cases(SOME)
    project.run("--rageval-update-baseline")
    assert project.metrics()["verdict"]["tone"] == "grey"
    project.run()
    assert project.metrics()["verdict"]["tone"] == "green"
    project.write("test_own.py", "def test_own():\n    assert False\n")
    project.run()
    assert project.metrics()["verdict"]["tone"] == "red"


def test_junit_holds_outcome_failed_gates_category_tags_and_scores_of_each_case(project: Project):
    project.cases([a_missed_case("miss", tags=["cold"])])
    project.run("--junitxml", "junit.xml")
    case = ElementTree.fromstring((project.path / "junit.xml").read_text(encoding="utf-8")).find(".//testcase")
    assert case is not None
    properties = [(each.get("name"), each.get("value")) for each in case.iter("property")]
    assert ("rageval.category", "factual") in properties
    assert ("rageval.tag", "cold") in properties
    assert ("rageval.outcome", "failed") in properties
    assert any(name == "rageval.failed_gate" and "recall_any@5 is 0" in str(value) for name, value in properties)
    assert ("recall_any@5", "0.0") in properties


@pytest.fixture
def comment(project: Project) -> Callable[..., pytest.RunResult]:
    """Writes the comment of the last run to a server, as a job of pull request 7 would."""

    def write(github: GitHub, *arguments: str, **environment: str) -> pytest.RunResult:
        with FaultServer(github) as server:
            job = {"GITHUB_API_URL": server.url, "GITHUB_REPOSITORY": "o/r", "GITHUB_REF": "refs/pull/7/merge"}
            return project.rageval(
                "comment", "--post", *arguments, **{**job, "GITHUB_TOKEN": "secret-token", **environment}
            )

    return write


def test_the_comment_is_written_once_and_then_replaced(project: Project, comment: Callable[..., pytest.RunResult]):
    project.cases([a_missed_case("miss")])
    project.run()
    github = GitHub(*(f"comment {number}" for number in range(250)))
    result = comment(github)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["comment: https://github.com/o/r/pull/7#issuecomment-251"])
    assert github.comments[251].startswith(
        "<!-- pytest-rageval: evaluation -->\n> [!CAUTION]\n> **Fails the build: 1 case fails"
    )
    project.cases(SOME)
    project.run()
    comment(github)
    assert len(github.comments) == 251
    assert "Passes: nothing fails" in github.comments[251]
    comment(github, "--name", "faq bot")
    assert github.comments[252].startswith("<!-- pytest-rageval: faq-bot -->")
    assert github.tokens == {"Bearer secret-token"}


@pytest.mark.parametrize(
    ("environment", "reason"),
    [
        ({}, "403"),  # a fork, whose token may only read
        ({"GITHUB_TOKEN": ""}, "no GITHUB_TOKEN"),
        ({"GITHUB_REF": "refs/heads/main"}, "not started by a pull request"),
        ({"GITHUB_REPOSITORY": "o/r/../x"}, "names no repository"),
    ],
)
def test_where_there_is_nothing_to_comment_on_a_notice_says_so(
    project: Project, comment: Callable[..., pytest.RunResult], environment: dict[str, str], reason: str
):
    project.cases(SOME)
    project.run()
    github = GitHub()
    github.refusal = 403
    result = comment(github, **environment)
    assert result.ret == 0
    assert "secret-token" not in result.stdout.str()
    result.stdout.fnmatch_lines([f"::notice title=rageval::no comment was written: *{reason}*"])


LINK = "https://ci.example/run/1"
TEXTS = {
    "usual": "Why does it fail?",
    "markup": ("<b>@everyone</b> #1 [a](http://b.c) `x` ![i](www.x.y) " * 400)[:16_000],
    "mentions": "@a #b " * 2_700,
    "ampersands": "&" * 16_000,
    "commands": "::error::x\n##[error]y\x1b\u202e\n" * 500,
    "wide": "사례" * 8_000,
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("gates", [1, 400])
def test_five_thousand_failing_cases_fit_into_ten_thousand_characters_with_the_verdict_first(text: str, gates: int):
    document = run_markdown(large_digest(text, gates), link=LINK)
    assert len(document) < 9_800, "the marker of a comment stands before it"
    assert document.startswith("> [!CAUTION]\n> **Fails the build: 5,000 cases fail")
    shown = document.count("<details>")
    assert document.count("</details>") == shown >= 4
    assert f"and {MANY - shown:,} more cases: [the whole report]({LINK})" in document
    assert ("- and 395 more\n" in document) is (gates == 400)
    if len(text) < 100:
        assert shown == 10


@pytest.mark.parametrize("settings", ["rageval.toml", "pyproject.toml", None])
def test_annotations_name_files_that_exist_in_the_workspace(
    project: Project, on_github: Path, monkeypatch: pytest.MonkeyPatch, settings: str | None
):
    monkeypatch.setenv("GITHUB_WORKSPACE", str(project.path.parent))
    for name in ("rageval.toml", "pyproject.toml"):
        (project.path / name).unlink(missing_ok=True)
    if settings is not None:
        table = "" if settings == "rageval.toml" else "[tool.rageval]\n"
        project.write(settings, f'{table}target = "bot:answer"\n')
    project.cases([a_missed_case("never")])
    result = project.run("--rageval-target", "bot:answer", "--rageval-gate", "run recall_any@5 >= 0.9")
    found = [match["file"] for line in result.outlines if (match := COMMAND.match(line))]
    assert len(found) == 2, "the gate and the case"
    assert [file for file in found if not (project.path.parent / file).is_file()] == []
