"""`rageval label FILE --web`: the page that labels the file, served to this machine."""

from __future__ import annotations

from typing import Any

import pytest
from project import Project

from pytest_rageval.web import server


@pytest.fixture
def browser(project: Project, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a browser is shown of each address that is opened, in place of a server that waits for Ctrl-C."""
    shown: list[str] = []

    def serve(app: Any, settings: Any, say: Any, *, is_opened: bool, is_token_shown: bool, page: str) -> None:
        from starlette.testclient import TestClient

        assert is_opened
        assert is_token_shown
        assert settings.is_loopback
        assert settings.port == 0
        with TestClient(app, base_url="http://localhost") as client:
            response = client.get(page, headers={"Authorization": f"Bearer {settings.token}"})
            shown.append(f"{response.status_code} {response.text}")

    monkeypatch.setattr(server, "serve_web", serve)
    project.cases([{"id": "first one", "question": "Who?"}, {"id": "second", "question": "Where to, please?"}])
    project.configure('target = "bot:answer"')
    return shown


def test_the_page_of_the_file_is_opened_at_the_case(project: Project, browser: list[str]):
    assert project.rageval("label", "evalcases/a.jsonl", "--web", "--case", "second").ret == 0
    assert browser[0].startswith("200 ")
    assert "Where to, please?" in browser[0]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["evalcases/a.jsonl", "--web", "--plain"], "--web goes with --case alone"),
        (["evalcases/a.jsonl", "--web", "--target", "demo"], "--web goes with --case alone"),
        (["evalcases/a.jsonl", "--web", "--blind", "anna"], "--web goes with --case alone"),
        (["gone.jsonl", "--web"], "gone.jsonl"),
        (["elsewhere.jsonl", "--web"], "elsewhere.jsonl: is no case file of the project"),
    ],
)
def test_what_no_page_can_show_is_said(project: Project, browser: list[str], arguments: list[str], problem: str):
    project.cases([{"id": "x", "question": "Why?"}], "elsewhere.jsonl")
    result = project.rageval("label", *arguments)
    assert result.ret == 2
    assert problem in result.stderr.str()
    assert browser == []
