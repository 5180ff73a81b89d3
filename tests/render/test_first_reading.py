"""Lines of a run that a first reader took for something else, each as every face words it now."""

from __future__ import annotations

import re
from html import unescape

import pytest
from eight_runs import ENDINGS, a_peak, begun
from project import Project

from pytest_rageval.runs.config_diff import SettingChange, arrow_text, change_cells, change_text

LACKING = "Passes: nothing got worse, but answers were not measured."


def plain(text: str) -> str:
    """Return a text without tags, and without the marks and escapes of Markdown, on one line."""
    return " ".join(re.sub(r"[\\*`>]", "", unescape(re.sub(r"<[^>]+>", " ", text))).split())


def faces(project: Project, run_id: str, *options: str) -> dict[str, str]:
    """Return what each face shows of a run, which is made here."""
    terminal = project.rageval("run", "--run-id", run_id, *options, COLUMNS="200").stdout.str()
    folder = project.path / "reports" / "runs" / run_id
    page = (folder / "report.html").read_text(encoding="utf-8")
    return {
        "terminal": plain(terminal),
        "compare": plain(project.rageval("compare", "baseline", run_id, COLUMNS="200").stdout.str()),
        "comment": plain(project.rageval("comment", run_id).stdout.str()),
        "summary": plain((folder / "summary.md").read_text(encoding="utf-8")),
        "page": plain(page[: page.index('id="blocks"')]),
    }


def test_a_run_of_retrieval_alone_says_in_its_headline_that_answers_were_not_measured(project: Project):
    begun(project, ENDINGS["retrieval only"])
    for face, text in faces(project, "now", "--retrieval-only").items():
        assert LACKING in text, face
    verdict = project.metrics()["verdict"]
    assert (verdict["tone"], verdict["fails_build"]) == ("amber", False)
    # Held against a run of retrieval alone, nothing was lost: it is green, and says the same.
    project.rageval("run", "--retrieval-only", "--update-baseline", "--force")
    project.rageval("run", "--retrieval-only")
    verdict = project.metrics()["verdict"]
    assert LACKING in verdict["sentence"]
    assert verdict["tone"] == "green"


def test_a_run_that_fails_says_so_beside_its_reasons(project: Project):
    begun(project, ENDINGS["retrieval only"])
    project.rageval("run", "--retrieval-only", "--param", "misses=[3]")
    sentence = project.metrics()["verdict"]["sentence"]
    assert sentence.startswith("Fails the build: 1 case newly fails")
    assert "11 of 12 pass, was 12; answers were not measured" in sentence


@pytest.mark.parametrize("gold", [True, False])
def test_a_run_whose_metrics_are_of_retrieval_alone_says_it_if_there_are_gold_answers(project: Project, gold: bool):
    begun(project, ENDINGS["green"])
    case = a_peak(1)
    if not gold:
        del case["gold"]
    project.cases([case], "evalcases/peaks.jsonl")
    project.configure('target = "bot:answer"\njudge = "none"')
    project.rageval("run", "--baseline", "none", "--metrics", "recall_any")
    assert ("answers were not measured" in project.metrics()["verdict"]["sentence"]) == gold


def test_a_change_of_a_list_names_what_was_added_and_removed(project: Project):
    begun(project, ENDINGS["known failure with a new gate"])
    for face, text in faces(project, "now").items():
        assert re.search(r"params\.wrong(| –| \| –) ?(→ |\| |\()?added 3", text), face
        assert "params.wrong +3" not in text, face


def test_a_change_of_a_list_is_worded_once():
    change = SettingChange("metrics", ["a", "b"], ["c"])
    assert arrow_text(change) == change_text(change) == "metrics (added c; removed a, b)"
    assert change_cells(change) == ("removed a, b", "added c")
    assert change_cells(SettingChange("params.wrong", [], [-3])) == ("–", "added -3")
    assert arrow_text(SettingChange("k", 5, 7)) == "k 5 → 7"


@pytest.mark.parametrize("name", ["five failing", "flaky", "known failure with a new gate", "partial", "all errors"])
def test_all_runs_that_fail_the_build_have_one_symbol(project: Project, name: str):
    begun(project, ENDINGS[name])
    for face, text in faces(project, "now", *ENDINGS[name].options).items():
        signs = set(re.findall(r"(\S+) Fails the build", text))
        assert signs <= {"✘", "[!CAUTION]"}, face
        assert signs, face


def test_a_case_that_ended_in_an_error_has_no_different_answer(project: Project):
    begun(project, ENDINGS["all errors"])
    assert "different answers" not in faces(project, "now")["page"]
    project.configure('target = "bot:answer"')
    assert "different answers" not in faces(project, "later")["page"]


DECIDES_NOTHING = "fails nothing, since the run is partial: recall_any@5 1.0 → 0.6"


def test_a_gate_of_a_partial_run_fails_nothing_in_any_face(project: Project):
    ending = ENDINGS["partial"]
    begun(project, ending)
    shown = faces(project, "now", *ending.options)
    for face in ("terminal", "compare", "summary", "page"):
        assert DECIDES_NOTHING in shown[face], face
    for face, text in shown.items():
        assert "FAILS" not in text, face
        assert "noise, fails" not in text, face
    page = (project.path / "reports" / "runs" / "now" / "report.html").read_text(encoding="utf-8")
    assert 'class="gate fails"' not in page


FLAKY_BOT = """
ASKED = set()

def answer(question):
    is_first = question not in ASKED
    ASKED.add(question)
    text = "I was distracted: %0A::error::x" if is_first and "7" in question else "It is 7,000 metres high."
    return {"answer": text}
"""


def flaky_project(project: Project, monkeypatch: pytest.MonkeyPatch, cases: int) -> list[str]:
    """Return the warnings of a run in a job of GitHub Actions, in which each case is flaky."""
    project.write("steady.py", 'def answer(question):\n    return {"answer": "It is 7,000 metres high."}')
    project.write("wavers.py", FLAKY_BOT)
    names = [f"q7:{number:02}, 100%" for number in range(cases)]
    gold = {"answer": "7,000 metres"}
    project.cases({"id": name, "question": f"How high is peak 7, {name}?\n::error::y", "gold": gold} for name in names)
    project.configure('target = "steady:answer"\nreport = false')
    assert project.run("--rageval-update-baseline").ret == 0
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(project.path))
    result = project.run("--rageval-target", "wavers:answer", "-p", "no:randomly")
    assert result.ret == 0
    assert not [line for line in result.outlines if line.startswith("::error")]
    return [line for line in result.outlines if line.startswith("::warning")]


def test_a_flaky_case_is_a_warning_of_github(project: Project, monkeypatch: pytest.MonkeyPatch):
    [warning] = flaky_project(project, monkeypatch, 1)
    title = "flaky%3A q7%3A00%2C 100%25"
    assert warning.startswith(f"::warning file=evalcases/a.jsonl,line=1,title={title}::failed in 1 of 3 attempts: ")
    assert "%0A" in warning


def test_more_than_ten_flaky_cases_are_ten_warnings(project: Project, monkeypatch: pytest.MonkeyPatch):
    warnings = flaky_project(project, monkeypatch, 12)
    assert len(warnings) == 10
    assert "title=3 more flaky cases::" in warnings[-1]
