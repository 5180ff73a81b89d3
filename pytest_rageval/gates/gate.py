"""Gates on scores, parsed and checked: `[run] METRIC [STATISTIC] OP LIMIT[%] [when FIELD=VALUE] [tag NAME]`."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, product
from typing import Literal, get_args

from pytest_rageval.errors import SettingsError
from pytest_rageval.io.suggestions import did_you_mean, suggestion
from pytest_rageval.metrics.answer import answer_kinds
from pytest_rageval.metrics.registry import Measure, Metric, Registry
from pytest_rageval.model import EvalCase, GoldKind
from pytest_rageval.model.case_fields import DESCRIPTIVE_NAMES, UNCATEGORISED
from pytest_rageval.text import plain

HOLDS: Mapping[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    ">": operator.gt,
    "<=": operator.le,
    "<": operator.lt,
}
FIELDS = (*DESCRIPTIVE_NAMES, "tag", "answerable", "requires_kg", "gold", "groups", "answer")
CLOSED = {
    **dict.fromkeys(("answerable", "requires_kg", "groups"), ("true", "false")),
    "gold": ("anchors", "ids", "none"),
    "answer": ("short", "long", "layered", "none"),
}
"""The values of fields with a fixed set of values."""
GATE_FORM = "METRIC OP LIMIT[%] [when FIELD=VALUE] [tag NAME]"
Statistic = Literal["mean", "p50", "p95", "max"]
STATISTICS: Mapping[str, Statistic] = {name: name for name in get_args(Statistic)}
FEWEST_FOR_P95 = 20
"""Of fewer values, the 95th percentile is the largest one: one slow case would decide it."""
Conditions = tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True)
class Gate:
    """A limit on one metric. `when`: each field must have one of its values. `off`: removes gates of the metric."""

    metric: str
    op: str = ">="
    limit: float = 0.0
    percent: bool = False
    when: Conditions = ()
    tag: str | None = None
    scope: Literal["case", "run"] = "case"
    off: bool = False
    unless: tuple[Conditions, ...] = ()
    """Cases in which a more specific gate of the same metric replaces this one."""
    measure: Measure | None = field(default=None, compare=False)
    is_default: bool = False
    statistic: Statistic = "mean"
    """What a gate of the run is about: of the values of its cases."""
    yields_to: tuple[Gate, ...] = ()
    """For a default gate: it does not apply to cases that one of these gates examines."""

    @cached_property
    def name(self) -> str:
        """Return the name of the metric, with its cut-off once the gate is resolved."""
        return self.measure.name if self.measure else self.metric

    @property
    def subject(self) -> str:
        """Return what the limit is on: the metric, with the statistic unless that is the mean."""
        return self.name if self.statistic == "mean" else f"{self.name} {self.statistic}"

    @cached_property
    def settled_by(self) -> str | None:
        """Return the metric that settles a case where it is 1; None for a gate that a user wrote."""
        return self.measure.metric.settled_by if self.is_default and self.measure else None

    @cached_property
    def threshold(self) -> float:
        """Return the limit on the metric's own scale."""
        if not self.percent or self.measure is None:
            return self.limit
        low, high = self.measure.metric.scale
        return low + (high - low) * self.limit / 100

    @property
    def condition(self) -> str:
        return conditions_text(self.when)

    def holds(self, value: float) -> bool:
        return HOLDS[self.op](value, self.threshold)

    def __str__(self) -> str:
        percent = "%" if self.percent else ""
        return f"{self.subject} {self.op} {plain(self.limit)}{percent}"


def conditions_text(conditions: Conditions) -> str:
    """Format conditions as they are written."""
    return ",".join(f"{name}={'|'.join(values)}" for name, values in conditions)


