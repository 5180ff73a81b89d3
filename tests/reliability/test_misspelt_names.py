"""A misspelt option, key or variable never ends in a run: its gate, baseline or system would be another."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from processes import IS_THOROUGH
from project import SOME, Project
from reliability import Tally

from pytest_rageval.config.options import OPTIONS
from pytest_rageval.config.settings import ENVIRONMENT, Settings

pytestmark = pytest.mark.reliability("false greens", "misspelt options, keys and variables", costs="false green")
EVERY = 1 if IS_THOROUGH else 6


def slips(name: str) -> Iterator[str]:
    """A name with its last letter left out, with one doubled, and with two swapped."""
    yield name[:-1]
    yield name[0] + name
    middle = len(name) // 2
    yield name[:middle] + name[middle + 1] + name[middle] + name[middle + 2 :]


def misspelt(names: list[str]) -> list[str]:
    found = [slip for name in names if len(name) > 3 for slip in slips(name) if slip not in names]
    return found[::EVERY]


@pytest.mark.parametrize("face", ["pytest", "rageval"])
def test_a_misspelt_option_is_wrong_usage(project: Project, tally: Tally, face: str):
    project.cases(SOME[:1])
    options = misspelt([option.name for option in OPTIONS])
    tally.tried(len(options))
    green = []
    for option in options:
        words = (f"--rageval-{option}=1",) if face == "pytest" else ("run", f"--{option}=1")
        result = project.run(*words) if face == "pytest" else project.rageval(*words)
        if result.ret not in (2, 4):
            green.append(option)
    assert green == []
    assert not project.runs


def test_a_misspelt_key_of_the_table_is_wrong_usage(project: Project, tally: Tally):
    project.cases(SOME[:1])
    keys = misspelt(Settings.keys_of_table())
    tally.tried(len(keys))
    green = []
    for key in keys:
        project.configure(f'target = "bot:answer"\n{key} = 1')
        result = project.run()
        if result.ret != pytest.ExitCode.USAGE_ERROR or key not in result.stdout.str() + result.stderr.str():
            green.append(key)
    assert green == []
    assert not project.runs


def test_a_misspelt_variable_of_the_environment_is_wrong_usage(project: Project, tally: Tally):
    project.cases(SOME[:1])
    variables = [f"RAGEVAL_{slip}" for name in ENVIRONMENT for slip in slips(name.removeprefix("RAGEVAL_"))]
    tally.tried(len(variables))
    green = []
    for variable in variables:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(variable, "x")
            result = project.run()
        if result.ret != pytest.ExitCode.USAGE_ERROR or variable not in result.stdout.str() + result.stderr.str():
            green.append(variable)
    assert green == []
