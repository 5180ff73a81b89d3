"""A made-up project with a bot whose chunks hold whatever a test wants, and sessions over its cases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from labelling import Bot, Desk

from pytest_rageval.label.label_session import LabelSession
from pytest_rageval.model import Chunk

BOT = '''
"""Five chunks for every question."""
def answer(question):
    chunks = [
        {"chunk_id": f"c{at}", "rel_path": f"notes/{name}.md", "heading_path": "# Top > ## Deep",
         "text": f"{name} says\\\\nthe price is {at}", "rank": at, "score_final": 1 / at}
        for at, name in enumerate(["apple", "banana", "cherry", "date", "elder"], 1)
    ]
    return {"answer": "x", "debug": {"retrieved_chunks": chunks}}
'''.replace("\\\\", "\\")

HOSTILE = {
    "markup": "[x] [/] [bold]not bold[/bold] [@click=app.quit]no[/]",
    "ansi": "before \x1b[31mred\x1b]0;title\x07 after\x9b2J",
    "bidi": "abc \u202eevil\u202c \u2066x\u2069",
    "cjk": "제주 수분 크림은 ₩32,000이다. 価格は三万二千ウォンです。価格は三万二千ウォンです。",
    "long": "y" * 100_000,
    "tabs": "a\tb\r\nc\x00d\u2028e",
    "empty": "",
}


@contextmanager
def a_session(file: Path, texts: Mapping[str, str], *, blind: str | None = None) -> Iterator[LabelSession]:
    """A session whose system gives texts that would break a screen that trusts them."""
    desk = Desk(file.parent)
    chunks = tuple(Chunk(name, None, f"notes/[{name}].md", "# Top > ## [/] Deep", text) for name, text in texts.items())
    try:
        yield desk.session(Bot(chunks, "hos[t]ile"), blind=blind, file=file)
    finally:
        desk.close()
