"""The text of a report as pytest's summaries show it: one line behind the test's name, one line in `--tb=line`."""

from __future__ import annotations

from typing import Any, NamedTuple


class Crash(NamedTuple):
    """Where a test failed, and its message, as at the end of a traceback of pytest's."""

    path: str
    lineno: int
    message: str

    def __str__(self) -> str:
        place = f"{self.path}:{self.lineno}" if self.lineno else self.path
        return f"{place}: {self.message.partition(chr(10))[0]}"


class SummarisedText(str):
    """A report's text that is also what the short summary, and the only line of `--tb=line`, show of it."""

    reprcrash: Crash
    is_line: bool
    """Is the line that pytest makes of `reprcrash` all that is shown?"""
    same_as: str | None
    """The test whose error was shown already, if it was the same; JUnit and others get the text nevertheless."""

    def toterminal(self, out: Any) -> None:
        if self.same_as is not None:
            out.line(f"the same error as of {self.same_as}")
        elif not self.is_line:
            out.line(self)


def summarised(
    longrepr: Any, path: str, lineno: int = 0, *, is_line: bool = False, same_as: str | None = None
) -> Any:  # fmt: skip
    """A report's `longrepr` in the form whose message pytest's summaries show; `lineno` 0 where there is no line.

    Only for reports that no process sends on: the channel between processes takes plain text alone.
    """
    if same_as is not None and not isinstance(longrepr, str):
        longrepr = longrepr.reprcrash.message
    if not isinstance(longrepr, str):
        return longrepr
    text = SummarisedText(longrepr)
    text.reprcrash, text.is_line, text.same_as = Crash(path, lineno, longrepr), is_line, same_as
    return text