GATE_PATTERN = re.compile(
    r"(?P<run>run\s+)?(?P<metric>[a-z][a-z0-9_]*(?:[@^]\w+){0,2})(?:\s+(?P<statistic>(?!off\b)[a-z]\w*))?\s*"
    r"(?:(?P<off>\boff)|(?P<op>>=|<=|>|<)\s*(?P<limit>[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?)\s*(?P<percent>%)?)"
    r"(?:\s+when\s+(?P<when>\S.*?))?(?:\s+tag\s+(?P<tag>\S+))?"
)


def parse_gate(written: str, place: str, scope: Literal["case", "run"] = "case") -> Gate:
    """Parse one gate; `place` is where it was written. Raise SettingsError with the grammar if it is none."""
    match = GATE_PATTERN.fullmatch(written.strip())
    if match is None:
        raise SettingsError(
            f"{place}: gate {written!r} cannot be read; write {GATE_FORM}, "
            "as in 'recall_any@5 >= 0.8 when category=multi_hop'"
        )
    is_run = scope == "run" or match["run"] is not None
    if is_run and match["when"]:
        raise SettingsError(f"{place}: gate {written!r}: a run gate takes no 'when'; it covers the whole run")
    statistic = match["statistic"] or "mean"
    if statistic not in STATISTICS:
        remedy = did_you_mean(statistic, STATISTICS, f"; there are {', '.join(STATISTICS)}")
        raise SettingsError(f"{place}: gate {written!r}: {statistic!r} is no statistic of a run{remedy}")
    if match["statistic"] and not is_run:
        raise SettingsError(
            f"{place}: gate {written!r}: {statistic} is of all cases of a run; write 'run {written.strip()}'"
        )
    return Gate(
        metric=match["metric"],
        op=match["op"] or ">=",
        limit=float(match["limit"] or 0),
        percent=match["percent"] is not None,
        when=_conditions(match["when"], place, written),
        tag=match["tag"],
        scope="run" if is_run else "case",
        statistic=STATISTICS[statistic],
        off=match["off"] is not None,
    )


def _conditions(written: str | None, place: str, gate: str) -> Conditions:
    """Parse `a=1,2,b=3` as: a is 1 or 2, and b is 3."""
    if not written:
        return ()
    fields: list[tuple[str, list[str]]] = []
    for part in written.split(","):
        name, equals, value = part.strip().rpartition("=")
        if equals:
            fields.append((name.strip(), [value.strip()]))
        elif fields:
            fields[-1][1].append(value.strip())
        else:
            raise SettingsError(f"{place}: gate {gate!r}: {part!r} is not FIELD=VALUE; fields: {', '.join(FIELDS)}")
    for name, values in fields:
        if name not in FIELDS:
            raise SettingsError(f"{place}: gate {gate!r}: {name!r} is not a field; fields: {', '.join(FIELDS)}")
        for value in values:
            if value not in CLOSED.get(name, (value,)) or not value:
                choices = " or ".join(CLOSED.get(name, ("something",)))
                raise SettingsError(f"{place}: gate {gate!r}: {name} is {value!r}, expected {choices}")
    return tuple((name, tuple(values)) for name, values in fields)


def resolve(gate: Gate, registry: Registry, k: int) -> Gate:
    """Return the gate with its metric; raise SettingsError for an unknown name or a limit beyond the metric's scale."""
    others = tuple(resolve(other, registry, k) for other in gate.yields_to)
    measure = registry.measure(gate.metric, k)
    resolved_gate = replace(gate, measure=measure, yields_to=others)
    _check_units(resolved_gate, measure.metric)
    low, high = measure.metric.scale
    if not gate.off and not low <= resolved_gate.threshold <= high:
        is_percentage = not gate.percent and high == 1 < gate.limit <= 100
        remedy = f"; did you mean {plain(gate.limit)}%?" if is_percentage else ""
        raise SettingsError(
            f"gate '{resolved_gate}': the limit is beyond the scale of {resolved_gate.name}, "
            f"{low:g} to {high:g}{remedy}"
        )
    return resolved_gate


