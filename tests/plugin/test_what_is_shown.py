"""What a person sees of a run: lines of ours, tables within the terminal, progress that ends."""

from __future__ import annotations

import re

import pytest
from fault_server import FaultServer, gives
from processes import Terminal
from project import ALONE, ALONE_AND_WITH_WORKERS, SOME, Project, a_case, a_missed_case, lines_with, plain
from rich.cells import cell_len

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
        "rageval-gates: recall_any@5 is 0.5, gate >= 0.9 · 2 of 2 cases",
    ]


@pytest.mark.parametrize("how", [(), ("-q",), ("-v",), ("-n", "1")], ids=" ".join)
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
    shown = project.run_process("-p", "pytest_sugar", "--force-sugar")
    shares = [int(share) for share in re.findall(r"(\d+)%", shown.stdout.str())]
    assert max(shares) == shares[-1] == 100


@pytest.mark.child_process
def test_a_time_out_of_another_plugin_is_one_line(project: Project):
    pytest.importorskip("pytest_timeout")
    project.write("slow.py", HANGS)
    project.cases([a_case("boil")])
    shown = project.run_process("--timeout=1.5", "--rageval-target", "slow:answer")
    shown.assert_outcomes(errors=1)
    lines = shown.outlines
    headline = next(number for number, line in enumerate(lines) if "ERROR at setup of boil" in line)
    assert lines[headline + 1] == "timeout: Timeout (>1.5s) from pytest-timeout."
    assert not lines_with(shown, "prefetch.py")
    assert not lines_with(shown, "another exception")


def test_what_was_retrieved_is_one_chunk_a_line(project: Project):
    chunks = [{"chunk_id": f"c{n}", "rel_path": f"notes/{n}.md", "text": "x"} for n in range(1, 12)]
    project.write(
        "many.py", f"def answer(question):\n    return {{'answer': 'x', 'debug': {{'retrieved_chunks': {chunks}}}}}\n"
    )
    project.cases([a_case("q", gold_supports=[{"rel_path": "notes/7.md"}])])
    lines = project.run("--rageval-target", "many:answer").outlines
    first = lines.index("  retrieved  1.   notes/1.md")
    assert lines[first + 6 : first + 9] == [
        "             7. ✓ notes/7.md",
        "             8.   notes/8.md",
        "             and 3 more",
    ]


def test_an_error_of_the_target_is_one_line_without_a_place_of_ours(project: Project):
    project.write("broken.py", "def answer(question):\n    raise OSError('no index')\n")
    project.cases([a_case("boil")])
    shown = project.run("--tb=line", "--rageval-target", "broken:answer")
    headline = next(number for number, line in enumerate(shown.outlines) if "ERROR at setup of boil" in line)
    assert "exception: broken:answer: OSError: no index (at broken.py:2)" in shown.outlines[headline + 1 : headline + 3]
    assert not lines_with(shown, "Failed: ")
    assert not lines_with(shown, "active.py")


def test_a_test_over_cases_is_found_by_the_id_of_its_case_in_any_script(project: Project):
    project.cases([a_case("한국어-질문"), a_case("boil")], "tests/cases.jsonl")
    project.own_test("cases.jsonl", "assert eval_case.id", "tests/test_mine.py")
    project.run("tests", "-k", "한국어").assert_outcomes(passed=1, deselected=1)
    allowed = "disable_test_id_escaping_and_forfeit_all_rights_to_community_support=true"
    assert (
        "tests/test_mine.py::test_own[한국어-질문]"
        in project.run("tests", "--collect-only", "-q", "-o", allowed).outlines
    )


FIXTURE = "import pytest\n\n@pytest.fixture(scope='session')\ndef {name}():\n    {body}\n"


@pytest.mark.parametrize("name", ["rag_client", "rag_judge"])
@pytest.mark.parametrize(
    ("body", "said"),
    [("raise RuntimeError('no index')", "E       RuntimeError: no index"), ("return 3", "rag_")],
    ids=["raises", "wrong thing"],
)
def test_a_fixture_that_gives_nothing_of_use_is_said_once(project: Project, name: str, body: str, said: str):
    project.cases([a_case(f"q{number}") for number in range(3)])
    project.write("conftest.py", FIXTURE.format(name=name, body=body))
    result = project.run("-p", "no:randomly", "--junitxml=junit.xml")
    result.assert_outcomes(errors=3)
    assert len([line for line in result.outlines if line.startswith(said)]) == 1
    assert lines_with(result, "2 more cases are not shown in full: -v shows all")
    assert not lines_with(result, "pytest_rageval/")
    assert not lines_with(result, "_pytest/")
    assert (project.path / "junit.xml").read_text(encoding="utf-8").count("<error ") == 3


def test_chunks_that_are_sent_where_nothing_is_read_are_said_once(project: Project):
    chunk = {"chunk_id": "c1", "rel_path": "notes/water.md", "heading_path": "# Water > ## Boiling", "rank": 1}
    project.cases([a_case("boil"), a_case("again")])
    with FaultServer(gives({"answer": "Water boils at 100 degrees.", "retrieved_chunks": [chunk]})) as server:
        result = project.run("--rageval-target", server.url)
    note = "the system sends 'retrieved_chunks' at the top level of its answers, where nothing is read; "
    assert len(lines_with(result, note)) == 1
    with FaultServer(gives({"answer": "Water boils.", "debug": {"retrieved_chunks": [chunk]}})) as server:
        assert not lines_with(project.run("--rageval-target", server.url), note)


