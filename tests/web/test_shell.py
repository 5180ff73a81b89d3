"""The frame of every page, its files, errors as pages, and the command that starts the app."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from hashlib import sha256
from importlib.resources import files

import httpx
import pytest
from processes import PATIENCE_S
from web_app import WebApp


def test_styles_and_scripts_are_files_of_its_own_that_may_be_kept_for_ever(web_app: WebApp):
    page = web_app.page("/login")
    addresses = re.findall(r'(?:href|src)="(/assets/[^"]+)"', page)
    assert [address.partition(".")[0] for address in addresses] == [
        "/assets/icon", "/assets/tokens", "/assets/web", "/assets/noscript", "/assets/htmx", "/assets/focus",
    ]  # fmt: skip
    for address in addresses:
        file = web_app.get(address)
        assert file.status_code == 200
        assert file.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert "style=" not in page
    assert "<style" not in page
    assert not re.search(r"<script(?! src)", page)


def test_the_vendored_htmx_is_the_released_file_with_its_licence():
    folder = files("pytest_rageval.web").joinpath("assets")
    stated = json.loads(folder.joinpath("htmx.json").read_text(encoding="utf-8"))
    assert sha256(folder.joinpath("htmx.min.js").read_bytes()).hexdigest() == stated["sha256"]
    assert (stated["name"], stated["version"]) == ("htmx.org", "4.0.1")
    assert folder.joinpath("htmx.LICENSE").read_text(encoding="utf-8").startswith("Zero-Clause BSD")


def test_an_unknown_page_says_so_in_a_page(web_app: WebApp):
    response = web_app.get("/nothing/here")
    assert response.status_code == 404
    assert "There is no such page." in response.text
    assert "<nav" in response.text


def test_a_bug_ends_in_a_page_without_a_trace(web_app: WebApp, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("pytest_rageval.web.pages.dashboard.page", lambda *_, **__: 1 / 0)
    response = web_app.get("/login")
    assert response.status_code == 500
    assert "Something went wrong here" in response.text
    assert "ZeroDivisionError" not in response.text
    assert response.headers["content-security-policy"].startswith("default-src 'none'")


def test_the_command_asks_for_a_token_where_other_machines_can_reach_it(project):
    result = project.rageval("web", "--host", "0.0.0.0", "--no-token")
    assert result.ret == 2
    result.stderr.fnmatch_lines(["ERROR: --host 0.0.0.0: other machines can reach this address; leave --no-token out"])


def test_the_command_takes_its_token_from_the_environment(project, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("RAGEVAL_WEB_TOKEN", "too short")
    result = project.rageval("web", "--host", "0.0.0.0")
    assert result.ret == 2
    result.stderr.fnmatch_lines(["ERROR: RAGEVAL_WEB_TOKEN: 9 characters can be guessed;*"])


def test_the_command_says_what_to_install(project, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("pytest_rageval.cli.web.find_spec", lambda name: None)
    result = project.rageval("web")
    assert result.ret == 2
    result.stderr.fnmatch_lines(["ERROR: fastapi, *, itsdangerous: not installed; pip install 'pytest-rageval?web?'"])


def test_a_port_in_use_is_said_with_the_remedy(project, web_app: WebApp):
    result = project.rageval("web", "--port", str(web_app.port))
    assert result.ret == 2
    result.stderr.fnmatch_lines(
        [f"ERROR: --host 127.0.0.1 --port {web_app.port}: Address already in use; another --port*"]
    )


@pytest.mark.child_process
def test_the_command_serves_until_ctrl_c(project):
    command = [sys.executable, "-m", "pytest_rageval", "web", "--port", "0"]
    process = subprocess.Popen(command, cwd=project.path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        address = re.fullmatch(
            r"rageval web: (http://127\.0\.0\.1:\d+/)\?token=([\w-]{43}) over .*/reports and .*/data; Ctrl-C ends it\n",
            line,
        )
        assert address, line + process.communicate(timeout=PATIENCE_S)[1]
        with httpx.Client(timeout=PATIENCE_S) as browser:
            assert browser.get(address[1]).headers["location"] == "/login"
            opened = browser.get(f"{address[1]}?token={address[2]}")
            assert (opened.status_code, opened.headers["refresh"]) == (200, f"0; url={address[1]}")
            assert browser.get(address[1]).status_code == 200
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=PATIENCE_S) == ("", "")
        assert process.returncode == 0
    finally:
        process.kill()
        process.wait(timeout=PATIENCE_S)


def test_what_the_app_keeps_for_itself_is_not_for_git(web_app: WebApp):
    data = web_app.settings.data
    subprocess.run(["git", "init", "-q", str(data)], check=True, timeout=PATIENCE_S)
    for name in ("jobs/one/log.txt", "agents/bot/v1.toml"):
        (data / name).parent.mkdir(parents=True)
        (data / name).write_text("x", encoding="utf-8")
    command = ["git", "-C", str(data), "ls-files", "-o", "--exclude-standard"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE_S)
    assert listed.stdout.split() == [".gitignore", "agents/bot/v1.toml"]
