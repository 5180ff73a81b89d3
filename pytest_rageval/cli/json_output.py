"""JSON that verbs write for programs: one object each, which ends with the commands to call next."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any

import click

from pytest_rageval.io.json_text import json_text

FLAG = "--json"


def with_next(content: Mapping[str, Any], commands: Iterable[str] = ()) -> dict[str, Any]:
    """The content, and below `next` the commands that help now: each runs as it stands, the most helpful one first."""
    return {**content, "next": list(dict.fromkeys(commands))}


def echo_json(
    content: Mapping[str, Any], commands: Iterable[str] = (), *, indent: int | None = 2, default: Any = None
) -> None:
    """Write the content with its `next` to standard output."""
    click.echo(json_text(with_next(content, commands), indent, default=default))


def is_json_wanted() -> bool:
    """Was a verb called with `--json`? For what ends it before it has read its own options."""
    return FLAG in sys.argv[1:]
