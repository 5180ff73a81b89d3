"""The way in: `rageval init` scaffolds a project whose first run is green, `rageval demo run` needs no project."""

from __future__ import annotations

import io
import json
import sys
import tomllib
from pathlib import Path

import pytest
from processes import Terminal
from project import Project, a_case, a_missed_case

from pytest_rageval.cli.demo import A_CASE
from pytest_rageval.cli.main import VERBS


@pytest.fixture
def empty(project: Project) -> Project:
    """A folder with nothing in it."""
    for path in project.path.iterdir():
        path.unlink()
    return project


def tree(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and "runs" not in path.parts
    }


def test_after_init_the_first_run_of_pytest_is_green(empty: Project):
    result = empty.rageval("init", "--yes")
    assert result.ret == 0
    ignored = {"evalcases/.gitignore", "reports/.gitignore"}
    assert tree(empty.path).keys() == {"rageval.toml", "evalcases/first.jsonl"} | ignored
    assert "*.bak" in tree(empty.path)["evalcases/.gitignore"].splitlines()
    result.stdout.fnmatch_lines(
        ["Next:", "  pytest *", "  rageval explain latest CASE *", "  pytest --rageval-update-*"]
    )
    assert len(result.outlines) - result.outlines.index("Next:") == 4
    empty.run("-q").assert_outcomes(passed=3)
    assert empty.rageval("run").ret == 0
    assert empty.rageval("doctor").ret == 0


@pytest.mark.parametrize("ci", ["github", "gitlab"])
def test_ci_is_written_where_the_service_looks_for_it(empty: Project, ci: str):
    assert empty.rageval("init", "--yes", "--ci", ci).ret == 0
    path = {"github": ".github/workflows/rageval.yml", "gitlab": ".gitlab-ci.yml"}[ci]
    text = tree(empty.path)[path]
    assert "pip install pytest-rageval" in text
    assert "python -m pytest" in text
    assert "\t" not in text


def test_nothing_is_overwritten(empty: Project):
    mine = {name: f"mine: {name}\n" for name in (".gitlab-ci.yml", "reports/.gitignore")}
    mine["rageval.toml"] = 'target = "bot:answer"\n'
    for name, text in mine.items():
        empty.write(name, text)
    empty.cases([a_case("mine")], "evalcases/mine.jsonl")
    before = tree(empty.path)
    result = empty.rageval("init", "--yes", "--ci", "gitlab", "--target", "demo")
    assert result.ret == 0
    after = tree(empty.path)
    assert {name: after[name] for name in before} == before
    assert after.keys() - before.keys() == {
        "rageval.toml.new",
        ".gitlab-ci.yml.new",
        "reports/.gitignore.new",
        "evalcases/.gitignore",
    }
    result.stdout.fnmatch_lines(
        ["rageval.toml.new * written beside yours*", "*not written: there are cases already*mine*"]
    )
    empty.rageval("init", "--yes", "--ci", "gitlab", "--target", "demo")
    assert tree(empty.path) == after, "what it wrote before is there already"
    empty.write("rageval.toml.new", "and mine\n")
    assert empty.rageval("init", "--yes").ret == 0
    assert tree(empty.path)["rageval.toml.new"] == "and mine\n"
    assert "rageval.toml.new2" in tree(empty.path)


def test_a_configuration_in_pyproject_toml_stays_the_only_one(empty: Project):
    empty.configure('target = "demo"')
    assert empty.rageval("init", "--yes").ret == 0
    assert "rageval.toml" not in tree(empty.path)
    assert "rageval.toml.new" in tree(empty.path)
    assert empty.run("-q").ret == 0


def test_first_cases_ask_about_headings_of_the_notes(empty: Project):
    empty.write(
        "notes/water.md", "# Water\n\n```\n# no heading\n```\n## Boiling\nAt 100 degrees.\n## Freezing\nAt 0.\n"
    )
    empty.write("notes/sub/탑.md", "# 서울\n남산\n")
    empty.write("notes/empty.md", "no heading\n")
    result = empty.rageval("init", "--yes", "--target", "http://localhost:8080", "--notes", "notes")
    assert result.ret == 1  # no server is there
    table = tomllib.loads(tree(empty.path)["rageval.toml"])
    assert (table["target"], table["notes"]) == ("http://localhost:8080", "notes")
    cases = [json.loads(line) for line in tree(empty.path)["evalcases/first.jsonl"].splitlines()]
    assert [case.get("gold_supports") for case in cases] == [
        [{"rel_path": "sub/탑.md", "heading_path": "# 서울"}],
        [{"rel_path": "water.md", "heading_path": "# Water > ## Boiling"}],
        None,
    ]
    assert empty.rageval("cases", "validate").ret == 0


