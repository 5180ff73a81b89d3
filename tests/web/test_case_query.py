"""Filters of cases: the index, the command and the page's script find the same cases, whatever is written."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

import pytest
from chromium import Chromium, OpenPage
from filtered_run import CASES, CATEGORIES, TAGS, TEXTS, store_filtered_run, write_report_of
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pytest_rageval.comparison.case_filter import filtered_keys
from pytest_rageval.comparison.filter_language import FilterError, read_terms
from pytest_rageval.errors import SettingsError
from pytest_rageval.runs.reader import StoredRun
from pytest_rageval.text import printable
from pytest_rageval.web.case_list import CaseRowsPage, case_keys, case_rows_page, neighbours
from pytest_rageval.web.index.case_tables import IndexedCases, open_cases
from pytest_rageval.web.index.run_index import RunIndex

UNKNOWN = "an error"
ON_THE_PAGE_ALONE = ("fell", "drop", "level")
ASK = """async ([query, sort]) => {
  const count = document.getElementById('count'), error = document.getElementById('filter-error');
  count.textContent = error.textContent = '…';
  location.hash = '#/cases?' + new URLSearchParams({q: query, sort, round: performance.now()});
  while (count.textContent === '…' && error.textContent === '…') await new Promise(done => {
    const turn = new MessageChannel();
    turn.port1.onmessage = done;
    turn.port2.postMessage(0);
  });
  if (error.textContent) return error.textContent;
  const links = [...document.querySelectorAll('#list .space a')];
  return links.map(link => decodeURIComponent(link.hash.slice(7)).replace(/.compare$/, ''));
}"""


def quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


VALUES = st.sampled_from(
    [
        *CATEGORIES,
        *TAGS,
        "failed",
        "error,passed",
        "worse",
        "new",
        "same",
        "hard",
        "",
        "L5",
        "L2",
        "mrr",
        "evalcases/a.jsonl",
    ]
)
NUMBERS = st.sampled_from(
    ["0", "0.5", "1", "-0.25", "1e2", ".3333", "0.3333", "nan", "inf", "0x1", "1_0", "", "٣", "105"]
)
NAMES = st.sampled_from(
    ["outcome", "changed", "category", "difficulty", "domain", "tag", "file", "layer", "id", "fell"]
)
MEASURED = st.sampled_from(
    ["recall_any", "recall_any@5", "mrr", "token_f1", "latency", "level", "drop", "constructor", "groundedness", "제주"]
)
SIGNS = st.sampled_from([":", "<", "<=", ">", ">=", "="])
TERMS = st.one_of(
    st.builds("{}{}:{}".format, st.sampled_from(["", "-"]), NAMES, VALUES.map(quoted)),
    st.builds("{}{}:{}".format, st.sampled_from(["", "-"]), NAMES, VALUES),
    st.builds("{}{}{}{}".format, st.sampled_from(["", "-"]), MEASURED, SIGNS, NUMBERS),
    st.sampled_from([quoted(text) for text in (*TEXTS, "jeju", "%", "_", "'", "timeout", "gate >= 0.5", ".jsonl:3")]),
    st.text(st.characters(codec="utf-8", exclude_characters="\x1c\x1d\x1e\x1f\x85\ufeff\r"), max_size=6),
    st.sampled_from(["'; DROP TABLE runs; --", '" OR 1=1', "\\", '"', "-", ":", "a:b:c", "__proto__:x", "toString<1"]),
)  # fmt: skip
FILTERS = st.lists(TERMS, max_size=3).map(" ".join)
SORTS = st.sampled_from(["", "id", "-latency", "mrr", "token_f1", "recall_any@5"])
"""Those that the page offers."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> StoredRun:
    return store_filtered_run(tmp_path_factory.mktemp("filtered") / "reports")


@pytest.fixture(scope="module")
def index(run: StoredRun, tmp_path_factory: pytest.TempPathFactory) -> RunIndex:
    return RunIndex(tmp_path_factory.mktemp("data") / "rageval.sqlite", run.path.parent, run.path / "jobs")


@pytest.fixture(scope="module")
def table(index: RunIndex, run: StoredRun) -> IndexedCases:
    return open_cases(index, run, run.path.parent.parent / "baseline.json")


