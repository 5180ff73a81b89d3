"""The bot as a provider of promptfoo."""

from __future__ import annotations

from typing import Any

from bot import answer


def call_api(prompt: str, options: dict[str, Any], context: dict[str, Any]) -> dict[str, str]:
    return {"output": answer(prompt)}
