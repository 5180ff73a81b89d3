"""The one protocol of every target: an async question, an answer."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from pytest_rageval.model import Answer, AskRequest


@runtime_checkable
class Target(Protocol):
    """A system under test.

    `name` stands in config.json and in messages: no credentials in it. `ask` raises `TargetError` with a kind for
    anything that goes wrong. `aclose` gives back connections and files; whoever made the target calls it, once. One
    whose `ask` never waits, not even for a loop to run, says so in an attribute `answers_at_once`.
    """

    name: str

    async def ask(self, request: AskRequest) -> Answer: ...

    async def aclose(self) -> None: ...
