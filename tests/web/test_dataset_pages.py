"""Datasets in the browser, without scripts: imported in steps, edited case by case, compared, audited, exported."""

from __future__ import annotations

import io
import json
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from attacks import PAYLOADS
from founding_documents import FOUNDING
from web_app import WebApp, served
from web_forms import Fields, errors_beside, sent_by

from pytest_rageval.cases import load_file
from pytest_rageval.text import printable
from pytest_rageval.web.versions.dataset_store import DatasetStore

ONE, TWO, EVAL_SET = FOUNDING / "one.csv", FOUNDING / "two", FOUNDING / "eval_set.jsonl"


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebApp]:
    with served(tmp_path_factory.mktemp("datasets")) as app:
        yield app


def store_of(app: WebApp) -> DatasetStore:
    return DatasetStore(app.settings.data)


def upload(app: WebApp, cases: tuple[str, bytes], references: tuple[str, bytes] | None = None, **fields: str) -> str:
    """Send files; the address of the page that shows them."""
    response = send(app, cases, references, **fields)
    assert response.status_code == 303, errors_beside(response.text)
    return str(response.headers["location"])


def send(
    app: WebApp, cases: tuple[str, bytes], references: tuple[str, bytes] | None = None, **fields: str
) -> httpx.Response:
    files = {"cases": (cases[0], io.BytesIO(cases[1]))}
    if references is not None:
        files["references"] = (references[0], io.BytesIO(references[1]))
    return app.post("/datasets/uploads", fields, files=files)


def confirm(app: WebApp, address: str, **fields: str | list[str]) -> httpx.Response:
    """Press the button that saves."""
    return app.post(address, sent_by(app.page(address), address) | {"action": "import"} | fields)


def imported(app: WebApp, name: str, path: Path = EVAL_SET) -> str:
    """A dataset from a file; its slug."""
    response = confirm(app, upload(app, (path.name, path.read_bytes())), name=name)
    assert response.status_code == 303, response.text
    return str(response.headers["location"]).rpartition("/")[2]


def problems_on(page: str) -> list[str]:
    listed = re.search(r'<ol class="rows problems">(.*?)</ol>', page, re.DOTALL)
    return re.findall(r"<li>(.*?)</li>", listed[1]) if listed else []


# ── import ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_empty_list_is_an_instruction(web_app: WebApp):
    page = web_app.page("/datasets")
    assert 'href="/datasets/new"' in page
    assert f"{web_app.settings.data}/datasets/products/v1.jsonl" in page


def test_one_file_and_two_files_are_the_same_dataset(app: WebApp):
    one = upload(app, ("one.csv", ONE.read_bytes()))
    page = app.page(one)
    assert "2 cases, spelling reference" in page
    assert sent_by(page, one)["field"] == ["id", "question", "reference", "tag", "contexts"]
    assert "What is the capital of France?" in page
    assert not store_of(app).files.numbers("one")
    assert confirm(app, one, name="One", note="from the founders").status_code == 303
    questions, answers = TWO / "questions.csv", TWO / "answers.csv"
    two = upload(app, (questions.name, questions.read_bytes()), (answers.name, answers.read_bytes()))
    assert confirm(app, two, name="Two").status_code == 303
    store = store_of(app)
    assert store.files.content("one", 1) == store.files.content("two", 1)
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
        ("a.csv", "question,reference\na,b\n".encode("utf-16"), "a.csv:1:1: byte 0xff at offset 0: UTF-16, UTF-32 or"),
        ("a.csv", "question,reference\nä,b\n".encode("latin-1"), "a.csv:2:1: byte 0xe4 at offset 19 is not UTF-8"),
        ("a.csv", b"question;reference\na;b\n", "a.csv:1:1: the header is separated by semicolons; separate cells by"),
        ("a.csv", b"question,reference\na\n", "a.csv:2:1: the row has 1 cell, expected 2"),
        ("a.csv", b"question,reference\na,\n", "a.csv:2:3: reference is missing"),
        ("a.csv", b'id,question,reference\n1,a,b\n1,c,d\n', "a.csv:3:1: case &#39;1&#39;: id already used at line 2"),
        ("a.csv", b"question,contexts\na,not json\n", "a.csv:2:3: contexts is &#39;not json&#39;, expected JSON"),
        ("a.csv", b"question,reference\n" + b"a" * 20_001 + b",b\n", "a.csv:2:1: question has 20,001 characters"),
        ("a.csv", b"word,other\na,b\n", "no column gives the question"),
        ("a.jsonl", b'{"question": "q"}\n{"question": 3}\n', "a.jsonl:2:14: question is 3 (a number), expected"),
        ("a.json", b'[{"question": "q"},\n {"question": ""}]', "a.json:2:14: question is blank"),
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
    assert not store_of(app).files.numbers("wrong")


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
        ("a.xlsx", b"PK", "save it as CSV or JSONL"),
        ("a.csv", b"", "is empty"),
        ("../../etc/passwd", b"x", "passwd: is none of .csv, .jsonl, .json"),
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
    assert app.post(address, {"action": "discard"}).headers["location"] == "/datasets"
    assert not folder.exists()
    assert app.get(address).status_code == 404
    old = upload(app, ("one.csv", ONE.read_bytes()))
    kept = app.settings.data / "uploads" / old.rpartition("/")[2]
    os.utime(kept, (time.time() - 90_000,) * 2)
    assert app.get(old).status_code == 404
    upload(app, ("one.csv", ONE.read_bytes()))
    assert not kept.exists()


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


