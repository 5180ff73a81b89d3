"""Problems with outside data as lines of place, name, value and remedy; all problems of a file at once."""

from __future__ import annotations

import json
import re
import reprlib
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

from pytest_rageval.io.suggestions import KEY_CUTOFF, suggestion
from pytest_rageval.text import printable

Path = tuple[str | int, ...]
"""The path from the top of a record to a value: keys and 0-based positions."""

MOST_OF_A_RECORD = 20
MOST_OF_A_FILE = 1000
"""Number of problems kept, the rest is counted: a file of another kind must not fill the memory or the screen."""


class Finding(NamedTuple):
    """One problem with a value. `at_key`: it concerns the key, not its value."""

    path: Path
    message: str
    at_key: bool = False

    def __str__(self) -> str:
        return f"{format_path(self.path)} {self.message}" if self.path else self.message


class Findings:
    """All problems of one value, with paths relative to it.

    The first `MOST_OF_A_RECORD` are kept, the others counted.
    """

    __slots__ = ("first", "more")

    def __init__(self, *first: Finding) -> None:
        self.first = list(first)
        self.more = 0

    def __bool__(self) -> bool:
        return bool(self.first)

    def add(self, path: Path, message: str) -> None:
        """Add a problem of the value at `path`."""
        self.include((), Findings(Finding(path, message)))

    def include(self, path: Path, inner: Findings) -> None:
        """Add the problems of the value at `path`."""
        room = MOST_OF_A_RECORD - len(self.first)
        for finding in inner.first[:room]:
            self.first.append(finding._replace(path=(*path, *finding.path)))
        self.more += inner.more + max(0, len(inner.first) - room)

    def unknown(self, path: Path, keys: Collection[str], otherwise: str = "", meaning: str = "") -> None:
        """Add an unknown key with a remedy: its `meaning` if known, a similar known key, or `otherwise`."""
        # Before the look for a similar key, which is slow.
        if len(self.first) >= MOST_OF_A_RECORD:
            self.more += 1
            return
        close = None if meaning else suggestion(str(path[-1]), keys, cutoff=KEY_CUTOFF)
        remedy = (
            f"did you mean {close!r}?" if close else meaning or otherwise or f"known here: {', '.join(sorted(keys))}"
        )
        self.first.append(Finding(path, f"is not a known key; {remedy}", at_key=True))


class Unsound(Exception):
    """A value cannot be read. Readers catch it and turn its findings into lines of a report."""

    def __init__(self, findings: Findings) -> None:
        super().__init__()
        self.findings = findings

    def __str__(self) -> str:
        return str(self.findings.first[0])


def mistyped(value: Any, expected: str) -> Unsound:
    """Return the error for a value of another type."""
    return invalid(f"is {describe(value)}, expected {expected}")


def not_fitting(path: Path, value: object, expected: str) -> Unsound:
    """Return the error for an unexpected value at a path."""
    quoted = "missing" if value is None else shown_value(value)
    return Unsound(Findings(Finding(path, f"is {quoted}, expected {expected}")))


def invalid(message: str) -> Unsound:
    """Return the error for a value of the right type that breaks a rule."""
    return Unsound(Findings(Finding((), message)))


class Report:
    """The problems of one file as complete lines; the first `MOST_OF_A_FILE` are kept, the others counted.

    `unread` counts lines that gave no record, so that an id is not reported as missing because of them.
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
        """Return one line per problem, in the order of the file."""
        if not self._more:
            return tuple(self._kept)
        return (*self._kept, f"{escape_text(self.file)}: {self._more:,} more problems, not listed; mend these first")

    def add(self, line: int, column: int, message: str, case: str | None = None) -> None:
        """Add a problem at a 1-based line and column, of the case with this id if it has one."""
        if len(self._kept) >= MOST_OF_A_FILE:
            self._more += 1
            return
        whose = f"case {shown_value(case)}: " if case is not None else ""
        self._kept.append(f"{escape_text(self.file)}:{line}:{column}: {whose}{message}")

    def add_unread(self, line: int, column: int, message: str) -> None:
        """Add a problem because of which a line gave no record."""
        self.unread += 1
        self.add(line, column, message)

    def add_whole(self, message: str) -> None:
        """Add a problem of the file as a whole."""
        self._kept.append(f"{escape_text(self.file)}: {message}")

    def include(self, other: Report) -> None:
        """Add the problems of another file that belongs to this one."""
        self._kept += other.problems

    def add_findings(
        self, line: int, findings: Findings, case: str | None, column_of: Callable[[Path, bool], int]
    ) -> None:
        """Add all problems of one record. `column_of` finds a path's column; it is slow: bad records only."""
        for finding in findings.first:
            column = column_of(finding.path, finding.at_key) if len(self._kept) < MOST_OF_A_FILE else 1
            self.add(line, column, str(finding), case)
        if findings.more:
            self.add(line, 1, f"{findings.more:,} more problems in this record, not listed", case)


def shown_value(value: object, most: int = 80, *, is_quoted: bool = True) -> str:
    """Format any value for messages and tables: on one line, escaped, cut after `most` characters.

    Strings are quoted, except in cells of a table; other values are JSON, or Python's repr if JSON has no form.
    """
    if isinstance(value, str):
        text = repr(value[:most]) if is_quoted else " ".join(value[:most].split()) or "''"
        return printable(text) + ("…" if len(value) > most else "")
    try:
        text = _ADDRESS.sub("", printable(_SHORT.repr(value)))
    except ValueError:  # Python refuses to write out numbers of more than 4,300 digits
        return "a number of thousands of digits"
    return text if len(text) <= most else text[: most - 1] + "…"


_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
"""The place in memory of an object: it helps nobody, and makes equal messages differ."""


class _Short(reprlib.Repr):
    """Values of bounded depth and breadth, in JSON syntax."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlist = self.maxtuple = self.maxdict = 100
        self.maxstring = self.maxother = self.maxlong = 200

    def repr_bool(self, value: bool, _level: int) -> str:
        return "true" if value else "false"

    def repr_NoneType(self, _value: None, _level: int) -> str:  # noqa: N802 because reprlib looks for the type's name
        return "null"

    def repr_str(self, text: str, _level: int) -> str:
        return json.dumps(text[: self.maxstring], ensure_ascii=False)


_SHORT = _Short()


def describe(value: Any) -> str:
    """Format a value with its kind for a message; for a list or an object the kind alone."""
    if isinstance(value, bool) or value is None:
        return shown_value(value)
    kind = kind_in_words(value)
    return f"{shown_value(value)} ({kind})" if isinstance(value, (str, int, float)) else kind


def kind_in_words(value: Any) -> str:
    """Return the kind of a JSON value in words."""
    if isinstance(value, bool) or value is None:
        return "null" if value is None else "true or false"
    if isinstance(value, (str, int, float)):
        return "a string" if isinstance(value, str) else "a number"
    return "a list" if isinstance(value, (list, tuple)) else "an object"


def escape_text(text: str) -> str:
    """Escape a text for display on one line, harmless to terminals and CI services; no quotes."""
    return printable(text if text.isprintable() else repr(text)[1:-1])


def format_path(path: Path) -> str:
    """Format a path: `gold_supports[0].rel_path`; a key that is not a plain word is quoted: `metadata['a b']`."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif step.isidentifier() and len(step) <= 80:
            text += f".{step}" if text else step
        else:
            text += f"[{shown_value(step)}]" if text else shown_value(step)
    return text
