"""A gate that is taken away passes what failed: the verdict says so, and is not green."""

from __future__ import annotations

import pytest
from project import Project

from pytest_rageval.comparison.weaker_gates import weaker_gate_words

BOT = """
def answer(question):
    chunk = {"rel_path": "notes/a.md", "heading_path": "# A", "text": "A card costs 28 euros."}
    return {"answer": "A card costs 28 euros.", "retrieved_chunks": [chunk]}
"""


def a_card(number: int, price: str) -> dict[str, object]:
    gold = [{"rel_path": "notes/a.md", "heading_path": "# A"}]
    return {
        "id": f"c{number}", "question": f"What does card {number} cost?", "gold": {"answer": price},
        "gold_supports": gold,
    }  # fmt: skip


def test_a_removed_gate_is_named_and_what_passed_before_is_the_truth(project: Project):
    project.write("bot.py", BOT)
    project.configure('target = "bot:answer"\nknown_failures = "ratchet"')
    project.cases([a_card(number, "28 euros" if number else "30 euros") for number in range(6)])
    project.run("--rageval-update-baseline")
    result = project.run("--rageval-gate", "gold_in_answer off")
    verdict = project.metrics()["verdict"]
    assert (result.ret, verdict["tone"], verdict["word"]) == (0, "amber", "Fewer gates")
    assert verdict["sentence"].startswith("Passes: a gate was removed (gold_in_answer >= 0.5")
    assert "6 of 6 pass, was 5 under the earlier gates" in verdict["sentence"]
    assert "6 cases have gold answers that no gate compares" in verdict["sentence"]
    result.stdout.fnmatch_lines(["what to do: Put the gate back, or accept*"])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (["- mrr >= 0.5"], ["a gate was removed (mrr >= 0.5)"]),
        (["- run mrr >= 0.5", "+ mrr >= 0.5"], ["a gate was removed (run mrr >= 0.5)"]),
        (["- a >= 1", "- b >= 1"], ["2 gates were removed (a >= 1, b >= 1)"]),
        (["- mrr >= 0.5", "+ mrr >= 0.2"], ["a gate was loosened (mrr >= 0.5 → mrr >= 0.2)"]),
        (["- mrr >= 50%", "+ mrr >= 40%"], ["a gate was loosened (mrr >= 50% → mrr >= 40%)"]),
        (["- rate <= 0.1", "+ rate <= 0.2"], ["a gate was loosened (rate <= 0.1 → rate <= 0.2)"]),
        (["- mrr >= 0.5", "+ mrr >= 0.9 when tag=a"], ["a gate was loosened (mrr >= 0.5 → mrr >= 0.9 when tag=a)"]),
        (["- mrr >= 0.5", "+ mrr >= 0.6"], []),
        (["- rate <= 0.2", "+ rate <= 0.1"], []),
        (["- hits@5 >= 1", "+ hits@3 >= 1"], []),
        (["- run latency_ms p95 <= 2000", "+ run latency_ms p95 <= 1000"], []),
        (["- run latency_ms p95 <= 2", "+ run latency_ms p50 <= 2"], ["a gate was removed (run latency_ms p95 <= 2)"]),
        (["- mrr >= 0.5 tag low", "+ mrr >= 0.5 tag rank"], []),
        (["+ mrr >= 0.5"], []),
        ([], []),
    ],
)
def test_only_a_gate_that_lets_more_pass_is_a_reservation(changes: list[str], words: list[str]):
    assert list(weaker_gate_words({"gate_changes": changes})) == [*words]
