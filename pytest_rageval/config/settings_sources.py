"""Settings from their sources: options over environment over `[tool.rageval]` over defaults."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pytest_rageval.config.files import read_table
from pytest_rageval.config.options import HTTP, OPTIONS, Option, kind_of
from pytest_rageval.config.settings import ENVIRONMENT, RESERVED_PARAMS, Settings
from pytest_rageval.config.tables import Regression, Versions
from pytest_rageval.errors import SettingsError
from pytest_rageval.io.environment_secrets import SENT_FROM_ENVIRONMENT, WEB_TOKEN
from pytest_rageval.io.masking import public_target
from pytest_rageval.io.messages import describe, format_path, kind_in_words, shown_value
from pytest_rageval.io.records import Flaw, flaws_of
from pytest_rageval.io.suggestions import did_you_mean
from pytest_rageval.text import names_of

REFERENCES = ("latest", "baseline")
"""Reserved names that refer to runs, so no run can have them."""


def load_settings(
    root: Path,
    options: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Settings:
    """Load the settings of the project at `root`; `options` by field of Settings, absent or None if not given.

    Raise SettingsError with every problem found, one line each.
    """
    variables = os.environ if environment is None else environment
    place, table = read_table(root)
    values, problems = _from_table(place, table)
    for variable, name in ENVIRONMENT.items():
        if value := variables.get(variable):
            values[name] = value
    by_field = {option.field: option for option in OPTIONS}
    for name, value in (options or {}).items():
        if value is not None:
            values[name] = _from_option(by_field[name], value, values, problems)
    try:
        settings = Settings.model_validate(values)
    except ValidationError as invalid:
        flaws = flaws_of(invalid, values, Settings, shown_setting)
        problems += [problem_of_flaw(flaw, place, by_field, options or {}) for flaw in flaws]
        raise SettingsError(*problems) from None
    problems += list(setting_contradictions(settings, place))
    problems += list(meaningless_variables(settings, variables))
    if problems:
        raise SettingsError(*problems)
    if not _is_url(settings.target):
        # The command line may name another target while the table describes an API.
        return settings.model_copy(update={"mapping": None})
    return settings


def _from_table(place: str, table: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the table as fields of Settings, and the problems of its keys."""
    fields: dict[str, Any] = {}
    problems: list[str] = []
    known = [*Settings.keys_of_table(), "metrics"]
    for key, value in table.items():
        if key not in known:
            problems.append(f"{place}: {key} is not a known key{nearest_key(key, known)}")
        elif key == "metrics":
            if not isinstance(value, dict):
                problems.append(
                    f"{place}: metrics is {describe(value)}, expected a table, as in [tool.rageval.metrics]"
                )
                continue
            problems += _lists_of_metrics(place, value)
            enabled = value.get("enabled")
            fields["enabled"] = tuple(enabled) if isinstance(enabled, list) else enabled
            of_metrics = {name: each for name, each in value.items() if isinstance(each, dict)}
            fields["metric_options"] = of_metrics
        elif key == "target" and isinstance(value, dict):
            fields |= _target_table(place, value, problems)
        elif key in ("gates", "abstention") and isinstance(value, dict):
            fields[key] = {name: tuples_of(entry) for name, entry in value.items()}
        else:
            fields[key] = tuples_of(value)
    return fields, problems


def _lists_of_metrics(place: str, table: Mapping[str, Any]) -> list[str]:
    """Return the problems of what stands beside `enabled` and is no table of a metric's options."""
    remedy = "metrics.enabled lists the metrics to measure; a gate such as `mrr off` in gates switches a gate off"
    problems: list[str] = []
    for name, value in table.items():
        if name != "enabled" and not isinstance(value, dict):
            problems.append(f"{place}: metrics.{name} is {describe(value)}, expected a table of options; {remedy}")
    return problems


def _target_table(place: str, table: Mapping[str, Any], problems: list[str]) -> dict[str, Any]:
    """Return the target's table of `url` and `mapping` as fields of Settings; the URL may have another source."""
    fields = {"url": "target", "mapping": "mapping"}
    for key in table:
        if key not in fields:
            remedy = key_of_inner_table("target", key, list(fields))
            problems.append(f"{place}: target.{key} is not a known key{remedy}")
    url = table.get("url")
    if url is not None and not (isinstance(url, str) and _is_url(url)):
        problems.append(
            f"{place}: target.url is {describe(public_setting(url))}, expected a URL, as in 'http://localhost:8080'"
        )
        return {}
    return {field: table[key] for key, field in fields.items() if key in table}


def _is_url(target: str | None) -> bool:
    return target is not None and ":" in target and kind_of(target) is HTTP


def tuples_of(value: Any) -> Any:
    """Convert TOML arrays to tuples where Settings has tuples; models handle their own tables."""
    if isinstance(value, list):
        return tuple(tuples_of(item) for item in value)
    return value


def _from_option(option: Option, value: Any, values: dict[str, Any], problems: list[str]) -> Any:
    if option.name == "param":
        return dict(values.get("params", {})) | dict(_pairs(value, problems))
    if option.name == "version":
        table = values.get("versions", {})
        of_table = dict(table) if isinstance(table, Mapping) else {}
        return of_table | dict(_stated_versions(value, problems))
    if option.name in ("metrics", "skip"):
        return names_of(value)
    if option.kind == "many":
        return tuple(value)
    if option.kind in ("whole", "number") and isinstance(value, str):
        try:
            return int(value) if option.kind == "whole" else float(value)
        except ValueError:
            return value
    return value


