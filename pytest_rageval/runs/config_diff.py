"""Differences between two configurations, under the names that config.json gives them: `k`, `params.top_n`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from pytest_rageval.io.messages import shown_value
from pytest_rageval.model import Json

REPEATED_SETTINGS = frozenset(
    {"k", "target", "judge", "folder_mode", "rerank_vector_weight", "rerank_lexical_weight", "params", "ontology",
     "gate", "gates", "enabled", "versions"}
)  # fmt: skip
"""Settings that config.json names a second time, as they were really used."""
_FIRST = ("target", "k", "asked_k", "folder_mode", "rerank_weights", "params", "judge", "rubrics", "ontology")
_LAST = ("observed", "index_build_version", "reported_fields", "gates", "metrics", "own_metrics", "libraries")
_INDEX = ("observed.chunker", "observed.embedding", "observed.index")
"""What `index_build_version` is made of, beside what the system says of its coverage."""
_JUDGE = ("judge.model", "judge.fixture")
"""Who judges; all else of the judge follows where that changes."""
_SERVED = "observed.judge"
"""What the judge's server said that it is: not of the system's saying."""
_HASH = re.compile(r"(content:)?([0-9a-f]{40}|[0-9a-f]{64})")
NO_SETTING = "–"
LONGEST_SETTING = 2000
"""Characters; tables cut earlier, to their width."""


class SettingChange(NamedTuple):
    """One name that differs. Of lists `before` holds what is gone, and `after` what is new."""

    name: str
    before: Json
    after: Json


def config_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[SettingChange]:
    """What differs between two config.json: the cases first, then all that can explain a change of results."""
    current = flat_settings(before)
    return [
        *dataset_change(before, after),
        *setting_changes(current, with_reported(flat_settings(after), current)),
    ]


def dataset_change(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[SettingChange]:
    """The versions of the cases, where their contents differ."""
    hashes = [config.get("dataset_hash", config.get("dataset_version")) for config in (before, after)]
    if hashes[0] != hashes[1]:
        versions = [config.get("dataset_version") for config in (before, after)]
        if versions[0] == versions[1]:  # the same commit, or none: the contents tell them apart
            versions = [str(each)[:12] for each in hashes]
        yield SettingChange("dataset", *versions)


def setting_changes(before: Mapping[str, Json], after: Mapping[str, Json]) -> Iterator[SettingChange]:
    """The names under which two flat configurations differ, but for what follows from another difference."""
    differing = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    for name in [*before, *(name for name in after if name not in before)]:
        if name not in differing or _follows(name, differing, before, after):
            continue
        old, new = before.get(name), after.get(name)
        if isinstance(old, list) or isinstance(new, list):
            old, new = (value if isinstance(value, list) else [] if value is None else [value] for value in (old, new))
            gone, come = [item for item in old if item not in new], [item for item in new if item not in old]
            if gone or come:
                yield SettingChange(name, gone, come)
        else:
            yield SettingChange(name, old, new)


def _follows(name: str, differing: set[str], before: Mapping[str, Json], after: Mapping[str, Json]) -> bool:
    """Is this difference the shadow of another one that is told anyway?"""
    if name == "asked_k":
        return "k" in differing
    if name == "index_build_version":
        return not differing.isdisjoint(_INDEX)
    if name.startswith("judge.") or name == _SERVED:
        return name not in _JUDGE and not differing.isdisjoint(_JUDGE)
    # A metric that came or went is told by `metrics`; libraries are not kept with a baseline.
    return name.startswith(("own_metrics.", "rubrics.", "libraries.")) and None in (
        before.get(name),
        after.get(name),
    )


def with_reported(settings: Mapping[str, Json], before: Mapping[str, Json]) -> Mapping[str, Json]:
    """The settings, with what the system reported of itself before where it now reported nothing: where no case was
    answered, nothing is known to have changed."""
    kept: dict[str, Json] = {}
    for is_reported in (_is_version, _is_fields, _is_served):
        if not any(map(is_reported, settings)):
            kept |= {name: value for name, value in before.items() if is_reported(name)}
    return {**settings, **kept}


def _is_version(name: str) -> bool:
    return (name.startswith("observed.") and not _is_served(name)) or name == "index_build_version"


def _is_served(name: str) -> bool:
    return name == _SERVED


def _is_fields(name: str) -> bool:
    return name == "reported_fields"


def flat_settings(config: Mapping[str, Any]) -> dict[str, Json]:
    """What of a config.json can explain a change of results, by name: `k`, `rerank_weights.vector`, `observed.llm`."""
    k = config["k"]
    flat: dict[str, Json] = {}
    for name in _FIRST:
        flat |= _flat(name, config.get(name))
    for name, value in sorted((config.get("settings") or {}).items()):
        if name not in REPEATED_SETTINGS:
            flat |= _flat(name, value)
    for name in _LAST:
        flat |= _flat(name, config.get(name), depth=1 if name == "own_metrics" else None)
    return {name: _without_cut_off(value, k) for name, value in flat.items()}


def _flat(name: str, value: Any, depth: int | None = None) -> dict[str, Json]:
    """`("params", {"a": {"b": 1}})` → `{"params.a.b": 1}`; what is empty or null has no entry."""
    if isinstance(value, Mapping) and depth != 0:
        below = None if depth is None else depth - 1
        return {inner: leaf for key in value for inner, leaf in _flat(f"{name}.{key}", value[key], below).items()}
    return {} if value is None or value == [] else {name: value}


def _without_cut_off(value: Json, k: object) -> Json:
    """A list of metrics or gates with the configured cut-off as `@k`: with another k all of them have other names."""
    if not isinstance(value, list):
        return value
    mark = f"@{k}"
    return [re.sub(rf"{mark}\b", "@k", str(item)) if mark in str(item) else item for item in value]


def setting_text(value: Json) -> str:
    """A setting or version as a cell of a table: a dash for none, of a hash its beginning, else the value."""
    if value is None:
        return NO_SETTING
    if isinstance(value, str) and _HASH.fullmatch(value):
        return value.removeprefix("content:")[:12]
    return shown_value(value, LONGEST_SETTING, is_quoted=False)


def change_text(change: SettingChange) -> str:
    """`k was 5 and is 7`, or what was added to a list and taken from it."""
    if isinstance(change.before, list) and isinstance(change.after, list):
        parts = [*(f"+{setting_text(item)}" for item in change.after)]
        parts += (f"-{setting_text(item)}" for item in change.before)
        return f"{change.name} {' '.join(parts)}"
    return f"{change.name} was {setting_text(change.before)} and is {setting_text(change.after)}"
