"""The filter language in the words of examples: what each finds among the cases of a run."""

from __future__ import annotations

from pathlib import Path

import pytest
from stored_runs import a_result, a_run, an_error

from pytest_rageval.comparison.case_filter import filtered_keys
from pytest_rageval.errors import SettingsError
from pytest_rageval.runs.reader import StoredRun

FOUND = {
    "Ice": {"ice"},
    "iCE": {"ice"},
    '"does water"': {"steam"},
    '"does  water"': set(),
    "-ice": {"steam", "lost"},
    "id:steam": {"steam"},
    "outcome:error": {"lost"},
    "outcome:passed,error": {"steam", "ice", "lost"},
    "outcome:passed -id:ice": {"steam"},
    "category:cold": {"ice"},
    "recall_any<1": {"ice"},
    "recall_any@5<=0.5": {"ice"},
    "recall_any<0.5": set(),
    "recall_any>=1": {"steam"},
    '"no answer"': {"lost"},
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> StoredRun:
    steam = a_result("steam", question="When does WATER boil?")
    ice = a_result("ice", "Ice melts at 0.", recall=0.5, question="When does ice melt?", category="cold")
    reports: Path = tmp_path_factory.mktemp("filtered") / "reports"
    return StoredRun(a_run(reports, "one", steam, ice, an_error("lost", "no answer")))


@pytest.mark.parametrize("expression", FOUND)
def test_an_expression_finds_the_cases_that_meet_all_of_its_terms(run: StoredRun, expression: str):
    keys = filtered_keys(run, expression, "--only")
    assert {key.partition("::")[2] for key in keys} == FOUND[expression]


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("", "no term"),
        ("outcome:pased", "did you mean 'passed'"),
        ("colour:red", "'colour' is nothing to filter by"),
        ("changed:worse", "compared with no baseline"),
    ],
)
def test_what_means_nothing_is_said_with_the_option(run: StoredRun, expression: str, problem: str):
    with pytest.raises(SettingsError, match=problem):
        filtered_keys(run, expression, "--only")
