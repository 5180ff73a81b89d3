"""Requests that no page of the app sends: names, origins, sizes, paths and cookies of somebody else's."""

from __future__ import annotations

import logging
import re
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
from processes import PATIENCE_S
from web_app import WebApp, served

from pytest_rageval.web.guard import HEADERS
from pytest_rageval.web.site import WebLimits

pytestmark = pytest.mark.reliability("web", "uploads, traversal, SQL and scripts", costs="leak")

TOKEN = "a long enough token"
SMALL = WebLimits(form_bytes=20_000, upload_bytes=100_000, fields=50, files=2, field_bytes=5_000, body_seconds=1)


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebApp]:
    """The app with small limits; nothing here writes anything."""
    with served(tmp_path_factory.mktemp("attacked"), limits=SMALL) as app:
        yield app


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[WebApp]:
    """An app that asks for a token which somebody chose, and nobody has given yet."""
    with served(tmp_path, token=TOKEN) as app:
        app.client.cookies.clear()
        yield app


def status(response: bytes) -> int:
    return int(response.split(b" ", 2)[1])


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:1", "127.0.0.1", "127.0.0.1:8765", "[::1]:8765", "127.1.2.3", "localhost."]
)
def test_the_app_answers_to_its_own_names(app: WebApp, host: str):
    assert app.get("/login", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8765", "localhost.evil.example", "127.0.0.1.evil.example", "192.168.0.1",
     "0x7f.1", "2130706433", "user@localhost", "localhost/", "localhost:8765:1", "", "::1",
     "ⅼocalhost".encode().decode("latin-1")],
)  # fmt: skip
def test_a_page_that_was_rebound_to_this_address_is_refused(app: WebApp, host: str):
    response = app.raw(f"GET /login HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode("latin-1"))
    assert status(response) in (400, 421)
    assert b"form_token" not in response


@pytest.mark.parametrize("hosts", [b"", b"Host: localhost\r\nHost: evil.example\r\n"])
def test_a_request_has_one_host(app: WebApp, hosts: bytes):
    assert status(app.raw(b"GET /login HTTP/1.1\r\n" + hosts + b"Connection: close\r\n\r\n")) in (400, 421)


def test_a_host_in_the_line_of_the_request_is_no_way_around(app: WebApp):
    line = b"GET http://evil.example/login HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n"
    assert status(app.raw(line)) == 421


def test_an_app_that_others_reach_answers_to_numbers_and_to_names_that_were_allowed(tmp_path: Path):
    with served(tmp_path, host="0.0.0.0", token=TOKEN, host_names=("box.lan",)) as app:
        for host, expected in {"10.0.0.7:80": 200, "Box.lan": 200, "localhost": 200, "evil.example": 421}.items():
            assert app.get("/login", headers={"Host": host}).status_code == expected, host


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": "http://localhost:1"}, {"Origin": "file://"},
        {"Origin": "http://127.0.0.1.evil.example"}, {"Origin": ""},
        {"Origin": "http://[", "Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"}, {"Sec-Fetch-Site": "none"},
    ],
)  # fmt: skip
def test_a_form_of_another_site_is_refused_though_it_has_our_token(app: WebApp, headers: dict[str, str]):
    token = app.form_token()
    response = app.client.post("/login", data={"form_token": token, "token": "x"}, headers=headers)
    assert response.status_code == 403
    assert "somebody else" in response.text


@pytest.mark.parametrize("given", [{}, {"form_token": ""}, {"form_token": "0" * 64}, {"form_token": "é"}])
def test_a_form_without_its_token_is_refused(app: WebApp, given: dict[str, str]):
    response = app.client.post("/login", data=given | {"token": "x"}, headers={"Origin": app.address})
    assert response.status_code == 403
    assert "another session" in response.text


def test_a_form_s_token_is_of_one_session(app: WebApp):
    with httpx.Client(base_url=app.address, timeout=PATIENCE_S) as other:
        response = other.post(
            "/login", data={"form_token": app.form_token(), "token": "x"}, headers={"Origin": app.address}
        )
    assert response.status_code == 403


