"""The plan of a run: settings and metrics, resolved and checked once, before anything is asked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from pytest_rageval.cases.note_folder import NoteFolder
from pytest_rageval.config.files import place_of_table
from pytest_rageval.config.settings import Settings
from pytest_rageval.config.tables import Regression
from pytest_rageval.errors import Problems, SettingsError, UnknownMetric
from pytest_rageval.gates.effect import GatesInEffect
from pytest_rageval.gates.gate import Gate, default_gates, effective_gates, parse_gate, resolve
from pytest_rageval.gates.regression import DEFAULT_REGRESSIONS, RegressionGate, parse_regression, regression_of
from pytest_rageval.gates.win_rate_gate import is_win_rate_gate, parse_win_rate_gate
from pytest_rageval.io.masking import Mask
from pytest_rageval.io.suggestions import did_you_mean
from pytest_rageval.judges.judging import CLASSIFIER, NEAR_GATE_TRIALS
from pytest_rageval.judges.requests import can_join
from pytest_rageval.judges.rubrics import Rubric, load_rubric
from pytest_rageval.judges.rubrics.prompt_text import joint_prompt
from pytest_rageval.llm.price_list import ModelPrice, price_list
from pytest_rageval.matching.dialects import ANY_PLACES, PlaceRules
from pytest_rageval.metrics.added import added_to, has_conversations
from pytest_rageval.metrics.assertions import is_of_assertions
from pytest_rageval.metrics.calls import OPERATIONS, cost_usd
from pytest_rageval.metrics.judged import with_rubric_metrics
from pytest_rageval.metrics.ontology.rates import CHECKED, load_validator
from pytest_rageval.metrics.registry import GENERATED, LAYERS, Measure, Metric, Registry, RunScore, option_types
from pytest_rageval.metrics.rewrites import is_rewrite_gap
from pytest_rageval.model import EvalCase, GoldKind, Judgement
from pytest_rageval.run.judged_rubrics import own_rubrics, rubrics_to_ask, with_companions
from pytest_rageval.run.turn_measures import decays, lacking_rewrites, rewrite_gaps

OF_REPEATS = ("pass_at_k", "pass_hat_k")
"""Metrics of runs with repeats, in which nobody need name them."""
RETRIEVAL_ONLY_LAYERS = (LAYERS.keys() - GENERATED) | {"abstention"}


@dataclass(frozen=True)
class Plan:
    """Settings with every name in them looked up.

    `asked_k`: the largest cut-off that any measure needs; the system is asked for that many chunks. `rubrics`: what the
    judge is asked about each answer. `wordings`: the prompts, by rubric. `ontology`: SHA-256 of the files that L4
    checks against, None without any.
    """

    settings: Settings
    registry: Registry
    measures: tuple[Measure, ...]
    run_measures: tuple[Measure, ...]
    case_gates: tuple[Gate, ...]
    run_gates: tuple[Gate, ...]
    regressions: tuple[RegressionGate, ...]
    rubrics: tuple[str, ...]
    asked_k: int
    ask_params: Mapping[str, Any]
    """The parameters sent with every question."""
    skipped_gates: tuple[Gate, ...] = ()
    """Written gates of metrics in layers that this run leaves out."""
    ontology: str | None = None
    wordings: Mapping[str, Rubric] = field(default_factory=dict)
    place_rules: PlaceRules = field(default=ANY_PLACES, repr=False, compare=False)
    stored_run_scores: Mapping[str, RunScore] = field(default_factory=dict, repr=False, compare=False)
    """The scores of a stored run by those run-level measures that only pytest can compute."""
    mask: Mask = field(default=Mask(()), repr=False, compare=False)
    """Masks the credentials of this run in texts of systems, judges and exceptions."""

    @cached_property
    def gates_in_effect(self) -> GatesInEffect:
        return GatesInEffect(self.case_gates, self.settings.k)

    @cached_property
    def scores_answers(self) -> bool:
        """Return True if any metric is about the answer or abstention."""
        return any(one.metric.layer in ("L5", "abstention") for one in (*self.measures, *self.run_measures))

    @cached_property
    def operations(self) -> tuple[Measure, ...]:
        """Return the measures of what asking takes, which each record holds."""
        return tuple(Measure(self.registry[one.name]) for one in OPERATIONS)

    @cached_property
    def compared_with_rewrites(self) -> tuple[Measure, ...]:
        """Return the measures of cases whose gap to rewrites is a metric of the run."""
        names = {measure.of for measure in self.run_measures if is_rewrite_gap(measure)}
        return tuple(measure for measure in self.measures if measure.name in names)

    @cached_property
    def for_rewrites(self) -> Plan:
        """Return the plan for follow-ups asked as their rewrites: only what a gap is measured of is judged."""
        rubrics: set[str] = set()
        for measure in self.compared_with_rewrites:
            rubrics.update(measure.metric.rubrics)
        return replace(self, rubrics=tuple(name for name in self.rubrics if name in rubrics))

    @property
    def added_metrics(self) -> list[str]:
        """Return the metrics that the cases add to the run."""
        return added_to(self.registry)

    @property
    def stops_when_decided(self) -> bool:
        """Return True if the repeats of a case end once its pass rule cannot change any more."""
        return self.settings.repeat > 1 and self.settings.repeat_until == "decided"

    @property
    def judge_prompts(self) -> list[str]:
        """Return the prompts that judge one answer once: a joint one for all rubrics that are asked together."""
        is_joint = self.settings.judge_requests == "together"
        joined: list[Rubric] = []
        alone: list[str] = []
        for name, rubric in self.wordings.items():
            if is_joint and name != CLASSIFIER and can_join(rubric):
                joined.append(rubric)
            else:
                alone.append(rubric.prompt)
        return [joint_prompt(joined), *alone] if joined else alone

    @property
    def most_repeats(self) -> int:
        """Return how often each prompt is sent at most."""
        repeats = self.settings.judge_repeats
        return repeats if isinstance(repeats, int) else NEAR_GATE_TRIALS

    def is_near_gate(self, judgement: Judgement) -> bool:
        """Return True if a score lies within one step of a gate's limit; a fifth of the scale is a step by default."""
        rubric = self.wordings.get(judgement.rubric)
        low, high = judgement.scale
        step = (rubric and rubric.step) or (high - low) / 5
        for gate in (*self.case_gates, *self.run_gates):
            score = judgement.scores.get(gate.metric)
            if score is not None and gate.measure is not None:
                from_low, from_high = gate.measure.metric.scale
                limit = low + (gate.threshold - from_low) * (high - low) / (from_high - from_low)
                if abs(score - limit) <= step + 1e-9:
                    return True
        return False

    def gates_reading(self, case: EvalCase, kind: GoldKind) -> Iterator[Gate | RegressionGate]:
        """Yield the gates that read scores of this case: its own, those of the run, written ones of regression."""
        yield from self.gates_in_effect.of(case, kind).gates
        yield from self.run_gates
        yield from (gate for gate in self.regressions if not gate.is_default)