@pytest.fixture(scope="module")
def page(chromium: Chromium, run: StoredRun) -> Iterator[OpenPage]:
    with chromium.page(height=4_000) as opened:
        opened.open(write_report_of(run))
        opened.evaluate(
            "() => { document.getElementById('list').style.height = '3000px'; }"
        )  # else rows in sight alone
        yield opened


def by_index(index: RunIndex, table: IndexedCases, query: str, sort: str = "") -> Any:
    try:
        return index.read(lambda connection: case_keys(connection, table, query, sort))
    except FilterError:
        return UNKNOWN


def by_command(run: StoredRun, query: str) -> Any:
    try:
        return filtered_keys(run, query, "--only")
    except SettingsError:
        return UNKNOWN


def by_script(page: OpenPage, query: str, sort: str = "") -> Any:
    keys = page.evaluate(ASK, [query, sort])
    return UNKNOWN if isinstance(keys, str) else keys


SLOW = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


@SLOW
@given(query=FILTERS)
@example(query='category:"with,comma"')
@example(query="category:factual,분류 -changed:same")
@example(query="difficulty:")
def test_the_index_finds_what_the_command_finds(index: RunIndex, table: IndexedCases, run: StoredRun, query: str):
    terms = list(read_terms(query))
    if terms and not any(term.word in ON_THE_PAGE_ALONE for term in terms):
        keys = by_index(index, table, query)
        assert (keys if keys is UNKNOWN else frozenset(keys)) == by_command(run, query)


@pytest.mark.browser
@SLOW
@given(query=FILTERS, sort=SORTS)
@example(query="fell:mrr level<0.9 drop<=-0.1", sort="mrr")
@example(query="constructor:x", sort="")
@example(query="changed:unmeasured,worse", sort="id")
@example(query="latency>105", sort="-latency")
def test_the_index_finds_what_the_page_finds_in_the_same_order(
    index: RunIndex, table: IndexedCases, page: OpenPage, query: str, sort: str
):  # fmt: skip
    keys = by_index(index, table, query, sort)
    assert (keys if keys is UNKNOWN else list(map(printable, keys))) == by_script(page, query, sort)


def test_every_case_is_on_one_page(index: RunIndex, table: IndexedCases):
    def pages(connection: sqlite3.Connection) -> list[CaseRowsPage]:
        return [case_rows_page(connection, table, size=7, page=number) for number in range(1, 6)]

    shown = index.read(pages)
    assert [row.number for page in shown for row in page.rows] == list(range(CASES))
    assert {page.left for page in shown} == {CASES}
    assert not index.read(lambda connection: case_rows_page(connection, table, size=7, page=2**63)).rows


def test_next_and_previous_follow_the_filter(index: RunIndex, table: IndexedCases):
    keys = by_index(index, table, "outcome:failed", "-id")
    beside = index.read(lambda connection: neighbours(connection, table, keys[1], "outcome:failed", "-id"))
    assert (beside.position, beside.left, beside.previous, beside.next) == (2, len(keys), keys[0], keys[2])
    outside = by_index(index, table, "outcome:passed")[0]
    assert index.read(lambda connection: neighbours(connection, table, outside, "outcome:failed")).position is None


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("x " * 3_000, "the filter is longer than 4,000 characters"),
        ("a " * 101, "the filter has 101 terms, more than 100"),
        ("colour:red", "'colour' is nothing to filter by"),
    ],
)
def test_a_filter_that_means_nothing_is_said(index: RunIndex, table: IndexedCases, query: str, problem: str):
    with pytest.raises(FilterError, match=problem):
        index.read(lambda connection: case_rows_page(connection, table, query))


def test_an_order_that_means_nothing_is_said(index: RunIndex, table: IndexedCases):
    with pytest.raises(FilterError, match="'number; DROP TABLE runs' is nothing to sort by"):
        index.read(lambda connection: case_rows_page(connection, table, "", "number; DROP TABLE runs"))


def test_half_a_character_finds_nothing(index: RunIndex, table: IndexedCases):
    assert by_index(index, table, "\ud800") == []
    assert len(by_index(index, table, "-\ud800")) == CASES