def test_a_form_is_a_form(app: WebApp):
    for kind in ("application/json", "text/plain", "", "multipart/form-data; boundary=x; charset=utf-7"):
        response = app.client.post(
            "/login", content=b"form_token=x", headers={"Origin": app.address, "Content-Type": kind}
        )
        assert response.status_code == 415, kind


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "PROPFIND"])
def test_other_methods_are_refused(app: WebApp, method: str):
    response = app.raw(f"{method} /login HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
    assert status(response) == 405
    assert b"allow: get, head, post\r\n" in response.lower()


@pytest.mark.parametrize("path", ["/login", "/", "/runs", "/nothing"])
def test_a_head_is_that_of_the_page_without_the_page(app: WebApp, path: str):
    head, page = app.client.head(path), app.get(path)
    assert (head.status_code, head.headers["content-type"]) == (page.status_code, page.headers["content-type"])
    assert head.content == b""


@pytest.mark.parametrize(
    "path",
    ["/assets/../../settings.py", "/assets/%2e%2e/%2e%2e/settings.py", "/assets/..%2f..%2fsettings.py",
     "/assets//etc/passwd", "/assets/%2fetc%2fpasswd", "/assets/web.css", "/assets/htmx.LICENSE",
     "/assets/web.000000000000.css", "/assets/web.css%00",
     "/assets/..%5c..%5csettings.py", "/assets/", "/assets", "//assets/web.css", "/%"],
)  # fmt: skip
def test_only_files_of_the_app_are_served(app: WebApp, path: str):
    head = f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{app.bearer}\r\nConnection: close"
    response = app.raw(f"{head}\r\n\r\n".encode())
    assert status(response) == 404
    assert b"class WebSettings" not in response
    assert b"root:" not in response


def test_a_line_break_in_an_address_makes_no_header(app: WebApp):
    response = app.get("/%0d%0aSet-Cookie:%20evil=1/x?next=%0d%0aX-Evil:%201")
    assert response.status_code == 404
    assert "x-evil" not in response.headers
    assert "evil" not in response.headers.get("set-cookie", "")


POST = "POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\n"


def test_a_body_that_is_announced_too_large_is_not_read(app: WebApp):
    response = app.raw(f"{POST}Content-Length: 999999999\r\n\r\n".encode())
    assert status(response) == 413
    assert b"connection: close" in response.lower()


def test_a_body_of_unknown_length_is_counted_while_it_is_read(app: WebApp):
    piece = b"2000\r\n" + b"x" * 0x2000 + b"\r\n"
    response = app.raw(f"{POST}Transfer-Encoding: chunked\r\n\r\n".encode() + 4 * piece)
    assert status(response) == 413


def test_length_and_chunks_at_once_are_refused(app: WebApp):
    smuggled = b"0\r\n\r\nGET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n"
    head = f"{POST}Content-Length: {len(smuggled)}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    response = app.raw(head + smuggled)
    assert status(response) == 400
    assert response.count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([("f", None, b"x")] * 60, 400),
        ([("f", "a.csv", b"x")] * 3, 400),
        ([("f", None, b"x" * 6_000)], 400),
        ([("f", "a.csv", b"x" * 90_000), ("f", "b.csv", b"x" * 90_000)], 413),
        ([(None, None, b"x")], 400),
    ],
)
def test_forms_have_so_many_parts_of_such_a_size(
    app: WebApp, parts: list[tuple[str | None, str | None, bytes]], expected: int
):
    body = b""
    for name, file, content in parts:
        names = (f'; name="{name}"' if name else "") + (f'; filename="{file}"' if file else "")
        body += f"--b\r\nContent-Disposition: form-data{names}\r\n\r\n".encode() + content + b"\r\n"
    headers = {"Origin": app.address, "Content-Type": "multipart/form-data; boundary=b"}
    response = app.client.post("/login", content=body + b"--b--\r\n", headers=headers)
    assert response.status_code == expected, response.text


@pytest.mark.parametrize(
    "body", [b"", b"--b", b"--b\r\nContent-Disposition: form-data", b"\x00" * 500, b"--b\r\n" * 500]
)
def test_a_torn_form_is_refused(app: WebApp, body: bytes):
    headers = {"Origin": app.address, "Content-Type": "multipart/form-data; boundary=b"}
    assert app.client.post("/login", content=body, headers=headers).status_code in (400, 403)


def test_a_head_without_end_is_refused(app: WebApp):
    assert status(app.raw(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 100_000)) == 400


def test_a_body_that_stops_coming_is_not_waited_for(app: WebApp):
    assert status(app.raw(f"{POST}Content-Length: 100\r\n\r\nform".encode())) == 408


def test_a_body_that_comes_a_byte_at_a_time_does_not_hold_its_connection(app: WebApp):
    with socket.create_connection(("127.0.0.1", app.port), timeout=PATIENCE_S) as connection:
        connection.sendall(f"{POST}Content-Length: 1000\r\n\r\n".encode())
        began = time.monotonic()
        connection.settimeout(0.3)
        received = b""
        while not received and time.monotonic() - began < PATIENCE_S:
            try:
                received = connection.recv(65_536)
            except TimeoutError:
                with suppress(OSError):  # it may have ended the connection meanwhile; its answer is still to be read
                    connection.sendall(b"x")
    assert status(received) == 408


def test_blank_fields_are_counted_too(app: WebApp):
    headers = {"Origin": app.address, "Content-Type": "application/x-www-form-urlencoded"}
    response = app.client.post("/login", content=b"&" * 19_000, headers=headers)
    assert response.status_code == 400
    assert "more than 50 fields" in response.text


