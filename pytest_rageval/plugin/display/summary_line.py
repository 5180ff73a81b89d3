"""The text of a report as pytest's summaries show it: one line behind the test's name, one line in `--tb=line`."""

from __future__ import annotations

from typing import Any, NamedTuple


class Crash(NamedTuple):
    """Where a test failed, and its message: what pytest looks for at the end of a traceback."""

    message: str
    place: str

    def __str__(self) -> str:
        return f"{self.place}: {self.message.splitlines()[0] if self.message else ''}"


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


def summarised(longrepr: Any, place: str, *, is_line: bool = False, same_as: str | None = None) -> Any:
    """A report's `longrepr` in the form whose message pytest's summaries show; `place` as `evalcases/a.jsonl:12`.

    Only for reports that no process sends on: the channel between processes takes plain text alone.
    """
    if same_as is not None and not isinstance(longrepr, str):
        longrepr = longrepr.reprcrash.message
    if not isinstance(longrepr, str):
        return longrepr
    text = SummarisedText(longrepr)
    text.reprcrash, text.is_line, text.same_as = Crash(longrepr, place), is_line, same_as
    return text
