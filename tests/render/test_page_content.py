"""What a page is made of: the order of its cases, why each failed, aligned chunks, blocks, charts."""

from __future__ import annotations

import json
import shutil
import zlib
from base64 import b64decode
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from project import SOME, Project
from stored_pages import a_page, page_between
from stored_runs import (
    LONG,
    PAGE_PLAN,
    a_chunk,
    a_full_record,
    a_plan,
    accept,
    an_observation,
    some_cases,
    store,
    store_full,
)

from pytest_rageval.comparison.case_diff import aligned_chunks
from pytest_rageval.render.html import first_screen, report_page
from pytest_rageval.render.html.figures import (
    doubling_histogram,
    histogram,
    interval_figure,
    least_span,
    spark,
    time_chart,
)
from pytest_rageval.render.html.metric_rows import metric_layers
from pytest_rageval.render.html.report_page import BODIES, report_html
from pytest_rageval.runs.records.result_line import to_line
from pytest_rageval.text import score_text
from pytest_rageval.views.case_parts import marked_text
from pytest_rageval.views.comparison import settings_table
from pytest_rageval.views.text_diff import marked_diff


def blocks_of(html: str) -> list[Any]:
    lines = html.partition('id="blocks">')[2].partition("</script>")[0].split("\n")
    texts = [zlib.decompress(b64decode(line)).decode() for line in lines]
    return [json.loads(text) if text[0] in "[{" else text for text in texts]


