"""Texts that attack a page stand in it as text: nothing is executed, nothing is asked for, with the policy on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from attacks import PAYLOADS, hostile_rows, hostile_run
from chromium import Chromium, OpenPage
from jinja2 import DictLoader
from page_states import page_between, write_page
from stored_pair import a_record
from two_runs import a_row

from pytest_rageval.page import environment
from pytest_rageval.page.environment import case_address
from pytest_rageval.text import printable

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report in which every field attacks, as the comparison with a run like it."""
    folder = tmp_path_factory.mktemp("hostile")
    hostile_run(folder, "before", "passed")
    hostile_run(folder, "now", "failed")
    return write_page(folder, page_between(folder, "before", "now"))


@pytest.fixture(scope="module")
def lone_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same without a comparison, with hostile names of metrics."""
    folder = tmp_path_factory.mktemp("alone")
    hostile_run(folder, "alone", "failed")
    return write_page(folder, page_between(folder, None, "alone"))


def harm(page: OpenPage) -> list[str]:
    """What was executed or asked for."""
    hacked = page.evaluate("top.hacked || 0")
    return [*page.requests[1:], *page.problems] + ([f"executed {hacked} times"] if hacked else [])


def cases() -> Iterator[tuple[str, str, str]]:
    for row, text in zip(hostile_rows("failed"), PAYLOADS, strict=True):
        yield case_address(row.key), row.key.partition("::")[2], text


def test_there_are_enough_payloads():
    assert len(set(PAYLOADS)) >= 58


@pytest.mark.parametrize("name", ["report", "lone_report"])
def test_hostile_texts_are_shown_and_do_nothing(chromium: Chromium, name: str, request: pytest.FixtureRequest):
    with chromium.page() as page:
        page.open(request.getfixturevalue(name))
        first = " ".join(page.evaluate("document.body.textContent").split())
        assert [text for text in PAYLOADS if " ".join(printable(text).split()) not in first] == []
        assert harm(page) == []


def test_hostile_cases_are_shown_and_do_nothing(chromium: Chromium, report: Path):
    with chromium.page() as page:
        page.open(report)
        for address, id, text in cases():
            for suffix in ("", "/compare"):
                page.go(address + suffix)
                page.wait_for_function("id => document.querySelector('#case h2 [data-md]')?.textContent === id",
                                       arg=printable(id))  # fmt: skip
                shown = page.evaluate("document.getElementById('case').textContent")
                parts = ("answer", "question", "chunk", "gold", "claim", "error") if not suffix else ("error",)
                assert [part for part in parts if f"{part} {printable(text)}" not in shown] == [], (address, suffix)
        assert harm(page) == []


def test_a_filter_for_hostile_names_finds_their_cases(chromium: Chromium, report: Path):
    with chromium.page() as page:
        page.open(report)
        for link in page.evaluate("[...document.querySelectorAll('table.heat a')].map(link => link.hash)")[:12]:
            page.evaluate("address => { location.hash = address; }", link)
            page.wait_for_function("() => document.getElementById('count').textContent.startsWith('1 of')")
        assert page.inner_text("#filter-error") == ""
        assert harm(page) == []


def test_without_autoescape_in_one_macro_the_policy_still_executes_nothing(
    chromium: Chromium, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """What the other tests would see: the text is gone from the page; what the reader is spared: it does not run."""
    pages = environment.environment()
    source = {name: pages.loader.get_source(pages, name)[0] for name in pages.list_templates()}
    source["macros.html"] = source["macros.html"].replace("{{ text }}", "{{ text|safe }}")
    broken = pages.overlay(loader=DictLoader(source))
    broken.cache = {}
    monkeypatch.setattr(environment, "environment", lambda: broken)
    hostile_run(tmp_path, "now", "failed")
    with chromium.page() as page:
        page.open(write_page(tmp_path, page_between(tmp_path, None, "now")))
        address, _, _ = next(cases())
        page.go(address)
        assert "<script>" not in page.evaluate("document.querySelector('#case .is-plain').textContent")
        for address, _, text in cases():
            if "refresh" not in text:  # which no policy forbids, and which executes nothing
                page.go(address)
        page.wait_for_timeout(300)
        assert page.evaluate("top.hacked || 0") == 0
        assert [url for url in page.answered if not url.startswith("file:")] == []


def test_a_record_made_for_tests_is_whole():
    """The page reads what a run writes: a made-up record that lacks a key would hide that."""
    assert {"question", "answer", "scores", "verdict"} <= a_record(a_row("a.jsonl::q")).keys()
