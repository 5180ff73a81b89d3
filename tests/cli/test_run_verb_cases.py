"""Which cases `rageval run` asks, what a run is made from, and options as evaluation scripts usually call them."""

from __future__ import annotations

import pytest
from judge_server import JudgeServer
from project import SOME, Project, a_case, a_missed_case, lines_with


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
        ("latency_ms>=0 id:boil", {"boil"}),
    ],
)
def test_only_takes_cases_of_an_earlier_run_in_the_words_of_its_report(project: Project, only: str, ids: set[str]):
    project.cases([*SOME, a_missed_case("missed"), a_missed_case("cold", tags=["cold"])])
    assert project.rageval("run", "--run-id", "first").ret == 1
    project.rageval("run", "--only", only, "--from", "first", "--run-id", "second")
    assert project.records().keys() == ids
    assert project.metrics()["selection"]["by"] == {"--only": f"{only} --from first"}


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


ORIGIN = """
[tool.rageval.origin]
agent = "shop-bot"
agent_version = 4
dataset = "products"
dataset_version = 2
source = "connector"
"""


def test_the_versions_that_a_run_is_made_from_stand_in_its_configuration_and_change_nothing(project: Project):
    project.cases(SOME)
    assert project.rageval("run").ret == 0
    plain = project.config()
    project.configure('target = "bot:answer"', ORIGIN)
    assert project.rageval("run").ret == 0
    web = project.config()
    assert web["origin"] == {
        "agent": "shop-bot", "agent_version": 4, "dataset": "products", "dataset_version": 2, "source": "connector",
    }  # fmt: skip
    assert "origin" not in plain
    assert web["config_hash"] == plain["config_hash"]


def test_a_source_that_does_not_exist_is_named(project: Project):
    project.cases(SOME)
    project.configure('target = "bot:answer"', ORIGIN.replace("connector", "telepathy"))
    result = project.rageval("run")
    assert result.ret == 4
    assert any("origin.source" in line and "uploaded answers" in line for line in lines_with(result, "telepathy"))


def test_a_kept_run_can_stand_for_the_baseline(project: Project):
    project.cases([a_case("a"), a_case("b")])
    assert project.rageval("run", "--run-id", "first").ret == 0
    project.cases([a_case("a"), a_missed_case("b")])
    project.rageval("run", "--run-id", "second", "--baseline", "run:first", "--ignore-invariants")
    comparison = project.metrics()["comparison"]
    assert comparison["baseline_run_id"] == "first"
    wrong = project.rageval("run", "--baseline", "run:fisrt")
    assert wrong.ret == 4
    assert lines_with(wrong, "there is no run 'fisrt'; did you mean 'first'?")


def test_no_baseline_is_compared_with_where_none_is_wanted(project: Project):
    project.cases(SOME)
    assert project.rageval("run", "--update-baseline").ret == 0
    project.cases([a_case("other")])
    assert project.rageval("run", "--baseline", "none").ret == 0
    assert project.metrics()["comparison"] is None
    assert project.rageval("run", "--baseline", "none", "--update-baseline").ret == 4


def test_a_script_of_old_runs_the_cases_of_a_file_outside_the_globs(project: Project):
    project.configure("")
    project.cases(SOME[:2], "eval/eval_set.jsonl")
    result = project.rageval(
        "run", "--eval-set", "eval/eval_set.jsonl", "--api-url=bot:answer", "--judge-model", "stub:0.9", "--use-judge",
        "--run-id", "first", "--output-dir", "out",
    )  # fmt: skip
    assert result.ret == 0, result.errlines
    assert (project.path / "out/runs/first/metrics.json").is_file()
    names = {"eval-set": "PATHS", "api-url": "--target", "judge-model": "--judge", "output-dir": "--reports"}
    for earlier, now in {**names, "use-judge": "not needed"}.items():
        assert result.errlines.count(f"--{earlier} is {now} here") == 1
    assert not [line for line in project.rageval("run", "--help").outlines if "--eval-set" in line]


