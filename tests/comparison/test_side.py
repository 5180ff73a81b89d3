"""What a reference to a run means, and what is said where it means nothing."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import pytest
from stored_runs import a_row, accept, compared_runs, store

from pytest_rageval.comparison import baseline_texts
from pytest_rageval.comparison.baseline import Side, open_side
from pytest_rageval.errors import SettingsError

ROWS = [a_row("a.jsonl::q", mrr=1.0)]


def opened(reports: Path, wanted: str) -> Side:
    return open_side(reports, reports / "baseline.json", wanted)


@pytest.fixture
def reports(tmp_path: Path) -> Path:
    """Two runs, the first of which is the baseline."""
    accept(tmp_path, store(tmp_path, "20250101_000000", ROWS, records={}), ROWS)
    store(tmp_path, "20250102_000000", ROWS, records={})
    return tmp_path


@pytest.mark.parametrize(
    ("wanted", "run_id"),
    [
        ("latest", "20250102_000000"),
        ("latest~1", "20250101_000000"),
        ("20250101_000000", "20250101_000000"),
        ("baseline", "20250101_000000"),
        ("{reports}/runs/20250101_000000", "20250101_000000"),
        ("{reports}/runs/20250101_000000/metrics.json", "20250101_000000"),
        ("{reports}/baseline.json", "20250101_000000"),
    ],
)
def test_a_reference_is_a_run(reports: Path, wanted: str, run_id: str):
    side = opened(reports, wanted.format(reports=reports))
    assert side.run_id == run_id
    assert side.scores is not None
    assert side.scores["a.jsonl::q"].scores == {"mrr": 1.0}
    assert side.has_records
    assert side.config is not None


def test_a_baseline_whose_run_is_gone_has_the_texts_beside_it(reports: Path):
    shutil.rmtree(reports / "runs" / "20250101_000000")
    side = opened(reports, "baseline")
    assert (side.run, side.note) == (None, None)
    assert side.records({"a.jsonl::q"})["a.jsonl::q"]["answer"] is not None
    assert side.records({"other"}) == {}


def a_bomb() -> bytes:
    return gzip.compress(b" " * 50_000_000)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no gzip",
        a_bomb(),
        gzip.compress(b"[" * 100_000),
        gzip.compress(b'{"run_id": "20250101_000000", "cases": [{}]}'),
    ],
    ids=["empty", "no gzip", "bomb", "deep", "no records"],
)
def test_texts_that_cannot_be_read_cost_a_sentence(reports: Path, content: bytes):
    shutil.rmtree(reports / "runs" / "20250101_000000")
    (reports / "baseline.texts.json.gz").write_bytes(content)
    side = opened(reports, "baseline")
    assert "baseline.texts.json.gz cannot be read" in (side.note or "")
    assert not side.has_records


def test_texts_are_bounded_and_tell_of_failing_cases_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(baseline_texts, "MOST_CASES", 1)
    rows = [a_row("a.jsonl::a", mrr=1.0), a_row("a.jsonl::b", outcome="failed", mrr=0.0)]
    accept(tmp_path, store(tmp_path, "20250101_000000", rows, records={}), rows)
    shutil.rmtree(tmp_path / "runs")
    side = opened(tmp_path, "baseline")
    assert [*side.texts] == ["a.jsonl::b"]
    assert "holds the texts of 1 of its 2 cases" in (side.note or "")


def test_texts_of_a_redacted_run_are_not_written(tmp_path: Path):
    redacted = {"a.jsonl::q": {"question": None, "answer": None}}
    accept(tmp_path, store(tmp_path, "20250101_000000", ROWS, records=redacted), ROWS)
    assert not (tmp_path / "baseline.texts.json.gz").exists()


def test_a_baseline_whose_run_and_texts_are_gone_says_that_it_has_no_texts(reports: Path):
    shutil.rmtree(reports / "runs" / "20250101_000000")
    (reports / "baseline.texts.json.gz").unlink()
    side = opened(reports, "baseline")
    assert side.run is None
    assert "baseline holds no texts, and its run 20250101_000000 is not in" in (side.note or "")
    found = compared_runs(reports, "baseline", "latest")
    assert found.is_compared
    assert found.content["versions"]["retriever"]["changed"] is not None  # a baseline keeps its configuration


def test_a_baseline_without_its_configuration_leaves_the_versions_unknown(reports: Path):
    shutil.rmtree(reports / "runs" / "20250101_000000")
    baseline = json.loads((reports / "baseline.json").read_text(encoding="utf-8"))
    del baseline["config"]
    (reports / "baseline.json").write_text(json.dumps(baseline), encoding="utf-8")
    assert opened(reports, "baseline").config is None
    assert compared_runs(reports, "baseline", "latest").content["versions"]["retriever"]["changed"] is None


def test_a_run_of_the_same_name_that_is_not_the_baselines_lends_it_nothing(reports: Path):
    shutil.rmtree(reports / "runs" / "20250101_000000")
    store(reports, "20250101_000000", [a_row("a.jsonl::q", mrr=0.5)])
    assert opened(reports, "baseline").run is None


def test_a_run_without_its_table_of_scores_is_read_from_its_records(reports: Path):
    (reports / "runs/20250101_000000/scores.jsonl").unlink()
    (reports / "runs/20250101_000000/results.jsonl").unlink()
    side = opened(reports, "latest~1")
    assert side.scores is None
    assert "holds no cases" in (side.note or "")


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ("20260101_000000", "there is no run '20260101_000000'; did you mean '20250101_000000'?"),
        ("latest~7", "holds 2 runs"),
        ("{reports}/gone.json", "there is no run"),
        ("{reports}/list.json", "holds no JSON object"),
        ("{reports}/other.json", "not what a run writes: metrics is missing"),
        ("{reports}/text.json", "is not JSON"),
        ("baseline", "does not exist"),
    ],
)
def test_what_is_no_run_is_said_in_one_line(reports: Path, wanted: str, said: str):
    (reports / "baseline.json").unlink()
    (reports / "list.json").write_text("[]", encoding="utf-8")
    (reports / "other.json").write_text('{"some": "thing"}', encoding="utf-8")
    (reports / "text.json").write_text("hello", encoding="utf-8")
    with pytest.raises(SettingsError) as error:
        opened(reports, wanted.format(reports=reports))
    assert len(error.value.problems) == 1
    assert said in error.value.problems[0]


@pytest.mark.parametrize("scale", [[1, 0], [0], "0 to 1", [0, None]])
def test_a_file_with_a_senseless_scale_is_refused(reports: Path, scale: object):
    path = reports / "runs/20250102_000000/metrics.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    content["metrics"]["mrr"]["scale"] = scale
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(SettingsError, match=r"not what a run writes: metrics\.mrr"):
        opened(reports, "latest")