CATEGORIES = ("사실관계 확인 질문", "multi_hop", "specificity", "conflict")


def test_the_verdict_is_the_first_line_of_the_last_block(project: Project):
    project.cases(SOME)
    lines = project.run().outlines
    head = next(number for number, line in enumerate(lines) if line.startswith("=") and " rageval verdict " in line)
    assert lines[head + 1] == "○ Passes: nothing fails, and there is no baseline yet. 4 of 4 pass."


SLOW = """
import bot, os, time
def answer(question):
    try:
        os.close(os.open("first", os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        while not os.path.exists("gate"):
            time.sleep(0.02)
    return bot.answer(question)
"""
"""Answers the first question of a run, and the others once there is a gate."""


@pytest.mark.child_process
def test_a_terminal_shows_how_far_asking_is_and_keeps_none_of_it(project: Project):
    project.cases([a_case(f"c{number}") for number in range(3)])
    project.write("slow.py", SLOW)
    arguments = ("--rageval-target", "slow:answer", "--rageval-concurrency", "1")
    shown = on_a_terminal(project, *arguments, gate_at="asked 1, judged 1, in flight 1")
    assert "Captured" not in shown
    assert "asked" not in last_lines(shown)


@pytest.mark.child_process
def test_a_pipe_gets_no_line_of_progress(project: Project):
    project.cases([a_case("c1")])
    project.write(
        "slow.py", "import bot, time\ndef answer(question):\n    time.sleep(1.2)\n    return bot.answer(question)\n"
    )
    result = project.run_process("--rageval-target", "slow:answer")
    result.assert_outcomes(passed=1)
    assert "asked " not in result.stdout.str()


@pytest.mark.child_process
@pytest.mark.parametrize("width", [60, 120])
def test_korean_names_stand_in_columns_on_a_terminal_of_any_width(project: Project, width: int):
    project.cases([a_case(f"물-{number}", category=CATEGORIES[number % 4]) for number in range(8)])
    shown = on_a_terminal(project, width=width, NO_COLOR="1")
    # On a slow machine the line of progress moves the cursor; nothing else may be a sequence.
    assert "\x1b[" not in re.sub(r"\x1b\[(?:K|\d+D)", "", shown)
    lines = last_lines(shown).split("\n")
    start = next(number for number, line in enumerate(lines) if line.split()[:2] == ["cases", "passed"])
    table = [line.rstrip() for line in lines[start : start + 6]]
    assert table[2].split()[0] in CATEGORIES or table[2].startswith("사실관계")
    assert {cell_len(line) for line in table} == {cell_len(table[0])}
    assert cell_len(table[0]) <= width
    assert [line for line in lines if line.startswith("=") and cell_len(line.rstrip()) > width] == []


def on_a_terminal(
    project: Project, *arguments: str, width: int = 80, gate_at: str | None = None, **environment: str
) -> str:
    """What a terminal gets from a run; `gate_at`: what it shows before the run may go on."""
    command = ("-m", "pytest", *plain(arguments))
    settings = {"TERM": "xterm", "COLUMNS": str(width), "NO_COLOR": "", **environment}
    with Terminal(project.path, *command, **ALONE | settings) as terminal:
        terminal.resize(width, 24)
        if gate_at is not None:
            terminal.until(gate_at)
            project.write("gate", "")
        terminal.ended()
    return terminal.written


def last_lines(shown: str) -> str:
    """What stands there in the end: text behind the cursor is gone where a line was wiped, or written over."""
    rows = []
    for line in shown.replace("\r\n", "\n").split("\n"):
        cells: dict[int, str] = {}
        at = 0
        text = line
        while text:
            if text.startswith("\x1b[K"):
                cells = {place: cell for place, cell in cells.items() if place < at}
                text = text[3:]
            elif text.startswith("\x1b["):
                end = next(number for number, letter in enumerate(text[2:], 2) if letter.isalpha())
                at -= int(text[2:end]) if text[end] == "D" else 0
                text = text[end + 1 :]
            else:
                cells[at] = text[0]
                at, text = at + 1, text[1:]
        rows.append("".join(cells[place] for place in sorted(cells)))
    return "\n".join(rows)


def test_the_overall_score_of_a_broken_run_says_what_it_is_of(project: Project):
    project.write("breaking.py", "import bot\ndef answer(q):\n    assert 'boil' not in q\n    return bot.answer(q)\n")
    project.configure('target = "breaking:answer"')
    project.cases(SOME)
    project.run().stdout.fnmatch_lines(["4 cases: 3 passed, 1 error · overall * of the 3 without errors"])


def test_equal_errors_stand_once_with_their_number(project: Project):
    project.cases([a_case(f"down-{number}") for number in range(5)] + [a_case("odd", question="Odd?")])
    project.write(
        "bot.py",
        "def answer(question):\n"
        "    raise RuntimeError('odd <b>one</b>' if question == 'Odd?' else 'index not loaded')\n",
    )
    project.configure('target = "bot:answer"')
    result = project.run()
    result.stdout.fnmatch_lines(["why cases fail", "  5 × the system failed: *RuntimeError: index not loaded*"])
    page = (project.runs[-1] / "report.html").read_text(encoding="utf-8")
    assert "<b>5 ×</b> the system failed: bot:answer: RuntimeError: index not loaded (at bot.py:2)</a>" in page
    assert "<b>one</b>" not in page