def _pairs(written: Sequence[str], problems: list[str]) -> Iterator[tuple[str, Any]]:
    for assignment in written:
        name, equals, text = assignment.partition("=")
        if not equals or not re.fullmatch(r"[A-Za-z_][\w.-]*", name.strip()):
            problems.append(f"--rageval-param: {assignment!r} is not NAME=VALUE, as in min_score=0.3")
            continue
        try:
            value = json.loads(text, parse_constant=lambda constant: constant)
        except ValueError:
            value = text
        yield name.strip(), value


def _stated_versions(written: Sequence[str], problems: list[str]) -> Iterator[tuple[str, str]]:
    names = list(Versions.model_fields)
    for assignment in written:
        name, equals, version = (part.strip() for part in assignment.partition("="))
        if name not in names:
            problems.append(f"--rageval-version: {name!r} is not a known name{nearest_key(name, names)}")
        elif not equals or not version:
            problems.append(f"--rageval-version: {assignment!r} is not NAME=VALUE, as in llm=llama3.2")
        else:
            yield name, version


def setting_contradictions(settings: Settings, place: str) -> Iterator[str]:
    """Yield combinations and values that are invalid though of the right type; `place` is the table's location."""
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
    of_table = [_gated_metric(gate) for gate in settings.regression if gate]
    of_options = [_gated_metric(gate) for gate in settings.tolerated if gate.split()]
    for written, metrics in ((f"{place}: regression", of_table), ("--rageval-regression", of_options)):
        for metric in sorted(set(metrics)):
            if metrics.count(metric) > 1:
                yield f"{written} has {metrics.count(metric)} entries for {metric!r}, of which one would count"
    for number, gate in enumerate(settings.regression):
        if isinstance(gate, Regression) and (gate.max_drop is None) == (gate.max_rise is None):
            yield f"{place}: regression[{number}] needs one of max_drop and max_rise"


def _gated_metric(gate: Regression | str) -> str:
    return gate.metric if isinstance(gate, Regression) else gate.split()[0]


def meaningless_variables(settings: Settings, environment: Mapping[str, str]) -> Iterator[str]:
    """Yield unknown variables with our prefix: with a misspelt one the run would use another system."""
    headers = (*settings.headers.values(), *settings.judge_options.headers.values())
    used = {value.removeprefix("env:") for value in headers if value.startswith("env:")}
    keys = [name for name in SENT_FROM_ENVIRONMENT if name.startswith("RAGEVAL_")]
    ours = (*ENVIRONMENT, *keys, WEB_TOKEN)
    for variable in sorted(environment):
        if variable.startswith("RAGEVAL_") and variable not in used and variable not in ours:
            remedy = did_you_mean(variable, ours, f"; variables: {', '.join(ours)}")
            yield f"environment variable {variable} means nothing{remedy}"


def _is_shard(written: str) -> bool:
    parts = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", written)
    if parts is None:
        return False
    number, shards = map(int, parts.groups())
    return 1 <= number <= shards


def problem_of_flaw(flaw: Flaw, place: str, by_field: Mapping[str, Option], options: Mapping[str, Any]) -> str:
    """Format one problem of the settings in TOML's terms: place, name, value, remedy."""
    field = str(flaw.path[0])
    if options.get(field) is not None:
        name = f"--rageval-{by_field[field].name}"
    else:
        path = (*_WRITTEN.get(field, (field,)), *flaw.path[1:])
        name = f"{place}: {format_path(path)}"
    if flaw.is_unknown:
        remedy = key_of_inner_table(field, str(flaw.path[-1]), flaw.known)
        return f"{name} is not a known key{remedy}"
    if flaw.is_missing:
        return f"{name} is missing"
    return f"{name} {_in_toml(flaw.message)}"


_WRITTEN = {"mapping": ("target", "mapping"), "enabled": ("metrics", "enabled"), "metric_options": ("metrics",)}
"""Paths in the table of fields of Settings that are elsewhere."""


def _in_toml(message: str) -> str:
    """Replace objects by tables in a message. The value, before `expected`, stays unchanged."""
    before, expected, after = message.rpartition(", expected ")
    after = re.sub(r"^\{(.*)\}$", r"a table with \1", after).replace("an object", "a table")
    return f"{before.replace('is an object', 'is a table')}{expected}{after}"


def shown_setting(path: tuple[str | int, ...], value: Any) -> str:
    """Format a value for a message; of a header only its kind, because it may be a key."""
    if path[0] == "headers" or "headers" in path:
        return kind_in_words(value)
    return describe(public_setting(value))


def public_setting(value: Any) -> Any:
    """Return the value; a URL in it loses its password."""
    return public_target(value) if isinstance(value, str) else value


def key_of_inner_table(table: str, key: str, names: Sequence[str]) -> str:
    """Return the remedy for an unknown key of one of our tables; TOML adds all that follows a table's name to it."""
    if key not in Settings.model_fields or key in names:
        return nearest_key(key, names)
    return did_you_mean(key, names, f"; it stands beside {table!r}, not in it: write it above the first [table]")


def nearest_key(key: str, names: Sequence[str]) -> str:
    return did_you_mean(key, names, f"; known keys: {', '.join(sorted(names))}")
