"""Agents made and edited through their forms in the browser."""

from __future__ import annotations

from web_app import Fields, WebApp, errors_beside, sent_by

from pytest_rageval.web.versions.agent_store import AgentStore


def store_of(app: WebApp) -> AgentStore:
    return AgentStore(app.settings.data)


def begin(app: WebApp, name: str, **fields: str | list[str]) -> str:
    """A new agent through its form; its slug."""
    sent = sent_by(app.page("/agents/new"), "/agents") | {"name": name} | fields
    response = app.post("/agents", sent)
    assert response.status_code == 303, errors_beside(response.text)
    return str(response.headers["location"]).rpartition("/")[2]


def edited(app: WebApp, slug: str, **fields: str | list[str]) -> Fields:
    return sent_by(app.page(f"/agents/{slug}/edit"), f"/agents/{slug}") | fields
