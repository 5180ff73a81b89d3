"""The four versions of a run (dataset, index, retriever, answerer), and which of them changed between two."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pytest_rageval.compare.side import Side
from pytest_rageval.runs.config_diff import SettingChange

VERSIONS = {
    "dataset": "dataset_version",
    "index": "index_build_version",
    "retriever": "retriever_version",
    "answerer": "answerer_version",
}
_RETRIEVER = ("rerank_weights.", "params.")
"""Settings that the retriever's version is made of, beside k and the folder mode."""


@dataclass(frozen=True, slots=True)
class Version:
    """One of the four versions. `changed` is None where a side does not know its own."""

    before: str | None
    after: str | None
    changed: bool | None


def versions(before: Side, after: Side, *, is_other_dataset: bool) -> dict[str, Version]:
    """By part, its version on both sides."""
    parts = {}
    for part, name in VERSIONS.items():
        was, now = _version(before, part, name), _version(after, part, name)
        is_changed = (was != now) if was is not None and now is not None else None
        parts[part] = Version(was, now, is_other_dataset if part == "dataset" else is_changed)
    return parts


def _version(side: Side, part: str, name: str) -> str | None:
    version = side.config.get(name) if side.config else None
    if version is None and part == "dataset":
        version = side.metrics.get("eval_set_commit_hash")
    return str(version) if version is not None else None


def change_at_a_time(parts: Mapping[str, Version], changes: Sequence[SettingChange]) -> tuple[str, bool]:
    """Which versions changed, as a sentence, and whether that was more than one change.

    A parameter that also decides about the index changes both versions: where it is the only setting of the retriever
    that differs, that is one change.
    """
    changed = [part for part, version in parts.items() if version.changed]
    unknown = [part for part, version in parts.items() if version.changed is None]
    sentence = f"{_joined(changed)} changed" if changed else "no version changed"
    if unknown:
        sentence += f"; of {_joined(unknown)} it is not known"
    settings = [name for name, _, _ in changes if name in ("k", "folder_mode") or name.startswith(_RETRIEVER)]
    if set(changed) == {"index", "retriever"} and len(settings) == 1 and settings[0].startswith("params."):
        return f"{sentence}, both with {settings[0].removeprefix('params.')}", False
    if len(changed) > 1:
        return f"{sentence}: more than one, so what moved a metric cannot be told; change one at a time", True
    return sentence, False


def _joined(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
