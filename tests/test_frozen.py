"""Outputs of a few frozen scenarios are as they are stored; `benchmarks/frozen.py compare` looks at all of them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent.parent / "benchmarks"))

import frozen

pytestmark = [
    pytest.mark.child_process,
    pytest.mark.skipif(not frozen.has_stored_environment(), reason="stored with other versions of the libraries"),
]


@pytest.mark.parametrize("name", ["data-uploaded", "generate", "calibrate"])
def test_a_scenario_gives_what_it_gave_when_it_was_stored(name: str):
    (scenario,) = frozen.chosen([name])
    assert frozen.compare(scenario) == []


def test_a_changed_output_is_a_difference_that_names_scenario_command_and_line():
    stored = frozen.read_stored("generate")
    command = next(iter(stored))
    (difference,) = frozen.differences("generate", {**stored, command: stored[command].replace("2 new", "3 new")})
    assert difference.startswith(f"{frozen.HEADING}generate: {command}\n@@")
    assert "+evalcases/notes.drafts.jsonl: 3 new drafts" in difference
