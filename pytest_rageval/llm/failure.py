"""Failures of model endpoints, for whoever asked to put into an error of its own."""

from __future__ import annotations

from pytest_rageval.errors import RagevalError


class ModelFailure(RagevalError):
    """No usable reply came. `kind` as for TargetError, or `budget`; the message is one line without credentials."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind
