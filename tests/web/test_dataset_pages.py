"""Datasets in the browser, without scripts: edited case by case, compared, audited, exported."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pytest
from project import FOUNDING
from web_app import ONE, Fields, WebApp, confirm, errors_beside, imported, sent_by, store_of, upload

from pytest_rageval.cases.loading import load_file


def case_form(app: WebApp, slug: str, number: int, position: int | str, **fields: str) -> tuple[str, Fields]:
    address = f"/datasets/{slug}/versions/{number}/cases/{position}"
    return address, sent_by(app.page(address), address) | {"action": "save"} | fields


@pytest.mark.parametrize("position", range(1, 6))
def test_a_case_that_is_only_looked_at_stays_as_it_is(app: WebApp, position: int):
    slug = imported(app, f"Looked at {position}")
    address, fields = case_form(app, slug, 1, position)
    response = app.post(address, fields)
    assert response.status_code == 422
    assert "Nothing differs." in response.text


def test_editing_a_case_makes_the_next_version(app: WebApp):
    slug = imported(app, "Edited case")
    address, fields = case_form(app, slug, 1, 1, question=" What is it about? ", reference="Search.", tags="work, new")
    response = app.post(address, fields)
    assert response.headers["location"] == f"/datasets/{slug}/diff?before=1&after=2"
    page = app.page(response.headers["location"])
    assert "1 case changed." in page
    version = store_of(app).newest(slug)
    assert version.note == "case 'test_001': question, tags, gold.answer"
    before, after = store_of(app).cases(slug, 1), store_of(app).cases(slug, 2)
    assert (after[0].question, after[0].gold.answers, after[0].tags) == (
        "What is it about?", ("Search.",), ("work", "new"),
    )  # fmt: skip
    assert after[0].gold.supports == before[0].gold.supports
    assert [case.question for case in after[1:]] == [case.question for case in before[1:]]
    old = app.page(f"/datasets/{slug}/versions/1/cases/1")
    assert "This is not the newest version." in old
    assert 'value="save"' not in old


@pytest.mark.parametrize(
    ("fields", "field", "words"),
    [
        ({"question": " "}, "question", "is blank"),
        ({"question": "x" * 20_001}, "question", "has 20,001 characters"),
        ({"rest": "{"}, "rest", "not valid JSON"),
        ({"rest": "[]"}, "rest", "is no JSON object"),
        ({"rest": '{"gold": {"key_fcts": []}}'}, "rest", "did you mean"),
        ({"answerable": "no"}, "rest", "supports"),
    ],
)
def test_what_is_wrong_with_a_case_stands_beside_its_field(app: WebApp, fields: dict[str, str], field: str, words: str):
    slug = next((slug for slug in store_of(app).slugs() if slug == "wrong-case"), None) or imported(app, "Wrong case")
    address, sent = case_form(app, slug, 1, 1, **fields)
    response = app.post(address, sent)
    assert response.status_code == 422
    errors = errors_beside(response.text)
    assert any(words in message for message in errors.get(field, ())), errors
    again = sent_by(response.text, address)
    assert all(str(again[name]).strip() == value.strip() for name, value in fields.items())


def test_cases_are_added_and_removed(app: WebApp):
    slug = imported(app, "Growing", ONE)
    address, fields = case_form(app, slug, 1, "new", id="q1", question="Again?")
    assert "is used already" in errors_beside(app.post(address, fields).text)["id"][0]
    assert app.post(address, fields | {"id": "q3", "answerable": "no"}).status_code == 303
    assert [case.id for case in store_of(app).cases(slug, 2)] == ["q1", "q2", "q3"]
    address, fields = case_form(app, slug, 2, 1, action="remove")
    assert app.post(address, fields).status_code == 303
    assert [case.id for case in store_of(app).cases(slug, 3)] == ["q2", "q3"]
    assert store_of(app).newest(slug).note == "case 'q1' removed"


def test_the_last_case_cannot_be_removed(app: WebApp):
    slug = imported(app, "Single", FOUNDING / "golang.jsonl")
    address, fields = case_form(app, slug, 1, 1, action="remove")
    response = app.post(address, fields)
    assert response.status_code == 422
    assert "the only case" in response.text


def test_two_windows_that_edit_one_case_lose_nothing(app: WebApp):
    slug = imported(app, "Two windows", ONE)
    address, first = case_form(app, slug, 1, 1, reference="four")
    _, second = case_form(app, slug, 1, 1, reference="4.0")
    assert app.post(address, first).status_code == 303
    conflict = app.post(address, second)
    assert conflict.status_code == 409
    assert "Version 2 was saved meanwhile by another window." in conflict.text
    assert re.search(r'<del title="only in v2">four</del><ins title="only in yours">4.0</ins>', conflict.text)
    newer = f"/datasets/{slug}/versions/2/cases/1"
    kept = sent_by(conflict.text, newer)
    assert (kept["reference"], kept["based_on"]) == ("4.0", "2")
    assert app.post(newer, kept | {"action": "save"}).status_code == 303
    assert store_of(app).cases(slug, 3)[0].gold.answers == ("4.0",)


def test_a_case_that_is_gone_meanwhile_is_said(app: WebApp):
    slug = imported(app, "Gone", ONE)
    address, edit = case_form(app, slug, 1, 1, reference="four")
    assert app.post(address, edit | {"action": "remove"}).status_code == 303
    conflict = app.post(address, edit)
    assert conflict.status_code == 409
    assert "The case is not in that version; saved, what you typed becomes a new case." in conflict.text
    again = f"/datasets/{slug}/versions/2/cases/new"
    kept = sent_by(conflict.text, again)
    assert (kept["id"], kept["reference"]) == ("q1", "four")


def test_the_next_version_is_uploaded_and_its_note_says_what_differs(app: WebApp):
    slug = imported(app, "Uploaded twice", ONE)
    content = ONE.read_bytes().replace(b"Paris", b"Paris in France") + b"q3,Really?,Yes,,\n"
    address = upload(app, ("two.csv", content), dataset=slug)
    page = app.page(address)
    assert "This becomes version 2 of Uploaded twice." in page
    assert sent_by(page, address)["note"] == "1 case added, 1 case changed"
    assert confirm(app, address).status_code == 303
    version = store_of(app).newest(slug)
    assert (version.number, version.note, version.about.origin) == (2, "1 case added, 1 case changed", "two.csv")
    late = upload(app, ("late.csv", ONE.read_bytes()), dataset=slug)
    case = f"/datasets/{slug}/versions/2/cases/1"
    assert app.post(case, sent_by(app.page(case), case) | {"question": "Other?", "action": "save"}).status_code == 303
    refused = confirm(app, late)
    assert refused.status_code == 409
    assert "Version 3 was saved meanwhile by another window; nothing was overwritten." in refused.text
    assert store_of(app).newest(slug).number == 3


def test_a_name_that_is_taken_is_an_error_of_the_field(app: WebApp):
    imported(app, "Taken", ONE)
    response = confirm(app, upload(app, ("one.csv", ONE.read_bytes())), name="taken")
    assert response.status_code == 409
    assert "is taken" in errors_beside(response.text)["name"][0]


def test_exports_read_back_as_the_same_cases(app: WebApp, tmp_path: Path):
    slug = imported(app, "Exported")
    for form in ("jsonl", "csv"):
        file = app.get(f"/datasets/{slug}/versions/1/{form}")
        assert f'filename="{slug}-v1.{form}"' in file.headers["content-disposition"]
        assert file.headers["x-content-type-options"] == "nosniff"
        path = tmp_path / f"back.{form}"
        path.write_bytes(file.content)
        loaded = load_file(path, tmp_path)
        assert loaded.problems == ()
        there = store_of(app).cases(slug, 1)
        assert [(case.id, case.question, case.gold) for case in loaded.cases] == [
            (case.id, case.question, case.gold) for case in there
        ]


def test_the_audit_finds_what_is_wrong_with_the_labels(app: WebApp):
    slug = imported(app, "Audited")
    page = app.page(f"/datasets/{slug}/versions/1/audit")
    assert "Golds were not looked for in the notes: name their folder as notes in the configuration." in page
    (app.settings.root / "notes").mkdir()
    (app.settings.root / "rageval.toml").write_text('notes = "notes"\n', "utf-8")
    try:
        page = app.page(f"/datasets/{slug}/versions/1/audit")
    finally:
        (app.settings.root / "rageval.toml").unlink()
    assert "4 of 5 cases cannot be won" in page
    assert f'href="/datasets/{slug}/versions/1/cases/1"' in page
    assert f"rageval cases audit {store_of(app).path(slug, 1)}" in page


def test_unknown_datasets_versions_and_cases_are_pages_that_say_so(app: WebApp):
    slug = imported(app, "Known", ONE)
    for path in ("nobody", f"{slug}/versions/9", f"{slug}/versions/1/cases/3", f"{slug}/versions/1/cases/0",
                 f"{slug}/versions/1/cases/x", f"{slug}/diff?before=7", f"{slug}/versions/9/jsonl",
                 f"{slug}/versions/9/csv", "nobody/versions/1/audit", "..%2f..%2fetc"):  # fmt: skip
        assert app.get(f"/datasets/{path}").status_code == 404, path


def test_a_file_that_was_changed_or_cannot_be_read_is_said_on_its_page(app: WebApp):
    slug = imported(app, "Damaged", ONE)
    path = store_of(app).path(slug, 1)
    path.chmod(0o644)
    path.write_bytes(path.read_bytes() + b"{}\n")
    page = app.page(f"/datasets/{slug}")
    assert "was changed after it was saved" in page
    assert "question is missing" in page
    assert "! file" in app.page("/datasets")


def test_no_text_of_a_table_is_run_by_a_spreadsheet(app: WebApp):
    texts = ["=cmd|' /C calc'!A0", "@SUM(1)", "+1", "-1+2", "\uff1d1"]
    cases = "".join(json.dumps({"question": text, "category": text}) + "\n" for text in texts)
    slug = (
        confirm(app, upload(app, ("f.jsonl", cases.encode())), name="Formulas").headers["location"].rpartition("/")[2]
    )
    rows = list(csv.DictReader(io.StringIO(app.page(f"/datasets/{slug}/versions/1/csv"))))
    assert [row["question"] for row in rows] == [row["category"] for row in rows] == [f"'{text}" for text in texts]
