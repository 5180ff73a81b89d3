"""Datasets imported in the browser, without scripts: uploaded, looked at, mapped, and saved when nothing is wrong."""

from __future__ import annotations

import csv
import io
import json
import os
import time
import zipfile
from pathlib import Path

import pytest
from openpyxl import Workbook
from project import FOUNDING, Project
from web_app import (
    EVAL_SET,
    ONE,
    TWO,
    WebApp,
    confirm,
    errors_beside,
    imported,
    problems_on,
    send,
    sent_by,
    served,
    store_of,
    upload,
)

from pytest_rageval.cases.exchange.tables import workbook_as_csv
from pytest_rageval.cases.loading import load_file
from pytest_rageval.errors import CaseError
from pytest_rageval.model import Anchor
from pytest_rageval.web.site import WebSettings


def test_one_file_and_two_files_are_the_same_dataset(app: WebApp):
    one = upload(app, ("one.csv", ONE.read_bytes()))
    page = app.page(one)
    assert "2 cases, each with a reference answer" in page
    assert sent_by(page, one)["field"] == ["id", "question", "reference", "tag", "contexts"]
    assert "What is the capital of France?" in page
    assert not store_of(app).numbers("one")
    assert confirm(app, one, name="One", note="from the founders").status_code == 303
    questions, answers = TWO / "questions.csv", TWO / "answers.csv"
    two = upload(app, (questions.name, questions.read_bytes()), (answers.name, answers.read_bytes()))
    assert confirm(app, two, name="Two").status_code == 303
    store = store_of(app)
    assert store.content("one", 1) == store.content("two", 1)
    assert store.newest("one").note == "from the founders"
    assert store.newest("two").about.origin == "questions.csv + answers.csv"
    assert app.get(one).status_code == app.get(two).status_code == 404


def test_a_case_file_of_the_founders_loads_as_it_does_elsewhere(app: WebApp):
    slug = imported(app, "Eval set")
    there = [case.question for case in store_of(app).cases(slug, 1)]
    assert there == [case.question for case in load_file(EVAL_SET, FOUNDING).cases]
    assert "What is the capital of Mars?" in app.page(f"/datasets/{slug}")


def test_columns_of_other_tools_are_guessed_and_can_be_chosen_otherwise(app: WebApp):
    content = b"user_input,ground_truth,response,owner,Sorte\nwhy?, because ,x,me,factual\n"
    address = upload(app, ("ragas.csv", content))
    page = app.page(address)
    assert sent_by(page, address)["field"] == ["question", "reference", "", "metadata.*", "metadata.*"]
    fields = {"field": ["question", "reference", "", "domain", "category"]}
    again = app.post(address, sent_by(page, address) | fields | {"action": "check"})
    assert again.status_code == 200
    assert sent_by(again.text, address)["field"] == fields["field"]
    assert confirm(app, address, name="Ragas", **fields).status_code == 303
    (case,) = store_of(app).cases("ragas", 1)
    assert (case.question, case.gold.answers, case.domain, case.category) == ("why?", ("because",), "me", "factual")
    assert case.metadata == {}


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("a.jsonl", '{"question": "ä"}'.encode("utf-16"), "a.jsonl:1:1: byte 0xff at offset 0: UTF-16, UTF-32 or"),
        ("a.jsonl", '{"question": "ä"}'.encode("latin-1"), "a.jsonl:1:15: byte 0xe4 at offset 14 is not UTF-8"),
        ("a.csv", b"question,reference\n\x81,b\n", "a.csv:2:1: byte 0x81 at offset 19 is not UTF-8"),
        ("a.csv", b'question;reference\n"a;b\n', "a.csv:2:1: the row has a quote that is never closed"),
        ("a.csv", b"question,reference\na\n", "a.csv:2:1: the row has 1 cell, expected 2"),
        ("a.csv", b"question,reference\na,\n", "a.csv:2:3: reference is missing"),
        ("a.csv", b'id,question,reference\n1,a,b\n1,c,d\n', "a.csv:3:1: case &#39;1&#39;: id already used at line 2"),
        ("a.csv", b"question,answerable\na,perhaps\n", "a.csv:2:3: answerable is &#39;perhaps&#39;"),
        ("a.csv", b"question,reference\n" + b"a" * 20_001 + b",b\n", "a.csv:2:1: question has 20,001 characters"),
        ("a.csv", b"word,other\na,b\n", "no column gives the question"),
        ("a.jsonl", b'{"question": "q"}\n{"question": 3}\n', "a.jsonl:2:14: question is 3 (a number), expected"),
        ("a.json", b'[{"question": "q"},\n {"question": ""}]', "a.json: row 2: question is missing"),
        ("a.json", b'{"questions": []}', "a.json: "),
    ],
    ids=lambda value: None,
)  # fmt: skip
def test_what_is_wrong_is_said_by_line_and_nothing_is_saved(app: WebApp, name: str, content: bytes, problem: str):
    address = upload(app, (name, content))
    problems = problems_on(app.page(address))
    assert any(line.startswith(problem) for line in problems), problems
    refused = confirm(app, address, name="Wrong")
    assert refused.status_code == 422
    assert "Nothing is saved as long as the file has problems." in refused.text
    assert not store_of(app).numbers("wrong")


