"""What can go wrong, said in one line a problem: place, name, value, remedy."""

from __future__ import annotations


class RagevalError(Exception):
    """Anything a user can mend. `problems` holds one line each; all of them are shown together."""

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


class SettingsError(RagevalError):
    """Configuration, options or environment are wrong: exit code 4 under pytest, 2 in the command."""


class CaseError(RagevalError):
    """A case file, or an answers file, is wrong."""


class TargetError(RagevalError):
    """Asking failed. `kind` is one of timeout, connect, reset, http_4xx, http_5xx, rate_limited, too_large,
    invalid_json, invalid_response, empty, missing (a file of answers has none for this case), exception."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class JudgeError(RagevalError):
    """Judging failed. `kind` as for TargetError, or invalid_reply."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class GateFailure(AssertionError):
    """One or more gates do not hold for a case."""
