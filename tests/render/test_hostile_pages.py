"""Texts that attack a page stand in it as text: nothing is executed, nothing is asked for, with the policy on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import hostile
import pytest
from browser import Chromium, OpenPage
from hostile import PAYLOADS, hostile_comparison, hostile_rows, hostile_run
from jinja2 import DictLoader
from stored_pages import page_between, write_page

from pytest_rageval.comparison.gate_lines import GateState
from pytest_rageval.render.html import environment, first_screen, table_parts
from pytest_rageval.render.html.environment import case_address
from pytest_rageval.render.html.figures import AxisValue, Chart, interval_figure, spark
from pytest_rageval.render.html.notebook import comparison_html, run_html
from pytest_rageval.render.html.page_run import PageRun
from pytest_rageval.render.html.report_page import fragments, report_html
from pytest_rageval.render.html.sections import HeatCell
from pytest_rageval.render.html.turn_charts import TurnChart, TurnPoint
from pytest_rageval.text import printable
from pytest_rageval.views.text_diff import DiffPiece

pytestmark = [pytest.mark.browser, pytest.mark.reliability("injection", "the HTML report in a browser", costs="leak")]


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> PageRun:
    """A run in which every field attacks, names of metrics too, compared with a run like it."""
    return hostile_comparison(tmp_path_factory.mktemp("hostile"))


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory, compared: PageRun) -> Path:
    """The report of that comparison."""
    return write_page(tmp_path_factory.mktemp("report"), compared)


@pytest.fixture(scope="module")
def lone_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same without a comparison."""
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
                parts = (
                    ("answer", "question", "chunk", "gold", "claim", "sentence", "error") if not suffix else ("error",)
                )
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


def in_a_notebook(page: PageRun) -> str:
    """What a notebook shows of the run and of the comparison, in a page without any policy."""
    return f"<!doctype html><meta charset=utf-8><body>{run_html(page)}{comparison_html(page)}</body>"


