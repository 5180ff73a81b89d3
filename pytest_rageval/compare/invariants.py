"""May two runs be compared, what was configured differently, and which part of the system is another one?"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_rageval.compare.side import Side
from pytest_rageval.runs.config import dataset_hash_of

SHOWN = 5
"""Cases that are named where the dataset differs."""
VERSIONS = {
    "dataset": "dataset_version",
    "index": "index_build_version",
    "retriever": "retriever_version",
    "answerer": "answerer_version",
}
_RETRIEVER = ("k", "folder_mode", "rerank_weights.", "params.")
"""Settings that the retriever's version is made of."""
_SHOWN_FIRST = ("target", "k", "asked_k", "folder_mode", "rerank_weights", "params", "judge", "ontology", "observed")
_SHOWN_LAST = ("gates", "metrics", "libraries")
_SAID_ELSEWHERE = frozenset(
    {"target", "k", "folder_mode", "rerank_vector_weight", "rerank_lexical_weight", "params", "judge", "ontology",
     "gates", "enabled", "gate"}
)  # fmt: skip
"""Settings that config.json repeats in the form in which they were used."""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """An invariant that does not hold: both values, and more where that helps."""

    what: str
    before: str
    after: str
    more: str = ""

    def __str__(self) -> str:
        return f"{self.what} was {self.before} and is {self.after}" + (f": {self.more}" if self.more else "")


@dataclass(frozen=True, slots=True)
class Difference:
    """A setting, or another value of config.json, that is not the same on both sides; None where one has none."""

    name: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class Version:
    """One of the four versions. `changed` is None where a side does not know its own."""

    before: str | None
    after: str | None
    changed: bool | None


def mismatches(before: Side, after: Side) -> Iterator[Mismatch]:
    """What must be the same on both sides for a difference to mean anything, and is not."""
    yield from _dataset(before, after)
    yield from _judge(before, after)
    yield from _reported(before, after)


def _dataset(before: Side, after: Side) -> Iterator[Mismatch]:
    one, other = _dataset_hashes(before, after)
    more = ", ".join(_changed_cases(before, after))
    if one != other or "changed" in more:
        yield Mismatch("dataset", _named(one, before), _named(other, after), more)


def _dataset_hashes(before: Side, after: Side) -> tuple[str | None, str | None]:
    """Of all cases, as both sides can tell; of a partial run without its configuration nobody can, so both are None."""
    if before.config and after.config:
        return before.config["dataset_hash"], after.config["dataset_hash"]
    if before.scores is None or after.scores is None or before.metrics["partial"] or after.metrics["partial"]:
        return None, None
    one, other = (
        dataset_hash_of((key, case.content_hash) for key, case in side.cases.items())
        for side in (before.scores, after.scores)
    )
    return one, other


def _changed_cases(before: Side, after: Side) -> Iterator[str]:
    if before.scores is None or after.scores is None:
        return
    was, now = before.scores.cases, after.scores.cases
    changed = sorted(key for key in was.keys() & now.keys() if was[key].content_hash != now[key].content_hash)
    for keys, what in (
        (changed, "changed"),
        (sorted(was.keys() - now.keys()), "only before"),
        (sorted(now.keys() - was.keys()), "only after"),
    ):
        if keys:
            more = f" and {len(keys) - SHOWN} more" if len(keys) > SHOWN else ""
            yield f"{len(keys)} {what} ({', '.join(keys[:SHOWN])}{more})"


def _named(dataset: str | None, side: Side) -> str:
    cases = len(side.scores.cases) if side.scores else side.metrics.get("total_tests")
    return f"{dataset[:12]} ({cases} cases)" if dataset else f"{cases} cases"