def test_a_heading_that_asks_is_left_to_the_drafts(empty: Project):
    empty.write("notes/shipping.md", "# Shipping\n## How long does it take?\nTwo days.\n")
    empty.rageval("init", "--yes", "--target", "http://localhost:8080", "--notes", "notes")
    first = json.loads(tree(empty.path)["evalcases/first.jsonl"].splitlines()[0])
    assert first["question"] == "What is there to know about How long does it take?"
    assert empty.rageval("generate", "notes").ret == 0
    assert '"question": "How long does it take?"' in tree(empty.path)["evalcases/notes.drafts.jsonl"]


def test_the_configuration_of_a_server_shows_how_another_api_is_described(empty: Project):
    empty.rageval("init", "--yes", "--target", "http://localhost:8080")
    lines = tree(empty.path)["rageval.toml"].splitlines()
    assert tomllib.loads("\n".join(lines))["target"] == "http://localhost:8080"
    target = next(number for number, line in enumerate(lines) if line.startswith("target ="))
    first, last = lines.index("# [target]"), lines.index('# text = "content"')
    described = [
        line.removeprefix("# ") if first <= at <= last else line for at, line in enumerate(lines) if at != target
    ]
    empty.write("rageval.toml", "\n".join(described))
    assert empty.run("-q", "--rageval-dry-run").ret == 0
    assert "url" in tomllib.loads("\n".join(described))["target"]
    empty.rageval("init", "--yes")
    assert "[target]" not in tree(empty.path)["rageval.toml.new"]


@pytest.mark.parametrize(("verb", "meant"), [("runn", "; did you mean 'run'?"), ("quxquux", "")])
def test_a_verb_that_nobody_knows_gets_the_nearest_one(empty: Project, verb: str, meant: str):
    result = empty.rageval(verb)
    assert result.ret == 2
    assert result.stderr.str().rstrip().endswith(f"No such command '{verb}'{meant}")