def test_hostile_texts_in_a_notebook_are_shown_and_do_nothing(
    chromium: Chromium, compared: PageRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for limit in ("MOST_CASES", "MOST_BYTES", "LONGEST_TEXT"):
        monkeypatch.setattr(f"pytest_rageval.render.html.notebook.{limit}", 10**7)
    path = tmp_path / "notebook.html"
    path.write_text(in_a_notebook(compared), encoding="utf-8")
    with chromium.page() as page:
        page.goto(path.as_uri())
        shown = " ".join(page.evaluate("document.body.textContent").split())
        for part in ("question", "answer", "gold"):
            missing = [text for text in PAYLOADS if printable(" ".join(f"{part} {text}".split())) not in shown]
            assert missing == [], part
        assert harm(page) == []


EXPRESSION = re.compile(r"\{\{-?(?P<value>.*?)-?\}\}", re.DOTALL)
MACRO = re.compile(r"\{% macro (?P<name>\w+)\(.*?\{% endmacro %\}", re.DOTALL)


def without_escaping(source: str) -> str:
    return EXPRESSION.sub(lambda match: "{{ (" + match["value"] + ")|safe }}", source)


def weakened(monkeypatch: pytest.MonkeyPatch, **changed: str) -> None:
    """Replace templates; `changed`: their texts by name without ending."""
    pages = environment.environment()
    source = {name: pages.loader.get_source(pages, name)[0] for name in pages.list_templates(["html"])}
    replaced = DictLoader(source | {f"{name}.html": text for name, text in changed.items()})
    broken = pages.overlay(loader=replaced, bytecode_cache=None)
    broken.cache = {}
    monkeypatch.setattr(environment, "environment", lambda: broken)
    monkeypatch.setattr(table_parts, "environment", lambda: broken)


def unescaped(page: PageRun) -> list[str]:
    """Payloads that stand in a page, a body of it, a notebook or a table of tests as they are: what all tests find."""
    table = table_parts.CaseTable(page)
    table.metrics = dict.fromkeys(table.metrics, PAYLOADS[0])
    parts = (part.details + "".join(part.cells) for _, part in table.parts())
    html = report_html(page).replace(environment.script(), "").replace(environment.style(), "")
    texts = [html, *fragments(page, page.cases), in_a_notebook(page), *table.heads(), *parts, *called_directly(page)]
    everything = "\n".join(texts)
    return [text for text in PAYLOADS if text.startswith("<") and text in everything]


def called_directly(page: PageRun) -> Iterator[str]:
    """Macros that a run of ours gives words and figures alone, with a text in each place."""
    called: Any = environment.environment().get_template("macros.html").module
    text, figure = PAYLOADS[0], interval_figure(0.5, (0.4, 0.6), (0, 1))
    tile = next(first_screen.tiles(page))
    yield called.tile(
        tile._replace(name=text, value=text, change=text, n=None, gate=(GateState("✔", text, "holds"), text))
    )
    yield called.spark(spark([0, 1]), text) + called.interval(figure, text, text)
    labels = [AxisValue(1, text)]
    yield called.chart(Chart(text, labels, labels, marks=labels), text)
    point = TurnPoint(1, 1, None, None, is_first=True, words=text)
    yield called.turn_chart(TurnChart(text, False, [point], "", labels, labels, labels, text))
    yield called.heat(HeatCell(text, text, 1, "fall", 1, text))
    yield called.verdict(SimpleNamespace(symbol=text, headline=text, details=text))
    yield called.outcome(text, "")
    pieces = [DiffPiece("same", text), DiffPiece("gone", text)]
    yield called.diff(pieces, text, text) + called.one_side(pieces, "gone", False)


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> PageRun:
    """The hostile comparison of a few cases: it is rendered once for each macro."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hostile, "PAYLOADS", ("<b>plain</b>", PAYLOADS[0], PAYLOADS[15]))
        return hostile.hostile_comparison(tmp_path_factory.mktemp("few"))


def macros() -> list[str]:
    source = files("pytest_rageval.render.html").joinpath("templates", "macros.html").read_text(encoding="utf-8")
    return [match["name"] for match in MACRO.finditer(source)]


@pytest.mark.parametrize("name", macros())
def test_a_macro_that_escapes_nothing_is_seen(few: PageRun, name: str, monkeypatch: pytest.MonkeyPatch):
    source = environment.environment().loader.get_source(environment.environment(), "macros.html")[0]
    macro = next(match[0] for match in MACRO.finditer(source) if match["name"] == name)
    assert unescaped(few) == []
    weakened(monkeypatch, macros=source.replace(macro, without_escaping(macro)))
    assert unescaped(few) != []


@pytest.mark.parametrize(
    "name", ["case", "case_list", "first_screen", "sections", "run_macros", "page", "notebook", "test_table"]
)
def test_a_template_that_escapes_nothing_is_seen(few: PageRun, name: str, monkeypatch: pytest.MonkeyPatch):
    source = environment.environment().loader.get_source(environment.environment(), f"{name}.html")[0]
    weakened(monkeypatch, **{name: without_escaping(source)})
    assert unescaped(few) != []


def test_where_no_macro_escapes_anything_the_policy_still_executes_nothing(
    chromium: Chromium, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """What the reader of a broken page is spared."""
    sources = environment.environment().loader
    source = sources.get_source(environment.environment(), "macros.html")[0]
    case = sources.get_source(environment.environment(), "case.html")[0]
    weakened(monkeypatch, macros=without_escaping(source), case=without_escaping(case))
    hostile_run(tmp_path, "now", "failed")
    with chromium.page() as page:
        page.open(write_page(tmp_path, page_between(tmp_path, None, "now")))
        for address, _, text in cases():
            if "refresh" not in text:  # which no policy forbids, and which executes nothing
                page.go(address)
        page.wait_for_timeout(300)
        assert page.evaluate("top.hacked || 0") == 0
        assert [url for url in page.answered if not url.startswith("file:")] == []
