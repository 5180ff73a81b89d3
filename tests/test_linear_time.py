"""Functions that foreign texts meet take a time that grows with the text's length, whatever is repeated in it."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import pytest
from project import Project, a_case

from pytest_rageval.abstention.courtesies import without_courtesies
from pytest_rageval.abstention.detector import declines
from pytest_rageval.comparison.case_filter import FilterError, read_terms
from pytest_rageval.io.masking import Mask, public_target, public_url
from pytest_rageval.io.secret_forms import secrets_by_form
from pytest_rageval.language.identifiers import as_named, identifiers_of
from pytest_rageval.language.words import content_tokens, fold, normalise, sentences, squad_normalise, tokens
from pytest_rageval.llm.json_exchange import UnreadableReply
from pytest_rageval.llm.reply_object import stated_object
from pytest_rageval.llm.thoughts import thoughts_and_answer, thoughts_and_text
from pytest_rageval.matching.spellings import (
    heading_form,
    headings,
    joined_place,
    read_headings,
    read_path,
    slug,
    snippet_form,
)
from pytest_rageval.model.case import Edge
from pytest_rageval.targets.reply_mapping import response_mapping
from pytest_rageval.text import excerpt, printable

pytestmark = pytest.mark.reliability("bombs", "repeated text in functions that read foreign texts")

SMALL, LARGE = 4_000, 32_000
MOST_TIMES = 30
"""How much longer the large text may take, which is 8 times as long; n² takes 64 times as long, n³ 512 times."""
UNNOTICED_S = 0.15
"""What the large text may take in any case."""
REPEATED = [
    " ", "\n", "\t", " \n", "\r ", " \u2003", "a", "a ", "A.", "aA1", "1", "01", "1,", "1.", "1 000 ",
    "0'", "1'000", "1.000",
    "#", "# ", "# a ", "> ", ">", "-", "- ", " -", "->", " - ", "a -b-> ", "*", "**a", "_", "`", "```",
    "~", "[", "[a](", "](",
    "<", "<a ", "<think>", "</think>", "{", "{#", "}", "{}", '"', '\\"', "'", "“", "|", " | ", "a: ",
    ":", "::", "\n::", "\n::a",
    "##[", "/", "//", "\\", "a/", "../", "%20", "&amp;", "&", "=", "key=",
    "token=a", 'token="', "password: ", "://", "://a:",
    "://a:b@", "Bearer ", "eyJ", "sk-", "@", "?", "? ", ". ", "! ", "not ", "I cannot ", "5 MB ",
    "5 million ", "가", "가 ",
    "日本", "日本 ", "é", "e\u0301", "\u00ad", "\u200b", "\ufeff", "(", "(a) ", "1) ", "$1 ", "10^", "²",
    "https://a.b/",
]  # fmt: skip


def edge(text: str) -> None:
    for written in (text, f"a{text}- b -> c", f"a -b->{text}"):
        try:
            Edge.parse(written)
        except ValueError:
            continue


def mapping_of_reply(text: str) -> None:
    response_mapping({"answer": text, "sources": [text, {"path": text}]})


def thoughts_of_systems(text: str) -> None:
    for written in (text, f"<b>{text}", f"{text}<b>", f"<think>{text}a</think>b", f"Thought: a\n{text}b"):
        thoughts_and_answer(written)


def identifiers(text: str) -> None:
    for gold in (text, f"GPT-4{text}/"):
        identifiers_of(gold, "Which command?")
    for name in ("debug = true", "GPT-4o", "API_KEY"):
        as_named(f"debug{text}", identifiers_of(name, "Which?"))


def stated(text: str) -> None:
    for written in (text, f'{{"score": 1, "reasoning": "{text}"}}'):
        with suppress(UnreadableReply):
            stated_object(written)


def filter_terms(text: str) -> None:
    with suppress(FilterError):
        assert len(list(read_terms(text))) <= len(text)


BOT = """
PLACE = "# Water" + " " * 20_000 + "> " * 5_000 + "[" * 5_000

def answer(question):
    path = "a" + "." * 20_000 + ": b" * 5_000
    chunks = [
        {"rel_path": path, "heading_path": f"{PLACE}{number}", "chunk_id": " " * 20_000, "text": PLACE}
        for number in range(10)
    ]
    return {"answer": PLACE, "debug": {"retrieved_chunks": chunks}}
"""


def test_a_run_takes_seconds_whatever_stands_in_headings_and_ids(project: Project):
    project.write("bot.py", BOT)
    anchors = [
        {"rel_path": "a.md", "heading_path": "# Water > ## Boiling"},
        {"rel_path": "b.md", "heading_path": "", "snippets": ["x" + " " * 9_000]},
    ]
    project.cases([a_case(name, f"Why {name}?", gold_supports=anchors) for name in "abc"])
    started = time.process_time()
    project.run("--rageval-target", "bot:answer")
    assert time.process_time() - started < 20
    assert project.outcomes() == dict.fromkeys("abc", "failed")


FUNCTIONS: dict[str, Callable[[str], object]] = {
    "printable": printable,
    "excerpt": excerpt,
    "normalise": normalise,
    "squad_normalise": squad_normalise,
    "fold": fold,
    "tokens": tokens,
    "content_tokens": content_tokens,
    "sentences": sentences,
    "headings": headings,
    "read_headings": read_headings,
    "heading_form": heading_form,
    "slug": slug,
    "snippet_form": snippet_form,
    "read_path": read_path,
    "joined_place": lambda text: joined_place(text, read_path("notes/a.md")),
    "edge": edge,
    "output": Mask(["sk-0123456789abcdef"]).output,
    "message": Mask(["sk-0123456789abcdef"]).message,
    "secrets_by_form": lambda text: [*secrets_by_form(text)],
    "public_url": public_url,
    "public_target": public_target,
    "reply": mapping_of_reply,
    "declines": declines,
    "without_courtesies": without_courtesies,
    "filter": filter_terms,
    "thoughts": thoughts_and_text,
    "thoughts of a system": thoughts_of_systems,
    "identifiers": identifiers,
    "judge's reply": stated,
}


def test_a_dummy_key_in_a_text_of_its_digit_is_masked_in_a_moment():
    mask = Mask(["sk-" + "1" * 60])
    started = time.process_time()
    masked = mask.output("1" * 50_000)
    assert time.process_time() - started < 1
    assert "1" * 12 not in masked


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_longer_text_takes_longer_in_proportion(name: str):
    slow = []
    FUNCTIONS[name]("Water boils.")  # tables are read at the first call
    for part in REPEATED:
        for end in ("", "\x00x"):
            call = partial(_seconds, FUNCTIONS[name], part, end)
            large = call(LARGE)
            if large > UNNOTICED_S and large > MOST_TIMES * max(call(SMALL), 0.001):
                slow.append(f"{part!r}: {call(SMALL):.3f} s, then {large:.3f} s")
                if len(slow) > 3:
                    break
    assert not slow, "\n".join(slow)


def _seconds(function: Callable[[str], object], part: str, end: str, length: int) -> float:
    text = (part * length)[:length] + end
    started = time.process_time()
    function(text)
    return time.process_time() - started