def test_all_problems_of_a_file_are_listed_and_beyond_a_limit_counted(app: WebApp):
    content = b"id,question,reference\n" + b"".join(b"%d,,x\n" % number for number in range(1200))
    page = app.page(upload(app, ("a.csv", content)))
    assert len(problems_on(page)) == 1000
    assert len(page.encode()) < 150_000


def test_two_files_that_do_not_fit_say_which_ids(app: WebApp):
    page = app.page(upload(app, ("q.csv", b"id,question\na,x\nb,y\n"), ("r.csv", b"id,reference\na,1\nc,2\n")))
    assert problems_on(page) == [
        "q.csv:3:1: case &#39;b&#39;: id has no reference in r.csv",
        "r.csv:3:1: case &#39;c&#39;: no question has this id in q.csv",
    ]


def test_texts_are_trimmed_of_both_files_and_a_byte_order_mark_is_no_text(app: WebApp):
    questions = "\ufeffid,question\n a , what? \n".encode()
    address = upload(app, ("q.csv", questions), ("r.csv", b"id,ground_truth\na , this \n"))
    assert confirm(app, address, name="Trimmed").status_code == 303
    (case,) = store_of(app).cases("trimmed", 1)
    assert (case.id, case.question, case.gold.answers) == ("a", "what?", ("this",))


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.xlsx", b"PK", "no workbook that can be read"),
        ("a.csv", b"", "is empty"),
        ("../../etc/passwd", b"x", "passwd: is none of .csv, .tsv, .xlsx, .jsonl"),
    ],
)
def test_what_is_no_such_file_is_refused_at_once(app: WebApp, name: str, content: bytes, words: str):
    response = send(app, (name, content))
    assert response.status_code == 422
    assert words in errors_beside(response.text)["cases"][0]


def test_a_form_without_a_file_says_so(app: WebApp):
    response = app.post("/datasets/uploads", {}, files={"other": ("", b"")})
    assert response.status_code == 422
    assert errors_beside(response.text)["cases"] == ["choose a file"]


def test_limits_are_settings(tmp_path: Path):
    with served(tmp_path, limits={"upload_rows": 3, "field_characters": 10}) as app:
        rows = b"".join(b"q%d,r\n" % number for number in range(4))
        (problem,) = problems_on(app.page(upload(app, ("a.csv", b"question,reference\n" + rows))))
        assert problem == "a.csv:5:1: the file has more than 3 rows; split it"
        (problem,) = problems_on(app.page(upload(app, ("a.csv", b"question,reference\nshort,eleven letters\n"))))
        assert problem.startswith("a.csv:2:7: reference has 14 characters, expected at most 10")


def test_an_upload_waits_for_a_day_under_a_name_of_ours_and_can_be_forgotten(app: WebApp):
    address = upload(app, ("<b>../x.csv", ONE.read_bytes()))
    folder = app.settings.data / "uploads" / address.rpartition("/")[2]
    assert sorted(path.name for path in folder.iterdir()) == ["cases.csv", "upload.json"]
    assert app.post(address, {"action": "discard"}).headers["location"] == "/datasets/new"
    assert not folder.exists()
    assert app.get(address).status_code == 404
    old = upload(app, ("one.csv", ONE.read_bytes()))
    kept = app.settings.data / "uploads" / old.rpartition("/")[2]
    os.utime(kept, (time.time() - 90_000,) * 2)
    assert app.get(old).status_code == 404
    upload(app, ("one.csv", ONE.read_bytes()))
    assert not kept.exists()


