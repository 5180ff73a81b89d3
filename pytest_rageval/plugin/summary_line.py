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

    def toterminal(self, out: Any) -> None:
        if not self.is_line:
            out.line(self)


def summarised(longrepr: Any, place: str, *, is_line: bool = False) -> Any:
    """A report's `longrepr` in the form whose message pytest's summaries show; `place` as `evalcases/a.jsonl:12`.

    Only for reports that no process sends on: the channel between processes takes plain text alone.
    """
    if not isinstance(longrepr, str):
        return longrepr
    text = SummarisedText(longrepr)
    text.reprcrash, text.is_line = Crash(longrepr, place), is_line
    return text