def make_plan(settings: Settings, registry: Registry, root: Path = Path()) -> Plan:
    """Resolve all names; raise SettingsError with every problem, one line each. Paths are relative to `root`."""
    problems = Problems()
    registry = _with_options(settings, registry, problems)
    registry = _with_prices(settings, registry)
    registry, ontology = _with_ontology(settings, registry, root, problems)
    own = problems.attempt(own_rubrics, settings, root) or {}
    registry = problems.attempt(with_rubric_metrics, registry, own.values(), settings.rubrics) or registry
    case_gates, run_gates = _gates(settings, registry, place_of_table(root), problems)
    regressions = _regressions(settings, registry, problems)
    measures = _measures(settings, registry, [*case_gates, *run_gates, *regressions], problems)
    problems += lacking_rewrites(settings, [*run_gates, *regressions])
    problems += _unknown_layers(settings)
    problems.raise_all()
    rubrics: tuple[str, ...] = ()
    if not settings.retrieval_only and settings.judge != "none":
        rubrics = rubrics_to_ask(measures)
    case_measures = tuple(measure for measure in measures if not measure.metric.run_level)
    run_measures = tuple(measure for measure in measures if measure.metric.run_level)
    cut_offs = [measure.k for measure in measures if measure.k]
    measured = {measure.name for measure in measures}
    skipped_gates = tuple(
        gate for gate in (*case_gates, *run_gates) if gate.name not in measured and not gate.is_default
    )
    # The project's own rubric stands for a shipped one of its name.
    wordings = {name: own.get(name) or load_rubric(name) for name in with_companions(rubrics)}
    place_settings = settings.model_dump(include=PLACE_SETTINGS)
    return Plan(
        settings=settings,
        registry=registry,
        measures=case_measures,
        run_measures=run_measures,
        case_gates=case_gates,
        run_gates=tuple(gate for gate in run_gates if gate.name in measured),
        skipped_gates=skipped_gates,
        regressions=regressions,
        rubrics=rubrics,
        asked_k=max([settings.k, *cut_offs]),
        ask_params=settings.ask_params,
        ontology=ontology,
        wordings=wordings,
        place_rules=place_rules(place_settings, root),
        mask=Mask(settings.secrets()),
    )


