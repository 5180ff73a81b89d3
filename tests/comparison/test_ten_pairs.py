"""One verdict for two runs: `rageval compare` says in each form what a run of the second against the first shows."""

from __future__ import annotations

import json
import re
from html import unescape
from typing import Any, NamedTuple

import pytest
from project import Project, a_case

BOTS = """
import bot

def good(question):
    return bot.answer(question)

def lost(question):
    found = bot.answer(question)
    if "first" in question or "second" in question:
        found["debug"]["retrieved_chunks"] = []
    return found

def moved(question):
    found = bot.answer(question)
    if "second" in question or "third" in question:
        found["debug"]["retrieved_chunks"] = []
    return found

def wrong(question):
    found = bot.answer(question)
    if "first" in question:
        found["answer"] = "Nobody ever measured such a thing at all."
    return found

def broken(question):
    if "third" in question:
        raise RuntimeError("out of order")
    return bot.answer(question)
"""
NAMES = ("first", "second", "third", "fourth", "fifth", "sixth")
CASES = [a_case(name, f"boiling, {name}?") for name in NAMES]
CHANGED = [a_case("first", "boiling, the first of others?"), *CASES[1:]]
ELSEWHERE = [a_case(f"other-{name}", f"boiling, {name} of others?") for name in NAMES]
GATES = ("--rageval-gate", "mrr >= 0.5", "--rageval-gate", "token_f1 off", "--rageval-gate", "run recall_any@5 >= 0.85")
RETRIEVAL = "--rageval-retrieval-only"
RATCHET = ("--rageval-known-failures", "ratchet")


class Pair(NamedTuple):
    """Two runs: how each is run, the word of the verdict, parts of it, and the exit code of the comparison."""

    before: tuple[str, ...]
    after: tuple[str, ...]
    word: str
    says: tuple[str, ...]
    code: int
    cases: list[dict[str, Any]] = CASES


def of(target: str, *more: str) -> tuple[str, ...]:
    return ("--rageval-target", f"bots:{target}" if ":" not in target else target, *more)


PAIRS = {
    "better": Pair(of("lost"), of("good"), "Better", ("nothing got worse", "6 of 6 pass, was 4", "2 fixed"), 0),
    "worse": Pair(of("good"), of("lost", "--rageval-allow-regressions"), "Gate failed", ("2 cases newly fail",), 1),
    "mixed": Pair(of("lost"), of("moved"), "Worse", ("1 case newly fails", "4 of 6 pass, was 4", "1 fixed"), 1),
    "gates changed": Pair(
        of("good"), of("good", *GATES), "Fewer gates", ("a gate was removed (token_f1", "6 of 6 pass, was 6"), 0
    ),
    "partial": Pair(
        of("good"), of("lost", "-k", "first or third"), "Worse", ("1 case newly fails", "only 2 of 6 cases ran"), 1
    ),
    "retrieval-only": Pair(
        of("wrong"),
        of("good", RETRIEVAL),
        "Answers unmeasured",
        ("nothing got worse", "1 case that failed was not measured"),
        0,
    ),
    "other source": Pair(of("good"), of("answers:answers.jsonl"), "Not worse", ("nothing got worse",), 0),
    "errors": Pair(of("good"), of("broken"), "Errors", ("1 case ends in an error",), 1),
    "no shared case": Pair(
        of("good"), of("good"), "Not comparable", ("not comparable with the baseline",), 1, ELSEWHERE
    ),
    "changed": Pair(of("good"), of("good"), "Partly comparable", ("1 changed case is not compared",), 0, CHANGED),
    "known failures": Pair(
        of("lost", *RATCHET), of("lost", *RATCHET), "Not worse", ("nothing got worse", "4 of 6 pass, was 4"), 0
    ),
    "equal": Pair(of("good"), of("good"), "Not worse", ("nothing got worse", "6 of 6 pass, was 6"), 0),
}


def an_answer(name: str) -> dict[str, Any]:
    text = "Water boils at 100 degrees at sea level."
    chunk = {"chunk_id": "c1", "rel_path": "notes/water.md", "heading_path": "# Water > ## Boiling", "text": text}
    return {"id": name, "answer": text, "debug": {"retrieved_chunks": [chunk]}}


@pytest.fixture
def two_runs(project: Project) -> Project:
    project.write("bots.py", BOTS)
    project.write("answers.jsonl", "".join(json.dumps(an_answer(name)) + "\n" for name in NAMES))
    return project


def run_both(project: Project, pair: Pair) -> str:
    """Run the first, then the second against it and once more against nothing; the terminal of the second."""
    project.cases(CASES)
    project.run("--rageval-run-id", "a", *pair.before)
    project.cases(pair.cases)
    against = "--rageval-run-id", "b", "--rageval-baseline", "run:a", "--junitxml", "junit.xml"
    shown = project.run(*against, *(word for word in pair.after if word != "--rageval-allow-regressions")).stdout.str()
    project.run("--rageval-run-id", "alone", "--rageval-baseline", "none", *pair.after)
    return shown


def plain(html: str) -> str:
    """The text of the verdict of a page."""
    section = re.search(r'<section id="top".*?<p class="sentence">(.*?)</p>', html, re.DOTALL)
    assert section is not None
    return " ".join(unescape(re.sub(r"<[^>]+>", "", section[1])).split())


@pytest.mark.parametrize("name", PAIRS)
def test_a_comparison_says_in_each_form_what_the_run_against_it_shows(two_runs: Project, name: str):
    pair, project = PAIRS[name], two_runs
    shown = run_both(project, pair)
    folder = project.path / "reports/runs/b"
    decided = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))["verdict"]
    sentence = decided["sentence"]
    assert decided["word"] == pair.word
    assert all(part in sentence for part in pair.says), sentence
    # the faces of the run itself
    assert sentence in shown
    assert sentence in unescape((project.path / "junit.xml").read_text(encoding="utf-8"))
    assert sentence in unmarked((folder / "summary.md").read_text(encoding="utf-8"))
    assert sentence in unmarked(project.rageval("comment", "b").stdout.str())
    assert sentence in plain((folder / "report.html").read_text(encoding="utf-8"))
    # the comparison, of the run that was compared with it and of the one that was not
    for after in ("b", "alone"):
        forms = {
            form: project.rageval("compare", "a", after, "--format", form, COLUMNS="400")
            for form in ("terminal", "markdown", "json", "html")
        }
        assert {form: result.ret for form, result in forms.items()} == dict.fromkeys(forms, pair.code)
        texts = {form: result.stdout.str() for form, result in forms.items()}
        assert sentence in texts["terminal"].splitlines()[0]
        assert sentence in unmarked(texts["markdown"].splitlines()[0])
        assert sentence in plain(texts["html"])
        content = json.loads(texts["json"])["verdict"]
        assert (content["sentence"], content["tone"]) == (sentence, decided["tone"])
        assert project.rageval("compare", "a", after, "--exit-zero").ret == 0


def unmarked(markdown: str) -> str:
    return unescape(re.sub(r"\\(.)|</?code>", r"\1", markdown))
