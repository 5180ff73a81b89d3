"""The web app on a free port, served by its real server in a thread; a client of it, its forms, datasets and jobs."""

from __future__ import annotations

import html
import io
import json
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import httpx
import pytest
from browser import LOGINS
from processes import PATIENCE_S
from project import FOUNDING, own_modules

from pytest_rageval.web.app import create_web_app
from pytest_rageval.web.jobs.job import Job, JobStatus
from pytest_rageval.web.jobs.jobs import Jobs, LayOut
from pytest_rageval.web.run_choice import add_origin
from pytest_rageval.web.server import make_server, open_socket
from pytest_rageval.web.site import WebSettings
from pytest_rageval.web.versions.dataset_store import DatasetStore

TOKEN = "the-token-of-the-app-in-tests-which-nobody-guesses"
"""What the app asks for unless a test says otherwise; its own are random."""
_FORM_TOKEN = re.compile(r'name="form_token" value="([0-9a-f]+)"')


def allow_code(root: Path, *names: str) -> None:
    """Let the browser name code of the project, whatever else its configuration says."""
    file = root / "rageval.toml"
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    kept = [line for line in lines if not line.startswith("web_allows")]
    file.write_text("\n".join([f"web_allows = {json.dumps(names)}", *kept]), encoding="utf-8")


class WebApp:
    """A running app: `get` and `post` as a browser does them that has given the token, cookies kept."""

    def __init__(self, settings: WebSettings, port: int) -> None:
        self.settings = settings
        self.port = port
        self.address = f"http://127.0.0.1:{port}"
        self.client = self.stranger()
        self.log_in(self.client)

    def stranger(self) -> httpx.Client:
        """A browser that comes for the first time."""
        return httpx.Client(base_url=self.address, timeout=PATIENCE_S)

    def log_in(self, client: httpx.Client) -> httpx.Client:
        """Open the address that holds the token, as far as the app asks for one."""
        if self.settings.token is not None:
            client.get("/login", params={"token": self.settings.token})
        return client

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self.client.get(path, **options)

    def page(self, path: str) -> str:
        """The page at this address, which must be there."""
        response = self.client.get(path, follow_redirects=True)
        assert response.status_code == 200, f"{path}: {response.status_code}\n{response.text[:3000]}"
        return response.text

    def form_token(self, path: str = "/login") -> str:
        """What forms of this session carry, read from a page that has a form."""
        token = _FORM_TOKEN.search(self.client.get(path).text)
        assert token, f"{path} has no form"
        return token[1]

    def post(self, path: str, fields: Mapping[str, Any] | None = None, **options: Any) -> httpx.Response:
        """Send a form as a browser does from a page of the app; its answer, redirects not followed."""
        headers = {"Origin": self.address, "Sec-Fetch-Site": "same-origin"} | options.pop("headers", {})
        content = {"form_token": self.form_token()} | dict(fields or {})
        return self.client.post(path, data=content, headers=headers, **options)

    @property
    def bearer(self) -> str:
        """The header by which a program gives the token, for requests that are written out."""
        return f"Authorization: Bearer {self.settings.token}"

    def raw(self, request: bytes, seconds: float = PATIENCE_S) -> bytes:
        """What comes back for these bytes, to the end of the connection."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=seconds) as connection:
            connection.sendall(request)
            parts = []
            while part := connection.recv(65_536):
                parts.append(part)
        return b"".join(parts)


@contextmanager
def served(root: Path, **settings: Any) -> Iterator[WebApp]:
    """The app over the project in `root`; `settings` are those of WebSettings. It waits for what it reads."""
    own: dict[str, Any] = {"port": 0, "token": TOKEN, "root": root, "reports": root / "reports", "data": root / "data"}
    chosen = WebSettings(**own | settings)
    # The app imports the project's systems into this process: the next test may have a `bot.py` of its own.
    with own_modules(root), open_socket(chosen) as listening:
        web_app = create_web_app(chosen)
        server = make_server(web_app, chosen)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        deadline = time.monotonic() + PATIENCE_S
        while not server.started:
            assert thread.is_alive(), "the server ended at once"
            assert time.monotonic() < deadline, f"the server did not start within {PATIENCE_S} s"
            time.sleep(0.01)
        app = WebApp(chosen, listening.getsockname()[1])
        LOGINS[app.address] = dict(app.client.cookies)
        try:
            yield app
        finally:
            del LOGINS[app.address]
            app.client.close()
            server.should_exit = True
            thread.join(PATIENCE_S)
            web_app.state.label_desk.close()
            assert not thread.is_alive(), f"the server did not end within {PATIENCE_S} s"


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebApp]:
    """The app over a project to which the tests of a file add what they need."""
    with served(tmp_path_factory.mktemp("project")) as app:
        yield app


@pytest.fixture
def web_app(tmp_path: Path) -> Iterator[WebApp]:
    """The app over an empty project."""
    with served(tmp_path) as app:
        yield app


def text_of(page: str) -> str:
    """What a person reads, on one line."""
    return re.sub(r" ([,.;:])", r"\1", " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split()))


Fields = dict[str, str | list[str]]


class _Forms(HTMLParser):
    """The forms of a page that write, each with its address and its fields."""

    def __init__(self) -> None:
        super().__init__()
        self.forms: list[tuple[str, Fields]] = []
        self._field: str | None = None
        self._text = ""
        self._is_open = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form" and given.get("method") == "post":
            self.forms.append((given["action"], {}))
            self._is_open = True
        elif not self._is_open:
            return
        elif tag == "input":
            self._take_input(given)
        elif tag == "textarea":
            self._field, self._text = given["name"], ""
        elif tag == "select":
            self._field = given["name"]
            self._is_first = True
        elif tag == "option" and self._field is not None and (self._is_first or "selected" in given):
            self._choose(self._field, given["value"])

    def _take_input(self, given: dict[str, str]) -> None:
        kind = given.get("type", "text")
        if kind == "file" or "name" not in given or (kind in ("checkbox", "radio") and "checked" not in given):
            return
        self._add(given["name"], given.get("value", "on" if kind in ("checkbox", "radio") else ""))

    def _choose(self, name: str, value: str) -> None:
        fields = self.forms[-1][1]
        if self._is_first:
            self._add(name, value)
        else:
            there = fields[name]
            fields[name] = [*there[:-1], value] if isinstance(there, list) else value
        self._is_first = False

    def _add(self, name: str, value: str) -> None:
        fields = self.forms[-1][1]
        there = fields.get(name)
        fields[name] = value if there is None else [*(there if isinstance(there, list) else [there]), value]

    def handle_data(self, data: str) -> None:
        self._text += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea" and self._field is not None:
            # The first line break behind the tag is no part of the text, and each one is sent as CR LF.
            self._add(self._field, re.sub(r"\r?\n", "\r\n", self._text.removeprefix("\n")))
        if tag in ("textarea", "select"):
            self._field = None
        if tag == "form":
            self._is_open = False


def sent_by(page: str, address: str) -> Fields:
    """What the form to this address sends as it stands, but for the word of the session; no button pressed."""
    parser = _Forms()
    parser.feed(page)
    fields = next(dict(fields) for action, fields in parser.forms if action == address)
    fields.pop("form_token")
    return fields


def errors_beside(page: str) -> dict[str, list[str]]:
    """What a page says is wrong, by field."""
    lists = re.findall(r'<ul class="field-errors" id="([^"]*)-errors">(.*?)</ul>', page, re.DOTALL)
    return {name: re.findall(r"<li>(.*?)</li>", items, re.DOTALL) for name, items in lists}


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


SLOW_BOT = """
import itertools, os, time