def _unknown_layers(settings: Settings) -> Iterator[str]:
    """Yield a problem for each name of a setting that should be a layer."""
    layers = {*LAYERS, *LAYERS.values()}
    titles = ", ".join(LAYERS.values())
    for name in settings.skipped:
        if name not in layers:
            yield f"--rageval-skip: {name!r} is not a layer{did_you_mean(name, layers, f'; layers: {titles}')}"
    for name in settings.weights:
        if name not in layers:
            yield f"weights.{name} is not a layer; layers: {titles}"


PLACE_SETTINGS = {"strict_places", "path_prefix", "notes"}


def place_rules(settings: Mapping[str, Any], root: Path) -> PlaceRules:
    """Return how places are compared, with the notes where they are known and there."""
    folder = root / settings["notes"] if settings.get("notes") else None
    return PlaceRules.of(settings, NoteFolder(folder) if folder is not None and folder.is_dir() else None)


def _with_options(settings: Settings, registry: Registry, problems: Problems) -> Registry:
    """Bind options from `[tool.rageval.metrics]` to their metrics."""
    bound: dict[str, Metric] = {metric.name: metric for metric in registry}
    for name, options in settings.metric_options.items():
        metric = problems.attempt(registry.__getitem__, name)
        if metric is None:
            continue
        if not isinstance(options, Mapping):
            problems.append(f"metrics.{name} is {options!r}, expected a table of options")
            continue
        problems.extend(_option_problems(metric, options))
        bound[metric.name] = replace(metric, options=dict(options))
    return Registry(bound.values())


def _with_ontology(
    settings: Settings, registry: Registry, root: Path, problems: Problems
) -> tuple[Registry, str | None]:
    """Bind the configured ontology to the metrics that check against one; return them and its digest."""
    if settings.ontology is None:
        return registry, None
    if (validator := problems.attempt(load_validator, settings.ontology, root)) is None:
        return registry, None
    checked = {one.name for one in CHECKED}
    bound = {"ontology": validator}
    metrics = (replace(one, options={**one.options, **bound}) if one.name in checked else one for one in registry)
    return Registry(metrics), validator.digest


def _with_prices(settings: Settings, registry: Registry) -> Registry:
    """Bind the prices of the system's models to the metrics that look at its cost: it, and those of assertions."""
    own: dict[str, ModelPrice] = {}
    for model, price in settings.prices.items():
        own[model] = ModelPrice(price.input, price.output, price.cached_input)
    prices = price_list(own, settings.target, settings.versions.llm)
    metrics: list[Metric] = []
    for each in registry:
        if each.name == cost_usd.name or is_of_assertions(each):
            metrics.append(replace(each, options={**each.options, "prices": prices}))
        else:
            metrics.append(each)
    return Registry(metrics)


def _option_problems(metric: Metric, options: Mapping[str, Any]) -> Iterator[str]:
    types = option_types(metric)
    for name, value in options.items():
        place = f"metrics.{metric.name}.{name}"
        if name not in types:
            remedy = did_you_mean(name, types, f"; options: {', '.join(types) or 'none'}")
            yield f"{place} is not an option of this metric{remedy}"
        elif get_origin(types[name]) is Literal and value not in get_args(types[name]):
            yield f"{place} is {value!r}, expected one of {', '.join(map(repr, get_args(types[name])))}"
        elif isinstance(types[name], type) and type(value) is not types[name]:
            yield f"{place} is {value!r}, expected {types[name].__name__}"
    if options.get("normalizer") == "squad" and "hangul" in options:
        yield f"metrics.{metric.name}.hangul: the official script of normalizer 'squad' knows none; remove one of both"


def _gates(
    settings: Settings, registry: Registry, table_place: str, problems: Problems
) -> tuple[tuple[Gate, ...], tuple[Gate, ...]]:
    """Return the gates of each case and the gates of the whole run; `table_place`: the file of the settings' table."""

    def read(written: Iterable[str], place: str, scope: Literal["case", "run"]) -> list[Gate]:
        found = (problems.attempt(_gate, text, place, scope, registry, settings.k) for text in written)
        return [gate for gate in found if gate is not None]

    default = [resolve(gate, registry, settings.k) for gate in default_gates(registry)]
    of_runs: list[str] = []
    for text in settings.gates.run:
        if is_win_rate_gate(text):  # for `rageval compare --pairwise`, which reads them itself
            problems.attempt(parse_win_rate_gate, text, f"{table_place}: gates.run")
        else:
            of_runs.append(text)
    table = read(settings.gates.case, f"{table_place}: gates.case", "case")
    table += read(of_runs, f"{table_place}: gates.run", "run")
    options = read(settings.gate, "--rageval-gate", "case")
    # A line of either may be about a case or, with "run" in front, about the run.
    case_gates = effective_gates(default, _in_scope("case", table), _in_scope("case", options))
    run_gates = effective_gates([], _in_scope("run", table), _in_scope("run", options))
    return case_gates, run_gates


