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
from pytest_rageval.config.options import OPTIONS, Option
from pytest_rageval.config.settings import ENVIRONMENT, Settings
from pytest_rageval.config.settings_problems import (
    key_of_inner_table,
    meaningless_variables,
    nearest_key,
    problem_of_flaw,
    public_setting,
    setting_contradictions,
    shown_setting,
)
from pytest_rageval.config.tables import Versions
from pytest_rageval.errors import SettingsError
from pytest_rageval.io.flaws import flaws_of
from pytest_rageval.io.messages import found
from pytest_rageval.text import names_of


def load_settings(
    root: Path,
    options: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Settings:
    """Settings of the project at `root`; `options` by name of Settings field, absent or None where not given.

    Raises SettingsError with every problem found, one line each.
    """
    place, table = read_table(root)
    values, problems = _from_table(place, table)
    for variable, name in ENVIRONMENT.items():
        if value := (os.environ if environment is None else environment).get(variable):
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
    problems += list(meaningless_variables(settings, os.environ if environment is None else environment))
    if problems:
        raise SettingsError(*problems)
    # Another target may be tried from the command line while the table describes an API.
    return settings if _is_url(settings.target) else settings.model_copy(update={"mapping": None})


TABLE_ONLY_AS_OPTION = {"update_baseline", "force", "run_id", "dry_run", "gate", "tolerated", "enabled", "skipped",
                        "metric_options", "retrieval_only", "description", "mapping", "shard", "resume"}  # fmt: skip


def _from_table(place: str, table: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The table as fields of Settings, and what is wrong with its keys."""
    fields: dict[str, Any] = {}
    problems: list[str] = []
    known = [name for name in Settings.model_fields if name not in TABLE_ONLY_AS_OPTION] + ["metrics"]
    for key, value in table.items():
        if key not in known:
            problems.append(f"{place}: {key} is not a known key{nearest_key(key, known)}")
        elif key == "metrics":
            if not isinstance(value, dict):
                problems.append(f"{place}: metrics is {found(value)}, expected a table, as in [tool.rageval.metrics]")
                continue
            enabled = value.get("enabled")
            fields["enabled"] = tuple(enabled) if isinstance(enabled, list) else enabled
            fields["metric_options"] = {name: options for name, options in value.items() if name != "enabled"}
        elif key == "target" and isinstance(value, dict):
            fields |= _target_table(place, value, problems)
        else:
            has_lists = key in ("gates", "abstention") and isinstance(value, dict)
            fields[key] = {name: tuples_of(entry) for name, entry in value.items()} if has_lists else tuples_of(value)
    return fields, problems


def _target_table(place: str, table: Mapping[str, Any], problems: list[str]) -> dict[str, Any]:
    """The target as a table of `url` and `mapping`, as fields of Settings; the URL may come from elsewhere."""
    fields = {"url": "target", "mapping": "mapping"}
    problems += [
        f"{place}: target.{key} is not a known key{key_of_inner_table('target', key, list(fields))}"
        for key in table
        if key not in fields
    ]
    url = table.get("url")
    if url is not None and not (isinstance(url, str) and _is_url(url)):
        problems.append(
            f"{place}: target.url is {found(public_setting(url))}, expected a URL, as in 'http://localhost:8080'"
        )
        return {}
    return {field: table[key] for key, field in fields.items() if key in table}


def _is_url(target: str | None) -> bool:
    return target is not None and target.startswith(("http:", "https:"))


def tuples_of(value: Any) -> Any:
    """TOML arrays as tuples where Settings holds tuples; tables below are handled by their own models."""
    if isinstance(value, list):
        return tuple(tuples_of(item) for item in value)
    return value


def _from_option(option: Option, value: Any, values: dict[str, Any], problems: list[str]) -> Any:
    """An option's text as the setting it stands for."""
    if option.name == "param":
        return dict(values.get("params", {})) | dict(_pairs(value, problems))
    if option.name == "version":
        table = values.get("versions", {})
        return (dict(table) if isinstance(table, Mapping) else {}) | dict(_stated_versions(value, problems))
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
    for pair in written:
        name, equals, text = pair.partition("=")
        if not equals or not re.fullmatch(r"[A-Za-z_][\w.-]*", name.strip()):
            problems.append(f"--rageval-param: {pair!r} is not NAME=VALUE, as in min_score=0.3")
            continue
        try:
            value = json.loads(text, parse_constant=lambda constant: constant)
        except ValueError:
            value = text
        yield name.strip(), value


def _stated_versions(written: Sequence[str], problems: list[str]) -> Iterator[tuple[str, str]]:
    names = list(Versions.model_fields)
    for pair in written:
        name, equals, version = (part.strip() for part in pair.partition("="))
        if name not in names:
            problems.append(f"--rageval-version: {name!r} is not a known name{nearest_key(name, names)}")
        elif not equals or not version:
            problems.append(f"--rageval-version: {pair!r} is not NAME=VALUE, as in llm=llama3.2")
        else:
            yield name, version