def _judge(before: Side, after: Side) -> Iterator[Mismatch]:
    was, now = before.metrics.get("judge"), after.metrics.get("judge")
    if not was or not now:
        return  # nothing was judged on one side: what a judge scores is unmeasured, the rest compares
    if was["model"] != now["model"]:
        yield Mismatch("judge", was["model"], now["model"])
    for rubric in sorted(was["prompt_versions"].keys() & now["prompt_versions"].keys()):
        versions = was["prompt_versions"][rubric], now["prompt_versions"][rubric]
        if versions[0] != versions[1]:
            yield Mismatch(f"prompt of {rubric}", *versions)
    if before.config and after.config and not (was["heuristic"] and now["heuristic"]):
        degrees = [side["settings"].get("judge_temperature") for side in (before.config, after.config)]
        if None not in degrees and degrees[0] != degrees[1]:
            yield Mismatch("judge temperature", str(degrees[0]), str(degrees[1]))


def _reported(before: Side, after: Side) -> Iterator[Mismatch]:
    was, now = ((side.config or {}).get("reported_fields") for side in (before, after))
    if was is not None and now is not None and was != now:
        lost, gained = sorted(set(was) - set(now)), sorted(set(now) - set(was))
        said = [f"without {', '.join(lost)}"] * bool(lost) + [f"newly with {', '.join(gained)}"] * bool(gained)
        one, other = (", ".join(fields) or "nothing" for fields in (was, now))
        yield Mismatch("what the system reports", one, other, "; ".join(said))


def differences(before: Side, after: Side) -> list[Difference]:
    """What was configured differently; nothing where a side does not know its configuration."""
    if not before.config or not after.config:
        return []
    was, now = _flat(before.config), _flat(after.config)
    return [
        Difference(name, was.get(name), now.get(name))
        for name in dict.fromkeys([*was, *now])
        if was.get(name) != now.get(name)
    ]


def _flat(config: Mapping[str, Any]) -> dict[str, Any]:
    settings = {name: value for name, value in config["settings"].items() if name not in _SAID_ELSEWHERE}
    found: dict[str, Any] = {}
    for name in _SHOWN_FIRST:
        found |= _named_values(name, config.get(name))
    for name, value in sorted(settings.items()):
        found |= _named_values(name, value)
    for name in _SHOWN_LAST:
        found |= _named_values(name, config.get(name))
    return found


def _named_values(name: str, value: Any) -> dict[str, Any]:
    """`{"params": {"k": 1}}` → `{"params.k": 1}`; lists of names as the names in them."""
    if isinstance(value, Mapping):
        return {inner: one for key in value for inner, one in _named_values(f"{name}.{key}", value[key]).items()}
    return {name: value}


def versions(before: Side, after: Side, dataset_changed: bool) -> dict[str, Version]:
    """By part, its version on both sides."""
    found = {}
    for part, name in VERSIONS.items():
        was, now = _version(before, part, name), _version(after, part, name)
        changed = (was != now) if was is not None and now is not None else None
        found[part] = Version(was, now, dataset_changed if part == "dataset" else changed)
    return found


def _version(side: Side, part: str, name: str) -> str | None:
    told = side.config.get(name) if side.config else None
    if told is None and part == "dataset":
        told = side.metrics.get("eval_set_commit_hash")
    return str(told) if told is not None else None


def change_at_a_time(found: Mapping[str, Version], differing: Sequence[Difference]) -> tuple[str, bool]:
    """Which versions changed, as a sentence, and whether that was more than one change.

    A parameter that also decides about the index changes both versions: where it is the only setting of the retriever
    that differs, that is one change.
    """
    changed = [part for part, one in found.items() if one.changed]
    unknown = [part for part, one in found.items() if one.changed is None]
    said = f"{_listed(changed)} changed" if changed else "no version changed"
    if unknown:
        said += f"; of {_listed(unknown)} it is not known"
    settings = [one.name for one in differing if one.name.startswith(_RETRIEVER) and one.name != "asked_k"]
    if set(changed) == {"index", "retriever"} and len(settings) == 1 and settings[0].startswith("params."):
        return f"{said}, both with {settings[0].removeprefix('params.')}", False
    if len(changed) > 1:
        return f"{said}: more than one, so what moved a metric cannot be told; change one at a time", True
    return said, False


def _listed(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def setting_text(value: Any) -> str:
    """A value of the configuration as text; a dash for none."""
    if value is None:
        return "–"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
