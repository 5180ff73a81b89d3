"""Versions that a project states because its system does not report them, and the machine that a run was made on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from project import SOME, Project, lines_with

from pytest_rageval.runs import config as config_module

STATED = '[tool.rageval.versions]\nllm = "llama3.2"\nchunker = "v1.2"'


def config(project: Project, run_id: str) -> dict[str, Any]:
    return json.loads((project.path / "reports" / "runs" / run_id / "config.json").read_text())


def test_stated_versions_make_the_version_tuple_and_a_comparison(project: Project):
    project.cases(SOME)
    project.configure('target = "bot:answer"', STATED)
    project.run("-q", "--rageval-run-id", "a")
    project.run("-q", "--rageval-run-id", "b", "--rageval-version", "llm=llama3.3", "--rageval-version", "prompt=v2")
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
    project.run("-q", "--rageval-run-id", "a")
    project.configure('target = "bot:answer"')
    project.rageval("score", "a")
    assert config(project, "a")["observed"] == {"llm": "llama3.2", "chunker": "v1.2"}


def test_the_reported_version_counts_and_the_difference_is_named(project: Project):
    project.cases(SOME)
    text = (project.path / "bot.py").read_text()
    project.write("bot.py", text.replace('"abstained": False,', '"abstained": False, "versions": {"llm": "llama4"},'))
    project.configure('target = "bot:answer"', STATED)
    result = project.run("-q", "--rageval-run-id", "a")
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
    result = project.run("-q", "--rageval-version", written)
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
    project.run("-q", "--rageval-run-id", "a")
    machine = config(project, "a")["hardware"]
    assert (machine["cpu_model"], machine["gpu_model"]) == ("EPYC 9354", "NVIDIA L4")
    assert machine["memory_mib"] > 0
