"""The allow-list of the project for targets and judges from the browser that run code or read files."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from pytest_rageval.config.options import kind_of
from pytest_rageval.config.settings import Settings
from pytest_rageval.config.settings_sources import load_settings
from pytest_rageval.errors import SettingsError
from pytest_rageval.io.masking import public_target
from pytest_rageval.io.messages import shown_value
from pytest_rageval.judges.judge_spec import KINDS

SETTING = "web_allows"
OPEN_JUDGES = frozenset(name for name, kind in KINDS.items() if not kind.opens_files)
"""Kinds that import no name and open no path. All others may, including plug-ins and future kinds."""


def check_listed(settings: Settings, root: Path, *, is_asked: bool = True) -> None:
    """Check settings that the browser chose; SettingsError names each target or judge that the project does not list.

    root      the project: the target and judge of its own configuration are listed
    is_asked  False if the answers are uploaded, so that the target is never imported
    """
    if specs := [*_specs_to_list(settings, is_asked=is_asked)]:
        own = load_settings(root)
        listed = {*own.web_allows, own.target, own.judge}
        if problems := [_problem(name, spec) for name, spec in specs if not _is_listed(spec, listed)]:
            raise SettingsError(*problems)


def _specs_to_list(settings: Settings, *, is_asked: bool) -> Iterator[tuple[str, str]]:
    target, judge = settings.target or "demo", settings.judge.strip()
    if is_asked and not kind_of(target).is_open:
        yield "target", target
    if ":" in judge and judge.partition(":")[0] not in OPEN_JUDGES:
        yield "judge", judge


def _is_listed(spec: str, listed: Collection[str | None]) -> bool:
    """Return True if the spec or its module is listed. Names with a dot, as in `shop.bot:os.system`, are foreign."""
    module, _, name = spec.removeprefix("asgi:").partition(":")
    return spec in listed or (module in listed and "." not in name)


def _problem(name: str, spec: str) -> str:
    shown = shown_value(public_target(spec), 200)
    return (
        f"{name} is {shown}, which runs code or reads files of this machine; if the browser may name it, add "
        f'{SETTING} = ["{shown[1:-1]}"] to the project\'s configuration'
    )
