"""A run scored again: nothing changes that nothing has changed, whatever the run holds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from project import RUN, SOME, StoredProject, a_case, a_missed_case, command, problems
from stored_runs import change_lines

from pytest_rageval.runs.folder import RunFolder

OWN = '''
import pytest
from pytest_rageval import NotApplicable, Score, metric


@metric(layer="L5", better="higher")
def shortness(obs):
    """1 for an answer of up to 30 characters."""
    if not obs.answer.text:
        return NotApplicable("nothing was said")
    return Score(float(len(obs.answer.text) <= 30), {"characters": len(obs.answer.text)})


@metric(layer="L5", better="higher")
def fragile(obs):
    """1, or an error."""
    assert "breaks" not in obs.case.tags
    return 1.0


@metric(layer="operations", better="lower", run_level=True)
def failures(facts):
    """Share of cases that failed."""
    return facts.failed / facts.asked


def pytest_rageval_metrics(config):
    return [shortness, fragile, failures]


def pytest_collection_modifyitems(items):
    for item in items:
        if item.name == "marked":
            item.add_marker(pytest.mark.xfail(reason="we know"))
        if item.name == "left-out":
            item.add_marker(pytest.mark.skip(reason="not today"))
'''
TEST = """
import pytest


@pytest.mark.rageval("own.jsonl")
def test_it(eval_case, rageval):
    assert rageval.evaluate(eval_case).scores["shortness"] == 0
