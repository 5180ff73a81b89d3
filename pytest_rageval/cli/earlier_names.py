"""Options by the names that evaluation scripts usually have: they work, and each use names the present one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click


def with_present_names(words: Sequence[str], names: Mapping[str, str | None]) -> list[str]:
    """Return the words of a command line with today's options.

    `names` has today's name by the earlier one: an option, an argument in capitals (its value stands alone), or None
    for a flag that nothing needs any more.
    """
    present: list[str] = []
    for word in words:
        name, equals, value = word.partition("=")
        if name not in names:
            present.append(word)
            continue
        now = names[name]
        click.echo(f"{name} is {now or 'not needed'} here", err=True)
        if now is None:
            continue
        present += [*([now] if now.startswith("-") else []), *([value] if equals else [])]
    return present


class CommandOnRun(click.Command):
    """A command on a stored run, which scripts name by `--run-id`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, with_present_names(args, NAMES))


NAMES: Mapping[str, Any] = {"--run-id": "RUN", "--eval-set": "--cases", "--judge-model": "--judge",
                            "--output-dir": "--reports", "--use-judge": None}  # fmt: skip
