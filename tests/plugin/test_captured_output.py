"""What targets, judges, metrics and hooks print and log stands in the report of its own case, and nowhere raw."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from project import Project, a_case, lines_with

TOKEN = "Wv8Yb5Nc2Qd9Xf6Zg3Hj"
PRINTING = """
import asyncio, logging, os, sys, threading
import pytest
from pytest_rageval import metric
both = threading.Barrier(int(os.environ["TOGETHER"]), timeout=60)
def say(who, case):
    print(f"{who}-{case} \\x1b[2J", os.environ["BOT_TOKEN"])
    sys.stderr.write(f"{who}-{case}\\n")
    logging.getLogger("shop").warning("%s-%s \\x1b[2J %s", who, case, os.environ["BOT_TOKEN"])
def plain(question):
    both.wait()
    say("target", question.split()[-1])
    both.wait()  # pytest waits for the first case until all have printed
    return "no"
async def waiting(question):
    case = question.split()[-1]
    await asyncio.to_thread(both.wait)
    say("target", case)
    await asyncio.to_thread(print, f"thread-{case}")
    sys.stdout.buffer.write(f"bytes-{case}\\n".encode())
    await asyncio.to_thread(both.wait)
    return "no"
@metric(layer="L5", better="higher")
def loud(obs):
    say("metric", obs.case.question.split()[-1])
    return 1.0
"""
HOOKS = """
import bot
def pytest_rageval_metrics(config):
    return [bot.loud]
def pytest_rageval_result(item, result):
    bot.say("hook", result.case.question.split()[-1])
"""
CASES = 6


@pytest.fixture
def project(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("BOT_TOKEN", TOKEN)
    monkeypatch.setenv("TOGETHER", str(CASES))
    project.write("bot.py", PRINTING)
    project.write("conftest.py", HOOKS)
    project.cases([a_case(f"q{n}", f"question q{n}", gold_supports=None) for n in range(CASES)])
    return project


def words_by_case(junit: Path) -> dict[str, set[str]]:
    """What the output of each test in JUnit XML holds."""
    words: dict[str, set[str]] = {}
    for test in ElementTree.parse(junit).iter("testcase"):
        shown = "".join(f"{part.text}" for part in test if part.tag in ("system-out", "system-err"))
        words[test.get("name", "")] = set(re.findall(r"[a-z]+-q\d", shown))
    return words


@pytest.mark.parametrize(
    ("target", "how"),
    [("plain", ()), ("waiting", ()), ("waiting", ("--capture=sys",)), ("waiting", ("-n", "1"))],
)
def test_what_a_case_prints_is_in_its_own_report_though_it_was_asked_ahead(
    project: Project, target: str, how: tuple[str, ...]
):
    project.configure(f'target = "bot:{target}"')
    result = project.run("--junitxml=junit.xml", "-o", "junit_logging=all", *how)
    result.assert_outcomes(failed=CASES)
    expected = {"target", "metric", "hook"} | ({"thread", "bytes"} if target == "waiting" else set())
    assert words_by_case(project.path / "junit.xml") == {
        f"q{n}": {f"{who}-q{n}" for who in expected} for n in range(CASES)
    }
    shown = result.stdout.str() + result.stderr.str()
    assert TOKEN not in shown + (project.path / "junit.xml").read_text(encoding="utf-8")
    assert "\x1b[2J" not in shown
    assert "-q" not in shown.partition("= FAILURES =")[0]
    section = shown[shown.index("_ q3 _") :].partition("_ q4 _")[0]
    for title in ("Captured stdout setup", "Captured stderr setup", "Captured log setup", "Captured stdout call"):
        assert title in section
    assert r"target-q3 \x1b[2J ***" in section


def test_with_s_it_is_shown_at_once_masked_and_printable(project: Project):
    project.configure('target = "bot:waiting"')
    result = project.run("-s")
    shown = result.stdout.str() + result.stderr.str()
    assert TOKEN not in shown
    assert "\x1b[2J" not in shown
    before = shown.partition("= FAILURES =")[0]
    assert {f"target-q{n}" for n in range(CASES)} <= set(re.findall(r"target-q\d", before))


def test_threads_of_unknown_cases_reach_no_terminal_raw(project: Project):
    project.write(
        "bot.py",
        "import os, sys, threading\ndef answer(question):\n"
        "    line = f'alone \\x1b[2J {os.environ[\"BOT_TOKEN\"]}\\n'  # in one piece: print writes four\n"
        "    thread = threading.Thread(target=lambda: sys.stdout.write(line))\n"
        "    thread.start()\n    thread.join()\n    return 'no'\n",
    )
    project.write("conftest.py", "")
    project.configure('target = "bot:answer"')
    result = project.run()
    assert result.stdout.str().count(r"alone \x1b[2J ***") == CASES
    assert not lines_with(result, TOKEN)
    assert not lines_with(result, "\x1b[2J")


def test_what_is_kept_of_a_case_is_bounded(project: Project):
    project.write("bot.py", "def answer(question):\n    print('x' * 1_000_000)\n    return 'no'\n")
    project.write("conftest.py", "")
    project.configure('target = "bot:answer"')
    result = project.run()
    assert len(result.stdout.str()) < 70_000 * CASES
    assert len(lines_with(result, "(longer than 64,000 characters)")) == CASES


def test_a_test_of_the_users_own_reads_with_capsys_and_caplog_what_its_case_printed(project: Project):
    project.write("conftest.py", "")
    project.configure('target = "bot:waiting"\ncases = ["none/*.jsonl"]')
    project.write("cases.jsonl", (project.path / "evalcases" / "a.jsonl").read_text(encoding="utf-8").splitlines()[0])
    project.write(
        "test_own.py",
        "import bot, pytest, threading\n@pytest.mark.rageval('cases.jsonl')\n"
        "def test_own(eval_case, rageval, capsys, caplog):\n"
        "    bot.both = threading.Barrier(1)\n    rageval.evaluate(eval_case)\n"
        "    assert 'target-q0' in capsys.readouterr().out\n"
        "    assert [record.name for record in caplog.records if record.name == 'shop'] == ['shop']\n",
    )
    project.run("test_own.py").assert_outcomes(passed=1)


def test_the_command_shows_under_a_failing_case_what_it_printed(project: Project):
    project.configure('target = "bot:waiting"')
    result = project.rageval("run")
    shown = result.stdout.str() + result.stderr.str()
    assert TOKEN not in shown
    assert "\x1b[2J" not in shown
    failed = [shown.index(f"FAILED evalcases/a.jsonl::q{n} ") for n in range(CASES)]
    for n, (start, end) in enumerate(zip(failed, [*failed[1:], len(shown)], strict=True)):
        assert set(re.findall(r"(?:target|thread|bytes)-q\d", shown[start:end])) == {
            f"{who}-q{n}" for who in ("target", "thread", "bytes")
        }
