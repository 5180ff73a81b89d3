"""Other gates on a stored run: what pytest would say with them, from records alone, and nothing written."""

from __future__ import annotations

import pytest
from project import RUN, SOME, TABLE, StoredProject, a_case, a_missed_case, command, problems

GROUP = [{"rel_path": "notes/water.md"}, {"rel_path": "notes/sea.md"}]
CASES = [
    *SOME,
    a_missed_case("missed", tags=["far"], difficulty="hard"),
    {"id": "grouped", "question": "boiling?", "gold": {"supports": GROUP, "support_groups": [[0, 1]]}},
    a_case("ids", gold_supports=None, gold={"chunk_ids": ["c1"], "answer": "At 100 degrees."}),
]
CASES[-1].pop("gold_supports")


GATES = [
    [],
    ["recall_any off", "recall_all off"],
    ["groundedness >= 4.9", "run mrr >= 0.99"],
    ["mrr >= 0.9 when tag=far", "mrr >= 0.9 when difficulty=hard", "recall_any >= 1 when gold=ids"],
    ["context_recall >= 1 when groups=true", "abstention_accuracy <= 0 when answerable=false"],
    ["token_f1 >= 90% tag wrong"],
]


@pytest.mark.parametrize("gates", GATES, ids=lambda gates: "; ".join(gates) or "those of the project")
def test_a_gate_says_what_a_run_with_it_says(project: StoredProject, gates: list[str]):
    before = project.files()
    result = command("gate", RUN, *(word for gate in gates for word in ("--gate", gate)))
    assert project.files() == before
    project.pytest(*(word for gate in gates for word in ("--rageval-gate", gate)), run_id="anew")
    outcomes = {record["case_key"]: record for record in project.records("anew").values()}
    failed = {key: record["reason"] for key, record in outcomes.items() if record["outcome"] == "failed"}
    shown = [line.removeprefix("FAILED ") for line in result.output.splitlines() if line.startswith("FAILED evalcases")]
    assert shown == [f"{key} - {reason}" for key, reason in sorted(failed.items())]
    broken = [gate for gate in project.json("metrics.json", "anew")["gates"] if gate["passed"] is False]
    assert [f"FAILED {gate['metric']} " in result.output for gate in broken] == [True] * len(broken)
    assert result.exit_code == (1 if failed or broken else 0)


def test_the_gates_of_the_project_are_those_that_it_has_now(project: StoredProject):
    project.write(
        "pyproject.toml", f"[tool.rageval]\n{TABLE}\n[tool.rageval.gates]\ncase = ['recall_any off', 'recall_all off']"
    )
    (project.folder() / "observations.jsonl").unlink()  # which is not needed
    assert command("gate", RUN).exit_code == 0
    assert command("gate", RUN, "--gate", "recall_any >= 1").exit_code == 1


def test_a_gate_on_what_was_not_scored_says_how_it_can_be(project: StoredProject):
    gates = ["--gate", "ndcg@3 >= 0.5", "--gate", "relevance >= 0.5", "--regression", "f1@2 drop 0.1"]
    assert sorted(problems(command("gate", RUN, *gates))) == [
        f"gate 'f1@2 drop <= 0.1': run {RUN} has not scored f1@2; `rageval score {RUN} --metrics f1@2` does",
        f"gate 'ndcg@3 >= 0.5': run {RUN} has not scored ndcg@3; `rageval score {RUN} --metrics ndcg@3` does",
        f"gate 'relevance >= 0.5': run {RUN} has not scored relevance; `rageval judge {RUN} --metrics relevance` does",
    ]
    assert len(problems(command("gate", RUN, "--gate", "recal >= 1", "--gate", "mrr"))) == 2


def test_a_regression_is_looked_for_in_the_baseline(project: StoredProject):
    project.pytest("--rageval-update-baseline", "--rageval-k", "5", run_id="base")
    assert command("gate", RUN, "--gate", "recall_any off", "--gate", "recall_all off").exit_code == 0
    text = (project.path / "reports/baseline.json").read_text(encoding="utf-8").replace('"mrr": 0.0', '"mrr": 1.0')
    worse = project.write("better.json", text)
    gates = ["--gate", "recall_any off", "--gate", "recall_all off", "--regression", "mrr drop 0.01"]
    result = command("gate", RUN, *gates, "--baseline", worse)
    assert result.exit_code == 1
    assert "FAILED mrr drop - " in result.output


def test_known_failures_are_shown_and_do_not_fail(project: StoredProject):
    project.pytest("--rageval-update-baseline", run_id="base")
    project.write("pyproject.toml", f'[tool.rageval]\n{TABLE}\nknown_failures = "ratchet"\n')
    result = command("gate", RUN)
    assert result.exit_code == 0
    assert "XFAIL evalcases/a.jsonl::missed - failed in the baseline as well: recall_any@5 is 0" in result.output
