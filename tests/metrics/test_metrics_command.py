"""`rageval metrics` and the page of metrics, both written from their docstrings."""

from __future__ import annotations

import doctest
import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from pytest_rageval.cli.main import rageval
from pytest_rageval.errors import SettingsError
from pytest_rageval.metrics import builtin_metrics, load_registry, worked_examples
from pytest_rageval.metrics.definitions_page import ROWS, f1_of, metrics_page
from pytest_rageval.metrics.doc_parts import doc_parts
from pytest_rageval.metrics.names_elsewhere import NAMES_HERE


def output(*arguments: str) -> str:
    return CliRunner().invoke(rageval, ["metrics", *arguments], catch_exceptions=False).output


def test_all_metrics_are_listed_under_their_layers():
    listed = output()
    assert all(f"  {one.name}" in listed for one in builtin_metrics())
    assert listed.index("L1 query understanding") < listed.index("  recall_any@k") < listed.index("L3 knowledge graph")
    [line] = [line for line in listed.splitlines() if "groundedness" in line]
    assert line.split()[:5] == ["groundedness", "0", "to", "5", "higher"]


def test_one_metric_is_shown_in_full_under_any_of_its_names():
    shown = output("recall@3")
    assert shown == output("recall_any")
    assert "success@k of" in shown
    assert "default gate:  recall_any >= 1 when gold=anchors,groups=false tag L2_doc_retrieval_fail" in shown


def test_options_are_shown_with_what_they_may_be():
    assert 'option denominator:"returned" or "k"; default "returned"' in output("precision")


def test_a_default_gate_says_where_it_stands_back():
    assert "token_f1 >= 0.50 when answer=layered tag L5_wrong_answer; not where that of reference_match" in output(
        "token_f1"
    )
    assert json.loads(output("token_f1", "--json"))["yields_to"] == "reference_match"


def test_rates_of_a_run_are_shares_not_claims():
    assert "range:         0 to 1, lower is better" in output("error_rate")
    assert "range:         0 or 1, lower is better" in output("scope_miss")


def test_json_holds_every_declaration():
    found = {one["name"]: one for one in json.loads(output("--json"))["metrics"]}
    assert set(found) == {one.name for one in builtin_metrics()}
    assert found["hallucinated"]["aggregate"] == "hallucination_rate_unanswerable"
    assert found["mrr"]["cut_off"] == "optional"
    one = json.loads(output("token_f1", "--json"))
    assert one.pop("next") == []
    assert one == found["token_f1"]


def test_an_unknown_name_is_a_user_error_with_the_nearest_known_one():
    with pytest.raises(SettingsError, match=r"unknown metric 'recal@5'; did you mean 'recall'\?"):
        output("recal@5")


PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"
BUILT_IN = {one.name: one for one in builtin_metrics()}


def failures(text: str, name: str) -> int:
    """How many examples in a text do not come out as they say; their report is printed."""
    test = doctest.DocTestParser().get_doctest(text, dict(vars(worked_examples)), name, None, 0)
    return doctest.DocTestRunner(verbose=False).run(test).failed


@pytest.mark.parametrize("one", BUILT_IN.values(), ids=BUILT_IN)
def test_every_metric_shows_a_worked_example_that_is_true(one):
    assert ">>> score(" in one.doc
    assert failures(one.doc, one.name) == 0


@pytest.mark.parametrize("one", BUILT_IN.values(), ids=BUILT_IN)
def test_every_definition_can_be_taken_apart(one):
    parts = doc_parts(one)
    assert parts.definition
    assert parts.rule
    assert f"{one.better} is better" in " ".join(one.doc.split()).lower()
    assert parts.source or one.run_level
    assert not re.search(r"Source:|Not applicable|>>>", parts.definition + parts.details + parts.rule + parts.source)


def test_the_page_is_up_to_date():
    assert PAGE.read_text(encoding="utf-8") == metrics_page(builtin_metrics()), (
        "write it anew: rageval metrics --markdown > docs/metrics.md"
    )


def test_the_command_prints_the_page():
    printed = CliRunner().invoke(rageval, ["metrics", "--markdown"], catch_exceptions=False)
    assert printed.output == metrics_page(builtin_metrics())
    assert CliRunner().invoke(rageval, ["metrics", "mrr", "--markdown"]).exit_code == 2


def test_every_example_of_the_page_is_true():
    blocks = re.findall(r"^```pycon\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert len(blocks) > len(BUILT_IN)
    assert failures("\n".join(blocks), PAGE.name) == 0


@pytest.mark.parametrize("row", [row for row in ROWS if row.reader == "right"], ids=lambda row: row.answer)
def test_what_a_reader_calls_right_passes_the_default_gate(row):
    assert f1_of(row, "word") >= 0.5


@pytest.mark.parametrize(
    ("name", "here"),
    [
        ("context_precision", "'map@k' or 'precision@k'"),
        ("Semantic Similarity", "an assertion `similar`"),
        ("answer-relevancy", "'relevance'"),
    ],
)
def test_a_name_of_another_tool_leads_to_what_measures_the_same(name: str, here: str):
    with pytest.raises(SettingsError, match=rf"unknown metric '{name}'; here it is {here}"):
        load_registry().measure(name, 5)


def test_names_of_other_tools_lead_to_metrics_that_exist_and_are_none_of_ours():
    registry = load_registry()
    for name, here in NAMES_HERE.items():
        assert name not in registry
        for metric in re.findall(r"'([^']+)'", here):
            registry.measure(metric.replace("@k", "@5"), 5)
