"""Folders, sessions and people to label with."""

from __future__ import annotations

import html
import json
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from processes import PATIENCE_S
from web_app import WebApp

from pytest_rageval.cases.loading import load_file
from pytest_rageval.errors import TargetError
from pytest_rageval.io.masking import Mask
from pytest_rageval.label.label_session import LabelSession
from pytest_rageval.label.label_store import (
    CaseFileStore,
    DraftStore,
    OpinionStore,
    opinion_file,
)
from pytest_rageval.label.notes_search import NotesSearch
from pytest_rageval.label.opening import AskedSystem, PoolSource
from pytest_rageval.model import Answer, AskRequest, Chunk, EvalCase
from pytest_rageval.targets.target import BaseTarget


def a_chunk(name: str, text: str | None = None, heading: str = "", **fields: Any) -> Chunk:
    return Chunk(name, None, f"notes/{name}.md", heading, text or f"text of {name}", **fields)


def write_cases(file: Path, *cases: Mapping[str, Any]) -> Path:
    file.write_text("".join(json.dumps(case, ensure_ascii=False) + "\n" for case in cases), encoding="utf-8")
    return file


class Bot(BaseTarget):
    """Gives the chunks that it has for a question, and counts how often it is asked."""

    def __init__(
        self, chunks: Mapping[str, tuple[Chunk, ...]] | tuple[Chunk, ...] | None = None, name: str = "bot"
    ) -> None:
        """`chunks`: those of each question, or of every question."""
        self.name = name
        self.chunks = chunks
        self.requests: list[AskRequest] = []
        self.is_closed = False

    async def ask(self, request: AskRequest) -> Answer:
        self.requests.append(request)
        if self.chunks is None and "fail" in request.question:
            raise TargetError("connect", "nobody there, key=SECRETSECRET")
        chunks = self.chunks if self.chunks is not None else tuple(map(a_chunk, "abc"))
        return Answer("x", chunks=chunks if isinstance(chunks, tuple) else chunks.get(request.question, ()))

    async def aclose(self) -> None:
        self.is_closed = True


class Desk:
    """A folder in which cases are labelled."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file = path / "cases.jsonl"
        self.sources: list[PoolSource] = []

    def write(self, *cases: Mapping[str, Any], name: str = "cases.jsonl") -> Path:
        return write_cases(self.path / name, *cases)

    def source(self, *bots: Bot, search: NotesSearch | None = None, is_shuffled: bool = False) -> PoolSource:
        mask = Mask(["SECRETSECRET"])
        systems = [AskedSystem(bot.name, bot, 5, {"p": 1}, mask) for bot in bots or (Bot(),)]
        source = PoolSource(systems, search, is_shuffled=is_shuffled)
        self.sources.append(source)
        return source

    def session(
        self, *bots: Bot, search: NotesSearch | None = None, blind: str | None = None, file: Path | None = None
    ) -> LabelSession:
        path = file or self.file
        cases = load_file(path, self.path).cases
        store: Any
        if path.name.endswith(".drafts.jsonl"):
            store = DraftStore(path, self.path)
        elif blind:
            store = OpinionStore(opinion_file(path, blind), self.path)
        else:
            store = CaseFileStore(path, search.folder if search else None)
        source = self.source(*bots, search=search, is_shuffled=bool(blind))
        session = LabelSession(cases, store, source, is_blind=bool(blind))
        settle(session)
        return session

    def close(self) -> None:
        for source in self.sources:
            source.close()

    def cases(self) -> dict[str, EvalCase]:
        loaded = load_file(self.file, self.path)
        assert not loaded.problems
        return {case.id: case for case in loaded.cases}


def settle(session: LabelSession) -> LabelSession:
    if (future := session.waits_for) is not None:
        future.result(60)
    return session


def row_of(session: LabelSession, name: str) -> int:
    paths = [candidate.chunk.rel_path for candidate in session.pool.candidates]
    return paths.index(f"notes/{name}.md")


def point(session: LabelSession, name: str) -> LabelSession:
    settle(session)  # in a line of its own: what is assigned is looked up before what it is assigned to
    session.row = row_of(session, name)
    return session


def a_bare(id: str, question: str = "q", **fields: Any) -> dict[str, Any]:
    return {"id": id, "question": question, **fields}


HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)> [x] \u202e"
NOTES = {
    "price.md": f"# Price\n\n## Cream\n\nThe cream costs 32,000 won.\nIt was dearer before.\n{HOSTILE}\n",
    "old.md": "# Old\n\n## Cream in 2023\n\nThe cream was 28,000 won.\n",
    "brand.md": "# Brand\n\n## Cream and Jeju\n\nThe cream is made on Jeju.\n",
}
FILE = "evalcases/shop.jsonl"


CASES = [
    a_bare("price", "What does the cream cost?"),
    a_bare("place", "Where is the cream made?", category="factual"),
    a_bare("hair", "Is there a cream for hair?"),
]


def label_project(root: Path) -> Path:
    """Write it; the case file."""
    (root / "notes").mkdir()
    for name, text in NOTES.items():
        (root / "notes" / name).write_text(text, encoding="utf-8")
    (root / "evalcases").mkdir()
    (root / "rageval.toml").write_text('notes = "notes"\n')
    file = write_cases(root / FILE, *CASES)
    drafts = [
        a_bare("draft-1", "Is the cream vegan?", tags=["draft"]),
        a_bare("draft-2", "Who makes it?", tags=["draft"]),
    ]
    write_cases(root / "evalcases/shop.drafts.jsonl", *drafts)
    return file


class Labeller:
    """A person with a browser that runs no scripts: presses buttons of the page that is open."""

    def __init__(self, app: WebApp, address: str) -> None:
        self.app = app
        self.file = next(part for part in address.partition("?")[2].split("&") if part.startswith(("file", "dataset")))
        self.open(address)

    def open(self, address: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while 'hx-trigger="every 1s"' in (page := self.app.page(address)):  # the search is under way
            assert time.monotonic() < deadline
        self.address, self.page = address, page

    def press(self, do: str, *, status: int = 303, **fields: object) -> str:
        """Press a button; what the page says then."""
        form = self.page[self.page.index('action="/label/cases"') :]
        values = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', form))
        content = {name: html.unescape(value) for name, value in values.items()} | {"do": do} | fields
        response = self.app.post("/label/cases", content)
        assert response.status_code == status, response.text[:2000]
        if status == 303:
            self.open(response.headers["location"])
        else:
            self.page = response.text
        return self.message

    @property
    def message(self) -> str:
        message = re.search(r'<p id="message"[^>]*>(.*?)</p>', self.page, re.DOTALL)
        assert message
        return html.unescape(message[1])

    @property
    def title(self) -> str:
        title = re.search(r"<title>(.*?) · label", self.page)
        assert title
        return title[1]

    def row_of(self, note: str) -> int:
        rows = re.findall(r"<li[^>]*><button class=\"check\".*?</li>", self.page, re.DOTALL)
        return next(at for at, row in enumerate(rows) if note in row)

    def point(self, note: str, **more: object) -> None:
        at = self.row_of(note)
        asked = "".join(f"&{name}={value}" for name, value in more.items())
        self.open(f"/label/cases?{self.file}&case={self.title}&row={at}{asked}")
