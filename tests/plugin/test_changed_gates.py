"""A changed gate is no obstacle: the stored scores of the baseline are decided again by the gates now in effect."""

from __future__ import annotations

import json
from typing import Any

import pytest
from project import ASSERT_GATES, Project, a_case, lines_with

BOT = """
import bot
def answer(question):
    found = bot.answer(question)
    if "unsure" in question:
        found["answer"] = "Water boils at 100 degrees at sea level, or so people say who live near the sea and cook."
    return found
"""
CASES = [
    a_case("sure", "boiling?"),
    a_case("unsure", "boiling, unsure?", category="multi_hop"),
    a_case("lost", "boiling, lost?", gold_supports=[{"rel_path": "notes/elsewhere.md"}]),
]
"""Of the token F1 1, about .6 and 1; the gold of the last is not retrieved."""
STRICT = "token_f1 >= 0.9"


@pytest.fixture
def settled(project: Project) -> Project:
    project.write("doubtful.py", BOT)
    project.cases(CASES)
    return project


def run(project: Project, mode: str, *gates: str, update: bool = False) -> tuple[pytest.RunResult, dict[str, Any]]:
    """Run with these gates: what came of it, and its comparison."""
    project.configure(f'target = "doubtful:answer"\nknown_failures = "{mode}"')
    options = [word for gate in gates for word in ("--rageval-gate", gate)]
    result = project.run(*options, *["--rageval-update-baseline"] * update)
    return result, project.metrics()["comparison"]


CHANGES = {
    "added": ([], [STRICT], [f"+ {STRICT}"]),
    "removed": ([STRICT], ["token_f1 off"], [f"- {STRICT}"]),
    "changed": (["token_f1 >= 0.2"], [STRICT], [f"+ {STRICT}", "- token_f1 >= 0.2"]),
    "condition changed": (
        [f"{STRICT} when category=factual"], [f"{STRICT} when category=multi_hop"],
        [f"+ {STRICT} when category=multi_hop", f"- {STRICT} when category=factual"],
    ),
    "of the run, changed": (
        ["run recall_any@5 >= 0.5"], ["run recall_any@5 >= 0.6"],
        ["+ run recall_any@5 >= 0.6", "- run recall_any@5 >= 0.5"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_gate_flips_no_case_of_an_unchanged_system(settled: Project, change: str):
    before, after, named = CHANGES[change]
    run(settled, "ratchet", *before, update=True)
    result, comparison = run(settled, "ratchet", *after)
    # The same system: whatever fails by the gates of now would have failed then, and is known.
    assert result.ret == 0, result.outlines
    assert (comparison["compared"], comparison["flipped_to_fail"], comparison["flipped_to_pass"]) == (True, [], [])
    assert {*settled.outcomes().values()} == {"passed", "xfailed"}
    paired = comparison["paired"]
    assert paired["passed_before"] == paired["passed_after"]
    assert [gate for gate in named if gate not in comparison["gate_changes"]] == []
    assert len(lines_with(result, "gates changed, and those of now decide about both runs: ")) == 1
    verdict = settled.metrics()["verdict"]
    assert verdict["word"] == "Not worse"
    compared = settled.rageval("compare", "baseline", "latest")
    assert (compared.ret, verdict["sentence"] in " ".join(compared.stdout.str().split())) == (0, True)


def test_without_a_ratchet_a_new_gate_fails_its_case_and_is_no_fall(settled: Project):
    run(settled, "fail", "recall_any off", update=True)
    result, comparison = run(settled, "fail", "recall_any off", STRICT)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert (settled.outcomes()["unsure"], comparison["flipped_to_fail"]) == ("failed", [])
    assert settled.metrics()["verdict"]["word"] == "Still failing"


def test_a_real_fall_under_a_new_gate_is_one(settled: Project):
    run(settled, "ratchet", update=True)
    settled.write("doubtful.py", BOT.replace("unsure", "boiling"))
    result, comparison = run(settled, "ratchet", STRICT)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert comparison["flipped_to_fail"] == ["evalcases/a.jsonl::lost", "evalcases/a.jsonl::sure"][1:]
    assert settled.outcomes()["sure"] == "failed"


def test_a_gate_on_what_the_baseline_did_not_measure_says_so(settled: Project):
    run(settled, "fail", "recall_any off", update=True)
    baseline = settled.path / "reports" / "baseline.json"
    content = json.loads(baseline.read_text(encoding="utf-8"))
    for case in content["cases"].values():
        case["scores"].pop("mrr")
    content["metrics"].pop("mrr")
    baseline.write_text(json.dumps(content), encoding="utf-8")
    _, comparison = run(settled, "fail", "recall_any off", "mrr >= 1")
    assert comparison["flipped_to_fail"] == []
    assert comparison["newly_gated"] == ["evalcases/a.jsonl::lost"]
    assert "1 case fails a gate that the other run did not measure" in settled.metrics()["verdict"]["sentence"]


def test_a_test_of_the_projects_own_that_failed_is_not_decided_again_by_gates(settled: Project):
    settled.own_test("own/b.jsonl", ASSERT_GATES + "\nassert 'unsure' not in eval_case.question")
    settled.cases(CASES[:2], "own/b.jsonl")
    run(settled, "fail", "recall_any off", update=True)
    assert settled.metrics()["outcomes"]["failed"] == 1
    _, comparison = run(settled, "fail", "recall_any off", "token_f1 >= 0.1")
    assert settled.metrics()["outcomes"]["failed"] == 1
    assert (comparison["flipped_to_fail"], comparison["flipped_to_pass"]) == ([], [])
