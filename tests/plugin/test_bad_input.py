"""Wrong input is said in one line a problem, all of it together, before anything runs or is written."""

from __future__ import annotations

import pytest
from project import ALONE_AND_WITH_WORKERS, SOME, Project, a_case, lines_with


def nothing_happened(project: Project, result: pytest.RunResult) -> None:
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert not lines_with(result, "Traceback")
    assert not lines_with(result, "INTERNALERROR")
    assert not project.runs


@ALONE_AND_WITH_WORKERS
def test_no_target_is_said_once_with_what_to_do(project: Project, how: list[str]):
    project.configure("")
    project.cases(SOME)
    result = project.run(*how)
    nothing_happened(project, result)
    assert len(lines_with(result, "no target")) == 1
    assert lines_with(result, "--rageval-target demo")


def test_all_wrong_settings_are_said_together(project: Project):
    project.configure('target = "bot:answer"\nkk = 3\ntimeout = -1\nfolder_mode = "maybe"')
    project.cases(SOME)
    result = project.run()
    nothing_happened(project, result)
    assert lines_with(result, "kk is not a known key")
    assert lines_with(result, "timeout is -1")
    assert lines_with(result, "folder_mode is 'maybe'")


TABLES = """
[tool.rageval.weights]
answers = 2.0
[tool.rageval.metrics]
enabled = ["recall_al"]
token_f1 = { hangul = "x" }
[tool.rageval.gates]
case = ["mrr >= ", "mrr >= 1 when colour=red", "error_rate <= 0.1"]
[[tool.rageval.regression]]
metric = "mrr"
max_rise = 0.1
"""
WRONG_IN_TABLES = (
    "weights.answers is not a layer",
    "unknown metric 'recall_al'; did you mean 'recall_all'?",
    "metrics.token_f1.hangul is 'x'",
    "gate 'mrr >= ' cannot be read",
    "'colour' is not a field",
    "run error_rate",
    "only a drop can be a regression",
)


def test_all_that_is_wrong_in_tables_is_said_together(project: Project):
    project.configure('target = "bot:answer"', TABLES)
    project.cases(SOME)
    result = project.run()
    nothing_happened(project, result)
    assert [said for said in WRONG_IN_TABLES if not lines_with(result, said)] == []


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("[tool.rageval.params]\nk = 7", "params.k cannot be set"),
        ('[tool.rageval.metrics]\ntoken_f1 = { hangull = "x" }', "did you mean 'hangul'?"),
        (
            '[tool.rageval.metrics]\ntoken_f1 = { normalizer = "squad", hangul = "char" }',
            "metrics.token_f1.hangul: the official script of normalizer 'squad' knows none; remove one of both",
        ),
    ],
)
def test_what_is_wrong_with_one_key_is_said(project: Project, table: str, said: str):
    project.configure('target = "bot:answer"', table)
    project.cases(SOME)
    result = project.run()
    nothing_happened(project, result)
    assert lines_with(result, said)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--rageval-k", "0"], "--rageval-k is 0"),
        (["--rageval-k", "many"], "--rageval-k is 'many'"),
        (["--rageval-param", "min_score"], "'min_score' is not NAME=VALUE"),
        (["--rageval-gate", "recall@5"], "cannot be read"),
        (["--rageval-baseline", "gone.json"], "does not exist"),
        (["--rageval-judge", "lexicl"], "unknown judge 'lexicl'"),
        (["--rageval-target", "nowhere"], "nowhere"),
        (["--rageval-target", "no_such_module:answer"], "no_such_module"),
        (["--rageval-target", "bot:nothing"], "nothing"),
        (["--rageval-force"], "--rageval-update-baseline"),
        (["--rageval-run-id", "../up"], "not a folder name"),
        (["--rageval-reports", "bot.py"], "bot.py"),
        (["--rageval-target", "answers:gone.jsonl"], "gone.jsonl"),
        (["--rageval-target", "run:20200101_000000"], "20200101_000000"),
    ],
)
def test_a_wrong_option_is_named(project: Project, arguments: list[str], said: str):
    project.cases(SOME)
    result = project.run(*arguments)
    nothing_happened(project, result)
    assert lines_with(result, said)


