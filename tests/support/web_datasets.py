"""Datasets of the web app in tests: files sent as a browser sends them, looked at and confirmed."""

from __future__ import annotations

import io
import re
from pathlib import Path

import httpx
from founding_documents import FOUNDING
from web_app import WebApp
from web_forms import errors_beside, sent_by

from pytest_rageval.web.versions.dataset_store import DatasetStore

ONE, TWO, EVAL_SET = FOUNDING / "one.csv", FOUNDING / "two", FOUNDING / "eval_set.jsonl"


def store_of(app: WebApp) -> DatasetStore:
    return DatasetStore(app.settings.data)


def upload(app: WebApp, cases: tuple[str, bytes], references: tuple[str, bytes] | None = None, **fields: str) -> str:
    """Send files; the address of the page that shows them."""
    response = send(app, cases, references, **fields)
    assert response.status_code == 303, errors_beside(response.text)
    return str(response.headers["location"])


def send(
    app: WebApp, cases: tuple[str, bytes], references: tuple[str, bytes] | None = None, **fields: str
) -> httpx.Response:
    files = {"cases": (cases[0], io.BytesIO(cases[1]))}
    if references is not None:
        files["references"] = (references[0], io.BytesIO(references[1]))
    return app.post("/datasets/uploads", fields, files=files)


def confirm(app: WebApp, address: str, **fields: str | list[str]) -> httpx.Response:
    """Press the button that saves."""
    return app.post(address, sent_by(app.page(address), address) | {"action": "import"} | fields)


def imported(app: WebApp, name: str, path: Path = EVAL_SET) -> str:
    """A dataset from a file; its slug."""
    response = confirm(app, upload(app, (path.name, path.read_bytes())), name=name)
    assert response.status_code == 303, response.text
    return str(response.headers["location"]).rpartition("/")[2]


def problems_on(page: str) -> list[str]:
    listed = re.search(r'<ol class="rows problems">(.*?)</ol>', page, re.DOTALL)
    return re.findall(r"<li>(.*?)</li>", listed[1]) if listed else []
