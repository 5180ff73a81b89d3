"""Runs of versions: compared on cases that are alike, and called by the names of their versions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from hostile import ALL
from project import Project, a_case
from stored_runs import store_project
from web_app import WebApp, served, text_of

from pytest_rageval.web.versions.agent import Agent
from pytest_rageval.web.versions.agent_store import AgentStore
from pytest_rageval.web.versions.dataset_store import DatasetAbout, DatasetStore
from pytest_rageval.web.versions.version_folder import slug_of, version_name

NOTE = "compared on 3 of 5 cases alike in both; 1 changed"
ORIGIN = """[tool.rageval.origin]
agent = "shop-bot"
agent_version = 1
dataset = "products"
dataset_version = {version}
source = "connector"
"""
WORSE = """
import bot
def answer(question):
    found = bot.answer(question)
    if "three" in question:
        found["debug"]["retrieved_chunks"] = []
    return found
"""


def of_version(project: Project, version: int, run_id: str, *cases: dict[str, Any], target: str, before: str) -> None:
    project.cases(cases)
    project.configure(f'target = "{target}"\ncases = ["evalcases/*.jsonl"]', ORIGIN.format(version=version))
    project.run("--rageval-run-id", run_id, "--rageval-baseline", before)


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebApp]:
    """`one` of version 1; of version 2, in which a case changed, one went and two came, `two` and `worse`."""
    project = Project(tmp_path_factory.mktemp("versions"))
    project.write("worse.py", WORSE)
    first = [a_case(f"q{n}", f"boiling {n}") for n in ("one", "two", "three", "four", "gone")]
    second = [*first[:3], a_case("qfour", "boiling of four other things"), a_case("qnew", "boiling anew")]
    of_version(project, 1, "one", *first, target="bot:answer", before="none")
    of_version(project, 2, "two", *second, target="bot:answer", before="run:one")
    of_version(project, 2, "worse", *second, target="worse:answer", before="run:one")
    project.configure('target = "bot:answer"')
    with served(project.path) as app:
        yield app
    project.close()


def title_of(html: str) -> str:
    return re.findall("<title>(.*?)</title>", html, re.DOTALL)[0]


def row_of(html: str, run_id: str) -> str:
    return next(text_of(row) for row in re.findall("<tr>.*?</tr>", html, re.DOTALL) if f'/runs/{run_id}"' in row)


@pytest.mark.parametrize(("run_id", "word"), [("two", "Partly comparable"), ("worse", "Worse")])
def test_list_dashboard_run_and_comparison_say_the_same(app: WebApp, run_id: str, word: str):
    run, beside = app.page(f"/runs/{run_id}"), app.page(f"/compare?a=one&b={run_id}")
    verdicts = [re.findall(r'<section id="top" class="verdict (\w+)"', html)[0] for html in (run, beside)]
    assert verdicts == ["amber", "amber"] if run_id == "two" else verdicts[0] == verdicts[1] != "green"
    assert word in title_of(run) or run_id == "worse"
    assert re.sub("·.*", "", title_of(run), flags=re.DOTALL) == re.sub("·.*", "", title_of(beside), flags=re.DOTALL)
    for html in (run, beside):
        assert NOTE in text_of(html)
    shown_word = re.findall(r"\S (.*?) ·", title_of(run))[0].strip()
    assert shown_word.lower() in row_of(app.page("/runs"), run_id).lower()
    if run_id == "worse":  # the last one of its series
        dashboard = text_of(app.page("/"))
        assert "Fails the build: 1 case newly fails" in dashboard
        assert "changed case" in dashboard


def test_cases_that_changed_came_or_went_are_listed_and_compared_with_nothing(app: WebApp):
    shown = text_of(app.page("/compare?a=one&b=two"))
    assert "Changed in between, compared with nothing: 1 case evalcases/a.jsonl::qfour" in shown
    assert "Only before: 1 case evalcases/a.jsonl::qgone" in shown
    assert "Only after: 1 case evalcases/a.jsonl::qnew" in shown
    new = app.page("/compare?a=one&b=two&q=changed:new")
    assert len(re.findall("data-row", new)) == 2


def test_the_list_shows_no_change_of_a_rate_between_other_cases(app: WebApp):
    listed = app.page("/runs")
    assert " = " not in row_of(listed, "two")
    assert "80.0 % <" in row_of(listed, "worse")


def test_history_goes_over_versions_and_marks_where_they_changed(app: WebApp):
    shown = app.page("/history?dataset=products&agent=shop-bot")
    assert "products, all versions · 3 runs" in text_of(shown)
    assert shown.count("dashed: other cases") == shown.count('<figure class="plot"') > 1
    assert "dataset 1→2" in text_of(shown), text_of(shown)[-1500:]
    alone = app.page("/history?dataset=products&metric=pass+rate")
    assert re.findall(r'<td><a href="/runs/(\w+)"', alone) == ["one", "two", "worse"]


def test_versions_without_a_case_in_common_are_not_comparable_anywhere(tmp_path: Path):
    project = Project(tmp_path)
    of_version(project, 1, "one", a_case("q1", "boiling 1"), target="bot:answer", before="none")
    of_version(project, 2, "two", a_case("q1", "boiling 2"), target="bot:answer", before="run:one")
    with served(tmp_path) as app:
        pages = [app.page("/runs/two"), app.page("/compare?a=one&b=two")]
        for html in pages:
            assert "Not comparable" in title_of(html)
            assert 'class="verdict red"' in html
        assert "not comparable" in row_of(app.page("/runs"), "two")
        assert "Fails the build: not comparable with the baseline" in text_of(app.page("/"))
    project.close()


def save_agent(app: WebApp, slug: str, *names: str) -> None:
    for number, name in enumerate(names):
        AgentStore(app.settings.data).save(slug, Agent(name=name, target="demo"), "", number)


def test_runs_are_listed_by_the_names_of_their_versions(tmp_path_factory: pytest.TempPathFactory):
    root = tmp_path_factory.mktemp("named")
    store_project(root)
    with served(root) as app:
        save_agent(app, "shop-bot", "返品ボット")
        for path in ("/", "/runs", "/compare"):
            assert "返品ボット v" in unescape(app.page(path)), path
        assert '<option value="shop-bot">返品ボット</option>' in unescape(app.page("/runs"))


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
    path = AgentStore(web_app.settings.data).path("broken", 1)
    path.chmod(0o644)
    for content in (b"x = [", b"agent = 3\n", b"\xff\xfe", b"[agent]\nname = 7\n"):
        path.write_bytes(content)
        assert version_name(web_app.settings.data, "agents", "broken") == "broken"