@pytest.mark.parametrize("charset", ["punycode;y=utf-8", "unicode_escape; x=utf-8", "utf-7 utf-8", '"utf-16"'])
def test_a_form_is_in_utf_8_whatever_else_its_kind_says(app: WebApp, charset: str):
    body = b'--b\r\nContent-Disposition: form-data; name="form_token"\r\n\r\n\\ud800-\r\n--b--\r\n'
    headers = {"Origin": app.address, "Content-Type": f"multipart/form-data; boundary=b; charset={charset}"}
    assert app.client.post("/login", content=body, headers=headers).status_code == 415


def test_the_session_s_cookie_is_for_this_app_alone(app: WebApp):
    cookie = httpx.get(f"{app.address}/login", timeout=PATIENCE_S).headers["set-cookie"]
    assert re.fullmatch(r"rageval_[0-9a-f]{8}=[\w=.-]+; path=/; Max-Age=2592000; httponly; samesite=lax", cookie)


@pytest.mark.parametrize("cookie", ["", "x", "=;=;", "{name}=", "{name}=../..", '{name}="\\0', "a" * 9_000])
def test_a_cookie_that_is_not_ours_is_a_new_session(app: WebApp, cookie: str):
    response = httpx.get(
        f"{app.address}/login",
        headers={"Cookie": cookie.format(name=next(iter(app.client.cookies)))},
        timeout=PATIENCE_S,
    )
    assert response.status_code == 200
    assert "set-cookie" in response.headers


def test_every_response_has_the_headers(app: WebApp):
    responses = [app.get(path) for path in ("/login", "/nothing", "/assets/x")]
    responses += [
        app.get("/login", headers={"Host": "evil.example"}),
        app.client.put("/login"),
        app.client.post("/login"),
    ]
    responses += [app.client.post("/login", content=b"x" * 30_000)]
    assert [response.status_code for response in responses] == [200, 404, 404, 421, 405, 415, 415]
    for response in responses:
        assert {name: response.headers[name] for name in HEADERS} == HEADERS
        assert "server" not in response.headers


def test_with_a_token_nothing_is_shown_before_it_was_given(guarded: WebApp):
    assert guarded.get("/").headers["location"] == "/login"
    assert guarded.get("/nothing").headers["location"] == "/login"
    assert guarded.get("/", headers={"HX-Request": "true"}).status_code == 401
    assert guarded.client.post("/logout", headers={"Origin": guarded.address}).status_code == 401
    assert guarded.get("/assets/x").status_code == 404


def test_the_token_lets_this_browser_in_until_it_logs_out(guarded: WebApp):
    before = dict(guarded.client.cookies)
    assert guarded.post("/login", {"token": TOKEN + "x"}).status_code == 403
    assert guarded.post("/login", {"token": TOKEN}).headers["location"] == "/"
    cookie = dict(guarded.client.cookies)
    assert cookie != before
    assert guarded.get("/nothing").status_code == 404
    with httpx.Client(base_url=guarded.address, cookies=cookie, timeout=PATIENCE_S) as other:
        assert other.get("/nothing").status_code == 404
    assert guarded.post("/logout").headers["location"] == "/login"
    assert guarded.get("/nothing").status_code == 303


def test_a_session_known_before_the_login_is_worth_nothing_after_it(guarded: WebApp):
    guarded.page("/login")
    name, known = next(iter(guarded.client.cookies.items()))
    guarded.post("/login", {"token": TOKEN})
    content, when, signature = guarded.client.cookies[name].split(".")
    forged = [known, f"{known.partition('.')[0]}.{when}.{signature}", f"{content}.{when}.{signature[:-2]}xx", content]
    for cookie in forged:
        assert httpx.get(f"{guarded.address}/", cookies={name: cookie}, timeout=60).headers.get("location") == "/login"


def test_another_token_ends_all_logins(tmp_path: Path):
    with served(tmp_path, token=TOKEN) as app:
        app.post("/login", {"token": TOKEN})
        cookies = dict(app.client.cookies)
    with served(tmp_path, token=TOKEN + "2") as app:
        response = httpx.get(f"{app.address}/", cookies=cookies, timeout=PATIENCE_S)
        assert response.headers["location"] == "/login"


def test_guessing_is_stopped(guarded: WebApp):
    statuses = [guarded.post("/login", {"token": f"guess {number}"}).status_code for number in range(22)]
    assert statuses == [403] * 20 + [429] * 2
    assert guarded.post("/login", {"token": TOKEN}).status_code == 429


def test_the_token_is_in_no_log_and_no_page(guarded: WebApp, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.DEBUG)
    guarded.post("/login", {"token": TOKEN})
    guarded.post("/login", {"token": TOKEN + "!"})
    assert TOKEN not in guarded.get("/login").text + caplog.text
    key = guarded.settings.data / "web.key"
    assert key.stat().st_mode & 0o777 == 0o600
