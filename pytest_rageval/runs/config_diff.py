"""Differences between two configurations, under the names that config.json gives them: `k`, `params.top_n`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from pytest_rageval.config.settings import defaults_of_younger_settings
from pytest_rageval.io.messages import shown_value
from pytest_rageval.model import Json

REPEATED_SETTINGS = frozenset(
    {
        "k",
        "target",
        "judge",
        "folder_mode",
        "rerank_vector_weight",
        "rerank_lexical_weight",
        "params",
        "ontology",
        "gate",
        "gates",
        "enabled",
        "versions",
    }
)
"""Settings that config.json repeats with the values really used."""
_FIRST = ("target", "k", "asked_k", "folder_mode", "rerank_weights", "params", "judge", "rubrics", "ontology")
_LAST = ("observed", "index_build_version", "reported_fields", "gates", "metrics", "own_metrics", "libraries")
_INDEX = ("observed.chunker", "observed.embedding", "observed.index")
"""The parts of `index_build_version`, besides the reported coverage."""
_JUDGE = ("judge.model", "judge.fixture")
"""The judge itself; its other settings are not listed if it changes."""
_SERVED = "observed.judge"
"""The model name that the judge's server reports, not the system under test."""
_HASH = re.compile(r"(content:)?([0-9a-f]{40}|[0-9a-f]{64})")
_OF_CONVERSATIONS = frozenset({"conversation_pass_rate", "turn_decay"})
"""Metrics that a run has by itself if its cases hold conversations."""
NO_SETTING = "–"
LONGEST_SETTING = 2000
"""In characters; tables cut earlier, to their width."""


class SettingChange(NamedTuple):
    """A setting that differs. For lists, `before` holds the removed items and `after` the added ones."""

    name: str
    before: Json
    after: Json

    @property
    def is_of_list(self) -> bool:
        return isinstance(self.before, list) and isinstance(self.after, list)


def config_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[SettingChange]:
    """Return the differences between two config.json: first the cases, then all that can explain changed results."""
    current = flat_settings(before)
    of_dataset = list(dataset_change(before, after))
    of_settings = list(setting_changes(current, with_reported(flat_settings(after), current)))
    if of_dataset:
        of_settings = list(_without_those_of_conversations(of_settings))
    return [*of_dataset, *of_settings]


def _without_those_of_conversations(changes: Iterable[SettingChange]) -> Iterator[SettingChange]:
    """Yield the changes without metrics of conversations: a change of the dataset adds or removes them."""
    for change in changes:
        if change.name != "metrics" or not change.is_of_list:
            yield change
            continue
        removed = [name for name in change.before or () if not _is_of_conversations(name)]
        added = [name for name in change.after or () if not _is_of_conversations(name)]
        if removed or added:
            yield SettingChange(change.name, removed, added)


def _is_of_conversations(metric: Json) -> bool:
    return isinstance(metric, str) and metric.partition("@")[0] in _OF_CONVERSATIONS


