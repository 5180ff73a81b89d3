"""What is wrong with settings, in words: contradictions, meaningless variables, and values that cannot be."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_rageval.config.options import Option
from pytest_rageval.config.settings import ENVIRONMENT, RESERVED_PARAMS, Settings
from pytest_rageval.config.tables import Regression
from pytest_rageval.io.environment_secrets import SENT_FROM_ENVIRONMENT, WEB_TOKEN
from pytest_rageval.io.flaws import Flaw
from pytest_rageval.io.masking import public_target
from pytest_rageval.io.messages import found, kind_in_words, shown_value, spelled
from pytest_rageval.io.suggestions import did_you_mean

REFERENCES = ("latest", "baseline")
"""Names that mean a run wherever one is named, and so cannot be a run's own."""


def setting_contradictions(settings: Settings, place: str) -> Iterator[str]:
    """What cannot be together, or at all, though each value is of its kind; `place` is where the table stands."""
    for name in settings.params:
        if name in RESERVED_PARAMS:
            yield f"{place}: params.{name} cannot be set: {RESERVED_PARAMS[name]}"
    if settings.mapping is not None and settings.mapping.path[:1] not in ("", "/"):
        yield f"{place}: target.mapping.path is {shown_value(settings.mapping.path)}, expected one that begins with '/'"
    if settings.mapping is not None and re.search(r"[?#\s]", settings.mapping.path):
        yield f"{place}: target.mapping.path is a path alone; write a query into target.url, where it is kept"
    if settings.shard is not None and not _is_shard(settings.shard):
        yield f"--rageval-shard: {settings.shard!r} is not I/N with I from 1 to N, as in 1/4"
    if settings.resume is not None and settings.run_id is not None:
        yield "--rageval-resume: the run has its name already; leave --rageval-run-id out"
    if settings.force and not settings.update_baseline:
        yield "--rageval-force: nothing to force; it goes with --rageval-update-baseline"
    if settings.run_id is not None and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", settings.run_id):
        yield f"--rageval-run-id: {settings.run_id!r} is not a folder name; use letters, digits, '.', '_' and '-'"
    if settings.run_id in REFERENCES:
        yield f"--rageval-run-id: {settings.run_id!r} stands for another run wherever one is named; choose another"
    if not settings.cases:
        yield f"{place}: cases is empty, so that no case would be run; leave it out for the usual places, or name some"
    table = [gate.metric if isinstance(gate, Regression) else gate.split()[0] for gate in settings.regression if gate]
    options = [text.split()[0] for text in settings.tolerated if text.split()]
    for written, metrics in ((f"{place}: regression", table), ("--rageval-regression", options)):
        for metric in sorted({metric for metric in metrics if metrics.count(metric) > 1}):
            yield f"{written} has {metrics.count(metric)} entries for {metric!r}, of which one would count"
    for number, gate in enumerate(settings.regression):
        if isinstance(gate, Regression) and (gate.max_drop is None) == (gate.max_rise is None):
            yield f"{place}: regression[{number}] needs one of max_drop and max_rise"


def meaningless_variables(settings: Settings, environment: Mapping[str, str]) -> Iterator[str]:
    """Variables that look like ours and are nobody's: a misspelt one would leave another system to be asked."""
    headers = (*settings.headers.values(), *settings.judge_options.headers.values())
    used = {value.removeprefix("env:") for value in headers if value.startswith("env:")}
    keys = (name for name in SENT_FROM_ENVIRONMENT if name.startswith("RAGEVAL_"))
    ours = (*ENVIRONMENT, *keys, WEB_TOKEN)
    for variable in sorted(environment):
        if variable.startswith("RAGEVAL_") and variable not in used and variable not in ours:
            remedy = did_you_mean(variable, ours, f"; variables: {', '.join(ours)}")
            yield f"environment variable {variable} means nothing{remedy}"


def _is_shard(written: str) -> bool:
    parts = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", written)
    return parts is not None and 1 <= int(parts[1]) <= int(parts[2])


def problem_of_flaw(flaw: Flaw, place: str, by_field: Mapping[str, Option], options: Mapping[str, Any]) -> str:
    """One problem of the settings, in words of TOML: place, name, value, remedy."""
    field = str(flaw.path[0])
    as_option = options.get(field) is not None
    written = spelled((*_WRITTEN.get(field, (field,)), *flaw.path[1:]))
    name = f"--rageval-{by_field[field].name}" if as_option else f"{place}: {written}"
    if flaw.is_unknown:
        return f"{name} is not a known key{key_of_inner_table(field, str(flaw.path[-1]), flaw.known)}"
    return f"{name} is missing" if flaw.is_missing else f"{name} {_in_toml(flaw.message)}"


_WRITTEN = {"mapping": ("target", "mapping"), "enabled": ("metrics", "enabled"), "metric_options": ("metrics",)}
"""Fields of Settings that stand elsewhere in the table."""


def _in_toml(message: str) -> str:
    """A message in which objects are tables. What was written stands before `expected`, and stays as it is."""
    before, expected, after = message.rpartition(", expected ")
    after = re.sub(r"^\{(.*)\}$", r"a table with \1", after).replace("an object", "a table")
    return f"{before.replace('is an object', 'is a table')}{expected}{after}"


def shown_setting(path: tuple[str | int, ...], value: Any) -> str:
    """A value as a message shows it; of headers only its kind: it may be a key."""
    if path[0] == "headers" or "headers" in path:
        return kind_in_words(value)
    return found(public_setting(value))


def public_setting(value: Any) -> Any:
    """The value, a URL in it without its password."""
    return public_target(value) if isinstance(value, str) else value


def key_of_inner_table(table: str, key: str, names: Sequence[str]) -> str:
    """The remedy for an unknown key of a table of ours: TOML gives it whatever is written below its name."""
    if key not in Settings.model_fields or key in names:
        return nearest_key(key, names)
    return did_you_mean(key, names, f"; it stands beside {table!r}, not in it: write it above the first [table]")


def nearest_key(key: str, names: Sequence[str]) -> str:
    return did_you_mean(key, names, f"; known keys: {', '.join(sorted(names))}")
