"""The part of GitHub's interface that comments on a pull request need, over HTTP on loopback."""

from __future__ import annotations

import json
import re
from typing import Any

from fault_server import Connection


class GitHub:
    """Behaviour of a server: comments by id, and the tokens that were sent."""

    def __init__(self, *comments: str) -> None:
        self.comments = dict(enumerate(comments, 1))
        self.refusal: int | None = None
        self.tokens: set[str] = set()

    async def __call__(self, connection: Connection) -> None:
        request = connection.request
        self.tokens.add(request.headers.get("authorization", ""))
        if self.refusal is not None:
            await connection.reply(self.refusal, b'{"message": "Resource not accessible by integration"}')
            return
        await connection.reply(200, json.dumps(self._reply(request.method, request.path, request.body)).encode())

    def _reply(self, method: str, path: str, body: bytes) -> Any:
        if method == "GET":
            page = int(re.search(r"[?&]page=(\d+)", path)[1])  # type: ignore[index]
            listed = [{"id": number, "body": text} for number, text in self.comments.items()]
            return listed[100 * (page - 1) : 100 * page]
        number = int(path.rpartition("/")[2]) if method == "PATCH" else len(self.comments) + 1
        self.comments[number] = json.loads(body)["body"]
        return {"html_url": f"https://github.com/o/r/pull/7#issuecomment-{number}"}