TABLE = (
    ("Frage", "Antwort", "Kategorie"), ("Was heißt „groß“?", "sehr, sehr hoch", "Größe"),
    ('Wie sagt man "hallo";\noder tschüß?', "so; oder so", ""),
)  # fmt: skip


def as_spreadsheet(rows: tuple[tuple[str, ...], ...], separator: str, encoding: str) -> bytes:
    written = io.StringIO(newline="")
    csv.writer(written, delimiter=separator).writerows(rows)
    return written.getvalue().encode(encoding)


def test_columns_of_files_and_headings_are_the_places_of_the_answer(app: WebApp):
    content = "Frage;Antwort;Quelle;Abschnitt\nWas?;A;a.md;B\nWo?;C;a.md,b.md;D\nWer?;E;;F\n"
    address = upload(app, ("de.csv", content.encode()))
    assert sent_by(app.page(address), address)["field"] == ["question", "reference", "document", "section"]
    assert confirm(app, address, name="Orte").status_code == 303
    one, two, none = store_of(app).cases("orte", 1)
    assert (one.gold.supports, one.metadata) == ((Anchor("a.md", "B"),), {})
    assert (two.gold.supports, two.metadata) == ((Anchor("a.md"), Anchor("b.md")), {"Abschnitt": "D"})
    assert (none.gold.supports, none.metadata) == (None, {"Abschnitt": "F"})


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "utf-16"])
def test_a_table_is_read_as_a_spreadsheet_of_another_country_saves_it(app: WebApp, separator: str, encoding: str):
    address = upload(app, ("Fragen.csv", as_spreadsheet(TABLE, separator, encoding)))
    page = app.page(address)
    assert ("This file is read as" in page) == (separator != "," or encoding not in ("utf-8", "utf-8-sig"))
    name = f"Fragen {encoding} {ord(separator)}"
    assert confirm(app, address, name=name).status_code == 303
    (slug,) = [slug for slug in store_of(app).slugs() if store_of(app).newest(slug).about.name == name]
    cases = store_of(app).cases(slug, 1)
    assert [(case.question, *(case.gold.answers or ()), case.category or "") for case in cases] == [*TABLE[1:]]


@pytest.mark.parametrize(
    ("encoding", "guess", "words"),
    [("cp932", "cp932", ("質問", "正解", "返品はいつまでできますか？", "購入から30日以内です。")),
     ("cp949", "cp949", ("질문", "정답", "반품 기한은?", "30일입니다."))],
)  # fmt: skip
def test_an_encoding_is_guessed_and_another_can_be_chosen(
    app: WebApp, encoding: str, guess: str, words: tuple[str, ...]
):
    address = upload(app, ("a.csv", as_spreadsheet((words[:2], words[2:]), ",", encoding)))
    fields = sent_by(app.page(address), address)
    assert fields["encoding"] == guess
    chosen = {**fields, "encoding": encoding, "action": "reread"}
    page = app.post(address, chosen).text
    assert sent_by(page, address)["field"] == ["question", "reference"]
    assert words[2] in page
    wrong = app.post(address, {**chosen, "encoding": "utf-8", "separator": ";"})
    assert "is not UTF-8, at least not all of it; choose another encoding" in wrong.text
    assert words[2] in wrong.text
    assert app.post(address, {**chosen, "encoding": "rot13"}).status_code == 200
    assert confirm(app, address, name=f"By {encoding}").status_code == 303
    (case,) = store_of(app).cases(f"by-{encoding}", 1)
    assert (case.question, case.gold.answers) == (words[2], (words[3],))


