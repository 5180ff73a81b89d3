"""A verb that is called by itself, and has parts: `rageval generate DOCS` and `rageval generate conversations`."""

from __future__ import annotations

from typing import Any

import click


class VerbWithParts(click.Group):
    """A command with arguments of its own, unless its first word names one of its parts."""

    allow_extra_args = False
    allow_interspersed_args = True

    def __init__(self, *args: Any, **attributes: Any) -> None:
        super().__init__(*args, **{"no_args_is_help": False, "subcommand_metavar": "", **attributes})

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        if args and args[0] in self.commands:
            part = self.commands[args[0]]
            return part.make_context(f"{info_name} {args[0]}", args[1:], parent=parent, **extra)
        return super().make_context(info_name, args, parent=parent, **extra)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        # Not as a group does, which takes the first argument for the name of a command.
        return click.Command.parse_args(self, ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        return click.Command.invoke(self, ctx)