@pytest.mark.parametrize("verb", ["run", "sweep --grid k=1,2", "cases audit --index", "repl"])
def test_a_verb_names_its_own_option_where_no_target_is_set(empty: Project, verb: str):
    empty.rageval("init", "--yes")
    (empty.path / "rageval.toml").unlink()
    stderr = empty.rageval(*verb.split()).stderr.str()
    assert "no target: say which system to ask with --target, e.g. --target demo" in stderr
    assert "--rageval-target" not in stderr


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--yes", "--target", "localhost:8080"], "'localhost:8080' is no target; did you mean http://localhost:8080?"),
        (["--yes", "--target", "bot"], "'bot' is no target, expected http://HOST, module:function or demo"),
        (["--yes", "--target", "bot:answer", "--notes", "gone"], "--notes: gone is not a folder"),
        (["--yes", "--ci", "jenkins"], "'jenkins' is not one of"),
        ([], "there is no terminal to ask on; give --target and --ci, or --yes for the demo"),
    ],
)
def test_wrong_answers_are_a_line_and_write_nothing(
    empty: Project, arguments: list[str], problem: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("sys.stdin", io.StringIO())
    result = empty.rageval("init", *arguments)
    assert result.ret == 2
    assert problem in result.stderr.str()
    assert "Traceback" not in result.stderr.str()
    assert not tree(empty.path)


@pytest.mark.child_process
def test_three_questions_on_a_terminal(empty: Project):
    empty.write("notes/water.md", "# Water\nIt boils.\n")
    answers = {
        "or demo [demo]: ": "localhost:80",
        "did you mean": "http://localhost:80",
        "(Enter: none): ": "notes",
        "CI (": "gitlab",
    }
    with Terminal(empty.path, "-m", "pytest_rageval", "init") as terminal:
        for question, answer in answers.items():
            terminal.until(question)
            terminal.type(f"{answer}\n")
        assert terminal.ended() == 1, terminal.written  # no server is there
    assert tomllib.loads(tree(empty.path)["rageval.toml"])["target"] == "http://localhost:80"
    assert ".gitlab-ci.yml" in tree(empty.path)
    assert '"rel_path": "water.md"' in tree(empty.path)["evalcases/first.jsonl"]


@pytest.mark.child_process
def test_ctrl_c_at_a_question_writes_nothing(empty: Project):
    with Terminal(empty.path, "-m", "pytest_rageval", "init") as terminal:
        terminal.until("or demo [demo]: ")
        terminal.press_ctrl_c("\n")
        assert terminal.ended() != 0
    assert "Traceback" not in terminal.written
    assert not tree(empty.path)


def test_the_demo_runs_in_a_folder_of_its_own(empty: Project):
    result = empty.rageval("demo", "run", "here/demo")
    assert result.ret == 0
    folder = empty.path / "here" / "demo"
    metrics = json.loads((folder / "reports" / "metrics.json").read_text(encoding="utf-8"))
    assert metrics["total_tests"] == 154
    assert metrics["comparison"]["problems"] == []
    assert metrics["outcomes"]["failed"] == 0
    (run,) = (folder / "reports" / "runs").iterdir()
    for name in ("summary.md", "report.html"):
        path = run.relative_to(empty.path) / name
        assert f"{path.stem}: {path}" in result.outlines
        assert (run / name).is_file()
    result.stdout.fnmatch_lines([f"  rageval explain latest {A_CASE} *"])
    again = Project.__new__(Project)
    again.path = folder
    assert again.rageval("explain", "latest", A_CASE).ret == 0
    (folder / "evalcases" / "mine.jsonl").write_text('{"id": "mine", "question": "What?"}\n', encoding="utf-8")
    empty.rageval("demo", "run", "here/demo")
    assert json.loads((folder / "reports" / "metrics.json").read_text(encoding="utf-8"))["total_tests"] == 155


def test_the_demo_takes_no_folder_of_somebody_s(empty: Project):
    empty.write("mine/file", "x")
    result = empty.rageval("demo", "run", "mine")
    assert result.ret == 2
    result.stderr.fnmatch_lines(["ERROR: mine: is there already, and is no project of the demo; name another folder"])


def test_help_lists_the_verbs_by_group_and_the_exit_codes(empty: Project):
    lines = empty.rageval("--help").outlines
    groups = [group.capitalize() + ":" for group in VERBS]
    assert [line for line in lines if line in groups] == groups
    assert groups[:3] == ["Start:", "Run:", "Look:"]
    assert any("Exit codes" in line for line in lines)
    assert any("no cases" in line for line in empty.rageval("run", "--help").outlines)


@pytest.mark.child_process
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_a_script_for_the_shell(empty: Project, shell: str):
    result = empty.rageval("completion", shell)
    assert result.ret == 0
    assert "_RAGEVAL_COMPLETE" in result.stdout.str()


@pytest.mark.child_process
@pytest.mark.parametrize(("words", "completions"), [("rageval ju", {"judge", "judge-cache", "judge-check"}),
                                                    ("rageval run --skip-j", {"--skip-judges"})])  # fmt: skip
def test_a_shell_gets_verbs_and_options(empty: Project, words: str, completions: set[str]):
    asking = {"_RAGEVAL_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    result = empty.process(str(Path(sys.executable).parent / "rageval"), **asking)
    assert {line.partition(",")[2] for line in result.outlines} == completions


def test_a_point_of_a_sweep_is_never_the_run_before(empty: Project):
    empty.rageval("init", "--yes")
    assert empty.rageval("run", "--run-id", "own").ret == 0
    assert empty.rageval("sweep", "--grid", "k=1,2").ret == 0
    assert empty.rageval("run", "--run-id", "later").ret == 0
    summary = (empty.path / "reports" / "runs" / "later" / "summary.md").read_text(encoding="utf-8")
    assert "The previous complete run is own" in summary


def test_a_failing_run_is_never_advised_to_be_accepted(project: Project):
    project.cases([a_case("good"), a_missed_case("bad")])
    project.configure('target = "bot:answer"')
    failing = project.rageval("run", "--json")
    assert failing.ret == 1
    assert "update-baseline" not in _advice(project, failing.stdout.str())
    project.cases([a_case("good")])
    passing = project.rageval("run", "--json")
    assert passing.ret == 0
    assert "update-baseline" in _advice(project, passing.stdout.str())


def _advice(project: Project, shown: str) -> str:
    run = project.runs[-1]
    return shown + (run / "summary.md").read_text(encoding="utf-8") + (run / "report.html").read_text(encoding="utf-8")
