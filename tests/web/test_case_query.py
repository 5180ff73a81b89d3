"""Filters of cases: the list in the browser, the command and the page's script find the same cases."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from browser import Chromium, OpenPage
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from stored_runs import a_plan, a_row, compared, store

from pytest_rageval.comparison.baseline import side_of_run
from pytest_rageval.comparison.case_filter import FilterError, filtered_keys
from pytest_rageval.config.settings import Settings
from pytest_rageval.errors import SettingsError
from pytest_rageval.render.html.page_run import compared_side, read_page
from pytest_rageval.render.html.report_page import report_html
from pytest_rageval.runs.reader import StoredRun
from pytest_rageval.runs.row import Row
from pytest_rageval.text import printable
from pytest_rageval.web.opened_runs import cases_of_report
from pytest_rageval.web.run_cases import ROWS, CaseQuery, RunCases

PLAN = a_plan("recall_any", "mrr", "token_f1", "groundedness")
CATEGORIES = ("factual", "multi hop", "with,comma", "x' OR 1=1 --", '"quoted" \\', "%_", "분류", "\x1b[31mred")
TAGS = ("slow", "L5_wrong_answer", "a,b", "'); DROP TABLE runs; --", "제주", "SLOW")
TEXTS = (
    "The Jeju cream costs 32,000.",
    "제주 수분 크림은\n얼마인가?",
    "100% of _all_ 'cases'",
    "İstanbul ΣΑΣ straße",
    "",
    "a\x00b \u202e back",
)
OUTCOMES = ("passed", "failed", "error", "xfailed", "skipped", "passed", "failed")
CASES = 30


def rows() -> Iterator[tuple[Row, Row, dict[str, Any]]]:
    """Each case before and now, and what its record holds beside."""
    for number in range(CASES):
        outcome = OUTCOMES[number % len(OUTCOMES)]
        failed = (("token_f1", "L5_wrong_answer"),) * (outcome in ("failed", "xfailed")) + (("mrr", "mrr"),) * (
            number % 5 == 1
        )
        scores = {} if outcome == "error" else {"recall_any@5": float(number % 2), "mrr": 1 / (1 + number % 4)}
        if number % 3 and scores:
            scores["token_f1"] = number / CASES
        groups = {
            "category": (CATEGORIES[number % len(CATEGORIES)],),
            "tag": tuple(TAGS[place] for place in range(len(TAGS)) if number % (place + 2) == 0),
            "difficulty": (("hard", "easy")[number % 2],) if number % 3 else (),
            "domain": ("shop",) if number % 4 else (), "answerable": ("answerable",),
        }  # fmt: skip
        key = f"evalcases/{'ab'[number % 2]}.jsonl::case-{number}" if number != 7 else 'no file\'s id\\ "7"'
        latency = {"total_ms": 10.5 * number} if number % 6 else {}
        now = replace(
            a_row(key, groups=groups, latency=latency, outcome=outcome, trial_passed=outcome == "passed"),
            scores=scores, failed=failed if outcome in ("failed", "xfailed") else (),
            error_kind="timeout" if outcome == "error" else None,
            message="no answer within 120 s" if outcome == "error" else None,
        )  # fmt: skip
        was = replace(now, outcome="failed" if number % 4 == 0 else "passed", failed=(), error_kind=None, message=None,
                      scores={"recall_any@5": 1.0, "mrr": 0.5, "token_f1": 0.4})  # fmt: skip
        record: dict[str, Any] = {
            "test_case_id": key.partition("::")[2] or key, "question": TEXTS[number % len(TEXTS)],
            "answer": TEXTS[number % 4] if number % 5 else None, "difficulty": next(iter(groups["difficulty"]), None),
            "domain": next(iter(groups["domain"]), None),
            "source": {"file": key.partition("::")[0], "line": number + 1},
            "latency": {"total_ms": None, "queue_ms": None, "judge_ms": None} | latency,
            "reason": "token_f1 is 0.2, gate >= 0.5" if failed and outcome != "passed" else None,
            "error": {"kind": now.error_kind, "message": now.message, "raw": None} if now.error_kind else None,
        }  # fmt: skip
        if number % 9 == 0:
            record["abstention"] = {"abstained": None, "decided_by": "phrasing", "undecided": True}
        yield was, now, record


def store_filtered_run(reports: Path) -> StoredRun:
    """The run `now`; two of its cases are new."""
    made = list(rows())
    before, now = [was for was, _, _ in made[2:]], [after for _, after, _ in made]
    records_before = {}
    for number, (was, _, record) in enumerate(made):
        records_before[was.key] = record | {"answer": "Other words."} if number % 3 == 0 else record
    store(reports, "before", before, plan=PLAN, records=records_before)
    comparison = compared(before, now, PLAN).content
    folder = store(
        reports, "now", now, plan=PLAN, records={after.key: record for _, after, record in made},
        comparison={**comparison, "baseline_run_id": "before"},
    )  # fmt: skip
    return StoredRun(folder)


def write_report_of(run: StoredRun) -> Path:
    """The report of the run, compared with the one before."""
    reports = run.path.parent.parent
    page = read_page(
        side_of_run(run), compared_side(run, reports, reports / "baseline.json"), Settings(ignore_invariants=True)
    )
    path = reports / "report.html"
    path.write_text(report_html(page), encoding="utf-8")
    return path


UNKNOWN = "an error"
EXAMPLES = json.loads((Path(__file__).parents[1] / "data" / "filter_examples.json").read_text(encoding="utf-8"))
"""Filters with the numbers of the cases that they find, or with the error: of every engine."""
NAMELESS = 'no file\'s id\\ "7"'
"""The key of case 7."""
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
    (*CATEGORIES, *TAGS, "failed", "error,passed", "worse", "new", "same", "hard", "", "L5", "L2", "mrr",
     "abstention", "different", "same,unknown", "evalcases/a.jsonl")
)  # fmt: skip
NUMBERS = st.sampled_from(
    ["0", "0.5", "1", "-0.25", "1e2", ".3333", "0.3333", "nan", "inf", "0x1", "1_0", "", "٣", "105"]
)
NAMES = st.sampled_from(
    [
        "outcome",
        "changed",
        "category",
        "difficulty",
        "domain",
        "tag",
        "file",
        "layer",
        "id",
        "fell",
        "unchecked",
        "answer",
    ]
)
MEASURED = st.sampled_from(
    [
        "recall_any",
        "recall_any@5",
        "mrr",
        "token_f1",
        "latency_ms",
        "level",
        "drop",
        "constructor",
        "groundedness",
        "제주",
    ]
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
SORTS = st.sampled_from(["", "id", "-latency_ms", "mrr", "token_f1", "recall_any@5"])
"""Those that the page offers."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> StoredRun:
    return store_filtered_run(tmp_path_factory.mktemp("filtered") / "reports")


