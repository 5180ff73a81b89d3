"""A run for other programs: each record once and in order, in every format the same, and never half a file."""

from __future__ import annotations

import csv
import json
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from project import Project, a_case, a_missed_case, lines_with
from stored_runs import a_result, a_run, an_error, change_lines

from pytest_rageval.errors import SettingsError
from pytest_rageval.export.csv_format import as_text, csv_line, csv_lines
from pytest_rageval.export.export_source import FIELDS, ExportSource, look_through
from pytest_rageval.export.report_json import json_lines
from pytest_rageval.export.tables import write_parquet, write_sqlite
from pytest_rageval.io.atomic import replacing
from pytest_rageval.io.sealed_lines import unsealed
from pytest_rageval.model import FailedGate
from pytest_rageval.runs.flat_aggregates import with_aliases
from pytest_rageval.runs.reader import StoredRun, open_stored_run
from pytest_rageval.runs.records.record_texts import CUT

LONG = "Water boils at 100 degrees. " * 30


def stored(path: Path) -> StoredRun:
    return open_stored_run(path.parent.parent, path.name)


def source(path: Path, *, full_text: bool = False) -> ExportSource:
    return look_through(stored(path), full_text=full_text)


def table(source: ExportSource) -> list[dict[str, str]]:
    return list(csv.DictReader("".join(f"{line}\n" for line in csv_lines(source)).splitlines(keepends=True)))