def test_references_in_a_file_of_their_own_are_shown_and_their_columns_chosen(app: WebApp):
    questions, references = b"Nr;Frage\n1;Warum?\n", b"Nr;Kommentar;Text\n1;x;Darum.\n"
    address = upload(app, ("fragen.csv", questions), ("loesung.csv", references))
    page = app.page(address)
    assert "no column of the references gives the reference; choose which one does" in page
    assert "Darum." in page
    fields = sent_by(page, address)
    assert (fields["field"], fields["reference_field"]) == (["id", "question"], ["id", "", ""])
    chosen = {"reference_field": ["id", "", "reference"]}
    assert "1 case, each with a reference answer" in app.post(address, fields | chosen | {"action": "check"}).text
    assert confirm(app, address, name="Fragen und Lösung", **chosen).status_code == 303
    (slug,) = [slug for slug in store_of(app).slugs() if slug.startswith("fragen-und")]
    (case,) = store_of(app).cases(slug, 1)
    assert (case.id, case.question, case.gold.answers) == ("1", "Warum?", ("Darum.",))


def test_another_file_can_be_chosen_beside_the_problems_also_for_a_next_version(app: WebApp):
    slug = imported(app, "Chosen again", ONE)
    address = upload(app, ("a.csv", b"question,reference\na,\n"), dataset=slug)
    page = app.page(address)
    assert page.index("Choose another file") < page.index("reference is missing")
    again = app.post(address, {"action": "discard"})
    assert again.headers["location"] == f"/datasets/new?dataset={slug}"
    assert app.get(address).status_code == 404


@pytest.mark.parametrize("upload_id", ["x", "0" * 32, "%2e%2e", "0" * 31 + "%0a"])
def test_an_unknown_upload_is_a_page_that_says_so(app: WebApp, upload_id: str):
    assert app.get(f"/datasets/uploads/{upload_id}").status_code == 404


def test_ten_thousand_rows_are_looked_at_saved_and_paged(app: WebApp):
    lines = "".join(f'q{n},"What is {n}, and why?",It is {n}.,even{n % 2}\n' for n in range(10_000))
    address = upload(app, ("big.csv", f"id,question,reference,category\n{lines}".encode()))
    page = app.page(address)
    assert "10,000 cases" in page or "10000 cases" in page
    assert page.count("<tr>") <= 30
    assert confirm(app, address, name="Big").status_code == 303
    listed = app.page("/datasets/big?category=even1&at=3")
    assert "5,000 cases" in listed or "5000 cases" in listed
    assert "page 3 of 100" in listed
    assert "q201<" in listed
    assert len(listed.encode()) < 150_000
    assert app.page("/datasets/big?q=9999").count('<th scope="row"><a') == 2


def test_limits_are_options_of_the_command(project: Project, monkeypatch: pytest.MonkeyPatch):
    started: list[WebSettings] = []
    monkeypatch.setattr("pytest_rageval.web.server.serve_web", lambda _, settings, *__, **___: started.append(settings))
    assert project.rageval("web", "--upload-rows", "7", "--field-characters", "9").ret == 0
    assert project.rageval("web").ret == 0
    assert [(s.limits.upload_rows, s.limits.field_characters) for s in started] == [(7, 9), (100_000, 20_000)]


def test_a_file_that_is_called_by_its_ending_alone_is_read_as_what_that_says(app: WebApp):
    response = confirm(app, upload(app, (".csv", b"question\nWhat?\n")), name="Ending")
    assert response.status_code == 303, problems_on(response.text)


def test_a_file_of_thousands_of_columns_is_refused_at_once(app: WebApp):
    header = ",".join(f"c{number}" for number in range(20_000)).encode()
    values = ",".join("v" for _ in range(20_000)).encode()
    response = send(app, ("wide.csv", header + b"\n" + values + b"\n"))
    assert response.status_code == 422
    assert "20,000 columns" in response.text
    assert len(response.text) < 10_000


def a_workbook(*rows: tuple[object, ...]) -> bytes:
    book, file = Workbook(), io.BytesIO()
    for row in rows:
        book.active.append([*row])
    book.save(file)
    return file.getvalue()


