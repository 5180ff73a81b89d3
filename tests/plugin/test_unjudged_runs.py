"""A run that could not judge says so: in its sentence, in metrics.json, in every report, and in a comparison."""

from __future__ import annotations

import pytest
from fault_server import status
from judge_server import JudgeServer
from project import Project, a_case, lines_with

pytestmark = pytest.mark.reliability("false greens", "runs without a judgement", costs="false green")

NO_GATE = ("--gate", "correctness off")
NOWHERE = "openai:m@http://127.0.0.1:9"


@pytest.fixture
def answered(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Four cases, three of whose answers are to be judged for correctness."""
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    unknown = a_case("unknown", "Who won?", answerable=False)
    project.cases([unknown, a_case("one"), a_case("two"), a_case("three")])
    project.configure('judge_cache = "off"\nretries = 0\n[tool.rageval.metrics]\nenabled = ["correctness", "mrr"]')
    return project


def run(project: Project, judge: str, *arguments: str) -> pytest.RunResult:
    return project.rageval("run", "--target", "bot:answer", "--judge", judge, *arguments)


def says(result: pytest.RunResult, word: str, aside: str) -> bool:
    """Return True if the verdict sentence begins with a word and holds an aside."""
    sentence = " ".join(result.outlines).partition(word)[2]
    return aside in sentence[:300]


def test_a_refused_key_is_in_the_sentence_of_a_run_whose_gates_do_not_need_the_judge(answered: Project):
    with JudgeServer(status(401)) as server:
        result = run(answered, f"openai:judge-1@{server.url}", *NO_GATE)
    said = "3 of 3 answers were not judged (judge_http_4xx)"
    assert says(result, "Passes:", said)
    metrics = answered.metrics()
    assert metrics["not_judged"] == {"cases": 3, "of": 3, "kinds": {"judge_http_4xx": 3}}
    assert metrics["verdict"]["word"] == "Not judged"
    assert metrics["verdict"]["tone"] == "amber"
    for report in ("summary.md", "report.html"):
        assert "3 of 3 answers were not judged" in (answered.runs[-1] / report).read_text(encoding="utf-8")


def test_a_gate_that_needs_the_judge_makes_errors_and_the_sentence_says_why(answered: Project):
    with JudgeServer(status(500)) as server:
        result = run(answered, f"openai:judge-1@{server.url}")
    assert result.ret == 1
    assert says(result, "Fails the build:", "3 of 3 answers were not judged (judge_http_5xx)")


def test_some_answers_that_were_not_judged_are_counted_without_another_verdict(answered: Project):
    reply = {"reasoning": "It says so.", "score": 4}
    with JudgeServer(reply, reply, status(500)) as server:
        result = run(answered, f"openai:judge-1@{server.url}", *NO_GATE)
    assert result.ret == 0
    assert says(result, "Passes:", "1 of 3 answers was not judged (judge_http_5xx)")


def test_a_replay_that_misses_says_so(answered: Project):
    result = run(answered, NOWHERE, "--judge-cache", "replay", *NO_GATE)
    assert says(result, "Passes:", "3 of 3 answers were not judged (judge_cache_miss)")


SPENT = """
import pytest
from pytest_rageval import Judgement
from pytest_rageval.errors import JudgeError

class Judge:
    model = "own-judge-2026-01-01"
    heuristic = False
    rubrics = frozenset({"correctness"})
    async def judge(self, request):
        if "two" in request.variables["question"]:
            raise JudgeError("budget", "0.11 of 0.1 US dollars are spent")
        return Judgement(request.rubric, {"correctness": 4.0}, (0, 5), model=self.model)
    async def aclose(self):
        pass

@pytest.fixture(scope="session")
def rag_judge():
    return Judge()
"""


def test_a_spent_budget_says_so_in_pytest(answered: Project):
    answered.write("conftest.py", SPENT)
    answered.cases([a_case("one", "boiling one"), a_case("two", "boiling two")])
    result = answered.run("--rageval-target", "bot:answer", "--rageval-gate", "correctness off")
    assert result.ret == 0
    assert says(result, "Passes:", "1 of 2 answers was not judged (judge_budget)")


@pytest.mark.parametrize("gate", [NO_GATE, ("--gate", "correctness >= 3")])
def test_a_judge_that_cannot_be_reached_is_in_the_sentence(answered: Project, gate: tuple[str, ...]):
    result = run(answered, NOWHERE, *gate)
    assert_failed_unjudged(answered, result)
    scored_again = answered.rageval("score", "latest")
    assert scored_again.ret == 1
    assert lines_with(scored_again, "4 of 4 answers were not judged (judge_unavailable)")


def assert_failed_unjudged(project: Project, result: pytest.RunResult) -> None:
    """Check that exit code, sentence, record and comment of a run agree that its answers could not be judged."""
    assert result.ret == 1
    assert says(result, "Fails the build:", "the judge could not be asked")
    assert lines_with(result, "4 of 4 answers were not judged (judge_unavailable)")
    metrics = project.metrics()
    assert metrics["not_judged"]["cases"] == 4
    assert metrics["verdict"]["fails_build"]
    assert not metrics["can_be_baseline"]
    comment = project.rageval("comment")
    assert lines_with(comment, "the judge could not be asked")
    for report in ("summary.md", "report.html"):
        assert "the judge could not be asked" in (project.runs[-1] / report).read_text("utf-8")


def test_a_batch_that_cannot_be_submitted_fails_the_run_in_every_place(answered: Project):
    with JudgeServer(score=5) as server:  # a server without /v1/files
        result = run(answered, f"openai:judge-1@{server.url}", "--judge-batch", "--run-id", "batched", *NO_GATE)
        assert_failed_unjudged(answered, result)
        assert lines_with(result, f"judge its answers later: rageval judge batched --judge openai:judge-1@{server.url}")
        judged = answered.rageval("judge", "batched", "--judge", f"openai:judge-1@{server.url}")
    assert judged.ret == 0
    assert lines_with(judged, "Passes: ")
    assert not lines_with(judged, "not judged")


def test_pytest_names_a_way_on_if_the_judge_cannot_be_reached(answered: Project):
    result = answered.run("--rageval-target", "bot:answer", "--rageval-judge", NOWHERE)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: judge 'm': *start it, or run without it: --rageval-judge none"])


def test_a_comparison_with_a_run_that_was_not_judged_is_not_better(answered: Project):
    answered.write("wrong.py", "def answer(question):\n    return 'no'\n")
    with JudgeServer(score=5) as server:
        judge = f"openai:judge-1@{server.url}"
        answered.rageval("run", "--target", "wrong:answer", "--judge", judge, "--run-id", "before", *NO_GATE)
        assert "not_judged" not in answered.metrics()
    run(answered, NOWHERE, "--run-id", "after", *NO_GATE)
    compared = answered.rageval("compare", "before", "after")
    assert compared.ret == 1
    assert says(compared, "Fails the build: the judge could not be asked", "4 of 4 answers were not judged")
    assert not lines_with(compared, "▲")
    markdown = answered.rageval("compare", "before", "after", "--format", "markdown")
    assert says(markdown, "Fails the build:", "4 of 4 answers were not judged")