def _check_units(gate: Gate, metric: Metric) -> None:
    """Raise SettingsError for a share of a metric without a scale, or a statistic of one without values of cases."""
    if gate.percent and metric.unit is not None:
        raise SettingsError(
            f"gate '{gate}': {gate.name} is in {metric.unit}, which have no 100 %; write the limit in {metric.unit}"
        )
    if gate.statistic != "mean" and metric.run_level:
        raise SettingsError(
            f"gate '{gate}': {gate.name} is one value of the whole run, which has no {gate.statistic}; "
            f"write 'run {gate.name} {gate.op} {plain(gate.limit)}'"
        )


def effective_gates(default: Iterable[Gate], table: Iterable[Gate], options: Iterable[Gate]) -> tuple[Gate, ...]:
    """Return the resolved gates of one scope: later sources replace gates of the same metric in earlier ones.

    If all new gates have conditions (`when`), they replace earlier ones only in the cases that meet them.
    """
    in_force: dict[tuple[str, Statistic], list[Gate]] = {}
    for source in (default, table, options):
        for subject, gates in _by_subject(source).items():
            _check_agreement(gates)
            in_force[subject] = _replaced(in_force.get(subject, []), gates)
    return tuple(chain.from_iterable(in_force.values()))


def _check_agreement(gates: Sequence[Gate]) -> None:
    """Raise SettingsError if one list switches a metric's gate off and sets a limit for the same cases."""
    limits = [gate for gate in gates if not gate.off]
    switched_off = [gate for gate in gates if gate.off]
    for off, limit in product(switched_off, limits):
        if off.when == limit.when:
            off_text = _as_written(off)
            limit_text = _as_written(limit)
            raise SettingsError(f"gates '{off_text}' and '{limit_text}' contradict each other; leave one out")


def _as_written(gate: Gate) -> str:
    text = f"{gate.subject} off" if gate.off else str(gate)
    return f"{text} when {gate.condition}" if gate.when else text


def _by_subject(gates: Iterable[Gate]) -> dict[tuple[str, Statistic], list[Gate]]:
    """Return the gates by metric and statistic: a limit on the p95 leaves one on the mean alone."""
    by_subject: dict[tuple[str, Statistic], list[Gate]] = {}
    for gate in gates:
        assert gate.measure is not None  # resolved
        by_subject.setdefault((gate.measure.metric.name, gate.statistic), []).append(gate)
    return by_subject


def _replaced(earlier: Iterable[Gate], gates: Sequence[Gate]) -> list[Gate]:
    """Return what is in force of one metric: the new gates, and the earlier ones in cases that no new one is for."""
    added = [gate for gate in gates if not gate.off]
    if any(gate.off and not gate.when for gate in gates):
        # Off for all cases but those that a condition names.
        return added
    conditions = tuple(gate.when for gate in gates)
    if not all(conditions):
        exceptions = tuple(gate.when for gate in gates if gate.off)
        return [gate if gate.when else replace(gate, unless=exceptions) for gate in added]
    narrowed = [replace(gate, unless=(*gate.unless, *conditions)) for gate in earlier]
    return [*narrowed, *added]


def default_gates(registry: Registry) -> Iterator[Gate]:
    """Yield the gates that metrics declare."""
    for metric in registry:
        yields_to: tuple[Gate, ...] = ()
        if metric.yields_to and metric.yields_to in registry:
            yields_to = tuple(_declared(registry[metric.yields_to]))
        for gate in _declared(metric):
            yield replace(gate, yields_to=yields_to)


def _declared(metric: Metric) -> Iterator[Gate]:
    for written in metric.gates:
        yield replace(parse_gate(written, f"metric {metric.name}"), is_default=True)


def is_meant_for(gate: Gate, case: EvalCase, kind: GoldKind) -> bool:
    """Return True if this case, with this kind of gold, meets the gate's conditions."""
    if not (gate.when or gate.unless):  # nearly all gates
        return True
    if not _are_met(gate.when, case, kind):
        return False
    return not any(_are_met(conditions, case, kind) for conditions in gate.unless)