asked = itertools.count()

def answer(question):
    is_free = next(asked) < 3
    while not is_free and "BOT_GATE" in os.environ and not os.path.exists(os.environ["BOT_GATE"]):
        time.sleep(0.02)
    time.sleep(float(os.environ.get("BOT_SECONDS", "0.15")))
    os.write(2, f"key in use: {os.environ.get('BOT_API_KEY')}\\n".encode())  # past what keeps the prints of cases
    return {"answer": "Water boils at 100 degrees.", "debug": {"retrieved_chunks": []}}
"""
CONFIGURATION = 'target = "slow_bot_app:answer"\nconcurrency = 1\n[gates]\ncase = ["token_f1 >= 0.1"]\n'


def project_with_bot(root: Path, keys: str = "BOT_API_KEY=sk-test-1234567890abcdef\n") -> Jobs:
    """A project whose bot reads `.env`: a key, and `BOT_GATE`, a file that it waits for after three answers."""
    root.mkdir(parents=True, exist_ok=True)
    (root / "slow_bot_app.py").write_text(SLOW_BOT)
    (root / ".env").write_text(keys)
    allow_code(root, "slow_bot_app", "no_such_module")
    return jobs_of(root)


def jobs_of(root: Path) -> Jobs:
    return Jobs(root / "data", root / "reports", root, root / ".env")


def an_order(
    cases: int = 3, *, configuration: str = CONFIGURATION, baseline: str = "none", description: str = ""
) -> LayOut:
    """Questions that the bot answers right."""
    lines = [
        json.dumps({"id": f"q{number}", "question": f"At which heat does water boil ({number})?",
                    "gold": {"answer": "Water boils at 100 degrees."}})
        for number in range(cases)
    ]  # fmt: skip

    def lay_out(folder: Path) -> Job:
        (folder / "rageval.toml").write_text(configuration)
        (folder / "evalcases").mkdir()
        (folder / "evalcases/water.jsonl").write_text("\n".join(lines) + "\n")
        job = Job(
            id=folder.name, agent="slow-bot", agent_version=2, dataset="water", dataset_version=1, source="connector",
            created=datetime.now(UTC).isoformat(), cases=cases, description=description,
            arguments=("--baseline", baseline, f"--description={description}"),
        )  # fmt: skip
        add_origin(folder / "rageval.toml", job)
        return job

    return lay_out


def until(jobs: Jobs, job_id: str, claim: Callable[[JobStatus], bool]) -> JobStatus:
    """The job as soon as the claim is true of it."""
    deadline = time.monotonic() + PATIENCE_S
    while not claim(status := jobs.status(job_id)):
        assert time.monotonic() < deadline, (status, jobs.log(job_id))
        time.sleep(0.03)
    return status


def ended(status: JobStatus) -> bool:
    return not status.is_going


def under_way(status: JobStatus) -> bool:
    return status.progress.done >= 2
