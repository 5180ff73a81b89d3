"""The web app on a free port of this machine, served by its real server in a thread, and a client of it."""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from chromium import LOGINS
from processes import PATIENCE_S

from pytest_rageval.web.app import create_web_app
from pytest_rageval.web.server import make_server, open_socket
from pytest_rageval.web.site import WebLimits, WebSettings

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
    settings = {"limits": WebLimits(patience_seconds=60)} | settings
    own: dict[str, Any] = {"port": 0, "token": TOKEN, "root": root, "reports": root / "reports", "data": root / "data"}
    chosen = WebSettings(**own | settings)
    with open_socket(chosen) as listening:
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


@pytest.fixture
def web_app(tmp_path: Path) -> Iterator[WebApp]:
    """The app over an empty project."""
    with served(tmp_path) as app:
        yield app
