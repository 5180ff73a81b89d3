"""The table of reliability: how often each fault or attack was tried, and what the project lost by it.

    @pytest.mark.reliability("crashes", "kill -9 of a worker")
    def test_...(tally):
        tally.tried(20)  # rounds within one test; without it, a test is one

A test that passes survived all of its rounds. One that fails counts its rounds in the column that its mark names as
`costs`: "lost" (work, a record, a message), "false green" (exit code 0 that is not deserved) or "leak" (a secret, or
hostile text that is executed).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

COSTS = ("lost", "false green", "leak")
PROPERTY = "reliability"


class Tally:
    """The number of rounds of one test."""

    def __init__(self) -> None:
        self.rounds = 0

    def tried(self, rounds: int = 1) -> None:
        """Count rounds before they are tried: a test that fails has then tried them."""
        self.rounds += rounds


@dataclass
class Row:
    """A row of the table: one kind of fault or attack."""

    tests: int = 0
    tried: int = 0
    survived: int = 0
    costs: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COSTS, 0))


class ReliabilityTable:
    """A plugin of pytest that adds up the tests that carry the mark; workers send theirs with their reports."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.rows: dict[tuple[str, str], Row] = {}
        self._failed: set[str] = set()
        self._skipped: set[str] = set()

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> None:
        marker = item.get_closest_marker("reliability")
        if marker is None:
            return
        area, attack = marker.args
        costs = marker.kwargs.get("costs", "lost")
        assert costs in COSTS, f"{item.nodeid}: costs={costs!r} is none of {', '.join(COSTS)}"
        tally = getattr(item, "funcargs", {}).get("tally")
        rounds = tally.rounds if tally is not None and tally.rounds else 1
        item.user_properties.append((PROPERTY, [area, attack, costs, rounds]))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._failed.add(report.nodeid)
        if report.skipped:
            self._skipped.add(report.nodeid)
        if report.when == "teardown" and report.nodeid not in self._skipped:
            for name, value in report.user_properties:
                if name == PROPERTY:
                    assert isinstance(value, list)
                    self._add(*value, is_failed=report.nodeid in self._failed)

    def _add(self, area: str, attack: str, costs: str, rounds: int, *, is_failed: bool) -> None:
        row = self.rows.setdefault((area, attack), Row())
        row.tests += 1
        row.tried += rounds
        if is_failed:
            row.costs[costs] += rounds
        else:
            row.survived += rounds

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.path is None or not self.rows:
            return
        lines = list(self.lines())
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        terminalreporter.section("reliability")
        for line in lines:
            terminalreporter.write_line(line)
        terminalreporter.write_line(f"written to {self.path}")

    def lines(self) -> Iterable[str]:
        """Give the table as Markdown, with a line of sums."""
        yield "| area | tried against it | tests | tried | survived | lost | false green | leaks |"
        yield "| --- | --- | --: | --: | --: | --: | --: | --: |"
        total = Row()
        for (area, attack), row in sorted(self.rows.items()):
            yield _line(area, attack, row)
            total.tests += row.tests
            total.tried += row.tried
            total.survived += row.survived
            for cost in COSTS:
                total.costs[cost] += row.costs[cost]
        yield _line("**all**", "", total)


def _line(area: str, attack: str, row: Row) -> str:
    figures = [row.tests, row.tried, row.survived, *row.costs.values()]
    return f"| {area} | {attack} | " + " | ".join(f"{figure:,}" for figure in figures) + " |"
