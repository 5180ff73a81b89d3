"""`rageval doctor` looks at target, gold, reports, disk, ontology and extras, and asks one question at most."""

from __future__ import annotations

import json
import re
import shutil
import socket
import time
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fault_server import Connection, FaultServer
from project import SOME, Project, a_case


def findings(project: Project) -> dict[str, list[tuple[str, str]]]:
    """Marks and texts by check."""
    found: dict[str, list[tuple[str, str]]] = {}
    for finding in json.loads(project.rageval("doctor", "--json").stdout.str())["findings"]:
        found.setdefault(finding["check"], []).append((finding["mark"], finding["what"]))
    return found


def test_a_project_that_is_ready_has_a_line_for_each_subject(project: Project):
    project.cases(SOME)
    result = project.rageval("doctor")
    assert result.ret == 0
    subjects = {line.split()[1] for line in result.outlines}
    assert subjects == {"configuration", "cases", "target", "judge", "cache", "ontology", "reports", "extras"}
    assert not (project.path / "reports").exists()


def test_every_extra_that_can_be_installed_is_named(project: Project):
    ours = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
    extras = ours["project"]["optional-dependencies"].keys() - {"dev", "docs"}
    ((_, what),) = findings(project)["extras"]
    assert {*re.findall(r"[\w-]+", what.replace("installed:", "").replace("not:", ""))} - {"none"} == extras


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        ("gone:answer", "gone"),
        ("bot:nothing", "nothing"),
        ("http://127.0.0.1:9", "cannot connect to http://127.0.0.1:9"),
        ("nothing", "unknown target 'nothing'"),
        ("answers:gone.jsonl", "gone.jsonl"),
    ],
)
def test_a_target_that_cannot_answer_is_a_problem(project: Project, target: str, problem: str):
    project.cases(SOME)
    project.configure(f'target = "{target}"')
    assert project.rageval("doctor").ret == 1
    ((mark, what),) = findings(project)["target"]
    assert mark == "problem"
    assert problem in what


def test_a_target_that_is_silent_costs_five_seconds_at_most(project: Project):
    project.cases(SOME)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(0)
        project.configure(f'target = "http://127.0.0.1:{silent.getsockname()[1]}"')
        started = time.monotonic()
        with socket.create_connection(silent.getsockname()):
            assert project.rageval("doctor").ret in (0, 1)
        assert time.monotonic() - started < 30, "at most 5 s of waiting, and what a slow machine takes"


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("return 'x' * 7", ("ok", "asked:answer: answers one question: 7 characters, no list of chunks")),
        ("raise ValueError('no')", ("problem", "asked:answer: ValueError: no (at asked.py:6), asked 'What is 1?'")),
        ("return 3", ("problem", "asked:answer: returned 3 (int), expected str, dict or Answer, asked 'What is 1?'")),
        ("time.sleep(9)", ("warning", "asked:answer: no answer to one question within 0.2 s")),
    ],
)
def test_python_code_is_asked_one_question_in_bounded_time_and_what_came_is_said(
    project: Project, monkeypatch: pytest.MonkeyPatch, body: str, found: tuple[str, str]
):
    monkeypatch.setattr("pytest_rageval.check.target_check.ANSWER_S", 0.2)
    asked = "import time\nprint('loaded')\n\ndef answer(question):\n    print('printed')\n    " + body
    project.write("asked.py", asked)
    project.configure('target = "asked:answer"')
    project.cases([a_case("one", "What is 1?")])
    assert findings(project)["target"] == [found], "what the code prints is no part of the JSON"


def test_gold_that_the_index_does_not_hold_is_named(project: Project):
    place = {"rel_path": "catalogue/measures/return-rate.md", "heading_path": "# Return rate > ## Definition"}
    lost = {"rel_path": "catalogue/measures/gone.md", "heading_path": "# Gone"}
    project.configure('target = "demo"')
    project.cases([a_case("there", gold_supports=[place]), a_case("open", "Who?", answerable=False)])
    mark, what = findings(project)["target"][1]
    assert mark == "ok"
    assert what.endswith("chunks hold the gold of 1 labelled case")
    project.cases(
        [
            a_case("there", gold_supports=[place]),
            a_case("lost", gold_supports=[lost]),
            a_case("either", gold_supports=[lost, place]),
            a_case("both", gold_supports=[lost, place], required_support_groups=[[0, 1]]),
        ]
    )
    mark, what = findings(project)["target"][1]
    assert mark == "warning"
    assert what.startswith("2 of 4 labelled cases cannot be won")
    assert what.endswith("evalcases/a.jsonl::lost, evalcases/a.jsonl::both")


def test_reports_that_cannot_be_written_are_a_problem(project: Project):
    project.cases(SOME)
    project.write("reports", "a file\n")
    ((mark, what),) = findings(project)["reports"]
    assert (mark, "is a file" in what) == ("problem", True)


