"""What a person sees of a run, whatever else shows it: lines of ours, progress that ends, chunks one by one."""

from __future__ import annotations

import re
import sys

import pytest
from fault_server import FaultServer, gives
from project import Project, a_case, a_missed_case, lines_with

ALONE_AND_WITH_WORKERS = pytest.mark.parametrize("how", [(), ("-n", "1")], ids=["alone", "with workers"])
HANGS = "import time\n\ndef answer(question):\n    time.sleep(20)\n"


def with_a_gate_of_the_run(project: Project) -> None:
    project.configure('target = "bot:answer"\n[tool.rageval.gates]\nrun = ["recall_any@5 >= 0.9"]')
    project.cases([a_case("boil"), a_missed_case("missed")])


@ALONE_AND_WITH_WORKERS
def test_tb_line_shows_one_line_a_failure_with_its_place(project: Project, how: tuple[str, ...]):
    with_a_gate_of_the_run(project)
    shown = project.run("--tb=line", *how).outlines
    failures = shown[shown.index(next(line for line in shown if "= FAILURES =" in line)) + 1 :]
    ours = failures[: failures.index(next(line for line in failures if "= rageval =" in line))]
    assert [line for line in ours if not line.startswith("[gw")] == [
        "evalcases/a.jsonl:2: recall_any@5 is 0, gate >= 1 (L2_doc_retrieval_fail)",
        "rageval-gates: recall_any@5 is 0.5, gate >= 0.9",
    ]


@pytest.mark.parametrize("how", [(), ("-q",), ("-v",), ("-n", "1"), ("-n", "1", "-v"), ("-n", "1", "-q")], ids=" ".join)
def test_progress_ends_at_a_hundred_percent_once(project: Project, how: tuple[str, ...]):
    with_a_gate_of_the_run(project)
    shown = project.run(*how)
    shares = re.findall(r"\[ *(\d+)%\]", shown.stdout.str())
    assert shares.count("100") == 1
    assert shares[-1] == "100"
    assert lines_with(shown, "rageval-gates")[0].startswith("rageval-gates")


@pytest.mark.child_process
def test_the_bar_of_sugar_ends_at_a_hundred_percent(project: Project):
    pytest.importorskip("pytest_sugar")
    with_a_gate_of_the_run(project)
    arguments = ("-p", "no:hypothesispytest", "-p", "sugar", "--force-sugar")
    shown = project.process(sys.executable, "-m", "pytest", *arguments)
    shares = [int(share) for share in re.findall(r"(\d+)%", shown.stdout.str())]
    assert max(shares) == shares[-1] == 100


@pytest.mark.child_process
def test_a_time_out_of_another_plugin_is_one_line(project: Project):
    pytest.importorskip("pytest_timeout")
    project.write("slow.py", HANGS)
    project.cases([a_case("boil")])
    shown = project.run_process("--timeout=4", "--rageval-target", "slow:answer")
    shown.assert_outcomes(errors=1)
    lines = shown.outlines
    headline = next(number for number, line in enumerate(lines) if "ERROR at setup of boil" in line)
    assert lines[headline + 1] == "timeout: Timeout (>4.0s) from pytest-timeout."
    assert not lines_with(shown, "prefetch.py")
    assert not lines_with(shown, "another exception")


def test_what_came_is_one_chunk_a_line(project: Project):
    chunks = [{"chunk_id": f"c{n}", "rel_path": f"notes/{n}.md", "text": "x"} for n in range(1, 12)]
    project.write(
        "many.py", f"def answer(question):\n    return {{'answer': 'x', 'debug': {{'retrieved_chunks': {chunks}}}}}\n"
    )
    project.cases([a_case("q", gold_supports=[{"rel_path": "notes/7.md"}])])
    lines = project.run("--rageval-target", "many:answer").outlines
    first = lines.index("  came       1   notes/1.md")
    assert lines[first + 6 : first + 9] == [
        "             7 ✓ notes/7.md",
        "             8   notes/8.md",
        "             and 3 more",
    ]


@ALONE_AND_WITH_WORKERS
def test_an_error_of_the_target_is_one_line_without_a_place_of_ours(project: Project, how: tuple[str, ...]):
    project.write("broken.py", "def answer(question):\n    raise OSError('no index')\n")
    project.cases([a_case("boil")])
    shown = project.run("--tb=line", "--rageval-target", "broken:answer", *how)
    headline = next(number for number, line in enumerate(shown.outlines) if "ERROR at setup of boil" in line)
    assert "exception: broken:answer: OSError: no index (at broken.py:2)" in shown.outlines[headline + 1 : headline + 3]
    assert not lines_with(shown, "Failed: ")
    assert not lines_with(shown, "active.py")


def test_a_test_over_cases_is_found_by_the_id_of_its_case_in_any_script(project: Project):
    project.cases([a_case("한국어-질문"), a_case("boil")], "tests/cases.jsonl")
    project.write(
        "tests/test_mine.py",
        "import pytest\n\n@pytest.mark.rageval('cases.jsonl')\ndef test_it(eval_case):\n    assert eval_case.id\n",
    )
    project.run("tests", "-k", "한국어").assert_outcomes(passed=1, deselected=1)
    allowed = "disable_test_id_escaping_and_forfeit_all_rights_to_community_support=true"
    assert (
        "tests/test_mine.py::test_it[한국어-질문]"
        in project.run("tests", "--collect-only", "-q", "-o", allowed).outlines
    )


FIXTURE = "import pytest\n\n@pytest.fixture(scope='session')\ndef {name}():\n    {body}\n"


@ALONE_AND_WITH_WORKERS
@pytest.mark.parametrize("name", ["rag_client", "rag_judge"])
@pytest.mark.parametrize(
    ("body", "said"),
    [("raise RuntimeError('no index')", "E       RuntimeError: no index"), ("return 3", "rag_")],
    ids=["raises", "wrong thing"],
)
def test_a_fixture_that_gives_nothing_of_use_is_said_once(
    project: Project, name: str, body: str, said: str, how: tuple[str, ...]
):
    project.cases([a_case(f"q{number}") for number in range(3)])
    project.write("conftest.py", FIXTURE.format(name=name, body=body))
    result = project.run(*how, "-p", "no:randomly", "--junitxml=junit.xml")
    result.assert_outcomes(errors=3)
    assert len([line for line in result.outlines if line.startswith(said)]) == 1
    assert len(lines_with(result, "the same error as of evalcases/a.jsonl::q")) == 2
    assert not lines_with(result, "pytest_rageval/")
    assert not lines_with(result, "_pytest/")
    assert (project.path / "junit.xml").read_text(encoding="utf-8").count("<error ") == 3


@pytest.mark.parametrize("how", [[], ["-n", "2"]])
def test_chunks_that_are_sent_where_nothing_is_read_are_said_once(project: Project, how: list[str]):
    chunk = {"chunk_id": "c1", "rel_path": "notes/water.md", "heading_path": "# Water > ## Boiling", "rank": 1}
    project.cases([a_case("boil"), a_case("again")])
    with FaultServer(gives({"answer": "Water boils at 100 degrees.", "retrieved_chunks": [chunk]})) as server:
        result = project.run("--rageval-target", server.url, *how)
    note = "the system sends 'retrieved_chunks' at the top level of its answers, where nothing is read; "
    assert len(lines_with(result, note)) == 1
    with FaultServer(gives({"answer": "Water boils.", "debug": {"retrieved_chunks": [chunk]}})) as server:
        assert not lines_with(project.run("--rageval-target", server.url, *how), note)
