"""Failed cases in pytest's short summary: the message stands behind the name, whatever the version of pytest."""

from __future__ import annotations

import pytest
from project import Project, a_case, a_missed_case

from pytest_rageval.plugin.display.run_verdict import SummarisedText, summarised


@pytest.mark.parametrize("how", [(), ("-n", "1")], ids=["alone", "with workers"])
def test_the_short_summary_says_why_a_case_and_a_gate_of_the_run_failed(project: Project, how: tuple[str, ...]):
    project.configure('target = "bot:answer"\n[tool.rageval.gates]\nrun = ["recall_any@5 >= 0.9"]')
    project.cases([a_case("boil"), a_missed_case("missed")])
    project.run(*how).stdout.fnmatch_lines(
        [
            "FAILED evalcases/a.jsonl::missed - recall_any@5 is 0, gate >= 1 (L2_doc_ret*",
            "FAILED rageval-gates::recall_any@5 - recall_any@5 is 0.5, gate >= 0.9",
        ]
    )


def test_where_pytest_looks_for_the_place_of_a_crash_it_gets_the_text():
    text = summarised("mrr is 0, gate >= 1\n  question   Why?", "a.jsonl", 3)
    assert isinstance(text, SummarisedText)
    assert text == text.reprcrash.message == "mrr is 0, gate >= 1\n  question   Why?"
    assert (text.reprcrash.path, text.reprcrash.lineno) == ("a.jsonl", 3)
    assert str(text.reprcrash) == "a.jsonl:3: mrr is 0, gate >= 1"
    skipped = ("a.jsonl", 1, "Skipped: no gold")
    assert summarised(skipped, "a.jsonl", 3) is skipped
    assert summarised(None, "a.jsonl", 3) is None
