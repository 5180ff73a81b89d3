"""Lists call agents and datasets as people do, also where their slugs say nothing."""

from __future__ import annotations

import html

import pytest
from hostile_site import ALL
from listed_runs import indexed, store_project
from web_app import WebApp, served

from pytest_rageval.web.versions.agent import Agent
from pytest_rageval.web.versions.agent_store import AgentStore
from pytest_rageval.web.versions.dataset_store import DatasetAbout, DatasetStore
from pytest_rageval.web.versions.version_folder import slug_of, version_name


def save_agent(app: WebApp, slug: str, *names: str) -> None:
    for number, name in enumerate(names):
        AgentStore(app.settings.data).save(slug, Agent(name=name, target="demo"), "", number)


def test_runs_are_listed_by_the_names_of_their_versions(tmp_path_factory: pytest.TempPathFactory):
    root = tmp_path_factory.mktemp("named")
    store_project(root)
    with served(root) as app:
        indexed(app)
        save_agent(app, "shop-bot", "返品ボット")
        for path in ("/", "/runs", "/compare"):
            assert "返品ボット v" in html.unescape(app.page(path)), path
        assert '<option value="shop-bot">返品ボット</option>' in html.unescape(app.page("/runs"))


@pytest.mark.parametrize("name", ["返品の質問", "Fragen & Antworten", ALL[:80]])
def test_the_newest_version_says_the_name(web_app: WebApp, name: str):
    data, slug = web_app.settings.data, slug_of(name)
    assert version_name(data, "agents", slug) == slug
    save_agent(web_app, slug, "before", name)
    assert version_name(data, "agents", slug) == name
    cases = DatasetStore(data)
    web_app.post("/demo/questions")
    cases.save(slug, DatasetAbout(name=name), cases.cases("demo-questions", 1), "", 0)
    assert version_name(data, "datasets", slug) == name


@pytest.mark.parametrize("slug", ["", "..", "../x", "a/b", "con", "nobody"])
def test_what_names_no_version_is_shown_as_it_is(web_app: WebApp, slug: str):
    assert version_name(web_app.settings.data, "agents", slug) == slug


def test_a_file_that_cannot_be_read_is_called_by_its_slug(web_app: WebApp):
    save_agent(web_app, "broken", "Broken")
    path = AgentStore(web_app.settings.data).files.path("broken", 1)
    path.chmod(0o644)
    for content in (b"x = [", b"agent = 3\n", b"\xff\xfe", b"[agent]\nname = 7\n"):
        path.write_bytes(content)
        assert version_name(web_app.settings.data, "agents", "broken") == "broken"
