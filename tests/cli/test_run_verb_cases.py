"""Which cases `rageval run` asks: files, folders, and the cases of an earlier run."""

from __future__ import annotations

import json

import pytest
from project import SOME, Project, a_case, a_missed_case
from stored_runs import records_of

# ── which cases ───────────────────────────────────────────────────────────────────────────────────────────────


def test_files_and_folders_choose_cases_and_the_run_is_partial(project: Project):
    project.cases(SOME[:2])
    project.cases(SOME[2:], "evalcases/more/b.jsonl")
    assert project.rageval("run", "evalcases/more").ret == 0
    assert project.outcomes().keys() == {case["id"] for case in SOME[2:]}
    assert project.metrics()["partial"]
    assert project.metrics()["selection"]["by"] == {"paths": "evalcases/more"}
    project.cases([a_case("elsewhere")], "other.jsonl")
    assert project.rageval("run", "other.jsonl").ret == 0
    assert project.outcomes().keys() == {"elsewhere"}


@pytest.mark.parametrize(
    ("place", "problem"),
    [("gone.jsonl", "there is no such file or folder"), ("empty", "no case file is below it")],
)
def test_a_place_without_cases_is_said(project: Project, place: str, problem: str):
    project.cases(SOME)
    (project.path / "empty").mkdir()
    result = project.rageval("run", place)
    assert result.ret == 4
    result.stderr.fnmatch_lines([f"ERROR: {place}: {problem}*"])


@pytest.mark.parametrize(
    ("only", "ids"),
    [
        ("outcome:failed", {"missed", "cold"}),
        ("outcome:failed,passed category:multi_hop", {"freeze"}),
        ("tag:cold", {"freeze", "cold"}),
        ("tag:cold -outcome:failed", {"freeze"}),
        ("recall_any<1", {"missed", "cold"}),
        ("recall_any@5>=1 -id:boil", {"freeze", "남산-높이"}),
        ('"남산 탑"', {"남산-높이"}),
        ("layer:L2", {"missed", "cold"}),
        ("latency>=0 id:boil", {"boil"}),
    ],
)
def test_only_takes_cases_of_an_earlier_run_in_the_words_of_its_report(project: Project, only: str, ids: set[str]):
    project.cases([*SOME, a_missed_case("missed"), a_missed_case("cold", tags=["cold"])])
    assert project.rageval("run", "--run-id", "first").ret == 1
    project.rageval("run", "--only", only, "--from", "first", "--run-id", "second")
    assert {record["test_case_id"] for record in records_of(project.path / "reports/runs/second").values()} == ids
    by = json.loads((project.path / "reports/runs/second/metrics.json").read_text())["selection"]["by"]
    assert by == {"--only": f"{only} --from first"}


def test_only_changed_worse_are_the_cases_that_newly_fail(project: Project):
    project.cases(SOME)
    assert project.rageval("run", "--update-baseline").ret == 0
    project.write("bot.py", (project.path / "bot.py").read_text().replace('"freezing"', '"melting"'))
    assert project.rageval("run", "--run-id", "worse").ret == 1
    assert project.rageval("run", "--only", "changed:worse", "--from", "worse", "--run-id", "again").ret == 1
    assert records_of(project.path / "reports/runs/again").keys() == {"evalcases/a.jsonl::freeze"}


@pytest.mark.parametrize(
    ("only", "problem"),
    [
        ("outcome:fialed", "no case has outcome 'fialed'"),
        ("changed:worse", "was compared with no baseline"),
        ("category:nope", "no case has category 'nope'"),
        ("recal_any<1", "'recal_any' is nothing to filter by; did you mean 'recall_any@5'?"),
        ("mrr<high", "'mrr<high' needs a comparison with a number"),
        ("mrr:1", "'mrr:1' needs a comparison with a number"),
        (" ", "no term"),
    ],
)
def test_a_filter_that_means_nothing_is_a_line(project: Project, only: str, problem: str):
    project.cases(SOME)
    project.rageval("run", "--run-id", "first")
    result = project.rageval("run", "--only", only, "--from", "first")
    assert result.ret == 4
    assert problem in result.stderr.str()
    assert len(project.runs) == 1


def test_a_filter_that_leaves_no_case_is_exit_code_5(project: Project):
    project.cases(SOME)
    project.rageval("run", "--run-id", "first")
    assert project.rageval("run", "--only", "outcome:failed").ret == 5
    assert project.rageval("run", "--from", "first").ret == 4


def test_files_that_change_while_the_run_goes_on_change_nothing_of_it(project: Project):
    spoiler = (
        "import bot, pathlib\n"
        "def answer(question):\n"
        "    path = pathlib.Path('evalcases/a.jsonl')\n"
        "    path.write_text(path.read_text().replace('q3', 'Q3'))\n"
        "    return bot.answer(question)\n"
    )
    project.write("spoiler.py", spoiler)
    project.configure('target = "spoiler:answer"\nconcurrency = 1\nlook_ahead = 1')
    path = project.cases([a_case(f"q{n}", f"q{n}: at what temperature is boiling?") for n in range(4)])
    assert project.rageval("run").ret == 0
    assert '"Q3"' in path.read_text()
    assert project.outcomes().keys() == {"q0", "q1", "q2", "q3"}