@pytest.mark.parametrize(("free", "mark"), [(2**20, "problem"), (2**29, "warning"), (2**40, "ok")])
def test_little_room_is_said(project: Project, free: int, mark: str, monkeypatch: pytest.MonkeyPatch):
    usage: Any = lambda _: SimpleNamespace(free=free)  # noqa: E731 because it is one expression
    monkeypatch.setattr(shutil, "disk_usage", usage)
    project.cases(SOME)
    assert findings(project)["reports"][1][0] == mark


def test_what_pytest_would_refuse_is_a_problem(project: Project):
    project.cases(SOME)
    project.configure('target = "bot:answer"', '[tool.rageval.gates]\ncase = ["token_f1 >= 0.5 when category=factul"]')
    project.write("reports/baseline.json", "{")
    said = [what for mark, what in findings(project)["configuration"] if mark == "problem"]
    assert any("no case has the category 'factul'" in what for what in said)
    assert any("baseline.json" in what for what in said)
    assert project.rageval("doctor").ret == 1


def test_a_pasted_table_with_its_prefix_is_a_problem(project: Project):
    project.cases(SOME)
    (project.path / "pyproject.toml").unlink(missing_ok=True)
    project.write("rageval.toml", 'target = "bot:answer"\n[tool.rageval.gates]\nrun = ["mrr >= 0.5"]\n')
    assert project.rageval("doctor").ret == 1
    assert findings(project)["configuration"] == [
        ("problem", "rageval.toml: [tool.rageval.gates]: leave out the prefix in this file: [gates]")
    ]


@pytest.mark.parametrize(
    ("gate", "said"),
    [
        ("gold_in_answr >= 1", "unknown metric 'gold_in_answr'; did you mean 'gold_in_answer'?"),
        ("pass_rate >= 0.9", "'pass_rate' is not a metric, because each failing case fails the build by itself"),
        ("mrr >= 7", "gate 'mrr >= 7': the limit is beyond the scale of mrr, 0 to 1; did you mean 7%?"),
        ("mrr => 1", "gate 'mrr => 1' cannot be read"),
    ],
)
def test_a_wrong_gate_is_named_with_its_file(project: Project, gate: str, said: str):
    project.cases(SOME)
    project.configure('target = "bot:answer"', f'[tool.rageval.gates]\ncase = ["{gate}"]')
    ((_, what),) = findings(project)["configuration"]
    assert what.startswith(f"pyproject.toml [tool.rageval]: gates.case: {said}")
    result = project.run("-q")
    assert any(f"ERROR: pyproject.toml [tool.rageval]: gates.case: {said}" in line for line in result.errlines)


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize(
    ("headers", "token", "fix"),
    [
        ("", "", 'set RAGEVAL_TARGET_TOKEN, sent as a bearer token, or write headers = { NAME = "env:VARIABLE" }'),
        ("", "q7Xw9-Kp3Lm5zR", "check the value of RAGEVAL_TARGET_TOKEN"),
        ('headers = { X-Api-Key = "env:BOT_KEY" }', "", "check the value of BOT_KEY"),
    ],
)
def test_a_refused_key_has_a_remedy(
    project: Project, monkeypatch: pytest.MonkeyPatch, status: int, headers: str, token: str, fix: str
):
    async def refuses(connection: Connection) -> None:
        await connection.reply(status, b'{"error": "no"}')

    monkeypatch.setenv("BOT_KEY", "r8Yv0-Lq4Mn6aS")
    monkeypatch.setenv("RAGEVAL_TARGET_TOKEN", token)
    project.cases(SOME)
    with FaultServer(refuses) as server:
        project.configure(f'target = "{server.url}"\n{headers}')
        result = project.rageval("doctor", "--json")
        assert result.ret == 1
        found = json.loads(result.stdout.str())["findings"]
        assert next(each["fix"] for each in found if each["check"] == "target") == fix
        assert fix in project.rageval("doctor").stdout.str(), "readable, not masked"


def test_chunks_without_a_path_are_a_warning_if_golds_name_places(project: Project):
    chunk = '{"chunk_id": "c1", "text": "Water boils at 100 degrees."}'
    project.write(
        "pathless.py", f"def answer(question):\n    return {{'answer': 'yes', 'retrieved_chunks': [{chunk}]}}\n"
    )
    project.configure('target = "pathless:answer"')
    project.cases([a_case("one", "What is 1?")])
    expected = ("warning", "places: 1 chunk without a path; only ids can be matched")
    assert expected in findings(project)["target"]
    project.run()
    [cause] = project.metrics()["causes"]
    assert (cause["kind"], cause["text"]) == ("no_paths", "no retrieved chunk names its path")
    project.cases([a_case("one", "What is 1?", gold={"answer": "yes", "chunk_ids": ["c1"]}, gold_supports=[])])
    assert ("ok", expected[1]) in findings(project)["target"]
