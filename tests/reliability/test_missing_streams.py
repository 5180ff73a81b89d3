"""`rageval run` without standard streams, onto a full device, and with code that closes them or calls pytest.exit()."""

from __future__ import annotations

import shlex
import sys

import pytest
from project import SOME, Project, a_missed_case

pytestmark = [
    pytest.mark.child_process,
    pytest.mark.reliability("signals", "standard streams that are missing, closed or full", costs="lost"),
]
RUN = f"{shlex.quote(sys.executable)} -m pytest_rageval run"
CLOSES = "import sys, bot_before\ndef answer(question):\n    sys.{}.close()\n    return bot_before.answer(question)\n"
EXITS = "import pytest\ndef answer(question):\n    pytest.exit('enough', 0)\n"


@pytest.fixture
def failing(project: Project) -> Project:
    project.write("bot_before.py", (project.path / "bot.py").read_text(encoding="utf-8"))
    project.cases([*SOME, a_missed_case("missed")])
    return project


@pytest.mark.parametrize("redirection", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_run_without_a_stream_has_its_verdict(failing: Project, redirection: str):
    result = failing.process("sh", "-c", f"{RUN} {redirection}")
    assert result.ret == 1
    assert "Traceback" not in result.stderr.str()
    assert failing.metrics()["outcomes"]["failed"] == 1


def test_a_full_device_is_named_as_what_cannot_be_written(failing: Project):
    result = failing.process("sh", "-c", f"{RUN} > /dev/full")
    assert result.ret not in (0, 1)
    assert "standard output cannot be written: No space left on device" in result.stderr.str()
    assert "Traceback" not in result.stderr.str()


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_code_that_closes_a_stream_does_not_take_the_run_s(failing: Project, stream: str):
    failing.write("bot.py", CLOSES.format(stream))
    result = failing.process("sh", "-c", RUN)
    assert result.ret == 1
    assert "Traceback" not in result.stderr.str()
    assert "4 of 5 pass" in result.stdout.str()


def test_an_exit_of_pytest_is_an_error_of_its_case_where_there_is_no_pytest(failing: Project):
    failing.write("bot.py", EXITS)
    result = failing.process("sh", "-c", RUN)
    assert result.ret == 1
    assert "Traceback" not in result.stderr.str()
    assert failing.metrics()["outcomes"]["error"] == 5