def _are_met(conditions: Conditions, case: EvalCase, kind: GoldKind) -> bool:
    return all(not facts_of(case, kind, name).isdisjoint(values) for name, values in conditions)


def unknown_values(gates: Collection[Gate], cases: Iterable[EvalCase]) -> Iterator[str]:
    """Yield the written conditions over free text that no case meets: such a gate examines nothing and passes."""
    conditional: dict[tuple[str, Conditions], None] = {}
    for gate in gates:
        if gate.when and not gate.is_default:
            conditional[str(gate), gate.when] = None
    for gate in gates:
        for conditions in gate.unless:
            # Of `METRIC off when …` nothing is left but the exception that it makes from an earlier gate.
            if not any(conditions == when for _, when in conditional):
                conditional[f"{gate.subject} off", conditions] = None
    if not conditional:
        return  # reading a million cases takes a minute
    known_values: dict[str, set[str]] = {name: set() for name in ("tag", *DESCRIPTIVE_NAMES)}
    for case in cases:
        for name, known in known_values.items():
            known |= facts_of(case, "none", name)
    for written, conditions in conditional:
        for name, values in conditions:
            if name not in known_values:
                continue
            for value in values:
                if value not in known_values[name]:
                    remedy = _known_value_remedy(value, known_values[name])
                    whole = f"{written} when {conditions_text(conditions)}"
                    yield f"gate '{whole}': no case has the {name} {value!r}; {remedy}"


def _known_value_remedy(value: str, known: Collection[str]) -> str:
    close = suggestion(value, known)
    if close is not None:
        return f"did you mean {close!r}?"
    listed = ", ".join(sorted(known)[:8]) or "none"
    return f"known here: {listed}"


LIKE_A_SHARE, LIKE_POINTS = 1, 2
"""A limit up to the first looks like a share if the scale ends at the second or above."""


def too_few_cases(gates: Iterable[Gate], cases: int) -> Iterator[str]:
    """Yield the written gates on a 95th percentile for which there are too few cases, known before any is asked."""
    for gate in gates:
        if gate.statistic == "p95" and cases < FEWEST_FOR_P95:
            yield (
                f"gate 'run {gate}': a p95 needs {FEWEST_FOR_P95} cases or more, and there are {cases}; "
                f"write 'run {gate.name} p50 {gate.op} …' or 'run {gate.name} max {gate.op} …'"
            )


def doubtful_limits(gates: Iterable[Gate]) -> Iterator[str]:
    """Yield the written limits that look like a share of 1 on a scale of points: nearly every answer passes them."""
    for gate in gates:
        if gate.measure is None or gate.is_default or gate.percent:
            continue
        metric = gate.measure.metric
        low, high = metric.scale
        is_floor = metric.better == "higher" or bool(metric.rubrics)
        if is_floor and 0 < gate.limit <= LIKE_A_SHARE and high >= LIKE_POINTS:
            share = replace(gate, limit=100 * gate.limit, percent=True)
            yield (
                f"gate '{gate}': {gate.name} has a scale of {low:g} to {high:g}, and the limit is on it; if a share is "
                f"meant, write '{share}', which is {gate.op} {plain(share.threshold)}"
            )


def facts_of(case: EvalCase, kind: GoldKind, name: str) -> frozenset[str]:
    """Return the values that a case has in this field."""
    if name == "tag":
        return frozenset(case.tags)
    if name == "gold":
        return frozenset((kind,))
    if name == "groups":
        return frozenset(("true" if case.gold.support_groups else "false",))
    if name == "answer":
        return answer_kinds(case.gold)
    value = getattr(case, name)
    if isinstance(value, bool):
        return frozenset(("true" if value else "false",))
    return frozenset((value or UNCATEGORISED,))