def _in_scope(scope: str, gates: Iterable[Gate]) -> list[Gate]:
    return [gate for gate in gates if gate.scope == scope]


def _gate(written: str, place: str, scope: Literal["case", "run"], registry: Registry, k: int) -> Gate:
    if is_win_rate_gate(written):
        remedy = "it is for rageval compare A B --pairwise, or for gates.run in the table"
        raise SettingsError(f"{place}: gate {written!r} is about two runs; {remedy}")
    parsed = parse_gate(written, place, scope)
    try:
        gate = resolve(parsed, registry, k)
    except SettingsError as error:
        raise SettingsError(*(_placed(problem, place) for problem in error.problems)) from None
    if gate.scope == "case" and gate.measure is not None and gate.measure.metric.run_level:
        raise SettingsError(f"{place}: gate {written!r}: {gate.name} is of a whole run; write 'run {written.strip()}'")
    return gate


def _placed(problem: str, place: str) -> str:
    """Return the problem of a gate with the place of the gate in front."""
    text = f"{place}: {problem}"
    return UnknownMetric(text, problem.name) if isinstance(problem, UnknownMetric) else text


def _regressions(settings: Settings, registry: Registry, problems: Problems) -> tuple[RegressionGate, ...]:
    """Return regression gates by metric: written ones replace the metric's defaults, options replace the table."""
    found: dict[str, RegressionGate] = {}
    known = (text for text in DEFAULT_REGRESSIONS if text.split("@")[0].split()[0] in registry)
    for gate in (parse_regression(text, "default", registry, settings.k, is_default=True) for text in known):
        found[gate.name] = gate
    entries = [(entry, f"regression[{number}]") for number, entry in enumerate(settings.regression)]
    for entry, place in [*entries, *((text, "--rageval-regression") for text in settings.tolerated)]:
        if isinstance(entry, Regression):
            written = problems.attempt(regression_of, entry, place, registry, settings.k)
        else:
            written = problems.attempt(parse_regression, entry, place, registry, settings.k)
        if written is not None:
            found[written.name] = written
    return tuple(found.values())


def _measures(
    settings: Settings,
    registry: Registry,
    gates: Iterable[Gate | RegressionGate],
    problems: Problems,
) -> tuple[Measure, ...]:
    """Select the metrics to score: those on by default or listed, and every one that a written gate names."""
    chosen = list(_enabled(settings, registry, problems))
    chosen += [gate.measure for gate in gates if gate.measure is not None and not gate.is_default]
    if settings.enabled is None and has_conversations(registry):
        chosen += decays(registry, chosen, gates, settings.k)
    if settings.rewrites:
        chosen += rewrite_gaps(settings, registry, chosen, gates)
    # A metric about another one reads the scores of that.
    chosen += [registry.measure(measure.of, settings.k) for measure in chosen if measure.of is not None]
    if settings.repeat > 1:
        chosen += [registry.measure(name, settings.k) for name in OF_REPEATS if name in registry]
    # An answer taken for an abstention is hardly judged otherwise: an answerable case must not pass by that.
    is_judged = settings.judge != "none" and any({*measure.metric.rubrics} - {CLASSIFIER} for measure in chosen)
    if is_judged and "over_abstention" in registry:
        chosen.append(registry.measure("over_abstention", settings.k))
    skipped = {layer for layer, title in LAYERS.items() if {layer, title} & {*settings.skipped}}
    if settings.retrieval_only:
        skipped |= LAYERS.keys() - RETRIEVAL_ONLY_LAYERS
    timed = (replace(measure, seconds=settings.metric_timeout) for measure in chosen)
    unique = {measure.name: measure for measure in timed if measure.metric.layer not in skipped}
    order = list(LAYERS)
    return tuple(sorted(unique.values(), key=lambda one: order.index(one.metric.layer)))


def _enabled(settings: Settings, registry: Registry, problems: Problems) -> Iterator[Measure]:
    """Yield the metrics that the settings list, by name or layer; without a list, those on by default."""
    for metric in registry if settings.enabled is None else ():
        if metric.on_by_default:
            yield registry.measure(metric.name, settings.k)
    for name in settings.enabled or ():
        layer = next((layer for layer, title in LAYERS.items() if name in (layer, title)), None)
        if layer is not None:
            yield from (registry.measure(metric.name, settings.k) for metric in registry if _is_of(metric, layer))
        elif (measure := problems.attempt(registry.measure, name, settings.k)) is not None:
            yield measure


def _is_of(metric: Metric, layer: str) -> bool:
    """Check whether a layer's name stands for a metric; one about another metric is named with that."""
    return metric.layer == layer and not metric.of_metric
