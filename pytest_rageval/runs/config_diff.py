"""What was configured otherwise than in an earlier run? Two config.json, key by key."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from pytest_rageval.model import Json

TOLD_ELSEWHERE = frozenset(
    {"k", "target", "judge", "folder_mode", "rerank_vector_weight", "rerank_lexical_weight", "params", "ontology",
     "gate", "gates", "enabled"}
)  # fmt: skip
"""Settings that config.json names a second time, as they were really used."""
INDEX = ("observed.chunker", "observed.embedding", "observed.index")
"""What `index_build_version` is made of, beside what the system says of its coverage."""


class SettingChange(NamedTuple):
    """One key that differs. Of lists `before` holds what is gone, and `after` what is new."""

    name: str
    before: Json
    after: Json


def changes(before: Mapping[str, Json], after: Mapping[str, Json]) -> Iterator[SettingChange]:
    """The keys in which two configurations, made flat, differ."""
    for name in [*before, *(name for name in after if name not in before)]:
        old, new = before.get(name), after.get(name)
        if old == new or (name == "index_build_version" and any(before.get(one) != after.get(one) for one in INDEX)):
            continue
        if isinstance(old, list) and isinstance(new, list):
            gone, come = [one for one in old if one not in new], [one for one in new if one not in old]
            if gone or come:
                yield SettingChange(name, gone, come)
        else:
            yield SettingChange(name, old, new)


def with_reported(settings: Mapping[str, Json], before: Mapping[str, Json]) -> Mapping[str, Json]:
    """The settings, with what the system reported of itself before where it now reported nothing: where no case was
    answered, nothing is known to have changed."""
    if any(_is_reported(name) for name in settings):
        return settings
    return {**settings, **{name: value for name, value in before.items() if _is_reported(name)}}


def _is_reported(name: str) -> bool:
    return name.startswith("observed.") or name == "index_build_version"


def flat_settings(config: Mapping[str, Any]) -> dict[str, Json]:
    """What of a config.json can explain a change of results, by short names: `k`, `rerank.vector`, `observed.llm`.

    Parameters of the target stand under their own names.
    """
    found: dict[str, Json] = {
        "k": config["k"],
        "target": config.get("target"),
        "judge": (config.get("judge") or {}).get("model"),
        "folder_mode": config.get("folder_mode"),
        **_flat(config.get("rerank_weights") or {}, "rerank."),
        "ontology": config.get("ontology"),
        "metrics": config.get("metrics"),
        **_flat(config.get("gates") or {}, "gates."),
        **_flat({n: v for n, v in (config.get("settings") or {}).items() if n not in TOLD_ELSEWHERE}),
        **_flat(config.get("observed") or {}, "observed."),
        "pytest-rageval": (config.get("libraries") or {}).get("pytest-rageval"),
    }
    if config.get("index_build_version") is not None:
        found["index_build_version"] = config["index_build_version"]
    for name, value in _flat(config.get("params") or {}).items():
        found[name if name not in found else f"params.{name}"] = value
    return {name: _at_k(value, config["k"]) for name, value in found.items()}


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Json]:
    found: dict[str, Json] = {}
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            found.update(_flat(value, f"{prefix}{name}."))
        else:
            found[prefix + name] = value
    return found


def _at_k(value: Json, k: int) -> Json:
    """With another k the names of many metrics and gates change, and that alone is no news."""
    if not isinstance(value, list):
        return value
    mark = f"@{k}"
    return [re.sub(rf"{mark}\b", "@k", str(one)) if mark in str(one) else one for one in value]
