"""A made-up project with a bot whose chunks hold whatever a test wants, and sessions over its cases."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pytest_rageval.cases.loading import load_file
from pytest_rageval.io.masking import Mask
from pytest_rageval.label.draft_store import DraftStore
from pytest_rageval.label.label_session import LabelSession
from pytest_rageval.label.label_store import CaseFileStore, OpinionStore
from pytest_rageval.label.opening import AskedSystem, PoolAsking, PoolSource
from pytest_rageval.model import Answer, AskRequest, Chunk

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


class Hostile:
    """Gives texts that would break a screen that trusts them."""

    name = "hos[t]ile"

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._chunks = tuple(
            Chunk(name, None, f"notes/[{name}].md", "# Top > ## [/] Deep", text) for name, text in texts.items()
        )

    async def ask(self, request: AskRequest) -> Answer:
        return Answer("x", chunks=self._chunks)

    async def aclose(self) -> None:
        pass


def write_cases(file: Path, *cases: Mapping[str, Any]) -> Path:
    file.write_text("".join(json.dumps(case, ensure_ascii=False) + "\n" for case in cases), encoding="utf-8")
    return file


@contextmanager
def a_session(file: Path, texts: Mapping[str, str], *, opinion: Path | None = None) -> Iterator[LabelSession]:
    bot = Hostile(texts)
    source = PoolSource(
        [AskedSystem(bot.name, bot, PoolAsking(5, {}, Mask(())))], None, is_shuffled=opinion is not None
    )
    store: Any
    if file.name.endswith(".drafts.jsonl"):
        store = DraftStore(file, file.parent)
    else:
        store = OpinionStore(opinion, file.parent) if opinion else CaseFileStore(file, None)
    try:
        session = LabelSession(load_file(file, file.parent).cases, store, source, is_blind=opinion is not None)
        yield session
    finally:
        source.close()