@pytest.fixture(scope="module")
def listed(run: StoredRun) -> RunCases:
    reports = run.path.parent.parent
    before = compared_side(run, reports, reports / "baseline.json")
    return cases_of_report(read_page(side_of_run(run), before, Settings(ignore_invariants=True)))


@pytest.fixture(scope="module")
def page(chromium: Chromium, run: StoredRun) -> Iterator[OpenPage]:
    with chromium.page(height=4_000) as opened:
        opened.open(write_report_of(run))
        opened.evaluate(
            "() => { document.getElementById('list').style.height = '3000px'; }"
        )  # else rows in sight alone
        yield opened


def by_list(listed: RunCases, query: str, sort: str = "") -> Any:
    try:
        return [case.key for case in listed.matching(query, sort)]
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


def names(numbers: Iterable[int]) -> list[str]:
    """Return the keys of the cases that an example finds."""
    return [f"evalcases/{'ab'[number % 2]}.jsonl::case-{number}" if number != 7 else NAMELESS for number in numbers]


@pytest.mark.parametrize("example", [each for each in EXAMPLES if not each.get("not_in_the_command")])
def test_the_command_finds_what_the_table_of_examples_says(run: StoredRun, example: dict[str, Any]):
    if "error" in example:
        with pytest.raises(SettingsError, match=re.escape(example["error"])):
            filtered_keys(run, example["filter"], "--only")
    else:
        assert filtered_keys(run, example["filter"], "--only") == {*names(example["finds"])}


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_list_finds_what_the_table_of_examples_says(listed: RunCases, example: dict[str, Any]):
    if "error" in example:
        with pytest.raises(FilterError, match=re.escape(example["error"])):
            listed.matching(example["filter"])
    else:
        assert {*by_list(listed, example["filter"])} == {*names(example["finds"])}