"""
LOSING = "import bot\ndef answer(q):\n    assert 'lost' not in q, 'gone \\x1b[31m'\n    return bot.answer(q)\n"
GROUP = [{"rel_path": "notes/water.md"}, {"rel_path": "notes/sea.md"}]
CASES = [
    *SOME,
    a_missed_case("missed"),
    a_missed_case("missed-before"),
    a_missed_case("marked"),
    a_case("left-out"),
    a_case("lost", "boiling lost\nand gone"),
    a_case("broken", tags=["breaks"]),
    a_case("odd \x1b[31m |*_ id"),
    {"id": "grouped", "question": "boiling?", "gold": {"supports": GROUP, "support_groups": [[0, 1]]}},
    {"id": "bare", "question": "What boiling?"},
]  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> StoredProject:
    """A run with every way in which a case can end, twice asked, with a baseline in which some cases failed before."""
    project = StoredProject.new(
        tmp_path_factory.mktemp("varied"),
        [],
        table='target = "losing:answer"\nknown_failures = "ratchet"',
        extra="[tool.rageval.gates]\nrun = ['mrr >= 0.1']",
    )
    project.write("conftest.py", OWN)
    project.write("losing.py", LOSING)
    project.write("mine/test_own.py", TEST)
    project.cases([a_case("my-boil"), a_missed_case("my-missed")], "mine/own.jsonl")
    project.cases([a_missed_case("missed-before")], "evalcases/a.jsonl")
    project.pytest("--rageval-update-baseline", "evalcases", run_id="before")
    project.cases(CASES)
    told = "shortness", "fragile", "failures", "L2", "L5", "abstention", "operations"
    project.pytest("--rageval-repeat", "2", "--rageval-metrics", ",".join(told), "--rageval-description", "all | sorts")
    return project


@pytest.mark.parametrize("verb", [["score"], ["score", "--aggregate-only"], ["abstention"]])
def test_scoring_an_unchanged_run_again_changes_no_byte(project: StoredProject, verb: list[str]):
    outcomes = {id: record["outcome"] for id, record in project.records().items()}
    assert set(outcomes.values()) == {"passed", "failed", "error", "skipped", "xfailed"}
    assert outcomes["missed-before"] == "xfailed"
    before = project.files()
    result = command(verb[0], RUN, *verb[1:])
    assert result.exit_code == 1, result.output  # cases fail, as they did
    assert project.files() == before


def unseal(project: StoredProject) -> None:
    """Take the seal over the records off the run, which refuses changed ones."""
    path = project.folder() / "config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    del config["recorded"]
    path.write_text(json.dumps(config), encoding="utf-8")


def test_scores_that_were_changed_by_hand_come_back(project: StoredProject):
    before = project.files()
    path = project.folder() / "results.jsonl"
    changed = {'"mrr":1.0': '"mrr":0.5', '"outcome":"passed"': '"outcome":"failed"'}

    def change(line: str) -> str:
        for old, new in changed.items() if '"test_case_id":"freeze"' in line else ():
            line = line.replace(old, new)
        return line

    change_lines(path, change)
    unseal(project)
    assert path.read_bytes() not in before.values()
    command("score", RUN)
    assert project.files() == before


def test_scores_of_metrics_of_the_projects_own_stay_as_recorded(project: StoredProject):
    path = project.folder() / "results.jsonl"
    change_lines(path, lambda line: line.replace('"shortness":1.0', '"shortness":0.25'))
    unseal(project)
    command("score", RUN)
    assert project.records()["freeze"]["scores"]["shortness"] == 0.25
    assert project.records()["freeze"]["layers"]["L5"]["shortness"] == 0.25
    assert project.json("metrics.json")["metrics"]["failures"]["mean"] is not None


def test_another_baseline_decides_what_is_a_known_failure(project: StoredProject):
    command("score", RUN, "--baseline", _baseline_with(project, "evalcases/a.jsonl::missed"))
    records = project.records()
    assert (records["missed"]["outcome"], records["missed-before"]["outcome"]) == ("xfailed", "failed")
    assert records["missed"]["reason"].startswith("failed in the baseline as well: recall_any@5 is 0")
    assert records["missed-before"]["reason"].startswith("recall_any@5 is 0, gate >= 1")
    assert records["marked"]["reason"] == "we know"


def _baseline_with(project: StoredProject, key: str) -> Path:
    content = json.loads((project.path / "reports" / "baseline.json").read_text(encoding="utf-8"))
    content["cases"] = {key: next(iter(content["cases"].values()))}
    return project.write("other.json", json.dumps(content))


def test_only_the_last_runs_metrics_stand_for_all(project: StoredProject):
    last = (project.path / "reports" / "metrics.json").read_bytes()
    before = project.json("metrics.json", "before")
    assert command("score", "before", "--baseline", _baseline_with(project, "x::y")).exit_code == 1
    assert project.json("metrics.json", "before") != before
    assert (project.path / "reports" / "metrics.json").read_bytes() == last


def test_a_metric_is_added_and_stays_with_the_run(project: StoredProject):
    config = project.json("config.json", "before")
    command("score", "before", "--metrics", "ndcg@3, f1@2")
    after = project.json("config.json", "before")
    assert project.records("before")["missed-before"]["scores"]["ndcg@3"] == 0.0
    assert {"ndcg@3", "f1@2"} < set(after["metrics"])
    assert after["config_hash"] != config["config_hash"]
    assert project.json("metrics.json", "before")["config_hash"] == after["config_hash"]
    files = project.files("before")
    command("score", "before")
    assert project.files("before") == files


def test_a_run_that_is_being_written_is_left_alone(project: StoredProject):
    before = project.files()
    folder = RunFolder(project.folder())
    folder.lock()
    assert problems(command("score", RUN)) == [f"run {RUN} is being written by another process; wait for it to end"]
    folder.close()
    assert project.files() == before


def test_an_interrupted_run_is_to_be_finished_first(project: StoredProject):
    (project.folder() / "metrics.json").unlink()
    said = [f"run {RUN} was interrupted; finish it first with --rageval-resume {RUN}"]
    assert problems(command("score", RUN)) == problems(command("gate", RUN)) == said


@pytest.mark.parametrize("spoilt", ['"answer":7', '"timings":[]', '"judgements":[1]'])
def test_an_observation_that_was_changed_is_said_in_a_line(project: StoredProject, spoilt: str):
    path = project.folder() / "observations.jsonl"
    name = spoilt.partition(":")[0]
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for line in lines:
        line |= json.loads("{" + spoilt + "}")
    assert name.strip('"') in lines[0]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    before = project.files()
    assert problems(command("score", RUN))
    assert project.files() == before
