"""Regression gates, which limit a change since the baseline: `METRIC drop|rise NUMBER[%]`, parsed and checked."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_rageval.errors import SettingsError
from pytest_rageval.metrics.registry import GENERATED, Measure, Registry
from pytest_rageval.text import plain

if TYPE_CHECKING:
    from pytest_rageval.config.tables import Regression


@dataclass(frozen=True, slots=True)
class RegressionGate:
    """The largest tolerated change for the worse of a metric, on its own scale.

    With `significant`, a larger change that may be noise passes. A default gate on generated text also needs
    significance, if the number of cases allows it.
    """

    measure: Measure
    tolerance: float
    is_default: bool = False
    significant: bool = False

    @property
    def name(self) -> str:
        return self.measure.name

    @property
    def word(self) -> str:
        return "drop" if self.measure.metric.better == "higher" else "rise"

    @property
    def is_wary_of_noise(self) -> bool:
        return self.is_default and self.measure.metric.layer in GENERATED

    def __str__(self) -> str:
        condition = " if significant" if self.significant else ""
        return f"{self.name} {self.word} <= {plain(self.tolerance)}{condition}"


REGRESSION_FORM = "METRIC drop|rise NUMBER[%]"
DEFAULT_REGRESSIONS = (
    "recall_any@k drop 0.05",
    "scope_miss rise 0.10",
    "groundedness drop 0.5",
    "correctness drop 0.5",
)
# A name has at most two parts behind it: `pass^k`, or `turn_decay@recall_any@5`, a metric about another at a cut-off.
REGRESSION_PATTERN = re.compile(r"([a-z][a-z0-9_]*(?:[@^]\w+){0,2})\s+(drop|rise)\s+([0-9]+\.?[0-9]*|\.[0-9]+)\s*(%)?")


def parse_regression(
    written: str, place: str, registry: Registry, k: int, *, is_default: bool = False
) -> RegressionGate:
    """Parse `METRIC drop|rise NUMBER[%]`; raise SettingsError for a direction in which the metric gets better."""
    match = REGRESSION_PATTERN.fullmatch(written.strip())
    if match is None:
        raise SettingsError(f"{place}: {written!r} cannot be read; write METRIC drop NUMBER (or rise)")
    measure = registry.measure(match[1], k)
    tolerance = float(match[3])
    if match[4] is not None and measure.metric.unit is not None:
        unit = measure.metric.unit
        raise SettingsError(f"{place}: {written!r}: {measure.name} is in {unit}, which have no 100 %; write {unit}")
    if match[4] is not None:
        low, high = measure.metric.scale
        tolerance *= (high - low) / 100
    return _directed(RegressionGate(measure, tolerance, is_default), match[2], f"{place}: {written!r}")


def regression_of(entry: Regression, place: str, registry: Registry, k: int) -> RegressionGate:
    """Return the gate of a table entry with `max_drop` or `max_rise`; errors as in `parse_regression`.

    Raise SettingsError if `significant` is set for a run-level metric: it has no cases to pair.
    """
    if entry.max_drop is not None:
        way = "drop"
        size = entry.max_drop
    else:
        assert entry.max_rise is not None  # every entry has one of the two
        way = "rise"
        size = entry.max_rise
    measure = registry.measure(entry.metric, k)
    if entry.significant and measure.metric.run_level:
        raise SettingsError(
            f"{place}.significant is true, but {measure.name} is of a whole run, not of its cases: nothing to test; "
            "leave it out"
        )
    gate = RegressionGate(measure, size, significant=entry.significant)
    return _directed(gate, way, f"{place}.max_{way} for {entry.metric!r}")


def _directed(gate: RegressionGate, way: str, written: str) -> RegressionGate:
    _check_tolerance(gate, written)
    if gate.word != way:
        metric = gate.measure.metric
        raise SettingsError(
            f"{written}: for {metric.name} {metric.better} is better, so only a {gate.word} can be a regression"
        )
    return gate


def _check_tolerance(gate: RegressionGate, written: str) -> None:
    """Raise SettingsError for a tolerance that no change exceeds: the gate would never fail."""
    metric = gate.measure.metric
    low, high = metric.scale
    if metric.unit is not None or gate.tolerance < high - low:
        return
    remedy = ""
    if 1 <= gate.tolerance < 100:
        remedy = f"; did you mean '{gate.name} {gate.word} {gate.tolerance:g}%'?"
    scale = f"the scale of {gate.name} is {low:g} to {high:g}"
    raise SettingsError(f"{written}: {scale}, so that no {gate.word} is beyond {gate.tolerance:g}{remedy}")
