"""Counts of coverage and stated versions as the founding documents give them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from project import SOME, Project, a_case, document, lines_with

from pytest_rageval.runs import config as config_module

BY_TYPE = document("metrics.json")["aggregate_metrics"]["operational_metrics"]["coverage_by_doc_type"]
OF_RECORD = document("result.json")["indexing_coverage"]
OF_METRICS = document("metrics.json")["aggregate_metrics"]["indexing_coverage"]
COUNTED = {name: value for name, value in OF_METRICS.items() if not name.endswith("_rate")}


def reporting(project: Project, coverage: dict[str, Any]) -> pytest.RunResult:
    """A run of a bot that reports this of its index."""
    project.write(
        "bot.py",
        f"import json\nCOVERAGE = json.loads({json.dumps(coverage)!r})\n"
        'def answer(question):\n    return {"answer": "At 100.", "indexing_coverage": COVERAGE}\n',
    )
    project.cases([a_case("boil")])
    return project.run()


def test_the_counts_of_the_metrics_document_give_its_rates(project: Project):
    result = reporting(project, {**COUNTED, "coverage_by_doc_type": BY_TYPE})
    metrics = project.metrics()
    shown = metrics["aggregate_metrics"]["indexing_coverage"]
    assert {name: round(shown[name], 3) if name.endswith("_rate") else shown[name] for name in OF_METRICS} == OF_METRICS
    assert round(metrics["metrics"]["no_chunks_generated_rate"]["mean"], 3) == 0.003
    assert round(metrics["metrics"]["chunks_skipped_due_to_context_rate"]["mean"], 3) == 0.006
    assert not lines_with(result, "not understood")


def test_the_counts_of_the_record_document_count_what_was_skipped_for_the_context(project: Project):
    result = reporting(project, OF_RECORD)
    assert project.metrics()["metrics"]["chunks_skipped_due_to_context_rate"]["mean"] == 45 / 8500
    assert project.records()["boil"]["indexing_coverage"] == OF_RECORD
    assert not lines_with(result, "not understood")


def test_each_type_of_document_has_its_counts_and_rates(project: Project):
    reporting(project, {"coverage_by_doc_type": BY_TYPE})
    by_type = project.metrics()["aggregate_metrics"]["operational_metrics"]["coverage_by_doc_type"]
    assert {name: {key: by_type[name][key] for key in BY_TYPE[name]} for name in BY_TYPE} == BY_TYPE
    rates = {name: counts["no_chunks_generated_rate"] for name, counts in by_type.items()}
    assert rates == {"markdown": 2 / 1200, "pdf": 2 / 200, "code": 1 / 100}


def test_counts_by_type_alone_are_added_up(project: Project):
    reporting(project, {"coverage_by_doc_type": BY_TYPE})
    metrics = project.metrics()
    assert metrics["metrics"]["no_chunks_generated_rate"]["mean"] == 5 / 1500
    assert metrics["aggregate_metrics"]["indexing_coverage"]["chunks_skipped"] == 50
    assert metrics["metrics"]["chunks_skipped_due_to_context_rate"]["mean"] is None


def test_versions_in_the_coverage_are_versions_of_the_system(project: Project):
    reporting(project, OF_RECORD)
    config = json.loads((project.runs[-1] / "config.json").read_text())
    assert config["observed"] == {"chunker": "v1.2", "index": "2024-01-15_abc123"}
    assert config["index_build_version"] is not None


@pytest.mark.parametrize(
    ("reported", "words"),
    [
        ({"docs_procesed": 5}, "docs_procesed is not a known key; did you mean 'docs_processed'?"),
        ({"docs_processed": "1500"}, "docs_processed is no count"),
        ({"docs_processed": 4, "docs_with_0_chunks": 5}, "docs_with_0_chunks is 5, more than docs_processed, 4"),
        ({"coverage_by_doc_type": [1]}, "coverage_by_doc_type is no object"),
        ({"coverage_by_doc_type": {"pdf": {"procesed": 3}}}, "coverage_by_doc_type.pdf.procesed is not a known key"),
        ({"coverage_by_doc_type": {"pdf": 3}}, "coverage_by_doc_type.pdf is no object"),
        ({"chunks_skipped_reasons": {"too_small": -1}}, "chunks_skipped_reasons.too_small is no count"),
    ],
)
def test_what_is_reported_and_not_understood_is_said(project: Project, reported: dict[str, Any], words: str):
    result = reporting(project, reported)
    (line,) = lines_with(result, "reports of its index what is not understood")
    assert words in line


@pytest.mark.parametrize("name", ["answers.jsonl", "answers.csv"])
def test_the_latency_of_an_answers_file_counts(project: Project, name: str):
    latency = document("result.json")["latency"]
    if name.endswith("jsonl"):
        project.write(name, json.dumps({"id": "boil", "answer": "At 100.", "latency": latency}))
    else:
        cell = json.dumps(latency).replace('"', '""')
        project.write(name, f'id,answer,latency\nboil,At 100.,"{cell}"\n')
    project.cases([a_case("boil")])
    project.run("--rageval-target", f"answers:{name}")
    assert project.records()["boil"]["latency"]["total_ms"] == 1234
    assert project.metrics()["volatile"]["latency"]["p95_ms"] == 1234


STATED = '[tool.rageval.versions]\nllm = "llama3.2"\nchunker = "v1.2"'


def config(project: Project, run_id: str) -> dict[str, Any]:
    return json.loads((project.path / "reports" / "runs" / run_id / "config.json").read_text())


def test_stated_versions_make_the_version_tuple_and_a_comparison(project: Project):
    project.cases(SOME)
    project.configure('target = "bot:answer"', STATED)
    project.run("--rageval-run-id", "a")
    project.run("--rageval-run-id", "b", "--rageval-version", "llm=llama3.3", "--rageval-version", "prompt=v2")
    before, after = config(project, "a"), config(project, "b")
    assert before["observed"] == {"llm": "llama3.2", "chunker": "v1.2"}
    assert after["observed"] == {"llm": "llama3.3", "chunker": "v1.2", "prompt": "v2"}
    assert before["llm_model"] == "llama3.2"
    assert before["index_build_version"] == after["index_build_version"] is not None
    assert before["answerer_version"] != after["answerer_version"]
    shown = project.rageval("compare", "a", "b")
    assert lines_with(shown, "llama3.2")
    assert lines_with(shown, "answerer changed")


def test_a_run_that_was_scored_again_keeps_its_stated_versions(project: Project):
    project.cases(SOME)
    project.configure('target = "bot:answer"', STATED)
    project.run("--rageval-run-id", "a")
    project.configure('target = "bot:answer"')
    project.rageval("score", "a")
    assert config(project, "a")["observed"] == {"llm": "llama3.2", "chunker": "v1.2"}


def test_the_reported_version_counts_and_the_difference_is_named(project: Project):
    project.cases(SOME)
    text = (project.path / "bot.py").read_text()
    project.write("bot.py", text.replace('"abstained": False,', '"abstained": False, "versions": {"llm": "llama4"},'))
    project.configure('target = "bot:answer"', STATED)
    result = project.run("--rageval-run-id", "a")
    assert config(project, "a")["observed"] == {"llm": "llama4", "chunker": "v1.2"}
    (line,) = lines_with(result, "versions.llm is stated as 'llama3.2'")
    assert "'llama4'" in line


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("lm=x", "--rageval-version: 'lm' is not a known name; did you mean 'llm'?"),
        ("llm", "--rageval-version: 'llm' is not NAME=VALUE, as in llm=llama3.2"),
    ],
)
def test_a_version_that_means_nothing_is_a_usage_error(project: Project, written: str, words: str):
    project.cases(SOME)
    result = project.run("--rageval-version", written)
    assert result.ret == 4
    assert lines_with(result, words)


def test_config_names_cpu_memory_and_gpu(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    cpus, gpus = tmp_path / "cpuinfo", tmp_path / "gpus"
    cpus.write_text("processor\t: 0\nmodel name\t: EPYC 9354\n")
    (gpus / "0000:01:00.0").mkdir(parents=True)
    (gpus / "0000:01:00.0" / "information").write_text("Model: \t\t NVIDIA L4\nIRQ:  5\n")
    monkeypatch.setattr(config_module, "CPUS", cpus)
    monkeypatch.setattr(config_module, "GPUS", gpus)
    project.cases(SOME)
    project.run("--rageval-run-id", "a")
    machine = config(project, "a")["hardware"]
    assert (machine["cpu_model"], machine["gpu_model"]) == ("EPYC 9354", "NVIDIA L4")
    assert machine["memory_mib"] > 0
