"""A person who labels in a browser that runs no scripts."""

from __future__ import annotations

import html
import re
import time

from processes import PATIENCE_S
from web_app import WebApp


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
        rows = re.findall(r"<li[^>]*><a href=.*?</li>", self.page, re.DOTALL)
        return next(at for at, row in enumerate(rows) if note in row)

    def point(self, note: str, **more: object) -> None:
        at = self.row_of(note)
        asked = "".join(f"&{name}={value}" for name, value in more.items())
        self.open(f"/label/cases?{self.file}&case={self.title}&row={at}{asked}")
