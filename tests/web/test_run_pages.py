"""The pages of a run and of its cases, as a browser without scripts gets them; exports; runs that are no whole ones."""

from __future__ import annotations

import csv
import html
import io
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest
from project import SOME, Project, a_case
from web_app import WebApp, served

from pytest_rageval.web.jobs.job import SHOWN_LINES

MANY = 60


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A baseline in which all pass, and a run after it in which two newly fail and one ends in an error."""
    project = Project(tmp_path_factory.mktemp("looked_at"))
    fillers = [a_case(f"filler-{number:02}", tags=["filler"]) for number in range(MANY)]
    forgotten = [a_case(id, f"What is the boiling point, {id}?") for id in ("boil", "boil-again")]
    project.cases([*forgotten, *SOME[1:], *fillers])
    project.run("--rageval-update-baseline")
    known = "    found = ["
    worse = f"""    if "freezing" in question:
        raise RuntimeError("the bot is <b>out</b>")
    question = question.replace("boiling point, ", "")
{known}"""
    project.write("bot.py", project.path.joinpath("bot.py").read_text(encoding="utf-8").replace(known, worse))
    project.run("--rageval-confirm=0")  # one line a case
    assert project.outcomes()["boil"] == "failed"
    return project


@pytest.fixture(scope="module")
def app(project: Project) -> Iterator[WebApp]:
    with served(project.path) as app:
        yield app


@pytest.fixture(scope="module")
def run(project: Project) -> str:
    return project.runs[-1].name


def ids(page: str) -> list[str]:
    """Ids of the cases on a page of the list."""
    return [html.unescape(id) for id in re.findall(r"<tr data-row>.*?<a [^>]*>(.*?)</a>", page)]


def links(page: str, text: str) -> list[str]:
    return [html.unescape(link) for link in re.findall(rf'<a [^>]*href="([^"]+)"[^>]*>{re.escape(text)}', page)]


def test_a_run_shows_the_verdict_its_sections_and_the_worst_cases_first(app: WebApp, run: str):
    page = app.page(f"/runs/{run}")
    assert "cases newly fail" in page
    assert ids(page)[:3] == ["boil", "boil-again", "freeze"]
    for section in ("cases", "heat", "metrics", "speed", "judge", "history", "config"):
        assert f'<section id="{section}"' in page
        assert f'<a href="#{section}">' in page
    assert "pytest (unversioned)" in page
    assert len(page.encode()) < 150_000


def test_the_list_is_paged_by_links_that_keep_filter_and_order(app: WebApp, run: str):
    first = app.page(f"/runs/{run}?q=tag:filler&sort=id")
    assert len(ids(first)) == 50
    assert "1–50 of 60" in first
    (second,) = links(first, "next →")
    rest = app.page(second.partition("#")[0])
    assert ids(rest) == [f"filler-{number}" for number in range(50, 60)]
    assert links(rest, "← previous") == [f"/runs/{run}?q=tag%3Afiller&sort=id#cases"]
    assert ids(app.page(f"/runs/{run}?q=tag:filler&sort=id&page=99")) == ids(rest)


def test_cases_are_ordered_by_a_metric_or_latency_those_without_a_value_last(app: WebApp, run: str):
    by_score = ids(app.page(f"/runs/{run}?sort=recall_any@5&q=-tag:filler"))
    assert by_score[0] == "boil"
    assert set(by_score[-2:]) == {"freeze", "unknown"}
    assert len(ids(app.page(f"/runs/{run}?sort=-latency_ms&q=-tag:filler"))) == 5
    assert ids(app.page(f"/runs/{run}?sort=-id"))[0] == "남산-높이"


def test_chips_are_links_and_the_chosen_one_is_marked(app: WebApp, run: str):
    page = app.page(f"/runs/{run}?q=changed:worse")
    assert re.findall(r'aria-current="true">(.*?)</a>', page) == ["newly failing 2"]
    assert links(page, "errors 1") == [f"/runs/{run}?q=outcome%3Aerror#cases"]


def test_every_link_of_a_run_s_page_leads_somewhere(app: WebApp, run: str):
    page = app.page(f"/runs/{run}")
    addresses = {html.unescape(link) for link in re.findall(r'href="([^"]+)"', page)}
    anchors = {f"#{id}" for id in re.findall(r'id="([^"]+)"', page)}
    assert {link for link in addresses if link.startswith("#")} - anchors == set()
    others = {link.partition("#")[0] for link in addresses if link.startswith("/")} - {"/"}
    assert {link for link in others if app.get(link).status_code != 200} == set()


def test_a_case_is_the_fragment_of_the_report_with_its_neighbours_in_the_list(app: WebApp, run: str):
    page = app.page(f"/runs/{run}?q=changed:worse&sort=id")
    address = next(link for link in links(page, "boil") if "q=changed" in link)  # not of the slowest cases
    case = app.page(address)
    assert "1 of 2" in case
    assert "recall_any@5 = 0, needs" in html.unescape(case)
    assert "Answer now" in case
    (following,) = links(case, "next ")
    assert "boil-again" in unquote(following)
    assert "q=changed%3Aworse" in following
    assert links(case, "← cases") == [f"/runs/{run}?q=changed%3Aworse&sort=id#cases"]
    assert links(app.page(following), "previous ")[0].startswith(f"/runs/{run}/cases/evalcases%2Fa.jsonl%3A%3Aboil?")


def test_a_case_opened_without_a_filter_or_with_one_that_means_nothing_is_still_there(app: WebApp, run: str):
    address = f"/runs/{run}/cases/evalcases%2Fa.jsonl%3A%3Aboil"
    assert "1 of 65" in app.page(address)
    assert links(app.page(f"{address}?q=nothing<1"), "next ") == []


@pytest.mark.parametrize(
    "path",
    ["/runs/nothing", "/runs/{run}/cases/nothing", "/runs/..", "/runs/..%2f..", "/runs/.", "/runs/{run}%2f..",
     "/runs/%00", "/runs/{run}/cases/..%2f..%2fbot.py", "/runs/{run}/export.exe", "/runs/nothing/export.csv",
     "/runs/{run}/x",
     "/runs/" + "x" * 5_000],
)  # fmt: skip
def test_what_is_not_there_is_a_page_that_says_so(app: WebApp, run: str, path: str):
    head = f"GET {path.format(run=run)} HTTP/1.1\r\nHost: localhost\r\n{app.bearer}\r\nConnection: close"
    response = app.raw(f"{head}\r\n\r\n".encode())
    assert response.startswith(b"HTTP/1.1 404"), response[:500]


@pytest.mark.parametrize("query", ["?page=0", "?page=x", "?q=" + "x" * 3_000, "?view=x"])
def test_an_address_that_nobody_links_to_is_a_page_that_says_so(app: WebApp, run: str, query: str):
    assert app.get(f"/runs/{run}{query}").status_code in (200, 400)
    assert app.get(f"/runs/{run}/cases/evalcases%2Fa.jsonl%3A%3Aboil{query}").status_code in (200, 400)


def test_the_scores_of_the_most_cases_stand_first(app: WebApp, project: Project, run: str):
    scored = project.metrics()["metrics"]
    head = re.findall(r'<th scope="col"[^>]*>(.*?)</th>', app.page(f"/runs/{run}").partition('class="cases"')[2])
    cases = [scored[name]["n_scored"] for name in head if name in scored]
    assert len({*cases}) > 1
    assert cases == sorted(cases, reverse=True)


def test_a_run_is_exported_with_texts_scores_explanations_and_versions(app: WebApp, run: str):
    response = app.get(f"/runs/{run}/export.csv")
    assert response.headers["content-disposition"] == f'attachment; filename="{run}.csv"'
    rows = {row["test_case_id"]: row for row in csv.DictReader(io.StringIO(response.text))}
    assert len(rows) == 65
    boil = rows["boil"]
    assert boil["question"] == "What is the boiling point, boil?"
    assert boil["reference_answers"] == "Water boils at 100 degrees at sea level."
    assert float(boil["recall_any@5"]) == 0
    assert "correctness.explanation" in boil
    exported = json.loads(app.get(f"/runs/{run}/export.json").text)
    assert exported["run_id"] == run
    assert len(exported["cases"]) == 65
    assert exported["configuration"]["target"] == "bot:answer"


def test_the_end_of_the_log_is_shown_where_the_run_was_started_here(project: Project, app: WebApp, run: str):
    assert 'id="log"' not in app.page(f"/runs/{run}")
    lines = [f"line {number} <script>top.hacked=1</script>" for number in range(SHOWN_LINES + 50)]
    project.write(f"data/jobs/{run}/log.txt", "\n".join(lines) + "\n")
    page = app.page(f"/runs/{run}")
    shutil.rmtree(project.path / "data" / "jobs")
    assert "line 50 &lt;script&gt;" in page
    assert "line 49 " not in page
    assert f"line {SHOWN_LINES + 49} " in page


@pytest.fixture(scope="module")
def damaged_app(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebApp]:
    """An app over a copy of the runs, in which more copies are damaged."""
    root = tmp_path_factory.mktemp("damaged")
    shutil.copytree(project.path / "reports", root / "reports")
    with served(root) as app:
        yield app


@pytest.fixture
def copied(damaged_app: WebApp, run: str, tmp_path: Path) -> Iterator[tuple[WebApp, Path]]:
    """A copy of the run under a name of its own: cases of a run that may still grow are kept for a moment."""
    folder = damaged_app.settings.reports / "runs" / f"{run}_{tmp_path.name}"
    shutil.copytree(folder.with_name(run), folder)
    yield damaged_app, folder
    shutil.rmtree(folder)


@pytest.mark.reliability("web", "runs cancelled, killed and left by their server")
def test_every_case_that_a_killed_run_recorded_has_its_page(copied: tuple[WebApp, Path]):
    """Also one that a worker had written down, and its controller had not."""
    app, folder = copied
    (folder / "metrics.json").unlink()
    results = folder / "results.jsonl"
    boil, again, freeze, *_ = results.read_bytes().splitlines(True)
    results.write_bytes(boil + again + b'{"schema":2,"case_key":"cut')
    (folder / "results-gw1.jsonl").write_bytes(freeze)
    page = app.page(f"/runs/{folder.name}")
    assert "This run is interrupted" in page
    assert f"pytest --rageval-resume {folder.name}" in page
    assert "3 cases recorded" in page
    assert len(json.loads(app.get(f"/runs/{folder.name}/export.json").text)["cases"]) == 3
    assert ids(page) == ["freeze", "boil", "boil-again"]
    addresses = [links(page, id)[0] for id in ids(page)]
    shown = [app.page(address) for address in addresses]
    assert [re.findall(r'data-md="case">(.*?)</span>', each) for each in shown] == [
        ["freeze"],
        ["boil"],
        ["boil-again"],
    ]
    assert "the bot is &lt;b&gt;out&lt;/b&gt;" in shown[0]
    assert links(shown[0], "next") == [addresses[1]]
    assert f'<a href="/runs/{folder.name}#cases" data-key="Escape">' in shown[0]
    assert app.post(f"/runs/{folder.name}/draft", {"case": "evalcases/a.jsonl::freeze"}).status_code == 303
    assert app.get(f"/runs/{folder.name}/cases/evalcases%2Fa.jsonl%3A%3Afiller-01").status_code == 404


@pytest.mark.parametrize("name", ["config.json", "metrics.json", "results.jsonl", "scores.jsonl", "observations.jsonl"])
@pytest.mark.parametrize("content", [None, b"", b"{", b"[]", b"\xff\xfe\x00", b'{"metrics": {"x": 1}, "schema": 99}\n'])
def test_a_broken_run_says_what_is_missing_or_wrong(copied: tuple[WebApp, Path], name: str, content: bytes | None):
    app, folder = copied
    if content is None:
        (folder / name).unlink()
    else:
        (folder / name).write_bytes(content)
    for path in ("", "/cases/evalcases%2Fa.jsonl%3A%3Aboil", "/export.csv", "/export.json"):
        response = app.get(f"/runs/{folder.name}{path}")
        assert response.status_code in (200, 404, 409), f"{path}: {response.text}"
        assert "Something went wrong" not in response.text


def test_a_folder_that_holds_nothing_is_a_page_too(copied: tuple[WebApp, Path]):
    app, folder = copied
    (folder.parent / "empty").mkdir(exist_ok=True)
    assert "config.json" in app.page("/runs/empty")
    assert app.get("/runs/empty/export.csv").status_code == 409


def test_a_change_on_disk_is_seen_at_the_next_look(copied: tuple[WebApp, Path]):
    app, folder = copied
    assert "newly fail" in app.page(f"/runs/{folder.name}")
    metrics = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
    (folder / "metrics.json").write_text(json.dumps(metrics | {"description": "said afterwards"}), encoding="utf-8")
    assert "said afterwards" in app.page(f"/runs/{folder.name}")


def test_a_configuration_that_is_broken_is_said(copied: tuple[WebApp, Path]):
    app, folder = copied
    configuration = app.settings.root / "rageval.toml"
    configuration.write_text("k = 'five'\n", encoding="utf-8")
    page = app.page(f"/runs/{folder.name}")
    configuration.unlink()
    assert "rageval.toml: k is" in html.unescape(page)