def test_the_first_sheet_of_a_workbook_is_a_table(app: WebApp):
    rows = (
        ("Frage", "Antwort", "price"),
        ("Why, and; when?", "So", 3.0),
        (None, None, None),
        ("Where?", "Here", 2.5),
    )
    address = upload(app, ("fragen.xlsx", a_workbook(*rows)))
    page = app.page(address)
    assert "how the file is written" not in page
    assert sent_by(page, address)["field"] == ["question", "reference", "metadata.*"]
    response = confirm(app, address, name="From a workbook")
    assert response.status_code == 303, (errors_beside(response.text), problems_on(response.text))
    first, second = store_of(app).cases("from-a-workbook", 1)
    assert (first.question, first.metadata) == ("Why, and; when?", {"price": "3"})
    assert (second.question, second.gold.answers) == ("Where?", ("Here",))


def test_a_workbook_that_holds_too_much_is_refused_unread(tmp_path: Path):
    file = tmp_path / "bomb.xlsx"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("xl/sharedStrings.xml", b"x" * 3_000_000)
    with pytest.raises(CaseError, match="holds 3,000,000 bytes unpacked, expected at most 2,000,000"):
        workbook_as_csv(file, "bomb.xlsx", 100_000, 10)
    book = tmp_path / "long.xlsx"
    book.write_bytes(a_workbook(*[("question",)] * 20))
    with pytest.raises(CaseError, match="more than 10 rows"):
        workbook_as_csv(book, "long.xlsx", 100_000, 10)


PROMPTFOO = """tests:
  - vars: {question: "Where is Seoul?"}
    assert: [{type: contains, value: Korea}]
  - vars: {question: "Where is Bonn?"}
    assert: [{type: equals, value: Germany}]
"""
MLFLOW = json.dumps({"inputs": {"question": "Where is Seoul?"}, "expectations": {"expected_response": "In Korea."}})


@pytest.mark.parametrize(
    ("name", "content", "cases"),
    [("tests.yaml", PROMPTFOO, 2), ("mlflow.jsonl", f"{MLFLOW}\n", 1), ("mlflow.json", f"[{MLFLOW}]", 1)],
)
def test_a_test_set_of_another_tool_needs_no_choice_of_columns(app: WebApp, name: str, content: str, cases: int):
    address = upload(app, (name, content.encode()))
    page = app.page(address)
    assert "A test set of another tool" in page
    assert "Where is Seoul?" in page
    response = confirm(app, address, name=f"Of {name}")
    assert response.status_code == 303
    slug = str(response.headers["location"]).rpartition("/")[2]
    stored = store_of(app).cases(slug, 1)
    assert [case.question for case in stored] == ["Where is Seoul?", "Where is Bonn?"][:cases]
    assert all(case.gold.answers or case.gold.key_facts for case in stored)


@pytest.mark.parametrize("content", ["a: &a [x, x]\ntests: [*a, *a]\n", "tests: " + "[" * 200, "tests: [}"])
def test_yaml_that_grows_or_is_broken_is_a_problem_with_its_line(app: WebApp, content: str):
    problems = problems_on(app.page(upload(app, ("tests.yaml", content.encode()))))
    assert problems
    assert problems[0].startswith("tests.yaml:")


def test_a_table_with_tabs_is_read_by_its_suffix(app: WebApp):
    address = upload(app, ("table.tsv", b"question\treference\nWhere?\tHere.\n"))
    assert sent_by(app.page(address), address)["field"] == ["question", "reference"]


def test_columns_of_golden_files_are_guessed_and_shown_with_the_first_case(app: WebApp):
    rows = (
        b"question,expected_answer,must_contain,source,page,unanswerable\n"
        b"How deep?,Two metres.,two|metres,pond.pdf,4,no\nWho dug it?,nan,,,,yes\n"
    )
    address = upload(app, ("golden.csv", rows))
    page = app.page(address)
    assert sent_by(page, address)["field"] == [
        "question", "reference", "expected_key_facts", "document", "page", "answerable"
    ]  # fmt: skip
    assert "first case: question &#39;How deep?&#39;, gold &#39;Two metres.&#39;" in page
    assert "answerable yes; first without an answer: &#39;Who dug it?&#39;" in page
    assert confirm(app, address, name="Golden").status_code == 303
    deep, dug = store_of(app).cases("golden", 1)
    assert (deep.gold.key_facts, deep.gold.supports) == (("two", "metres"), (Anchor("pond.pdf", "page 4"),))
    assert (dug.answerable, dug.gold.answers) == (False, None)