@pytest.mark.browser
def test_the_page_finds_what_the_table_of_examples_says(page: OpenPage):
    for asked in EXAMPLES:
        found = page.evaluate(ASK, [asked["filter"], ""])
        if "error" in asked:
            assert isinstance(found, str)
            assert asked["error"].split("'")[1] in found  # the page has words of its own around the wrong one
        else:
            assert sorted(found) == sorted(map(printable, names(asked["finds"]))), asked["filter"]


@pytest.mark.browser
@pytest.mark.filterwarnings("ignore:Generating overly large repr")  # of the cases, when an example fails
@SLOW
@given(query=FILTERS, sort=SORTS)
@example(query="fell:mrr level<0.9 drop<=-0.1", sort="mrr")
@example(query="changed:unmeasured,worse", sort="id")
@example(query="latency_ms>105", sort="-latency_ms")
def test_the_list_finds_what_the_page_finds_in_the_same_order(
    listed: RunCases, page: OpenPage, query: str, sort: str
):  # fmt: skip
    keys = by_list(listed, query, sort)
    assert (keys if keys is UNKNOWN else list(map(printable, keys))) == by_script(page, query, sort)


def test_every_case_is_on_one_page(listed: RunCases):
    many = replace(listed, listed=replace(listed.listed, cases=[*listed.listed.cases] * 4))
    pages = [many.page(CaseQuery(page=number)) for number in (1, 2, 3, 2**63)]
    assert [len(page.rows) for page in pages] == [ROWS, ROWS, 4 * CASES - 2 * ROWS, 4 * CASES - 2 * ROWS]
    assert [case for page in pages[:3] for case in page.rows] == many.listed.cases


def test_next_and_previous_follow_the_filter(listed: RunCases):
    keys = by_list(listed, "outcome:failed", "-id")
    beside = listed.neighbours(keys[1], CaseQuery("outcome:failed", "-id"))
    assert (beside.position, beside.left, beside.previous, beside.next) == (2, len(keys), keys[0], keys[2])
    outside = by_list(listed, "outcome:passed")[0]
    assert listed.neighbours(outside, CaseQuery("outcome:failed")).position is None
    assert listed.neighbours(keys[0], CaseQuery("outcome:failed", "-id")).previous is None


@pytest.mark.parametrize(
    ("query", "sort", "problem"),
    [
        ("x " * 3_000, "", "the filter is longer than 4,000 characters"),
        ("a " * 101, "", "the filter has 101 terms, more than 100"),
        ("colour:red", "", "'colour' is nothing to filter by"),
        (
            "",
            "number; DROP",
            "'number; DROP' is nothing to sort by; there are id, latency_ms, ttft_ms",
        ),
    ],
)
def test_a_filter_or_an_order_that_means_nothing_is_said(listed: RunCases, query: str, sort: str, problem: str):
    page = listed.page(CaseQuery(query, sort))
    assert (page.problem.startswith(problem), page.left, page.total) == (True, 0, CASES)


def test_half_a_character_finds_nothing(listed: RunCases):
    assert by_list(listed, "\ud800") == []
    assert len(by_list(listed, "-\ud800")) == CASES
