"""The one protocol of every target: an async question, an answer; and what a target may say of itself beside it."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from pytest_rageval.model import Answer, AskRequest


@runtime_checkable
class Target(Protocol):
    """A system under test.

    `name` stands in config.json and in messages: no credentials in it. `ask` raises `TargetError` with a kind for
    anything that goes wrong. `aclose` gives back connections and files; whoever made the target calls it, once.

    Two attributes may be missing: `is_called`, False where the answers are there already, and `answers_at_once`, True
    where `ask` never waits, not even for a loop to run.
    """

    name: str

    async def ask(self, request: AskRequest) -> Answer: ...

    async def aclose(self) -> None: ...


def is_called(target: Target) -> bool:
    """Whether there is a system behind it that is asked; else there is nothing to time, and no k to ask for."""
    return getattr(target, "is_called", True)


def asks_at_once(target: Target) -> bool:
    """Whether it never waits, so that it may be asked where no loop runs."""
    return getattr(target, "answers_at_once", False)
