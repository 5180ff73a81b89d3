"""The plugin's options as options of a command: without their prefix, for the same settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from pytest_rageval.config.options import OPTIONS, Option

F = TypeVar("F", bound=Callable[..., object])
PREFIX = "--rageval-"


def run_options(command: F) -> F:
    """Every option of the plugin, as parameters for `settings_given`."""
    for option in reversed(OPTIONS):
        command = _click_option(option)(command)
    return command


def settings_given(parameters: dict[str, Any]) -> dict[str, Any]:
    """Take the plugin's options out of a command's parameters: those given, by the setting that they stand for."""
    given = {option.field: parameters.pop(option.dest) for option in OPTIONS}
    return {name: value for name, value in given.items() if value not in (None, ())}


def as_arguments(given: Mapping[str, Any]) -> list[str]:
    """Settings, by the field that each of them stands for, as the words of a command line."""
    names = {option.field: f"--{option.name}" for option in OPTIONS}
    return [
        word
        for field, value in given.items()
        for item in (value if isinstance(value, list | tuple) else [value])
        for word in (names[field], str(item))
    ]


def as_written_here(text: str) -> str:
    """A message of the settings with the options' names as the command has them."""
    return text.replace(PREFIX, "--")


def _click_option(option: Option) -> Callable[[F], F]:
    kinds: Mapping[str, dict[str, Any]] = {"flag": {"is_flag": True, "default": None}, "many": {"multiple": True}}
    form = dict(kinds.get(option.kind, {"type": click.Choice(option.choices)} if option.choices else {}))
    if option.metavar:
        form["metavar"] = option.metavar
    return click.option(f"--{option.name}", option.dest, help=as_written_here(option.help), **form)
