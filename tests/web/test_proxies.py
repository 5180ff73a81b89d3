"""What a request says of where it was forwarded from: it counts from proxies that were named, and from nobody else."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from processes import PATIENCE_S
from project import Project
from web_app import served

TOKEN = "a long enough token"


@pytest.mark.parametrize(("proxies", "is_believed"), [((), False), (("10.0.0.1",), False), (("127.0.0.0/8",), True)])
def test_behind_a_proxy_that_speaks_https_it_is_of_the_host_alone(
    tmp_path: Path, proxies: tuple[str, ...], is_believed: bool
):
    with served(tmp_path, proxies=proxies) as app:
        response = httpx.get(f"{app.address}/login", headers={"X-Forwarded-Proto": "https"}, timeout=PATIENCE_S)
    cookie = response.headers["set-cookie"]
    assert cookie.startswith("__Host-rageval") is is_believed
    assert cookie.endswith("; Secure") is is_believed


@pytest.mark.parametrize(("proxies", "is_believed"), [((), False), (("127.0.0.1",), True)])
def test_who_guesses_is_another_one_only_by_the_word_of_a_proxy_that_was_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, proxies: tuple[str, ...], is_believed: bool
):
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "*")
    with served(tmp_path, token=TOKEN, proxies=proxies) as app:
        statuses = [
            app.post("/login", {"token": "guess"}, headers={"X-Forwarded-For": f"192.0.2.{number}"}).status_code
            for number in range(21)
        ]
    assert statuses[-1] == (403 if is_believed else 429)


def test_a_proxy_is_an_address(project: Project):
    result = project.rageval("web", "--proxy", "proxy.example")
    assert result.ret == 2
    result.stderr.fnmatch_lines(
        ["ERROR: --proxy proxy.example: no address; write 127.0.0.1, or a network as 10.0.0.0/8"]
    )
