"""A hunt for false greens: none of these runs may end 0 without saying what is wrong."""

from __future__ import annotations

from typing import Any

import pytest
from false_greens import Attempt, bots, gates, judges
from false_greens_of_runs import hooks, recorded, selections, tables, verbs
from project import SOME, Project

SETS = {
    "systems that fail": bots,
    "judges that fail": judges,
    "gates that are misspelt": gates,
    "selections, cases and options": selections,
    "hooks and metrics": hooks,
    "tables and variables": tables,
    "recorded answers, baselines and trials": recorded,
    "verbs on stored runs": verbs,
}
EVERY = 8
"""Of the attempts every eighth is made by each run of the tests, all of them by `make torture`."""


def attempts() -> list[Any]:
    found = []
    for name, attempts_of in SETS.items():
        for number, attempt in enumerate(attempts_of()):
            marks = [pytest.mark.reliability("false greens", name, costs="false green")]
            if number % EVERY:
                marks.append(pytest.mark.torture)
            found.append(pytest.param(attempt, id=f"{name}: {attempt.name}"[:90], marks=marks))
    return found


@pytest.mark.parametrize("attempt", attempts())
def test_no_run_is_green_that_must_not_be(project: Project, monkeypatch: pytest.MonkeyPatch, attempt: Attempt):
    project.cases(SOME)
    project.write("bot_before.py", (project.path / "bot.py").read_text(encoding="utf-8"))
    for arguments in attempt.first:
        assert project.run("-q", *arguments).ret in (0, 1)
    for name, source in attempt.files.items():
        project.write(name, source)
    project.configure(attempt.table)
    for name, value in attempt.environment.items():
        monkeypatch.setenv(name, value)
    run = project.rageval if attempt.verb else project.run
    result = run(*attempt.arguments)
    shown = result.stdout.str() + result.stderr.str()
    assert "rageval/run/" not in shown, "a traceback of ours"
    if attempt.said and result.ret == 0:
        assert attempt.said in " ".join(shown.split())
    else:
        assert result.ret != 0