def select(path: Path, statement: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(statement).fetchall()


@pytest.fixture
def some(tmp_path: Path) -> Path:
    """A run of three cases, one of which failed and one of which was an error."""
    gate = FailedGate("recall_any@5", 0.0, ">= 1", "L2_doc_retrieval_fail")
    failed = a_result("q2", "=1+1", recall=0.0, outcome="failed", failed_gates=(gate,), category="multi_hop")
    return a_run(tmp_path, "a", failed, a_result("q1"), an_error("q3", "no answer in 5 s"))


def test_records_come_by_key_and_trial_in_whatever_order_they_were_written(tmp_path: Path):
    path = a_run(tmp_path, "a", a_result("b"), a_result("a", trial=1), a_result("a"), repeat=2)
    found = [(record["test_case_id"], record["trial"]) for record in source(path).records()]
    assert found == [("a", 0), ("a", 1), ("b", 0)]
    path = a_run(tmp_path, "b", a_result(answer="first"), a_result(answer="second"))
    assert [record["answer"] for record in source(path).records()] == ["second"]


def test_a_line_that_was_cut_off_is_left_out_and_said(some: Path):
    whole = (some / "results.jsonl").read_bytes()
    (some / "results.jsonl").write_bytes(whole[:-100])
    found = source(some)
    assert len(found) == 2
    cut_off, not_whole = found.notes
    assert cut_off == "results.jsonl:3: was cut off while it was written, and is left out"
    assert "1 of 3 cases has no record in results.jsonl" in not_whole


def test_a_run_that_did_not_finish_is_exported_with_what_its_workers_wrote(tmp_path: Path):
    path = a_run(tmp_path, "a", a_result("q1"), a_result("q2"), is_finished=False)
    first, second = (path / "results.jsonl").read_text().splitlines(keepends=True)
    (path / "results.jsonl").write_text(first)
    (path / "results-gw0.jsonl").write_text(second)
    found = source(path)
    assert len(found) == 2
    assert found.notes == ("run a did not finish: no aggregates, and 2 of its results",)
    assert json.loads("\n".join(json_lines(found)))["aggregates"] is None


def test_what_cannot_be_exported_is_said(tmp_path: Path, some: Path, monkeypatch: pytest.MonkeyPatch):
    path = a_run(tmp_path, "empty")
    (path / "results.jsonl").write_text("")
    with pytest.raises(SettingsError, match="run empty has no results"):
        source(path)
    with pytest.raises(SettingsError, match=r"keeps no observations\.jsonl.*leave out --full-text"):
        source(a_run(tmp_path, "redacted", redact=True), full_text=True)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(SettingsError, match=r"pip install 'pytest-rageval\[parquet\]'"):
        write_parquet(source(some), tmp_path / "a.parquet")


def test_texts_are_cut_as_recorded_unless_the_full_ones_are_asked_for(tmp_path: Path):
    path = a_run(tmp_path, "a", a_result(question=LONG, answer=LONG, chunk=LONG), an_error("q2", "late"))
    cut, _ = source(path).records()
    full, error = source(path, full_text=True).records()
    for record, text in [(cut, LONG[:CUT] + "…"), (full, LONG)]:
        assert (record["question"], record["answer"], record["retrieved_chunks"][0]["text"]) == (text, text, text)
    assert error["error"]["message"] == "late"


def test_csv_has_a_row_a_record_and_a_column_a_metric(some: Path):
    good, failed, error = table(source(some))
    assert [*good] == [*FIELDS, "recall_any@5", "mrr", "groundedness"]
    assert (good["test_case_id"], good["outcome"], good["answer"]) == ("q1", "passed", "At 100 degrees.")
    assert (good["recall_any@5"], good["mrr"], good["groundedness"], good["latency_ms"]) == ("1.0", "0.5", "", "12.5")
    assert failed["failed_gates"] == "recall_any@5 is 0, gate >= 1 (L2_doc_retrieval_fail)"
    assert failed["answer"] == "'=1+1"
    assert (error["error"], error["answer"], error["mrr"]) == ("timeout: no answer in 5 s", "", "")


def test_a_metric_that_is_called_like_a_column_has_a_column_of_its_own(tmp_path: Path):
    path = a_run(tmp_path, "a")
    change_lines(path / "results.jsonl", lambda line: line.replace('"mrr":0.5', '"error":0.25'))
    (row,) = table(source(path))
    assert (row["error"], row["metric.error"]) == ("", "0.25")


def test_names_and_texts_of_every_field_are_quoted(tmp_path: Path):
    hostile = "=HYPERLINK(1)"
    result = a_result(hostile, hostile, question=hostile, category=hostile, reason=hostile, outcome="skipped")
    path = a_run(tmp_path, "a", result, an_error("q2", hostile))
    rows = table(source(path))
    assert [value for row in rows for value in row.values() if value.lstrip()[:1] == "="] == []


def test_json_holds_configuration_aggregates_and_every_record_as_it_is(some: Path):
    whole = json.loads("\n".join(json_lines(source(some))))
    assert whole["run_id"] == "a"
    assert whole["configuration"] == json.loads((some / "config.json").read_text())
    assert whole["aggregates"] == with_aliases(json.loads((some / "metrics.json").read_text()))
    lines = [unsealed(line) for line in (some / "results.jsonl").read_bytes().splitlines()]
    assert whole["cases"] == sorted(lines, key=lambda record: record["case_key"])


def test_a_line_that_was_changed_is_left_out_and_said(some: Path):
    change_lines(some / "results.jsonl", lambda line: line.replace('"mrr":0.5', '"mrr":NaN'))
    exported = source(some)
    assert any("results.jsonl:" in note and "is not JSON" in note for note in exported.notes)
    assert "NaN" not in "".join(json_lines(exported))


def test_sqlite_holds_runs_cases_scores_and_chunks(some: Path, tmp_path: Path):
    write_sqlite(source(some), tmp_path / "a.sqlite")
    path = tmp_path / "a.sqlite"
    assert select(path, "SELECT run_id, partial, json_extract(configuration, '$.k') FROM runs") == [("a", 0, 5)]
    assert select(path, "SELECT test_case_id, outcome, answer FROM cases ORDER BY 1") == [
        ("q1", "passed", "At 100 degrees."), ("q2", "failed", "=1+1"), ("q3", "error", None)
    ]  # fmt: skip
    assert select(path, "SELECT metric, avg(value), count(*) FROM scores GROUP BY 1 ORDER BY 1") == [
        ("mrr", 0.5, 2), ("recall_any@5", 0.5, 2)
    ]  # fmt: skip
    assert (
        select(path, "SELECT rank, rel_path, text, matches FROM chunks") == [(1, "water.md", "Water boils.", "[0]")] * 2
    )


def test_sqlite_takes_more_records_than_go_in_at_once(tmp_path: Path):
    hostile = "'); DROP TABLE cases; --"
    path = a_run(tmp_path, "a", a_result(hostile, hostile), *(a_result(f"q{number}") for number in range(1202)))
    write_sqlite(source(path), tmp_path / "a.sqlite")
    assert select(tmp_path / "a.sqlite", "SELECT count(*), count(DISTINCT case_key) FROM cases") == [(1203, 1203)]
    assert select(tmp_path / "a.sqlite", "SELECT answer FROM cases ORDER BY 1 LIMIT 1") == [(hostile,)]


def test_a_run_from_the_browser_says_in_each_row_what_it_was_made_from(tmp_path: Path):
    origin = {"agent": "bot", "agent_version": 2, "dataset": "sums", "dataset_version": 3, "source": "connector"}
    path = a_run(tmp_path, "a", a_result("q1"), changed={"origin": origin})
    (row,) = table(source(path))
    expected = {f"origin.{name}": str(value) for name, value in origin.items()}
    assert {name: value for name, value in row.items() if name.startswith("origin.")} == expected
    assert not [name for name in source(a_run(tmp_path, "b")).columns() if name.startswith("origin.")]


def test_parquet_holds_the_columns_of_csv_and_the_chunks(some: Path, tmp_path: Path):
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs the extra 'parquet'")
    write_parquet(source(some), tmp_path / "a.parquet")
    good, failed, error = parquet.read_table(tmp_path / "a.parquet").to_pylist()
    assert [*good] == [*source(some).columns(), "trace", "retrieved_chunks"]
    assert (good["mrr"], good["groundedness"], good["answerable"], good["trial"]) == (0.5, None, True, 0)
    assert failed["answer"] == "=1+1"
    assert good["retrieved_chunks"][0]["rel_path"] == "water.md"
    assert error["retrieved_chunks"] == []


def test_a_file_is_replaced_when_the_new_one_is_whole_and_else_left_as_it_was(tmp_path: Path):
    path = tmp_path / "deeper" / "a.bin"
    with replacing(path) as new:
        new.write_text("first")

    def fail() -> None:
        with replacing(path) as new:
            new.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert path.read_text() == "first"
    assert list(path.parent.iterdir()) == [path]


def test_records_are_read_as_they_are_asked_for(tmp_path: Path):
    path = a_run(tmp_path, "a", a_result("q1"), a_result("q2"))
    seen: list[str] = []

    def watch(keys: Any) -> Iterator[Any]:
        for key in keys:
            seen.append(key[0])
            yield key

    lines = csv_lines(replace(source(path), watch=watch))
    assert (next(lines)[:10], seen) == ('"case_key"', [])
    next(lines)
    assert seen == ["evalcases/a.jsonl::q1"]


SIGNS = "=+-@＝＋－＠"


@pytest.mark.parametrize("sign", [*SIGNS, "\t", "\r"])
@pytest.mark.parametrize("before", ["", " ", "\n", "\u3000", "\xa0", "\ufeff", "\u200b", " \t\n "])
def test_a_text_that_a_spreadsheet_would_run_begins_with_an_apostrophe(sign: str, before: str):
    assert as_text(f"{before}{sign}cmd|' /C calc'!A0") == f"'{before}{sign}cmd|' /C calc'!A0"


@pytest.mark.parametrize("text", ["", "a=b", "100 - 5", "남산", "'=1", "(-1)", "/etc", " plain", "\n"])
def test_other_texts_stay_as_they_are(text: str):
    assert as_text(text) == text


def test_numbers_stay_numbers_and_what_has_no_value_is_empty():
    assert csv_line([-1, -0.25, 0, True, None, "-1"]) == '-1,-0.25,0,"true","","\'-1"'


def test_separators_quotes_and_line_breaks_are_read_back():
    texts = ['a,b;c"d', "two\nlines", "남산 🗼"]
    assert next(csv.reader([csv_line(texts)])) == texts


def test_what_would_steer_a_terminal_is_escaped():
    assert csv_line(["a\x1b[31m\x9b\u202e\ud800"]) == '"a\\x1b[31m\\x9b\\u202e\\ud800"'


@given(st.text())
def test_no_text_comes_out_as_a_formula(text: str):
    (cell,) = next(csv.reader([csv_line([text])]))
    assert not cell.lstrip().startswith(tuple(SIGNS))
    assert cell[:1] not in ("\t", "\r")


def exported(project: Project, form: str) -> list[str]:
    result = project.rageval("export", "latest", "--format", form, "--output", "-")
    assert result.ret == 0
    return list(result.outlines)


def test_chunks_come_by_rank_and_golds_that_did_not_come_stand_under_their_own_name(project: Project):
    project.cases([a_case("boil"), a_missed_case("lost one"), a_case("odd", "Boiling or freezing?")])
    project.run()
    run_id = project.runs[-1].name
    assert exported(project, "trec-run") == [
        f"evalcases/a.jsonl::boil Q0 c1 1 1 {run_id}",
        f"evalcases/a.jsonl::lost%20one Q0 c1 1 1 {run_id}",
        f"evalcases/a.jsonl::odd Q0 c1 1 2 {run_id}",
        f"evalcases/a.jsonl::odd Q0 c2 2 1 {run_id}",
    ]
    assert exported(project, "trec-qrels") == [
        "evalcases/a.jsonl::boil 0 c1 1",
        "evalcases/a.jsonl::lost%20one 0 notes/elsewhere.md 1",
        "evalcases/a.jsonl::odd 0 c1 1",
    ]


def test_recall_by_those_files_is_the_recall_of_the_run(project: Project):
    project.cases([a_case("boil"), a_missed_case("lost")])
    project.run()
    relevant = {tuple(line.split()[::2]) for line in exported(project, "trec-qrels") if line.endswith(" 1")}
    retrieved = {tuple(line.split()[::2][:2]) for line in exported(project, "trec-run")}
    of_case = {query for query, _ in relevant}
    found = {query: [entry in retrieved for entry in relevant if entry[0] == query] for query in of_case}
    mean = sum(sum(hits) / len(hits) for hits in found.values()) / len(found)
    (project.runs[-1] / "observations.jsonl").unlink()
    result = project.rageval("export", "latest", "--format", "trec-run", "--output", "-")
    assert result.ret == 2
    assert lines_with(result, "keeps no observations.jsonl")
    assert mean == pytest.approx(project.metrics()["metrics"]["context_recall@5"]["mean"])
