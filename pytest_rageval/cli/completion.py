"""`rageval completion`: the script with which a shell completes verbs and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_RAGEVAL_COMPLETE"
"""The variable of the shell's request; click answers it instead of running the command."""


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Write the script for a shell.

    \b
    bash:  rageval completion bash >> ~/.bashrc
    zsh:   rageval completion zsh >> ~/.zshrc
    fish:  rageval completion fish > ~/.config/fish/completions/rageval.fish
    """
    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(context.find_root().command, {}, "rageval", VARIABLE).source())