def dataset_change(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[SettingChange]:
    """Yield the two dataset versions if the cases differ."""
    version_before = before.get("dataset_version")
    version_after = after.get("dataset_version")
    hash_before = before.get("dataset_hash", version_before)
    hash_after = after.get("dataset_hash", version_after)
    if hash_before == hash_after:
        return
    if version_before == version_after:  # the same commit or none: show the content hashes
        version_before = str(hash_before)[:12]
        version_after = str(hash_after)[:12]
    yield SettingChange("dataset", version_before, version_after)


def setting_changes(before: Mapping[str, Json], after: Mapping[str, Json]) -> Iterator[SettingChange]:
    """Yield the differences between two flat configurations, except those that follow from another difference."""
    differing = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    for name in [*before, *(name for name in after if name not in before)]:
        if name not in differing or _follows(name, differing, before, after):
            continue
        old = before.get(name)
        new = after.get(name)
        if not isinstance(old, list) and not isinstance(new, list):
            yield SettingChange(name, old, new)
            continue
        old_items = _as_list(old)
        new_items = _as_list(new)
        removed = [item for item in old_items if item not in new_items]
        added = [item for item in new_items if item not in old_items]
        if removed or added:
            yield SettingChange(name, removed, added)


def _as_list(value: Json) -> list[Json]:
    if isinstance(value, list):
        return value
    return [] if value is None else [value]


def _follows(name: str, differing: set[str], before: Mapping[str, Json], after: Mapping[str, Json]) -> bool:
    """Return True if this difference follows from another one that is listed."""
    if name == "asked_k":
        return "k" in differing
    if name == "index_build_version":
        return not differing.isdisjoint(_INDEX)
    # Another model has other settings as well: one change is listed, not five.
    if name.startswith("judge.") or name == _SERVED:
        return name not in _JUDGE and not differing.isdisjoint(_JUDGE)
    # An added or removed metric is listed under `metrics`; a baseline does not store libraries.
    return name.startswith(("own_metrics.", "rubrics.", "libraries.")) and None in (
        before.get(name),
        after.get(name),
    )


def with_reported(settings: Mapping[str, Json], before: Mapping[str, Json]) -> Mapping[str, Json]:
    """Return the settings; copy what the system reported before if it reported nothing now.

    If no case was answered, nothing is known to have changed.
    """
    kept: dict[str, Json] = {}
    for part in ("version", "reported_fields", _SERVED):
        if part not in map(_reported_part, settings):
            kept |= {name: value for name, value in before.items() if _reported_part(name) == part}
    return {**settings, **kept}


def _reported_part(name: str) -> str:
    """Return the part of what a system reports that a setting belongs to; the setting's own name for others."""
    is_version = name != _SERVED and (name.startswith("observed.") or name == "index_build_version")
    return "version" if is_version else name


def flat_settings(config: Mapping[str, Any]) -> dict[str, Json]:
    """Return the settings that can explain changed results, by name: `k`, `rerank_weights.vector`, `observed.llm`."""
    k = config["k"]
    flat: dict[str, Json] = {}
    for name in _FIRST:
        flat |= _flat(name, config.get(name))
    settings = config.get("settings") or {}
    if settings:
        # What a run leaves out where it does not use it: a change from there reads `history live → gold`.
        settings = {**defaults_of_younger_settings(), **settings}
    for name, value in sorted(settings.items()):
        if name not in REPEATED_SETTINGS:
            flat |= _flat(name, value)
    for name in _LAST:
        flat |= _flat(name, config.get(name), depth=1 if name == "own_metrics" else None)
    # The configured cut-off in metrics or gates is written as `@k`: another k does not change all their names.
    own_k = re.compile(rf"@{k}\b")
    for name, value in flat.items():
        if isinstance(value, list):
            flat[name] = [_replaced(own_k, item) for item in value]
    return flat


def _replaced(own_k: re.Pattern[str], item: Json) -> Json:
    return own_k.sub("@k", item) if isinstance(item, str) else item


def _flat(name: str, value: Any, depth: int | None = None) -> dict[str, Json]:
    """Flatten `("params", {"a": {"b": 1}})` to `{"params.a.b": 1}`; leave out empty lists and nulls."""
    if isinstance(value, Mapping) and depth != 0:
        below = None if depth is None else depth - 1
        flat: dict[str, Json] = {}
        for key, inner in value.items():
            flat |= _flat(f"{name}.{key}", inner, below)
        return flat
    return {} if value is None or value == [] else {name: value}


def setting_text(value: Json) -> str:
    """Format a setting or version as a table cell: a dash for None, the start of a hash, else the value."""
    if value is None:
        return NO_SETTING
    if isinstance(value, str) and _HASH.fullmatch(value):
        return value.removeprefix("content:")[:12]
    return shown_value(value, LONGEST_SETTING, is_quoted=False)


def change_text(change: SettingChange) -> str:
    """Format a change as `k was 5 and is 7`, or as the items added to and removed from a list."""
    if change.is_of_list:
        return f"{change.name} ({_items_text(change)})"
    return f"{change.name} was {setting_text(change.before)} and is {setting_text(change.after)}"


def arrow_text(change: SettingChange) -> str:
    """Format a change as `min_score – → 0.5`, or as the items added to and removed from a list."""
    if change.is_of_list:
        return f"{change.name} ({_items_text(change)})"
    return f"{change.name} {setting_text(change.before)} → {setting_text(change.after)}"


def change_cells(change: SettingChange) -> tuple[str, str]:
    """Return the cells of a change in a table of before and after.

    A list is not shown whole on either side, so that each cell names what it lists.
    """
    if not change.is_of_list:
        return setting_text(change.before), setting_text(change.after)
    removed = _named_items("removed", change.before)
    added = _named_items("added", change.after)
    return removed or NO_SETTING, added or NO_SETTING


def _items_text(change: SettingChange) -> str:
    """Return `added a, b; removed c`: a sign before an item could belong to a number."""
    parts = (_named_items("added", change.after), _named_items("removed", change.before))
    return "; ".join(filter(None, parts))


def _named_items(word: str, items: Json) -> str:
    assert isinstance(items, list)
    return f"{word} {', '.join(map(setting_text, items))}" if items else ""
