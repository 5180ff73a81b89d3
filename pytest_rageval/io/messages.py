"""What is wrong with something from outside, said as lines: place, name, value, remedy; all of a file at once."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, NamedTuple

from pytest_rageval.io.suggestions import KEY_CUTOFF, suggestion
from pytest_rageval.text import printable

Path = tuple[str | int, ...]
"""The way from the top of a record to a value in it: keys and 0-based positions."""

MOST_OF_A_RECORD = 20
MOST_OF_A_FILE = 1000
"""More are counted, not kept: a file of another kind must not fill the memory, nor the screen."""


class Finding(NamedTuple):
    """One thing that is wrong with a value. `at_key`: the key itself is meant, not its value."""

    path: Path
    message: str
    at_key: bool = False

    def __str__(self) -> str:
        return f"{spelled(self.path)} {self.message}" if self.path else self.message


class Findings:
    """Everything that is wrong with one value, paths relative to it.

    The first `MOST_OF_A_RECORD` are kept, the others counted.
    """

    __slots__ = ("kept", "more")

    def __init__(self, *kept: Finding) -> None:
        self.kept = list(kept)
        self.more = 0

    def __bool__(self) -> bool:
        return bool(self.kept)

    def add(self, path: Path, message: str) -> None:
        """Note that `message` holds for the value at `path`."""
        self.include((), Findings(Finding(path, message)))

    def include(self, path: Path, inner: Findings) -> None:
        """Note what is wrong with the value at `path`."""
        room = MOST_OF_A_RECORD - len(self.kept)
        for finding in inner.kept[:room]:
            self.kept.append(finding._replace(path=(*path, *finding.path)))
        self.more += inner.more + max(0, len(inner.kept) - room)

    def unknown(self, path: Path, keys: Collection[str], otherwise: str = "") -> None:
        """Note a key that nobody reads; `otherwise` is the remedy where no known key is close."""
        if len(self.kept) >= MOST_OF_A_RECORD:
            self.more += 1
            return
        close = suggestion(str(path[-1]), keys, cutoff=KEY_CUTOFF)
        remedy = f"did you mean {close!r}?" if close else otherwise or f"known here: {', '.join(sorted(keys))}"
        self.kept.append(Finding(path, f"is not a known key; {remedy}", at_key=True))


class Unsound(Exception):
    """A value cannot be read. It never leaves its reader: what is wrong becomes lines of a report."""

    def __init__(self, findings: Findings) -> None:
        super().__init__()
        self.findings = findings


def wrong(value: Any, expected: str) -> Unsound:
    """The value is not what belongs there."""
    return bad(f"is {found(value)}, expected {expected}")


def bad(message: str) -> Unsound:
    """The value is of the right kind, and wrong for another reason."""
    return Unsound(Findings(Finding((), message)))


class Report:
    """The problems of one file, as complete lines; the first `MOST_OF_A_FILE` are kept, the others counted.

    `unread` counts the lines that gave no record at all, so that nobody concludes that an id is missing.
    """

    def __init__(self, file: str) -> None:
        self.file = file
        self.unread = 0
        self._kept: list[str] = []
        self._more = 0

    def __len__(self) -> int:
        return len(self._kept) + self._more

    @property
    def problems(self) -> tuple[str, ...]:
        """One line each, in the order of the file."""
        if not self._more:
            return tuple(self._kept)
        return (*self._kept, f"{shown(self.file)}: {self._more:,} more problems, not listed; mend these first")

    def add(self, line: int, column: int, message: str, case: str | None = None) -> None:
        """Note a problem at a 1-based line and column, of the case with this id if it has one."""
        if len(self._kept) >= MOST_OF_A_FILE:
            self._more += 1
            return
        whose = f"case {quoted(case)}: " if case is not None else ""
        self._kept.append(f"{shown(self.file)}:{line}:{column}: {whose}{message}")

    def add_unread(self, line: int, column: int, message: str) -> None:
        """Note a problem that made a line give no record."""
        self.unread += 1
        self.add(line, column, message)

    def add_whole(self, message: str) -> None:
        """Note a problem of the file as such."""
        self._kept.append(f"{shown(self.file)}: {message}")

    def add_findings(
        self, line: int, findings: Findings, case: str | None, column_of: Callable[[Path, bool], int]
    ) -> None:
        """Note all that is wrong with one record. `column_of` looks for a path, and is slow: bad records only."""
        for finding in findings.kept:
            column = column_of(finding.path, finding.at_key) if len(self._kept) < MOST_OF_A_FILE else 1
            self.add(line, column, str(finding), case)
        if findings.more:
            self.add(line, 1, f"{findings.more:,} more problems in this record, not listed", case)


def found(value: Any) -> str:
    """A value as a message quotes it: bounded, on one line, with its kind."""
    if isinstance(value, str):
        return f"{quoted(value)} (a string)"
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, (int, float)):
        digits = repr(value)
        return f"{digits if len(digits) <= 40 else digits[:40] + '…'} (a number)"
    return "a list" if isinstance(value, (list, tuple)) else "an object"


def quoted(text: str, most: int = 80) -> str:
    """In quotes, what does not print escaped, cut after `most` characters."""
    return printable(repr(text)) if len(text) <= most else printable(repr(text[:most])) + "…"


def shown(text: str) -> str:
    """Without quotes, but on one line and harmless to a terminal and to a CI service."""
    return printable(text if text.isprintable() else repr(text)[1:-1])


def spelled(path: Path) -> str:
    """`gold_supports[0].rel_path`; a key that is not a plain word is quoted: `metadata['a b']`."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif step.isidentifier() and len(step) <= 80:
            text += f".{step}" if text else step
        else:
            text += f"[{quoted(step)}]" if text else quoted(step)
    return text