def test_hostile_cells_and_names_are_shown_as_texts(app: WebApp):
    texts = [text for text in PAYLOADS if "\x00" not in text]
    records = [{"id": f"{n} {text}", "question": text, "reference": text, "category": text, "tags": [text],
                "metadata": {text: text}} for n, text in enumerate(texts)]  # fmt: skip
    content = "\n".join(json.dumps(record) for record in records).encode()
    address = upload(app, (f"{texts[0]}.jsonl", content))
    pages = [app.page(address)]
    described = {"name": texts[15], "description": texts[1], "tags": texts[2], "note": texts[3]}
    assert confirm(app, address, **described).status_code == 303
    (slug,) = [slug for slug in store_of(app).files.slugs() if store_of(app).newest(slug).about.name == texts[15]]
    assert [case.question for case in store_of(app).cases(slug, 1)] == [text.strip() for text in texts]
    below = ("", "/versions/1/audit", "/versions/1/cases/1", "/diff")
    pages += [app.page(path) for path in ("/datasets", *(f"/datasets/{slug}{path}" for path in below))]
    for page in pages:
        assert not re.search(r"<(script>|script src=data|img|svg|iframe|object|embed|base |marquee)", page)
    shown = printable(texts[30]).strip().replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    assert shown.replace("'", "&#39;").replace('"', "&#34;") in pages[2]


# ── cases ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


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
    slug = next((slug for slug in store_of(app).files.slugs() if slug == "wrong-case"), None) or imported(
        app, "Wrong case"
    )
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
    late = upload(app, ("late.csv", ONE.read_bytes()), dataset=slug)
    assert confirm(app, address).status_code == 303
    version = store_of(app).newest(slug)
    assert (version.number, version.note, version.about.origin) == (2, "1 case added, 1 case changed", "two.csv")
    refused = confirm(app, late)
    assert refused.status_code == 409
    assert "Version 2 was saved meanwhile by another window; nothing was overwritten." in refused.text
    assert store_of(app).newest(slug).number == 2


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


def test_unknown_datasets_versions_and_cases_are_pages_that_say_so(app: WebApp):
    slug = imported(app, "Known", ONE)
    for path in ("nobody", f"{slug}/versions/9", f"{slug}/versions/1/cases/3", f"{slug}/versions/1/cases/0",
                 f"{slug}/versions/1/cases/x", f"{slug}/diff?before=7", f"{slug}/versions/9/jsonl",
                 f"{slug}/versions/9/csv", "nobody/versions/1/audit", "..%2f..%2fetc"):  # fmt: skip
        assert app.get(f"/datasets/{path}").status_code == 404, path


def test_a_file_that_was_changed_or_cannot_be_read_is_said_on_its_page(app: WebApp):
    slug = imported(app, "Damaged", ONE)
    path = store_of(app).files.path(slug, 1)
    path.chmod(0o644)
    path.write_bytes(path.read_bytes() + b"{}\n")
    page = app.page(f"/datasets/{slug}")
    assert "was changed after it was saved" in page
    assert "question is missing" in page
    assert "! file" in app.page("/datasets")
