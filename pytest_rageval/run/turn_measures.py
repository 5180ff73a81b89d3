"""The metrics of turns that a run adds for metrics of its cases: decays over turns, and gaps to rewrites."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pytest_rageval.config.settings import Settings
from pytest_rageval.gates.gate import Gate
from pytest_rageval.gates.regression import RegressionGate
from pytest_rageval.metrics.registry import Measure, Registry
from pytest_rageval.metrics.rewrites import NOT_ASKED, is_rewrite_gap, rewrite_gap
from pytest_rageval.metrics.turns import turn_decay
from pytest_rageval.metrics.whole_conversation import OF_WHOLE_CONVERSATION

AnyGate = Gate | RegressionGate


def decays(registry: Registry, chosen: Iterable[Measure], gates: Iterable[AnyGate], k: int) -> Iterator[Measure]:
    """Yield the decay over turns of each chosen metric that a gate of cases reads: of all, they would be too many."""
    gated = _gated_in_cases(gates)
    for measure in chosen:
        if measure.name in gated and _is_score_of_case(measure):
            yield registry.measure(f"{turn_decay.name}@{measure.name}", k)


def rewrite_gaps(
    settings: Settings, registry: Registry, chosen: Iterable[Measure], gates: Iterable[AnyGate]
) -> Iterator[Measure]:
    """Yield the gap of each chosen metric that a gate of cases reads or the settings name, unless they name gaps."""
    named = settings.enabled or ()
    if any(_is_name_of_gap(name) for name in named):
        return
    wanted = _gated_in_cases(gates)
    for name in named:
        if name in registry or name.partition("@")[0] in registry:  # it may be the name of a layer, or unknown
            wanted.add(registry.measure(name, settings.k).name)
    for measure in chosen:
        if measure.name in wanted and _is_score_of_case(measure):
            yield registry.measure(f"{rewrite_gap.name}@{measure.name}", settings.k)


def lacking_rewrites(settings: Settings, gates: Iterable[AnyGate]) -> Iterator[str]:
    """Yield a line for each gate and each named metric about rewrites that the run does not ask."""
    if settings.rewrites:
        return
    for gate in gates:
        if gate.measure is not None and is_rewrite_gap(gate.measure):
            yield f"gate {str(gate)!r} {NOT_ASKED}"
    for name in settings.enabled or ():
        if _is_name_of_gap(name):
            yield f"metric {name!r} {NOT_ASKED}"


def _gated_in_cases(gates: Iterable[AnyGate]) -> set[str]:
    return {gate.name for gate in gates if isinstance(gate, Gate) and gate.scope == "case"}


def _is_score_of_case(measure: Measure) -> bool:
    metric = measure.metric
    return metric.unit is None and not metric.run_level and metric.name not in OF_WHOLE_CONVERSATION


def _is_name_of_gap(name: str) -> bool:
    return name.partition("@")[0] == rewrite_gap.name
