"""Errors as one line a problem: place, name, value, remedy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class RagevalError(Exception):
    """An error that a user can mend. `problems` holds one line each; all of them are shown together."""

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class SettingsError(RagevalError):
    """Configuration, options or environment are wrong: exit code 4 under pytest, 2 in the command."""


class ModelUnavailable(SettingsError):
    """A server that cannot be asked which model it serves."""


class JudgeUnavailable(SettingsError):
    """A judge's server that cannot be asked: nothing is judged until it can."""


class UnknownMetric(str):
    """The line about a metric that nothing loaded so far declares; code or cases of the project may still do so."""

    name: str

    def __new__(cls, line: str, name: str = "") -> UnknownMetric:
        """Make the line about the metric of this name."""
        made = super().__new__(cls, line)
        made.name = name
        return made


class CaseError(RagevalError):
    """A case file, or an answers file, is wrong."""


class Problems(list[str]):
    """Problems collected so far, to be raised together."""

    def attempt(self, call: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T | None:
        """Return the value of the call, or note the problems of its SettingsError and return None."""
        try:
            return call(*arguments, **named)
        except SettingsError as error:
            self.extend(error.problems)
            return None

    def raise_all(self) -> None:
        """Raise one SettingsError with every problem, if there is any."""
        if self:
            raise SettingsError(*self)


class TargetError(RagevalError):
    """A failure to ask the system; `status` is that of a server's refusal, `retry_after` its seconds to wait.

    `kind`: timeout, connect, reset, http_4xx, http_5xx, rate_limited, too_large, invalid_json, invalid_response,
    empty, missing (no answer in a file of answers) or exception.
    """

    def __init__(self, kind: str, message: str, *, status: int | None = None, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.status = status
        self.retry_after = retry_after


class ModelFailure(RagevalError):
    """A model server's failure to give a usable reply; callers raise their own error. `kind` as for JudgeError."""

    def __init__(self, kind: str, message: str, *, status: int | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.status = status


class JudgeError(RagevalError):
    """A failure to judge. `raw` is the unreadable reply, None without a reply, `spent` a judgement's fields of cost.

    `kind`: as for TargetError, or invalid_reply (no score could be read), invalid_request (the judge lacks the rubric),
    cache_miss (in replay), budget (the run's limit of cost is reached).
    """

    def __init__(
        self,
        kind: str,
        message: str,
        raw: str | None = None,
        status: int | None = None,
        spent: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.raw = raw
        self.status = status
        self.spent = spent or {}


class OddScoreError(ValueError):
    """What a metric gave is no score; the message begins with its name."""


class GateFailure(AssertionError):
    """One or more failed gates of a case."""


def ends_the_run(error: BaseException) -> bool:
    """Return True for Ctrl-C and pytest.exit(): any other exception of user code is an error of its case alone."""
    if isinstance(error, KeyboardInterrupt):
        return True
    is_exit = type(error).__name__ == "Exit" and type(error).__module__ == "_pytest.outcomes"
    return is_exit and not _WITHOUT_PYTEST


_WITHOUT_PYTEST: list[bool] = []
"""Not empty while cases run without pytest, on any thread."""


@contextmanager
def without_pytest() -> Iterator[None]:
    """Let pytest.exit() be an error of its case inside the block: there is no session that it could end."""
    _WITHOUT_PYTEST.append(True)
    try:
        yield
    finally:
        _WITHOUT_PYTEST.pop()


def message_of(error: BaseException) -> str:
    """Return the message of an exception that foreign code raised; empty if that code cannot give it."""
    try:
        return str(error)
    except BaseException as silent:
        if ends_the_run(silent):
            raise
        return ""
