"""The whole story by forms and links alone, as a browser without scripts sends them: nothing on the way needs one."""

from __future__ import annotations

import html
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from labelling import Labeller
from processes import PATIENCE_S
from web_app import Fields, WebApp, sent_by, served, store_of

pytestmark = pytest.mark.child_process
QUESTIONS = (
    {"id": "lip", "question": "Which products does Laneige have in the catalogue?", "category": "factual"},
    {"id": "poem", "question": "Write a limerick about an elephant.", "category": "general", "answerable": False},
)


class Reader:
    """Follows links of the page that is open, and sends its forms."""

    def __init__(self, app: WebApp) -> None:
        self.app = app
        self.page, self.address = "", ""

    def open(self, address: str) -> None:
        self.address, self.page = address, self.app.page(address)

    def follow(self, text: str) -> None:
        """A link of the page by its words."""
        links = re.findall(r'<a\b[^>]*?href="([^"]*)"[^>]*>(.*?)</a>', self.page, re.DOTALL)
        words = [(html.unescape(address), re.sub(r"<[^>]*>", "", inner).strip()) for address, inner in links]
        address = next((address for address, inner in words if inner == text), None)
        assert address is not None, (text, words)
        self.open(address)

    def send(self, action: str, fields: Fields | None = None, **options: object) -> None:
        """The form to this address, which must be on the page, with what stands in it."""
        response: httpx.Response = self.app.post(action, sent_by(self.page, action) | dict(fields or {}), **options)
        assert response.status_code == 303, response.text[:3000]
        self.open(response.headers["location"])


@pytest.fixture
def app(tmp_path: Path) -> Iterator[WebApp]:
    with served(tmp_path) as app:
        yield app


def test_from_an_empty_folder_to_two_runs_that_are_compared(app: WebApp):
    reader = Reader(app)
    reader.open("/")
    reader.follow("New run")
    reader.follow("New agent")
    reader.send("/agents", {"name": "Demo bot"})
    reader.follow("Datasets")
    reader.follow("Import a dataset")
    lines = "".join(json.dumps(question) + "\n" for question in QUESTIONS).encode()
    reader.send("/datasets/uploads", files={"cases": ("questions.jsonl", lines)})
    reader.send(reader.address, {"action": "import"})
    first = run(reader)
    reader.follow("Datasets")
    reader.follow("questions")
    reader.send("/datasets/questions/label")
    person = Labeller(app, reader.address)
    assert person.title == "lip"
    person.point("laneige")
    person.press("gold")
    person.press("next")
    reader.page = person.page
    reader.follow("the dataset: finish or discard")
    reader.send("/datasets/questions/label/finish")
    assert store_of(app).newest("questions").note == "labelled: 1 case changed"
    second = run(reader)
    reader.follow("Runs")
    assert re.findall(r'name="run" value="(\w+)"', reader.page) == [second, first]
    reader.open(f"/compare?run={second}&run={first}")
    assert first in reader.page
    assert second in reader.page


def run(reader: Reader) -> str:
    """A run of the newest versions; its id."""
    reader.follow("New run")
    reader.send("/new-run")
    deadline = time.monotonic() + PATIENCE_S
    while "Open the run" not in reader.page:
        assert time.monotonic() < deadline, reader.page
        assert re.search(r'<noscript><meta http-equiv="refresh"', reader.page)
        time.sleep(0.2)
        reader.open(reader.address)
    reader.follow("Open the run")
    return reader.address.rpartition("/")[2]