@ALONE_AND_WITH_WORKERS
def test_missing_answers_are_listed_before_anything_runs(project: Project, how: list[str]):
    project.cases(SOME)
    project.write("answers.jsonl", '{"id": "boil", "answer": "x"}\n{"id": "nobody", "answer": "y"}\n')
    result = project.run("--rageval-target", "answers:answers.jsonl", *how)
    nothing_happened(project, result)
    for name in ("freeze", "남산-높이", "unknown", "nobody"):
        assert lines_with(result, name)


def test_missing_answers_may_be_allowed(project: Project):
    project.cases(SOME)
    project.write("answers.jsonl", '{"id": "boil", "answer": "Water boils at 100 degrees at sea level."}\n')
    result = project.run("--rageval-target", "answers:answers.jsonl", "--rageval-allow-partial")
    result.assert_outcomes(passed=1, skipped=3)
    assert project.metrics()["partial"] is True


def test_a_dry_run_checks_everything_and_asks_nothing(project: Project):
    project.cases(SOME)
    project.write("asked.py", "def answer(question):\n    open('asked', 'w')\n    return 'x'\n")
    result = project.run("--rageval-target", "asked:answer", "--rageval-dry-run")
    result.assert_outcomes(skipped=4)
    assert result.ret == 0
    assert not (project.path / "asked").exists()
    assert not project.runs
    assert project.run("--rageval-dry-run", "--rageval-gate", "nothing >= 1").ret == pytest.ExitCode.USAGE_ERROR


def test_two_places_that_configure_are_one_too_many(project: Project):
    project.cases(SOME)
    project.write("rageval.toml", 'target = "bot:answer"\n')
    result = project.run()
    nothing_happened(project, result)
    assert lines_with(result, "keep one of them")


def test_a_run_id_that_is_taken_is_refused(project: Project):
    project.cases([a_case("boil")])
    project.run("--rageval-run-id", "first").assert_outcomes(passed=1)
    result = project.run("--rageval-run-id", "first")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert lines_with(result, "choose another name")


MISTAKES = {
    "key.jsonl": ('{"id": "q1", "qestion": "boil"}\n', "key.jsonl:1:*qestion is not a known key*"),
    "second.jsonl": ('{"id": "q1", "question": "boil"}\n{"id": "q2"}\n', "second.jsonl:2:*question is missing"),
    "broken.jsonl": ('{"id": \n', "broken.jsonl:1:*not valid JSON*"),
    "header.csv": ("id,qestion\n1,boil\n", "header.csv:1:*'qestion' is not a known column*"),
    "empty.jsonl": ("", "empty.jsonl:1:1: the file holds no case"),
    "blank.jsonl": ('{"id": "q1", "question": "boil", "gold": {"answer": " "}}\n', "blank.jsonl:1:*answer is blank*"),
}


@pytest.mark.parametrize("case_id", ["", "::q1"])
def test_files_that_are_named_show_their_mistakes(project: Project, case_id: str):
    for name, (content, _) in MISTAKES.items():
        project.write(f"elsewhere/{name}", content)
    result = project.run(*(f"elsewhere/{name}{case_id}" for name in MISTAKES))
    assert result.ret != 0
    for _, message in MISTAKES.values():
        result.stdout.fnmatch_lines([f"elsewhere/{message}"])
    assert not lines_with(result, "not found")


@pytest.mark.child_process
def test_a_file_that_is_named_shows_its_mistakes_with_workers_too(project: Project):
    project.write("key.jsonl", MISTAKES["key.jsonl"][0])
    result = project.run("key.jsonl", "-n", "1")
    assert result.ret != 0
    result.stdout.fnmatch_lines([MISTAKES["key.jsonl"][1]])


def test_a_file_that_another_plugin_collects_is_left_to_it(project: Project):
    project.write("theirs.jsonl", '{"other": 1}\n')
    project.write(
        "conftest.py",
        "import pytest\nclass Item(pytest.Item):\n    def runtest(self):\n        pass\n"
        "class File(pytest.File):\n    def collect(self):\n        yield Item.from_parent(self, name='one')\n"
        "def pytest_collect_file(file_path, parent):\n"
        "    return File.from_parent(parent, path=file_path) if file_path.name == 'theirs.jsonl' else None\n",
    )
    project.run("theirs.jsonl").assert_outcomes(passed=1)
