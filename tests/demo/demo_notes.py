"""Small corpora of a test's own, and questions to the demo over its ASGI app or served by a process of its own."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from processes import running

from pytest_rageval.demo.app import DemoApp, create_app

SHIPPED = create_app()
"""The demo over its own notes: built once for all tests of this process that only ask."""


def write_notes(corpus: Path, notes: dict[str, str | bytes]) -> Path:
    """Writes notes by `vault/folder/name.md` and returns the corpus."""
    for name, text in notes.items():
        path = corpus / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return corpus


def an_app(tmp_path: Path, notes: dict[str, str]) -> DemoApp:
    """The demo over these notes among thirty others, so that a word can be rare."""
    others = {f"v/filler/{number}.md": f"# Filler {number}\n\nNothing but entry {number}." for number in range(30)}
    return create_app(write_notes(tmp_path, {**others, **notes}))


def request(app: DemoApp, method: str, target: str, **kwargs: Any) -> httpx.Response:
    """One request to an ASGI app, in process."""

    async def send() -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://demo") as client:
            return await client.request(method, target, **kwargs)

    return asyncio.run(send())


def ask(question: str, *, app: DemoApp = SHIPPED, **parameters: Any) -> dict[str, Any]:
    """The response to a question, `debug` included."""
    response = request(app, "POST", "/api/v1/ask?debug=true", json={"question": question, **parameters})
    assert response.status_code == 200, response.text
    return response.json()


def chunks(answer: dict[str, Any]) -> list[dict[str, Any]]:
    return answer["debug"]["retrieved_chunks"]


@contextmanager
def a_server(*arguments: str, **environment: str) -> Iterator[tuple[subprocess.Popen[str], str, str]]:
    """`rageval demo serve`, the line that it greets with, and its URL."""
    main = [sys.executable, "-c", "from pytest_rageval.cli.main import main; main()", "demo", "serve", "--port", "0"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with running([*main, *arguments], **pipes, env={**os.environ, **environment}) as process:
        assert process.stdout is not None
        greeting = process.stdout.readline()
        address = re.search(r"http://[^\s,]+", greeting)
        assert address is not None
        yield process, greeting, address[0]
