"""A folder with a case file, a bot and a labelling session: what sessions, pools and their files are tried on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_rageval.cases import load_file
from pytest_rageval.errors import TargetError
from pytest_rageval.io.masking import Mask
from pytest_rageval.label.draft_store import DraftStore
from pytest_rageval.label.label_session import LabelSession
from pytest_rageval.label.label_store import (
    CaseFileStore,
    OpinionStore,
    opinion_file,
)
from pytest_rageval.label.notes_search import NotesSearch
from pytest_rageval.label.opening import AskedSystem, PoolAsking, PoolSource
from pytest_rageval.model import Answer, AskRequest, Chunk, EvalCase


def a_chunk(name: str, text: str | None = None, heading: str = "", **fields: Any) -> Chunk:
    return Chunk(name, None, f"notes/{name}.md", heading, text or f"text of {name}", **fields)


class Bot:
    """Gives the chunks that it has for a question, and counts how often it is asked."""

    def __init__(self, chunks: Mapping[str, tuple[Chunk, ...]] | None = None, name: str = "bot") -> None:
        self.name = name
        self.chunks = chunks
        self.requests: list[AskRequest] = []
        self.is_closed = False

    async def ask(self, request: AskRequest) -> Answer:
        self.requests.append(request)
        if self.chunks is None and "fail" in request.question:
            raise TargetError("connect", "nobody there, key=SECRETSECRET")
        chunks = self.chunks if self.chunks is not None else {request.question: tuple(map(a_chunk, "abc"))}
        return Answer("x", chunks=chunks.get(request.question, ()))

    async def aclose(self) -> None:
        self.is_closed = True


class Desk:
    """A folder in which cases are labelled."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file = path / "cases.jsonl"
        self.sources: list[PoolSource] = []

    def write(self, *cases: Mapping[str, Any], name: str = "cases.jsonl") -> Path:
        file = self.path / name
        file.write_text("".join(json.dumps(case, ensure_ascii=False) + "\n" for case in cases), encoding="utf-8")
        return file

    def source(self, *bots: Bot, search: NotesSearch | None = None) -> PoolSource:
        asking = PoolAsking(5, {"p": 1}, Mask(["SECRETSECRET"]))
        source = PoolSource([AskedSystem(bot.name, bot, asking) for bot in bots or (Bot(),)], search)
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
        session = LabelSession(cases, store, self.source(*bots, search=search), is_blind=bool(blind))
        settle(session)
        return session

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
