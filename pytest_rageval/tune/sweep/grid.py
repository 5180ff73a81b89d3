"""The points of a sweep: a grid over parameters of the system under test, grouped by what a change of them costs."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, product
from typing import Any

from pytest_rageval.config.settings import RESERVED_PARAMS
from pytest_rageval.config.toml_text import toml_value
from pytest_rageval.errors import SettingsError
from pytest_rageval.model import Json

CUTS = ("k", "min_score")
"""Parameters that shorten the list of retrieved chunks: how many at most, and from which score on."""
INDEXING = ("chunk_max_tokens", "chunk_overlap")
"""Parameters after a change of which the system indexes its documents again."""
FIELDS = ("k", "folder_mode", "rerank_vector_weight", "rerank_lexical_weight")
"""Parameters that are settings of their own; all others are `params`."""
NEVER_SWEPT = frozenset(RESERVED_PARAMS) - {*FIELDS}
MOST_POINTS = 10_000

QUICK: Mapping[str, tuple[Json, ...]] = {
    "chunk_max_tokens": (400,), "chunk_overlap": (50,), "min_score": (0.2, 0.3, 0.4), "k": (5, 10),
}  # fmt: skip
FULL: Mapping[str, tuple[Json, ...]] = {
    "chunk_max_tokens": (200, 400, 600), "chunk_overlap": (0, 50, 100),
    "min_score": (0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5), "k": (5, 10, 15),
}  # fmt: skip


@dataclass(frozen=True)
class Point:
    """One value of each swept parameter; without any it is the project as configured."""

    params: Mapping[str, Json]

    def __str__(self) -> str:
        return self.of(self.params)

    def of(self, names: Iterable[str]) -> str:
        """Return the values of these parameters for people: `min_score 0.3, k 5`."""
        named = [f"{name} {value_text(value)}" for name, value in self._some(names)]
        return ", ".join(named) or "as configured"

    def values(self, names: Iterable[str]) -> str:
        """Return the values alone, if the names are shown above: `0.3, 5`."""
        return ", ".join(value_text(value) for _, value in self._some(names)) or str(self)

    def _some(self, names: Iterable[str]) -> list[tuple[str, Json]]:
        """Return those of these parameters that the point has, with their values."""
        return [(name, self.params[name]) for name in names if name in self.params]

    @property
    def key(self) -> str:
        """Return the parameters as text, equal for equal points."""
        return json.dumps(self.params, sort_keys=True, ensure_ascii=False)

    def only(self, names: Iterable[str]) -> tuple[tuple[str, str], ...]:
        """Return the values of these parameters as a key to group by."""
        return tuple((name, json.dumps(value)) for name, value in self._some(names))

    def options(self, given: Mapping[str, Any] | None = None) -> dict[str, Json]:
        """Return the point and the given options as options of a run, by field of Settings."""
        options = dict(given or {})
        others: list[str] = []
        for name, value in self.params.items():
            if name in FIELDS:
                options[name] = value
            else:
                others.append(f"{name}={json.dumps(value)}")
        if others:
            options["params"] = [*(options.get("params") or ()), *others]
        return options

    def toml(self, *, is_own_file: bool = False) -> str:
        """Return lines for pyproject.toml that make this point the default; `is_own_file`: for rageval.toml."""
        fields = [f"{name} = {json.dumps(value)}" for name, value in self._some(FIELDS)]
        others: list[str] = []
        for name, value in self.params.items():
            # TOML has no null, which resets a parameter: one that is left out has its default.
            if name not in FIELDS and value is not None:
                others.append(f"{name} = {toml_value(value)}")
        tables: list[str] = []
        if fields:
            lines = fields if is_own_file else ["[tool.rageval]", *fields]
            tables.append("\n".join(lines))
        if others:
            head = "[params]" if is_own_file else "[tool.rageval.params]"
            tables.append("\n".join([head, *others]))
        return "\n\n".join(tables)


@dataclass(frozen=True)
class Grid:
    """Values by parameter, parameters of the index first: points that share an index follow one another."""

    values: Mapping[str, tuple[Json, ...]]
    indexing: tuple[str, ...] = INDEXING

    @property
    def cuts(self) -> tuple[str, ...]:
        """Return the swept parameters whose points may be derived from one another, if every value is a number."""
        swept = [name for name in CUTS if name in self.values]
        return tuple(name for name in swept if all(map(_is_number, self.values[name])))

    @property
    def varying(self) -> tuple[str, ...]:
        """Return the parameters with more than one value, in the order in which points are named."""
        return tuple(name for name in self._in_order() if len(self.values[name]) > 1)

    def _in_order(self) -> list[str]:
        """Return the parameters of the index first, and those that only cut lists last."""
        return sorted(self.values, key=lambda name: (name not in self.indexing, name in CUTS))

    def points(self) -> list[Point]:
        """Return every combination."""
        return list(chain.from_iterable(family.points for family in self.families()))

    def families(self) -> list[Family]:
        """Return the points in groups that differ only in their cuts, by index."""
        names = self._in_order()
        cuts = self.cuts
        shared_names = [name for name in names if name not in cuts]
        families: dict[tuple[tuple[str, str], ...], list[Point]] = {}
        for combination in product(*(self.values[name] for name in names)):
            point = Point(dict(zip(names, combination, strict=True)))
            families.setdefault(point.only(shared_names), []).append(point)
        return [Family(tuple(points), cuts) for points in families.values()]


@dataclass(frozen=True)
class Family:
    """Points that differ only in their cuts."""

    points: tuple[Point, ...]
    cuts: tuple[str, ...]

    @property
    def widest(self) -> Point:
        """Return the point that retrieves most: the lists of the others can be cut from its lists."""
        return max(self.points, key=self._width)

    @property
    def by_score(self) -> tuple[Point, ...]:
        """Return the points with the highest threshold, fewest chunks first."""
        thresholds = [_number(point, "min_score", 0.0) for point in self.points]
        highest = max(thresholds)
        at_highest = [point for point, threshold in zip(self.points, thresholds, strict=True) if threshold == highest]
        return tuple(sorted(at_highest, key=self._width))

    def _width(self, point: Point) -> tuple[float, float]:
        return (_number(point, "k", 0.0), -_number(point, "min_score", 0.0))


def parse_grid(written: Sequence[str], indexing: Sequence[str] = ()) -> Grid:
    """Parse `NAME=V1,V2,…` lines into a grid; raise SettingsError with every problem."""
    values: dict[str, tuple[Json, ...]] = {}
    problems: list[str] = []
    for line in written:
        name, equals, listed = (part.strip() for part in line.partition("="))
        parsed = _values(listed)
        if not equals or not re.fullmatch(r"[A-Za-z_][\w.-]*", name):
            problems.append(f"--grid: {line!r} is not NAME=V1,V2,…, as in min_score=0.2,0.3,0.4")
        elif (problem := _why_not_swept(name, parsed, values)) is not None:
            problems.append(f"--grid: {name} {problem}")
        else:
            # By their text: 1, 1.0 and true are equal in Python, but not for a system.
            values[name] = tuple({json.dumps(value): value for value in parsed}.values())
    size = math.prod(map(len, values.values()))
    if size > MOST_POINTS:
        problems.append(f"--grid: {size:,} points are more than {MOST_POINTS:,}; leave values out")
    if problems:
        raise SettingsError(*problems)
    return Grid(values, tuple(dict.fromkeys((*INDEXING, *indexing))))


def _why_not_swept(name: str, values: Sequence[Json], others: Collection[str]) -> str | None:
    if name in NEVER_SWEPT:
        return f"cannot be swept: {RESERVED_PARAMS[name]}"
    if name in others:
        return f"is given twice; write all of its values in one, as in {name}=…,…"
    if not values:
        return f"has no values; write some, as in {name}=0.2,0.3"
    return None


def parse_value(text: str) -> Json:
    """Parse a value from a command line: JSON if it is valid, `.2` as people write it, else text."""
    if re.fullmatch(r"[+-]?\d*\.\d*", text.strip()) and any(map(str.isdigit, text)):
        return float(text)
    try:
        return json.loads(text, parse_constant=str)
    except ValueError:
        return text.strip()


def _values(listed: str) -> list[Json]:
    """Parse values between commas: the members of a JSON list if they are some, so that texts may hold commas."""
    try:
        return list(json.loads(f"[{listed}]", parse_constant=str))
    except ValueError:
        return [parse_value(value) for value in listed.split(",") if value.strip()]


def value_text(value: Json) -> str:
    """Format a value for people."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _number(point: Point, name: str, otherwise: float) -> float:
    value = point.params.get(name, otherwise)
    return float(value) if _is_number(value) else otherwise


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