def body_of(html: str, number: int = 0) -> str:
    blocks = blocks_of(html)
    body: str = blocks[blocks[0]["bodies"][number // BODIES]][number % BODIES]
    return body


def test_newly_failing_cases_stand_first_then_errors_then_known_failures(tmp_path: Path):
    before = [*some_cases(2, "xfailed", cases=6)]
    now = [*some_cases(2, "xfailed", cases=6)]
    now[4] = some_cases(6, cases=6)[4]
    now[5] = some_cases(6, "error", cases=6)[5]
    store_full(tmp_path, "before", before)
    store_full(tmp_path, "now", now)
    page = page_between(tmp_path, "before", "now")
    assert [case.id.rpartition("-")[2] for case in page.cases[:4]] == ["4", "5", "0", "1"]
    assert [case.change for case in page.cases[:2]] == ["worse", "unmeasured"]


def test_a_gold_beyond_k_is_said_with_its_rank(tmp_path: Path):
    rows = [replace(row, failed=(("recall_any@5", "L2_doc_retrieval_fail"),)) for row in some_cases(1, cases=1)]
    chunks = [*(a_chunk(rank, f"{rank}.md") for rank in range(1, 8)), a_chunk(8, "stock/north.md", [0])]
    records = {row.key: a_full_record(row, retrieved_chunks=chunks) for row in rows}
    store(tmp_path, "now", rows, plan=PAGE_PLAN, records=records)
    body = body_of(report_html(page_between(tmp_path, None, "now")))
    assert "gold 1 “stock/north.md” stands at rank 8, beyond k = 5" in body


@pytest.mark.parametrize(("budget", "unchanged", "bodied"), [(10, 1000, 10), (None, 0, 40), (40, 20, 20), (40, 0, 12)])
def test_cases_beyond_the_budget_are_rows_without_a_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, budget: int | None, unchanged: int, bodied: int
):
    monkeypatch.setattr(report_page, "UNCHANGED", unchanged)
    page = a_page(tmp_path, "worse")
    index = blocks_of(report_html(page, budget=budget))[0]
    assert (len(index["id"]), index["bodied"]) == (40, bodied)
    assert all(case.is_failing for case in page.cases[:12])


def test_a_case_without_a_record_has_no_page_and_costs_no_other_one_its_own(tmp_path: Path):
    rows = some_cases(3, cases=5)
    folder = store_full(tmp_path, "now", rows)
    lines = (folder / "results.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "results.jsonl").write_text("".join(lines[1:]), encoding="utf-8")
    page = page_between(tmp_path, None, "now")
    assert len(page.cases) == 4
    blocks = blocks_of(html := report_html(page))
    assert "results.jsonl holds 4 of 5 cases (cut off?)" in html
    assert [bool(body) for body in blocks[blocks[0]["bodies"][0]]] == [True] * 4


def test_what_a_folder_misses_is_said_and_the_rest_is_shown(tmp_path: Path):
    folder = store_full(tmp_path, "now", some_cases(3, cases=5))
    (folder / "results.jsonl").unlink()
    (folder / "observations.jsonl").unlink()
    html = report_html(page_between(tmp_path, None, "now"))
    assert "results.jsonl is not in now/ (removed, or not written): cases are listed without texts" in html
    assert "observations.jsonl is not in now/" in html
    assert blocks_of(html)[0]["id"][0].startswith(LONG), "the table of scores still knows the cases"


@pytest.mark.parametrize(
    ("file", "loss"),
    [
        ("now/observations.jsonl", "expected answers and golds that were not retrieved are not shown"),
        ("before/results.jsonl", "cases are not shown as they were before"),
    ],
)
def test_a_damaged_line_costs_details_and_not_the_page(tmp_path: Path, file: str, loss: str):
    page = a_page(tmp_path, "worse")
    path = tmp_path / "runs" / file
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join([lines[0].replace("Where is", "There is"), *lines[1:]]), encoding="utf-8")
    html = report_html(page)
    assert f"{path}:1: does not match its checksum" in unescape(html)
    assert loss in html
    assert "12 cases newly fail" in html
    assert "✘ FAILED" in body_of(html)


@pytest.mark.child_process
def test_a_run_of_workers_has_its_expected_answers_in_its_page(project: Project):
    project.cases(SOME[:1])
    project.run("-n", "1")
    body = body_of((project.runs[-1] / "report.html").read_text(encoding="utf-8"))
    assert "Water boils at 100 degrees at sea level." in body
    assert "not kept" not in body


def test_chunks_of_both_sides_stand_in_one_list():
    before = [a_chunk(1, "a.md", [0]), a_chunk(2, "b.md"), a_chunk(3, "c.md", [1])]
    after = [a_chunk(1, "a.md", [0]), a_chunk(2, "d.md"), a_chunk(3, "b.md")]
    rows = [(row.rank_before, row.rank_after, row.golds, row.place, row.state) for row in aligned_chunks(before, after)]
    assert rows[:2] == [(1, 1, [1], "a.md", "equal"), (None, 2, [], "d.md", "new")]
    assert rows[2:] == [(2, 3, [], "b.md", "moved"), (3, None, [2], "c.md", "gone")]
    other = [[a_chunk(1, name, chunk_id="c1")] for name in ("a.md", "b.md")]
    assert [row.state for row in aligned_chunks(*other)] == ["new", "gone"], "an id of another document"


def test_tiles_of_metrics_with_gates_come_first_failed_ones_before_all(tmp_path: Path):
    tiles = list(first_screen.tiles(a_page(tmp_path, "gate failed")))
    assert (tiles[0].name, tiles[0].value, tiles[0].change) == ("pass rate", "70 %", "was 100 %")
    assert tiles[1].name == "recall_any@5"
    assert tiles[1].gate is not None
    assert tiles[1].gate[0].kind == "fails"
    assert tiles[-1].name == "p95 latency"


def test_a_regressed_metric_names_its_cases_the_largest_fall_first(tmp_path: Path):
    page = a_page(tmp_path, "worse")
    rows = {row.name: causes for layer in metric_layers(page, ["token_f1"]) for row, causes in layer.rows}
    fallen = rows["token_f1"]
    assert fallen is not None
    causes = [(case.id.rpartition("-")[2], was, now) for case, was, now in fallen.cases[:2]]
    assert causes == [("0", score_text(0.9), score_text(0.2)), ("1", score_text(0.89), score_text(0.2))]
    assert fallen.fallen == 12


def test_a_change_of_k_is_one_setting_and_metrics_pair_across_it(tmp_path: Path):
    rows = some_cases(cases=8)
    other = [replace(row, scores={name.replace("@5", "@2"): 0.5 for name in row.scores}) for row in rows]
    store(tmp_path, "before", rows, plan=PAGE_PLAN)
    store(tmp_path, "now", other, plan=a_plan("recall_any", "mrr", "token_f1", "context_recall", k=2), config={"k": 2})
    page = page_between(tmp_path, "before", "now")
    assert page.comparison is not None
    assert [row.cells for row in settings_table(page.comparison).rows] == [("k", "5", "2")]
    assert {"recall_any", "context_recall"} <= {move.name.partition("@")[0] for move in first_screen.moves(page)}
    assert page.values_in_time("recall_any@2") == [1.0, 0.5]


def test_an_interval_is_drawn_on_its_scale_and_nothing_is_drawn_of_nothing():
    assert interval_figure(0.5, (0.25, 0.75), (0, 1)) == (50, 25, 75)
    assert interval_figure(5.0, None, (0, 5)) == (100, None, None)
    assert interval_figure(None, None, (0, 1)) is spark([0.5]) is doubling_histogram([]) is None
    assert time_chart([None, 0.5], ["01-01", "01-02"], 0.5, 0.1) is None


@pytest.mark.parametrize(
    ("values", "least", "path"),
    [
        ([0.5, 0.5, None, 0.5], 0.0, "M0 10h0L33.3 10M100 10h0"),
        ([4.87, 4.9], least_span((0, 5)), "M0 10.5h0L100 9.5"),
        ([1, 4], least_span((0, 5)), "M0 18h0L100 2"),
    ],
)
def test_a_line_has_a_gap_for_a_missing_value_and_a_small_step_looks_small(
    values: list[float | None], least: float, path: str
):
    line = spark(values, least)
    assert line is not None
    assert line.path == path


def test_histograms_count_every_value():
    chart = histogram([0, 0.05, 0.1, 0.99, 1], (0, 1), [0.1, 1])
    assert [bar.cases for bar in chart.rows] == [2, 1, 0, 0, 0, 0, 0, 0, 0, 2]
    assert [bar.before for bar in chart.rows] == [0, 1, 0, 0, 0, 0, 0, 0, 0, 1]
    doubling = doubling_histogram([1, 3, 4, 7.9], {"p50 before": 2, "p95 before": 900})
    assert doubling is not None
    assert [(bar.low, bar.cases) for bar in doubling.rows] == [(1, 1), (2, 1), (4, 2)]
    assert [mark.text for mark in doubling.marks] == ["p50 before"]


def test_the_axes_of_a_chart_name_its_values():
    chart = histogram([0.5] * 1200, (0, 5), [0.5])
    assert [each.text for each in chart.across] == ["0", "1", "2", "3", "4", "5"]
    assert [each.text for each in chart.up] == ["0", "1,200"]
    in_time = time_chart([0.5, None, 0.7], ["01-01", "01-02", "01-03"], 0.6, 0.1)
    assert in_time is not None
    assert [each.text for each in (*in_time.across, *in_time.up)] == ["01-01", "01-03", "0.50", "0.70"]
    assert in_time.line.count("M") == 2
    assert in_time.before


def test_the_committed_baseline_alone_shows_a_case_before_and_after(tmp_path: Path):
    rows = some_cases(0, cases=2)
    accept(tmp_path, store_full(tmp_path, "before", rows), rows)
    store_full(tmp_path, "now", some_cases(1, cases=2))
    shutil.rmtree(tmp_path / "runs" / "before")
    page = page_between(tmp_path, "baseline", "now")
    assert "Scores that moved" in body_of(report_html(page))


def a_case_body(tmp_path: Path, record: dict[str, Any], line: dict[str, Any] | None = None, trials: int = 1) -> str:
    """The page of one failing case, whose record and line of observations hold these fields as well."""
    rows = [replace(some_cases(1, cases=1)[0], trial=number) for number in range(trials)]
    folder = store(tmp_path, "now", rows, plan=PAGE_PLAN, records={rows[0].key: a_full_record(rows[0], **record)})
    lines = [an_observation(row) | (line or {}) for row in rows]
    (folder / "observations.jsonl").write_text("".join(to_line(each) + "\n" for each in lines), encoding="utf-8")
    return body_of(report_html(page_between(tmp_path, None, "now")))


def test_a_claim_says_which_chunk_supports_it_or_speaks_against_it_where_its_judge_said_so(tmp_path: Path):
    evidence = [
        {"claim": "It is kept in the northern one.", "verdict": "supported", "passage": 1},
        {"claim": "Since 2019.", "verdict": "contradicted", "passage": 2, "sentence": "Closed in 2018."},
        {"claim": 7},
        "nonsense",
    ]
    judged = {"groundedness": {"extra": {"evidence": evidence}}}
    body = a_case_body(tmp_path, {}, {"judgements": judged, "k": 5})
    assert "✔ supported by chunk 1</span> <q>It is kept in the northern one.</q></li>" in body
    assert "≠ contradicted by chunk 2</span> <q>Since 2019.</q>" in body
    assert "but it says:</span> <q>Closed in 2018.</q>" in body
    assert "← nearest" not in body


def test_what_a_judge_said_of_each_metric_stands_on_the_page_of_the_case(tmp_path: Path):
    said = {"score": 0.25, "reasoning": "another <b>town</b>", "model": "gpt-x", "heuristic": False}
    record = {"judgements": {"reference_match": said, "abstained": said | {"score": 0.0, "reasoning": "it answers"}}}
    body = a_case_body(tmp_path, {**record, "scores": {"reference_match": 0.25}})
    assert (
        '>reference_match</span> <span class="badge">LLM as judge</span> 0.25 <span class="faint">gpt-x</span>' in body
    )
    assert ": another &lt;b&gt;town&lt;/b&gt;</p>" in body
    assert '<p>abstained 0 <span class="faint">gpt-x</span>: it answers</p>' in body


@pytest.mark.parametrize("passage", [0, 3, True, "1", None])
def test_what_a_judge_says_of_no_passage_is_not_said(tmp_path: Path, passage: object):
    evidence = [{"claim": "Since 2019.", "verdict": "unsupported", "passage": passage}]
    body = a_case_body(tmp_path, {}, {"judgements": {"groundedness": {"extra": {"evidence": evidence}}}, "k": 5})
    assert '✘ unsupported</span> <q>Since 2019.</q> <span class="faint">← nearest: chunk 2' in body


def test_key_facts_are_marked_as_the_metric_found_them(tmp_path: Path):
    facts = ["the northern one", "since 1990"]
    line = {"case": an_observation(some_cases(1, cases=1)[0], key_facts=facts)["case"]}
    scores = {"token_f1": 0.2, "key_fact_recall": 0.5}
    body = a_case_body(tmp_path / "a", {"scores": scores}, line)
    assert '<span class="stated">✔ the northern one</span> <span class="unstated">✘ since 1990</span>' in body
    for number, other in enumerate(({}, {"key_fact_recall": 1.0})):
        body = a_case_body(tmp_path / str(number), {"scores": {"token_f1": 0.2} | other}, line)
        assert '<span class="unknown">· the northern one</span> <span class="unknown">· since 1990</span>' in body


def test_what_a_gold_quotes_is_marked_in_its_chunk(tmp_path: Path):
    supports = [{"rel_path": "stock/north.md", "snippets": ["stock  of\nWINTER"]}, {"rel_path": "other.md"}]
    body = a_case_body(tmp_path, {}, {"case": an_observation(some_cases(1, cases=1)[0], supports=supports)["case"]})
    assert 'The <mark title="quoted by the gold">stock of winter</mark>.' in body


@pytest.mark.parametrize(
    ("text", "snippets", "parts"),
    [
        ("a b c", ["b"], ["a ", "<b>", " c"]),
        ("a b c", ["a b", "b c"], ["<a b>", "< c>"]),
        ("a b c", ["x", " "], []),
        ("a.b", ["a+b", "A.B"], ["<a.b>"]),
    ],
)
def test_quotations_are_found_whatever_their_case_and_spaces(text: str, snippets: list[str], parts: list[str]):
    marked = [f"<{part.text}>" if part.is_marked else part.text for part in marked_text(text, snippets)]
    assert marked == parts


@pytest.mark.parametrize(
    ("reported", "sentence"),
    [(["chunks"], "no chunks were retrieved"), ([], "the system reports no chunks")],
)
def test_an_empty_table_of_chunks_is_not_drawn(tmp_path: Path, reported: list[str], sentence: str):
    line = {"case": an_observation(some_cases(1, cases=1)[0], supports=[])["case"]}
    body = a_case_body(tmp_path, {"retrieved_chunks": [], "reported": reported}, line)
    assert sentence in body
    assert 'table class="chunks"' not in body


def test_trials_stand_beside_one_another_with_what_failed_in_each(tmp_path: Path):
    body = a_case_body(tmp_path, {"scores": {"token_f1": 0.25}}, trials=3)
    assert "0 of 3 trials pass, and the mean of their scores decides" in body
    assert [f"✘ trial {number}</b> · token_f1 0.25" in body for number in (1, 2, 3)] == [True] * 3


def test_a_case_can_be_copied_as_a_draft(tmp_path: Path):
    question = "Which \u202eone ##[group]?"
    body = a_case_body(tmp_path, {"question": question, "answer": 'The "northern" one'}, {"case": {"gold": {}}})
    line = unescape(body.partition("data-draft>")[2].partition("</pre>")[0])
    draft = json.loads(line)
    assert draft["question"] == question
    assert draft["metadata"]["draft"] == {
        "run": "now", "case": f"evalcases/warehouse.jsonl::{LONG}-0", "answer": 'The "northern" one',
        "cited": [{"rel_path": "stock/north.md", "heading_path": "# North"}, {"rel_path": "stock/south.md"}],
    }  # fmt: skip
    assert "gold" not in line
    assert f"rageval cases draft now evalcases/warehouse.jsonl::{LONG}-0" in body


def test_an_answer_has_word_marks_only_if_half_of_its_words_are_shared():
    shared = marked_diff("It is kept in the northern hall.", "It is kept in the southern hall.")
    assert [piece.text.strip() for piece in shared if piece.kind != "same"] == ["northern", "southern"]
    assert marked_diff("It is kept in the northern hall.", "Nobody knows where that is.") == ()


def test_a_known_failure_marks_the_gate_that_is_new_and_a_missed_gold_has_its_text(tmp_path: Path):
    before = some_cases(1, "xfailed", cases=1)
    after = [replace(before[0], failed=(*before[0].failed, ("recall_any@5", "L2_doc_retrieval_fail")))]
    chunks = [a_chunk(1, "stock/north.md", [0], text="Kept in the north."), a_chunk(2, "b.md", [1], text="Since 2019.")]
    first = a_full_record(before[0], retrieved_chunks=chunks)
    now = a_full_record(after[0], retrieved_chunks=[a_chunk(1, "c.md", text="Another.")], answer="Nobody can say.")
    for name, rows, record in (("before", before, first), ("now", after, now)):
        folder = store(tmp_path, name, rows, plan=PAGE_PLAN, records={rows[0].key: record})
        supports = [{"rel_path": "stock/north.md", "snippets": ["in the north"]}, {"rel_path": "b.md"}]
        line = to_line(an_observation(rows[0], supports=supports))
        (folder / "observations.jsonl").write_text(line + "\n", encoding="utf-8")
    body = body_of(report_html(page_between(tmp_path, "before", "now")))
    gates = body.partition('<div class="why"')[2].partition("</div>")[0]
    assert gates.count("new: did not fail before") == 1
    assert "recall_any@5 = 0.2, needs &gt;= 0.5 (L2_doc_retrieval_fail) <b" in gates
    missed = body.partition("Gold that was not retrieved")[2].partition("</ul>")[0]
    assert "in the north</div>" in missed, "what the label quotes"
    assert "Since 2019.</div>" in missed, "the chunk that matched it before"
    assert "Answer before" in body
    assert "In the northern one." in body
    assert "<ins" not in body, "the answers have little in common"
