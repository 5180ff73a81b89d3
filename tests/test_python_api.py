"""The package from outside: `evaluate`, `load_cases` and `compare`, its public names, the command as a module."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import tempfile
import time
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import pytest
from hostile import PAYLOADS
from markupsafe import escape
from processes import python, wait_until
from project import BOT, SOME, Project, a_case, a_missed_case

import pytest_rageval
from pytest_rageval import EvaluatedRun, Observation, compare, evaluate, load_cases, metric
from pytest_rageval.errors import CaseError, SettingsError
from pytest_rageval.text import printable

NOTES: dict[str, Any] = {}
exec(BOT, NOTES)


def bot(question: str) -> Any:
    return NOTES["answer"](question)


async def async_bot(question: str) -> Any:
    await asyncio.sleep(0)
    return bot(question)


def deaf_bot(question: str) -> Mapping[str, Any]:
    """Retrieves nothing, and answers all the same."""
    return {"answer": "I think so.", "abstained": False, "references": [], "debug": {"retrieved_chunks": []}}


@pytest.fixture
def project(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    project.configure("k = 5")
    project.cases([*SOME, a_missed_case("missed")])
    monkeypatch.chdir(project.path)
    return project


def test_cases_of_a_file_are_evaluated_and_the_run_tells_its_figures(project: Project):
    run = evaluate("evalcases/a.jsonl", bot)
    assert run.outcomes["passed"] == 4
    assert run.outcomes["failed"] == 1
    assert run.metrics["recall_any@5"] == 0.75
    assert run.verdict == project.metrics()["verdict"]["sentence"]
    assert not run.passed
    assert run.run_id in str(run)


def test_the_run_is_stored_as_every_other_run_is(project: Project):
    run = evaluate(load_cases(), bot)
    assert run.path == project.runs[-1]
    assert (run.path / "report.html").is_file()
    assert project.rageval("explain", run.run_id, "missed").ret == 0
    scores = project.records()["boil"]["scores"]
    project.configure('target = "bot:answer"')
    project.run()
    assert project.records()["boil"]["scores"] == scores, "pytest scores the case as the call does"


def test_a_run_can_be_kept_elsewhere(project: Project, tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("kept")
    run = evaluate("evalcases", bot, reports=str(folder))
    assert run.path.parent == folder / "runs"
    assert not (project.path / "reports").exists()


def test_cases_may_be_mappings(project: Project):
    run = evaluate([a_case("one"), a_case("two")], bot, judge="none")
    assert [record["case_key"] for record in run.to_records()] == ["cases.jsonl::one", "cases.jsonl::two"]


def test_mappings_need_no_temporary_file(project: Project, monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(tempfile, "mkdtemp", refuse)
    assert evaluate([a_case("q1")], bot).outcomes["passed"] == 1


def test_mappings_are_checked_as_the_lines_of_a_file(project: Project):
    with pytest.raises(CaseError, match=r"cases.jsonl:2:\d+: case 'two': golds is not a known key"):
        evaluate([a_case("one"), a_case("two", golds=[])], bot)


@pytest.mark.parametrize(
    ("cases", "message"),
    [
        ([], "cases: there is none; give a path, or a list of cases"),
        ([3], "cases[0]: is int, expected an EvalCase or a mapping"),
        ("nowhere.jsonl", "nowhere.jsonl: there is no such file or folder"),
        ([a_case("one", metadata={"at": object()})], "cases: cannot be written as JSON"),
    ],
)
def test_what_is_no_case_is_said(project: Project, cases: Any, message: str):
    with pytest.raises((CaseError, SettingsError)) as error:
        evaluate(cases, bot)
    assert message in str(error.value)
    assert not project.runs


def test_options_are_those_of_pytest_and_wrong_ones_are_said(project: Project):
    run = evaluate("evalcases", bot, k=1, run_id="first", description="by hand")
    assert run.run_id == "first"
    assert "recall_any@1" in run.metrics
    with pytest.raises(SettingsError, match="concurency is not an option; did you mean 'concurrency'"):
        evaluate("evalcases", bot, concurency=3)
    with pytest.raises(SettingsError, match="k is 0"):
        evaluate("evalcases", bot, k=0)
    with pytest.raises(SettingsError, match="metrics is a text, expected a list"):
        evaluate("evalcases", bot, metrics="mrr")


def test_metrics_are_named_or_given(project: Project):
    @metric(layer="L5", better="lower")
    def answer_words(obs: Observation) -> float:
        """How many words the answer has."""
        return min(len((obs.answer.text or "").split()), 10) / 10

    run = evaluate("evalcases", bot, judge="none", metrics=["mrr", answer_words])
    assert run.metrics.keys() == {"mrr", "answer_words"}


def test_a_judge_may_be_an_object(project: Project):
    class Judge:
        async def score_groundedness(self, answer: str, context: Any) -> float:
            return 0.25

        async def score_relevance(self, answer: str, question: str) -> float:
            return 0.5

    run = evaluate([a_case("one")], bot, judge=Judge())
    (record,) = run.results()
    assert record["groundedness"]["score"] == pytest.approx(2.0) or record["groundedness"]["score"] == 0.25
    config = json.loads((run.path / "config.json").read_text(encoding="utf-8"))
    assert "Judge" in json.dumps(config["judge"])


def test_it_works_inside_a_running_loop_with_an_async_bot(project: Project):
    async def cell() -> EvaluatedRun:
        return evaluate("evalcases", async_bot)

    assert asyncio.run(cell()).outcomes["passed"] == 4


@pytest.mark.child_process
def test_it_works_in_a_plain_script(project: Project):
    project.write(
        "script.py",
        "from bot import answer\nfrom pytest_rageval import evaluate\n\n"
        "run = evaluate('evalcases', answer)\nprint(run)\nprint(len(run.to_records()))\n",
    )
    done = python("script.py", cwd=project.path, check=True)
    assert "4 of 5 pass" in done.stdout
    assert done.stdout.endswith("5\n")
    assert done.stderr == ""


def test_records_are_flat_and_hold_every_score(project: Project):
    record = next(record for record in evaluate("evalcases", bot).to_records() if record["test_case_id"] == "missed")
    assert record["outcome"] == "failed"
    assert record["recall_any@5"] == 0.0
    assert record["answer"].startswith("Water boils")
    assert all(isinstance(value, str | int | float | bool | None) for value in record.values())


def test_two_runs_are_compared_by_object_or_by_name(project: Project):
    first, second = evaluate("evalcases", bot, run_id="a"), evaluate("evalcases", deaf_bot, run_id="b")
    for comparison in (compare(first, second), compare("a", "b"), compare(first, "latest")):
        assert comparison.problems == []
        assert comparison.is_compared
        assert "evalcases/a.jsonl::boil" in comparison.newly_failing
        assert comparison.fixed == []
        assert "newly fail" in comparison.verdict
    written = json.loads(project.rageval("compare", "a", "b", "--format", "json").stdout.str())
    assert written["flipped_to_fail"] == compare(first, second).to_dict()["flipped_to_fail"]


@pytest.mark.child_process
def test_compare_stays_a_function_whoever_imported_the_room_of_comparisons_first(project: Project):
    project.write(
        "compared.py",
        "import pytest_rageval.comparison.pairing\n"
        "from pytest_rageval import compare, evaluate\n"
        "case = {'id': 'one', 'question': 'Who?', 'reference': 'Ann'}\n"
        "before = evaluate([case], lambda question: 'Ann', run_id='a')\n"
        "print(compare(before, evaluate([case], lambda question: 'Bob', run_id='b')).newly_failing)\n",
    )
    assert python("compared.py", cwd=project.path, check=True).stdout.splitlines()[-1] == "['cases.jsonl::one']"


def test_runs_of_other_cases_are_not_compared_and_it_is_said_why(project: Project):
    first, second = evaluate([a_case("one")], bot, run_id="a"), evaluate([a_case("two")], bot, run_id="b")
    comparison = compare(first, second)
    assert not comparison.is_compared
    assert comparison.problems
    assert comparison.newly_failing == []
    with pytest.raises(SettingsError, match="nothing"):
        compare("nothing", first)


def test_ctrl_c_keeps_what_was_evaluated(project: Project):
    def interrupted(question: str) -> Any:
        if "Who" in question:
            wait_until(
                lambda: any(file.stat().st_size for file in project.path.glob("reports/runs/*/results.jsonl")),
                "a case is recorded",
            )
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(2)
        return bot(question)

    with pytest.raises(KeyboardInterrupt):
        evaluate("evalcases", interrupted, concurrency=1)
    assert project.metrics()["partial"]
    assert "boil" in project.records()


def test_a_notebook_shows_verdict_metrics_and_failing_cases(project: Project):
    html = evaluate("evalcases", bot)._repr_html_()
    for text in ("1 case fails", "<td>recall_any@5</td>", "missed", "needs &gt;= 1", "Water boils at 100"):
        assert text in html
    assert "<script" not in html
    assert "<style" not in html


def test_what_a_notebook_shows_has_a_limit(project: Project):
    long = "word & < > \U0001f600 " * 3_000
    cases = [a_missed_case(f"case-{n} {'x' * 300}", question=f"What? {long}", gold={"answer": long}) for n in range(60)]
    html = evaluate(cases, bot, judge="none", metrics=["recall_any"])._repr_html_()
    assert len(html.encode()) <= 200_000
    assert "and 40 more" in html


def test_hostile_texts_stand_in_a_notebook_as_text(project: Project):
    def hostile(question: str) -> Any:
        text = PAYLOADS[int(question.split()[0])]
        chunk = {"chunk_id": text, "rel_path": text, "heading_path": text, "text": text}
        return {"answer": f"answer {text}", "abstained": False, "debug": {"retrieved_chunks": [chunk]}}

    for first in range(0, len(PAYLOADS), 20):
        numbers = range(first, min(first + 20, len(PAYLOADS)))
        cases = [
            a_missed_case(f"{n} {PAYLOADS[n]}", question=f"{n} question {PAYLOADS[n]}", category=PAYLOADS[n])
            for n in numbers
        ]
        html = evaluate(cases, hostile, judge="none")._repr_html_()
        for payload in (PAYLOADS[n] for n in numbers):
            question = printable(" ".join(f"question {payload}".split()))
            assert escape(question) in html
            assert "<" not in payload or question not in html


def test_the_version_is_that_of_the_installed_package():
    assert pytest_rageval.__version__ == version("pytest-rageval")


@pytest.mark.child_process
def test_neither_import_nor_version_of_the_package_is_paid_for_by_those_who_do_not_ask():
    code = "import sys; before = {*sys.modules}; import pytest_rageval; print({*sys.modules} - before)"
    loaded = python("-c", code, check=True).stdout
    assert "importlib.metadata" not in loaded
    assert "pydantic" not in loaded
    assert "pytest_rageval.model" not in loaded


def test_every_public_name_is_there_and_others_are_refused():
    assert all(getattr(pytest_rageval, name) is not None for name in pytest_rageval.__all__)
    with pytest.raises(AttributeError, match="module 'pytest_rageval' has no attribute 'nothing'"):
        pytest_rageval.nothing  # noqa: B018 because looking is what fails


@pytest.mark.child_process
def test_the_package_run_as_a_module_is_the_command():
    assert python("-m", "pytest_rageval", "--version").stdout == f"rageval, version {version('pytest-rageval')}\n"
    assert "python -m pytest_rageval" in python("-m", "pytest_rageval", "--help").stdout


def test_a_cell_with_a_run_id_can_be_run_again_and_a_note_names_the_argument(project: Project):
    first, again = (evaluate([a_case("one")], bot, run_id="a") for _ in range(2))
    assert (first.run_id, again.run_id) == ("a", "a_2")
    (note,) = [note for note in again.notes if "already" in note]
    assert note.startswith("run_id: a run 'a' is in ")
    assert evaluate([a_case("one")], bot, run_id="a").run_id == "a_3"


def test_messages_name_arguments_and_no_options_of_a_command(project: Project):
    with pytest.raises(SettingsError) as caught:
        evaluate([a_case("one")], bot, skip="nothing", metrics=["recal_any"])
    assert "--rageval" not in str(caught.value)
    assert "skip: 'nothing' is not a layer" in str(caught.value)


def test_every_documented_name_can_be_imported_and_is_listed():
    assert dir(pytest_rageval) == sorted(pytest_rageval.__all__)
    assert pytest_rageval.compare_runs is compare


@pytest.mark.parametrize(
    ("need", "reason"),
    [
        ("chunks", "the system reports no chunks"),
        ("references", "the system reports no references"),
        ("trace", "the system reports no trace"),
        ("folder_selection", "the system reports no folder selection"),
        ("answer", "the system reports no answer"),
        ("gold.key_facts", "no gold key facts is labelled"),
        ("gold.answer", "no gold answer is labelled"),
        ("gold", "no gold is labelled"),
        ("judge:groundedness", "nothing was judged by groundedness"),
    ],
)
def test_a_metric_whose_needs_are_absent_is_not_applicable(project: Project, need: str, reason: str):
    @metric(layer="L4", better="higher", needs=[need])
    def demanding(obs: Observation) -> float:
        raise AssertionError("it was asked although something is absent")

    answer = {"answer": None, "debug": {}, "abstained": True} if need == "answer" else "Yes."
    run = evaluate([{"id": "a", "question": "Why?"}], lambda question: answer, metrics=[demanding], judge="none")
    (record,) = run.results()
    assert record["skipped_metrics"] == {"demanding": reason}
    assert record["error"] is None


def test_a_metric_that_has_what_it_needs_is_asked(project: Project):
    needs = ["answer", "chunks", "gold", "gold.answer", "gold.supports", "gold.unanswerable"]

    @metric(layer="L4", better="higher", needs=needs)
    def contented(obs: Observation) -> float:
        return 1.0

    (record,) = evaluate([a_case("one")], bot, metrics=[contented]).results()
    assert record["scores"] == {"contented": 1.0}
