"""Code that ends the process with exit code 0: a second process sees that the run has no verdict, or a failed one."""

from __future__ import annotations

import sys

import pytest
from project import SOME, Project, a_missed_case

pytestmark = [
    pytest.mark.child_process,
    pytest.mark.reliability("false greens", "code that ends the process", costs="false green"),
]

ENDS_WHILE_ASKED = "import os\ndef answer(question):\n    os._exit(0)\n"
ENDS_AT_EXIT = "import atexit, os\natexit.register(os._exit, 0)\nfrom bot_before import answer\n"
BOTS = {"while it is asked": ENDS_WHILE_ASKED, "at exit": ENDS_AT_EXIT}


@pytest.mark.parametrize("how", ["pytest", "run"])
@pytest.mark.parametrize("bot", BOTS)
def test_a_second_command_sees_a_process_that_was_ended(project: Project, bot: str, how: str):
    project.write("bot_before.py", (project.path / "bot.py").read_text(encoding="utf-8"))
    project.write("bot.py", BOTS[bot])
    project.cases([*SOME, a_missed_case("missed")])
    if how == "pytest":
        first = project.run_process("-q")
    else:
        first = project.process(sys.executable, "-m", "pytest_rageval", "run")
    assert first.ret == 0, "no code within the process can prevent that"
    assert project.rageval("gate", "latest").ret != 0


def test_a_run_that_passed_passes_the_second_command(project: Project):
    project.cases(SOME)
    assert project.run("-q").ret == 0
    assert project.rageval("gate", "latest").ret == 0
