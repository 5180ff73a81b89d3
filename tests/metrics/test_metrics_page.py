"""docs/metrics.md: written from the definitions, complete, up to date, and true in all its examples."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from pytest_rageval.cli.main import rageval
from pytest_rageval.metrics import builtin_metrics, worked_examples
from pytest_rageval.metrics.definitions_page import ROWS, f1_of, metrics_page
from pytest_rageval.metrics.registry import doc_parts

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
