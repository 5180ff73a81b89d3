"""Scenarios that a simulated person plays: their file, one JSON object a line, with all problems at once."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from pytest_rageval.errors import CaseError
from pytest_rageval.io.expected import Expects
from pytest_rageval.io.lines import JsonRow, json_rows, read_lines
from pytest_rageval.io.messages import Report, Unsound
from pytest_rageval.io.records import Name, RecordReader
from pytest_rageval.make.asked_once import key_of
from pytest_rageval.model import Json

MOST_SCENARIOS = 1_000
"""Scenarios of a file."""
MOST_TURNS = 50
"""Turns of a simulated conversation: each has all others before it in its request."""
USUAL_TURNS = 8
MOST_FACTS = 100
LONGEST_TEXT = 4_000
"""Characters of a text: it goes out with every request."""


def _bounded(text: str) -> str:
    if not text.strip():
        raise ValueError("is blank; write a text, or leave it out")
    if len(text) > LONGEST_TEXT:
        raise ValueError(f"has {len(text):,} characters, more than {LONGEST_TEXT:,}; shorten it")
    return text


def _few(facts: tuple[str, ...]) -> tuple[str, ...]:
    if len(facts) > MOST_FACTS:
        raise ValueError(f"has {len(facts):,} facts, more than {MOST_FACTS}; leave some out")
    return facts


_Text = Annotated[str, AfterValidator(_bounded), Expects("a text")]
_Facts = Annotated[tuple[_Text, ...], AfterValidator(_few), Expects("a list of texts")]
_Turns = Annotated[int, Field(ge=1, le=MOST_TURNS), Expects(f"a whole number from 1 to {MOST_TURNS}")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One conversation to be played.

    scenario          the situation, and why the person asks
    goal              what they want; None: what the scenario says
    persona           who they are, and how they write
    facts             what they know of themselves and may tell; nothing else is theirs to tell
    opening           their first words; None: the model finds some
    expected_outcome  what they should have at the end; the model is not told
    max_turns         how often they speak at most
    """

    id: Name | None = None
    scenario: _Text
    goal: _Text | None = None
    persona: _Text | None = None
    facts: _Facts = ()
    opening: _Text | None = None
    expected_outcome: _Text | None = None
    max_turns: _Turns = USUAL_TURNS

    @property
    def content(self) -> dict[str, Json]:
        """Return what is written of it, without its id."""
        written: dict[str, Json] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if value and field.name != "id":
                written[field.name] = list(value) if field.name == "facts" else value
        return written

    @property
    def conversation(self) -> str:
        """Return the id of its conversation."""
        return self.id or f"draft-{key_of(json.dumps(self.content, sort_keys=True))[:12]}"


_SCENARIOS = RecordReader[Scenario](Scenario, takes_whole_floats=True)


def read_scenarios(path: Path, max_line_bytes: int) -> tuple[Scenario, ...]:
    """Read the scenarios of a file in order; raise CaseError with every problem, each with file, line and column."""
    report = Report(str(path))
    scenarios: dict[str, Scenario] = {}
    lines: dict[str, int] = {}
    for number, row in enumerate(json_rows(read_lines(path, report, max_line_bytes), report)):
        if number >= MOST_SCENARIOS:
            report.add(row.line, 1, f"more than {MOST_SCENARIOS:,} scenarios; divide the file")
            break
        scenario = _scenario(row, report)
        if scenario is None:
            continue
        name = scenario.conversation
        if name in scenarios:
            remedy = "ids are unique in a file" if scenario.id else "give each an id to play it twice"
            report.add(row.line, 1, f"is {name!r}, as line {lines[name]}; {remedy}", scenario.id)
            continue
        scenarios[name] = scenario
        lines[name] = row.line
    if not scenarios and not len(report):
        report.add_whole('holds no scenarios; write one object a line, as in {"scenario": …, "goal": …}')
    if len(report):
        raise CaseError(*report.problems)
    return tuple(scenarios.values())


def _scenario(row: JsonRow, report: Report) -> Scenario | None:
    """Read one record; report its problems and return None if there are any."""
    record = dict(row.record)
    if isinstance(record.get("facts"), str):
        record["facts"] = [record["facts"]]
    try:
        return _SCENARIOS.read(record)
    except Unsound as unsound:
        written = row.record.get("id")
        name = written if isinstance(written, str) else None
        report.add_findings(row.line, unsound.findings, name, row.column_finder().column)
    return None


def most_turns(scenarios: Iterable[Scenario]) -> int:
    """Return how many turns the scenarios have together at most."""
    return sum(scenario.max_turns for scenario in scenarios)
