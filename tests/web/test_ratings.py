"""Thumbs and notes: given by keys, kept beside the run, exported with the answers, drafts and labels of a judge."""

from __future__ import annotations

import csv
import html
import json
import re
from pathlib import Path

import pytest
from browser import Chromium
from project import Project, a_case, a_missed_case
from stored_runs import change_lines
from web_app import WebApp, served, text_of

CASES = ("a", "b", "c")
KEYS = {name: f"evalcases/a.jsonl::{name}" for name in CASES}


@pytest.fixture
def project(project: Project) -> Project:
    project.cases([a_case("a"), a_missed_case("b", question="What is <b>boiling</b>?"), a_case("c")])
    project.rageval("run", "--run-id", "now")
    return project


def ratings(project: Project) -> dict[str, dict[str, object]]:
    file = project.path / "reports/runs/now/ratings.json"
    return dict(json.loads(file.read_text(encoding="utf-8"))["ratings"]) if file.exists() else {}


def address(name: str) -> str:
    return f"/runs/now/cases/evalcases%2Fa.jsonl%3A%3A{name}"


def rate(app: WebApp, name: str, do: str, note: str = "") -> None:
    sent = {"case": KEYS[name], "do": do, "note": note, "back": address(name)}
    response = app.post("/runs/now/rating", sent)
    assert (response.status_code, response.headers["location"]) == (303, address(name))


def exported(project: Project, form: str) -> Path:
    result = project.rageval("export", "now", "--format", form)
    assert result.ret == 0, result.stderr.str()
    return project.path / f"reports/runs/now/report.{form}"


@pytest.mark.browser
def test_a_thumb_takes_one_key_and_a_thumb_down_opens_the_draft_with_the_next(chromium: Chromium, project: Project):
    with served(project.path) as app, chromium.page() as page:
        page.goto(f"{app.address}{address('b')}")
        page.keyboard.press("-")
        page.wait_for_selector("[aria-pressed=true]")
        assert ratings(project)[KEYS["b"]]["thumb"] == "down"
        page.keyboard.press("w")
        page.keyboard.type("It gave no number")
        page.keyboard.press("Enter")
        page.wait_for_function("() => document.querySelector('[name=note]').defaultValue === 'It gave no number'")
        assert ratings(project)[KEYS["b"]] | {"answer": ""} == {
            "thumb": "down", "note": "It gave no number", "trial": 0, "answer": "",
        }  # fmt: skip
        page.keyboard.press("g")
        page.wait_for_url("**/label/cases?*drafts.jsonl*")
        assert "What is <b>boiling</b>?" in page.inner_text(".question")
        page.goto(f"{app.address}{address('a')}")
        page.keyboard.press("+")
        page.wait_for_selector("[aria-pressed=true]")
        page.keyboard.press("+")
        page.wait_for_selector("[aria-pressed=true]", state="hidden")
        assert {*ratings(project)} == {KEYS["b"]}
        assert page.problems == []


def test_ratings_stand_in_the_list_and_in_every_export(project: Project):
    with served(project.path) as app:
        head = re.findall(r'<th scope="col"[^>]*>(.*?)</th>', app.page("/runs/now").partition('class="cases"')[2])
        assert "thumb" not in head
        rate(app, "a", "up", "=right & short")
        rate(app, "b", "down")
        page = app.page("/runs/now")
        assert 'data-label="thumb">up' in page
        assert 'data-label="note">=right &amp; short' in page
        rows = {row["test_case_id"]: row for row in csv.DictReader(app.get("/runs/now/export.csv").text.splitlines())}
        assert (rows["a"]["thumb"], rows["a"]["note"]) == ("up", "'=right & short")
        labels = app.get("/runs/now/export.labels").text.splitlines()
        assert app.get("/runs/now/export.xlsx").status_code == 200
    assert [json.loads(line) for line in labels] == [
        {"run": "now", "case_key": KEYS["a"], "human_pass": True},
        {"run": "now", "case_key": KEYS["b"], "human_pass": False},
    ]
    records = json.loads(exported(project, "json").read_text(encoding="utf-8"))["cases"]
    assert {record["test_case_id"]: record.get("thumb") for record in records} == {"a": "up", "b": "down", "c": None}
    assert "\nup" not in exported(project, "csv").read_text(encoding="utf-8")
    assert exported(project, "sqlite").stat().st_size


def test_thumbs_are_labels_for_calibrate(project: Project):
    with served(project.path) as app:
        rate(app, "a", "up")
        rate(app, "b", "down")
        rate(app, "c", "note", "only a note")
    labels = exported(project, "labels")
    result = project.rageval("calibrate", str(labels), "--rubric", "groundedness", "--format", "json")
    assert result.ret == 0, result.stderr.str()
    assert json.loads(result.stdout.str())["n_scored"] == 2


def test_ratings_outlive_a_re_scoring_and_are_not_those_of_a_later_answer(project: Project):
    with served(project.path) as app:
        rate(app, "a", "up", "well said")
        before = ratings(project)
        assert project.rageval("score", "now").ret in (0, 1)
        assert ratings(project) == before
        assert 'value="well said"' in app.page(address("a"))
        results = project.path / "reports/runs/now/results.jsonl"
        change_lines(results, lambda line: re.sub(r'"answer":"[^"]*"', '"answer":"Another one."', line))
        assert "were given to another answer" in text_of(app.page(address("a")))
        assert app.get("/runs/now/export.labels").text == ""


def test_what_cannot_be_rated_is_said_and_nothing_is_written(project: Project):
    with served(project.path) as app:
        assert app.post("/runs/now/rating", {"case": "nothing", "do": "up"}).status_code == 404
        assert app.post("/runs/nothing/rating", {"case": KEYS["a"], "do": "up"}).status_code == 404
        assert app.post("/runs/now/rating", {"case": KEYS["a"], "do": "burn"}).status_code == 422
        assert app.post("/runs/now/rating", {"case": KEYS["a"], "do": "note", "note": "x" * 2_001}).status_code == 422
        away = {"case": KEYS["a"], "do": "up", "back": "//evil.example/x"}
        assert app.post("/runs/now/rating", away).headers["location"] == address("a")
        rate(app, "a", "note", "<script>top.hacked=1</script>\u202e")
        assert "<script>top" not in app.page(address("a"))
        rate(app, "a", "clear")
        assert ratings(project) == {}
        file = project.path / "reports/runs/now/ratings.json"
        for content in ("{", "[]", '{"ratings": {"a": 1}}', '{"ratings": {"a": {"thumb": "sideways"}}}'):
            file.write_text(content, encoding="utf-8")
            assert "ratings.json" in html.unescape(app.page(address("a")))
            assert app.page("/runs/now")
            assert app.post("/runs/now/rating", {"case": KEYS["a"], "do": "up"}).status_code == 409
            assert file.read_text(encoding="utf-8") == content