@pytest.mark.parametrize("verb", ["score", "abstention", "judge"])
def test_a_stored_run_may_be_named_by_an_option(project: Project, verb: str):
    project.cases(SOME)
    project.run("--rageval-run-id", "one").assert_outcomes(passed=4)
    result = project.rageval(verb, "--run-id", "one")
    assert (result.ret, "--run-id is RUN here" in result.errlines) == (0, True)


def test_a_folder_that_is_named_is_searched_whole_where_no_glob_finds_a_case_in_it(project: Project):
    project.cases(SOME[:1], "eval/deep/eval_set.jsonl")
    project.write("eval/answers.jsonl", '{"id": "x", "answer": "no case"}\n')
    assert project.rageval("run", "eval").ret == 0
    assert [*project.records()] == [SOME[0]["id"]]


def test_aggregates_alone_follow_new_labels_and_leave_every_score(project: Project):
    project.cases([a_case("boil", category="old")])
    project.run().assert_outcomes(passed=1)
    before = project.records()["boil"]
    elsewhere = [{"rel_path": "notes/elsewhere.md", "heading_path": ""}]
    project.cases([a_case("boil", category="new", gold_supports=elsewhere)], "labels/a.jsonl")
    assert project.rageval("score", "latest", "--cases", "labels", "--aggregate-only").ret == 0
    after = project.records()["boil"]
    assert (after["category"], after["scores"], after["verdict"]) == ("new", before["scores"], before["verdict"])
    assert [*project.metrics()["by_category"]] == ["new"]
    project.rageval("score", "latest")
    assert project.records()["boil"]["scores"]["recall_any@5"] == 0, "what is scored later goes by the labels too"


def test_a_run_that_is_judged_again_keeps_what_is_known_of_its_judge(project: Project):
    project.cases([a_case("boil")])
    with JudgeServer() as server:
        project.run("--rageval-judge", f"openai:judge-2026-01-01@{server.url}").assert_outcomes(passed=1)
        before = project.config()["judge"]
        result = project.rageval("judge", "latest", "--judge-cache", "refresh")
    assert project.config()["judge"] == before
    assert "named to be scored" not in "\n".join([*result.outlines, *result.errlines])


@pytest.mark.parametrize("command", ["run", "pytest"])
def test_a_named_case_file_needs_answers_to_its_own_cases_alone(project: Project, command: str):
    project.cases([{"id": "one", "question": "One?"}, {"id": "both", "question": "Both?"}], "evalcases/a.jsonl")
    project.cases([{"id": "two", "question": "Two?"}, {"id": "both", "question": "And?"}], "evalcases/b.jsonl")
    project.write("given.jsonl", '{"id": "one", "answer": "x"}\n{"id": "both", "answer": "x"}\n')

    def run(*paths: str) -> pytest.RunResult:
        if command == "run":
            return project.rageval("run", *paths, "--target", "answers:given.jsonl")
        return project.run(*paths, "--rageval-target", "answers:given.jsonl")

    assert run("evalcases/a.jsonl").ret == 0
    assert project.metrics()["outcomes"]["passed"] == 2
    project.write("given.jsonl", '{"id": "one", "answer": "x"}\n{"id": "two", "answer": "x"}\n')
    refused = run("evalcases/a.jsonl")
    assert refused.ret == pytest.ExitCode.USAGE_ERROR
    assert lines_with(refused, "given.jsonl: no answer for evalcases/a.jsonl::both")


def test_a_gold_of_a_system_that_reports_no_chunks_is_not_said_to_be_missed(project: Project):
    project.write("bare.py", "def answer(question):\n    return 'It is blue.'\n")
    project.cases(
        [{"id": "one", "question": "One?", "gold": {"answer": "red"}, "gold_supports": [{"rel_path": "a.md"}]}]
    )
    assert project.rageval("run", "--target", "bare:answer").ret == 1
    explained = project.rageval("explain", "latest", "one")
    assert lines_with(explained, "the system reports no retrieved chunks")
    assert not lines_with(explained, "was not retrieved")
    assert "was not retrieved" not in (project.runs[-1] / "report.html").read_text("utf-8")
