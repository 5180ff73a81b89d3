"""What the app holds for anybody is bounded: connections, failures, uploads, locks; and links lead nowhere."""

from __future__ import annotations

import html
import json
import os
import time
from pathlib import Path
from unittest.mock import Mock

import pytest
from stored_runs import a_result, a_run
from web_app import WebApp, imported, problems_on, served, upload

from pytest_rageval.cases.loading import MAX_LINE_BYTES, cases_of_rows
from pytest_rageval.errors import CaseError, SettingsError
from pytest_rageval.model import EvalCase
from pytest_rageval.web import dataset_upload
from pytest_rageval.web.jobs.job import log_tail
from pytest_rageval.web.run_choice import read_answers_upload
from pytest_rageval.web.sessions import FAILURES, LoginFailures, network_of
from pytest_rageval.web.versions.dataset_store import DatasetStore

pytestmark = pytest.mark.reliability("web", "large and many-part requests")

ROWS = b"id,question,reference\nq1,Why?,So\n"


def test_guessing_from_one_address_keeps_nobody_else_out():
    failures = LoginFailures()
    for _ in range(FAILURES):
        failures.add("203.0.113.7")
    assert failures.are_too_many("203.0.113.7")
    assert failures.are_too_many("::ffff:203.0.113.7")
    assert not failures.are_too_many("203.0.113.8")


def test_a_household_has_many_addresses_and_is_one():
    assert network_of("2001:db8:1:2::1") == network_of("2001:db8:1:2:ffff::9") != network_of("2001:db8:1:3::1")
    assert network_of("fe80::1%eth0") == network_of("fe80::2")


def aged(app: WebApp, address: str, seconds: float) -> Path:
    folder = app.settings.data / "uploads" / address.rpartition("/")[2]
    then = time.time() - seconds
    os.utime(folder, (then, then))
    return folder


def test_a_session_holds_one_upload_and_the_app_so_many(web_app: WebApp, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("pytest_rageval.web.upload.MOST_KEPT", 2)
    first, second = (upload(web_app, ("a.csv", ROWS)) for _ in range(2))
    assert web_app.get(first).status_code == 404
    old = aged(web_app, second, 60)
    for _ in range(2):
        web_app.client.cookies.clear()
        web_app.log_in(web_app.client)
        newest = upload(web_app, ("a.csv", ROWS))
    assert not old.exists()
    assert web_app.get(newest).status_code == 200
    assert len(list(old.parent.iterdir())) == 2


def test_a_file_is_read_once_for_its_preview_and_for_what_is_decided(web_app: WebApp, monkeypatch: pytest.MonkeyPatch):
    read = Mock(side_effect=cases_of_rows)
    monkeypatch.setattr(dataset_upload, "cases_of_rows", read)
    address = upload(web_app, ("a.csv", ROWS))
    pages = [web_app.page(address) for _ in range(3)]
    assert pages[0] == pages[2]
    read.assert_called_once()
    assert web_app.post(address, {"action": "discard"}).status_code == 303
    assert not dataset_upload.read_dataset.cache_info().currsize


def test_a_file_of_broken_rows_is_not_read_to_its_end(web_app: WebApp, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(dataset_upload, "MOST_BROKEN", 20)
    page = web_app.page(upload(web_app, ("a.jsonl", b"{broken\n" * 1_000)))
    problems = problems_on(page)
    assert len(problems) < 30
    assert "more than 20 rows cannot be read" in problems[-1]


@pytest.mark.parametrize("line", ['{"id": "q%d", "answer": "4"}\n', "{broken %d\n"])
def test_answers_beyond_the_limit_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str):
    file = tmp_path / "answers.jsonl"
    file.write_text("".join(line % number for number in range(100)))
    taken: list[int] = []
    monkeypatch.setattr("pytest_rageval.targets.answer_files._Reading.take", lambda _self, row: taken.append(row.line))
    with pytest.raises(CaseError, match="more answers than the 10 that are taken"):
        read_answers_upload(file, "mine.jsonl", [EvalCase("q1", "?")], 10)
    assert len(taken) <= 10


@pytest.mark.parametrize("name", ["two words & more?#", "line\nbreak", "turned\u202earound", "\udcff-bytes"])
def test_a_run_whose_folder_has_an_odd_name_has_its_page(tmp_path: Path, name: str):
    folder = a_run(tmp_path / "reports", "plain", a_result("a"))
    folder.rename(folder.with_name(name))
    with served(tmp_path) as app:
        html = app.page("/runs")
        address = html.partition('<td class="id"><a href="')[2].partition('"')[0]
        assert "data-row" in app.page(address)
        assert app.get(f"{address}/export.json").status_code == 200
        case = app.page(address).partition("data-row><td>")[2].partition('href="')[2].partition('"')[0]
        assert "At 100 degrees." in app.page(case.replace("&amp;", "&"))


def test_links_in_the_folder_of_data_are_not_followed(web_app: WebApp, tmp_path: Path):
    slug = imported(web_app, "Products")
    data = web_app.settings.data
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "v1.jsonl").write_text('{"id": "q1", "question": "the secret of another folder"}\n')
    (data / "datasets" / "linked").symlink_to(outside)
    (data / "datasets" / slug / "v2.jsonl").symlink_to(outside / "v1.jsonl")
    assert "linked" not in web_app.page("/datasets")
    for path in ("/datasets/linked", f"/datasets/{slug}/v2", "/datasets/linked/v1"):
        response = web_app.get(path)
        assert response.status_code == 404, path
        assert "secret" not in response.text
    store = DatasetStore(data)
    assert store.last(slug) == 1
    with pytest.raises(SettingsError, match="is a link"):
        store.save("linked", store.newest(slug).about, [EvalCase("q", "?")], "", 0)
    job = data / "jobs" / "20260101_000000"
    job.mkdir(parents=True)
    (job / "log.txt").symlink_to(outside / "v1.jsonl")
    assert log_tail(job / "log.txt") == []


def test_links_in_an_upload_are_none(web_app: WebApp, tmp_path: Path):
    address = upload(web_app, ("a.csv", ROWS))
    folder = aged(web_app, address, 0)
    (tmp_path / "secret.csv").write_bytes(ROWS)
    (folder / "cases.csv").unlink()
    (folder / "cases.csv").symlink_to(tmp_path / "secret.csv")
    assert web_app.get(address).status_code == 404
    assert json.loads((folder / "upload.json").read_text())["names"]["cases"] == "a.csv"


LONG_LINES = {
    "separators": ";", "cells": "a,b;", "quoted cells": '"a";', "doubled quotes": '""', "carriage returns": "a\r",
    "blanks": " ",
}  # fmt: skip


@pytest.mark.parametrize("filling", LONG_LINES.values(), ids=LONG_LINES)
def test_the_page_of_such_a_file_says_which_line_is_too_long(app: WebApp, filling: str):
    rows = f"id;question\nq1;Why?\nq2;{filling * (MAX_LINE_BYTES // len(filling) + 2)}\n".encode()
    assert "a quote may be open in the long line" in html.unescape(app.page(upload(app, ("a.csv", rows))))
