"""Metrics: pure functions with a name, a layer, a direction and a scale, declared once."""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Literal, NamedTuple, get_args, get_type_hints

from pytest_rageval.errors import OddScoreError, SettingsError, UnknownMetric
from pytest_rageval.io.messages import shown_value
from pytest_rageval.io.suggestions import did_you_mean
from pytest_rageval.metrics.names_elsewhere import name_here
from pytest_rageval.metrics.needs import guard_of
from pytest_rageval.model import NotApplicable, Observation, RunFacts, Score

Layer = Literal["L1", "L2", "L3", "L4", "L5", "abstention", "tools", "operations"]
Better = Literal["higher", "lower"]
LAYERS: Mapping[str, str] = {
    "L1": "query understanding",
    "L2": "retrieval",
    "L3": "knowledge graph",
    "L4": "ontology",
    "L5": "answer",
    "abstention": "abstention",
    "tools": "tools",
    "operations": "operations",
}
Unit = Literal["ms", "tokens", "US dollars", "requests", "calls", "searches"]
"""What the values of an operation count."""
LONGEST_CALL = 60.0
"""Seconds that a call of a project's own metric may take, unless `metric_timeout` says otherwise."""
GENERATED = frozenset({"L5", "abstention"})
"""Layers of what each trial generates: an answer, or an abstention."""
Scored = float | Score | NotApplicable
"""The return values of a metric function."""
Terms = Callable[[Observation, int], str]
"""Takes an observation and a cut-off; without one, the length of the list."""


class RunScore(NamedTuple):
    """What a metric of a whole run gave: a value, None where it is not applicable, or an error in one line."""

    value: float | None = None
    error: str | None = None


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A metric: a decorator of its function, `@metric(layer="L5", better="higher")`.

    The function is `function(obs)`, or `function(obs, k)` if the metric has a cut-off (`name@5`). Its keyword-only
    parameters are options of the metric in the table `[tool.rageval.metrics]`.

    layer, better L1 to L5, abstention, tools or operations; 'higher' or 'lower'
    scale         the least and the largest value, both finite
    needs         the required input: answer, chunks, references, trace, gold, gold.PART, judge:RUBRIC. A gate on a
                  metric that needs gold counts as one that looks at gold
    gates         default gates, in the syntax of gates, with the metric's name without a cut-off
    yields_to     another metric; if a default gate of it applies to a case, those of this one do not
    settled_by    another metric; if it is 1, default gates of this one do not apply
    aggregate     the name of its mean if that differs, such as scope_miss_rate
    unit          the unit of an amount, such as ms. An amount has no scale and counts in no mean of scores
    binary        True if every value is 0 or 1, or a share of a run's cases; the interval is then Wilson's
    on_by_default False for a metric that is scored only if it is named
    run_level     True for a metric of a whole run: called once, with RunFacts
    of_metric     True if the name names another metric, as in turn_decay@mrr; it is passed as the option `of`, and
                  `better` is for a metric with higher better
    missing       a function of the observation that returns NotApplicable if there is no value, else None
    terms         a function of observation and cut-off that returns the arithmetic, as in 1 / rank 4
    """

    layer: Layer
    better: Better
    scale: tuple[float, float] = (0.0, 1.0)
    needs: Sequence[str] = ()
    gates: Sequence[str] = ()
    yields_to: str | None = None
    settled_by: str | None = None
    aliases: Sequence[str] = ()
    aggregate: str | None = None
    unit: Unit | None = None
    binary: bool = False
    on_by_default: bool = True
    run_level: bool = False
    of_metric: bool = False
    missing: Callable[[Any], NotApplicable | None] | None = None
    terms: Terms | None = None
    description: str = ""
    name: str = ""
    function: Callable[..., Scored] | None = None  # of a stored run's metric that is known by its description only
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # An odd scale stays: the registry reports it with the metric's name, which is not known here.
        with suppress(TypeError, ValueError, OverflowError):
            low, high = self.scale
            object.__setattr__(self, "scale", (float(low), float(high)))

    def __call__(self, function: Callable[..., Scored]) -> Metric:
        """Return the metric of this function: `def name(obs: Observation) -> float | Score | NotApplicable`."""
        return replace(self, function=function, name=self.name or getattr(function, "__name__", ""))

    @cached_property
    def _parameters(self) -> Mapping[str, inspect.Parameter]:
        if self.function is None:
            return {}
        return inspect.signature(self.function).parameters

    @cached_property
    def takes_k(self) -> Literal["no", "always", "optional"]:
        """Return 'always' if a name without a cut-off takes the configured k, 'optional' if it takes the whole list."""
        if self.function is None:
            return "optional"
        parameter = self._parameters.get("k")
        if parameter is None:
            return "no"
        return "always" if parameter.default is inspect.Parameter.empty else "optional"

    @cached_property
    def known_options(self) -> Mapping[str, inspect.Parameter]:
        """Return the keyword-only parameters of the function: the options of the table `[tool.rageval.metrics]`."""
        keyword_only = inspect.Parameter.KEYWORD_ONLY
        filled_in = ("k", "of") if self.of_metric else ("k",)
        return {name: p for name, p in self._parameters.items() if p.kind is keyword_only and name not in filled_in}

    @cached_property
    def rubrics(self) -> tuple[str, ...]:
        """Return the judge's rubrics that this metric reads."""
        return tuple(need.removeprefix("judge:") for need in self.needs if need.startswith("judge:"))

    @cached_property
    def guard(self) -> Callable[[Any], NotApplicable | None] | None:
        """Return the function that says before the metric why an observation has no value; None if nothing does."""
        # Built-in metrics have reasons of their own: an abstention, for example, is an answer without a text.
        if self.missing is not None or not self.is_foreign or self.run_level or not self.needs:
            return self.missing
        return guard_of(self.needs)

    @cached_property
    def is_foreign(self) -> bool:
        """Return True if the function is not of this package: then its calls are watched, and its values checked."""
        if self.function is None:
            return False
        module = getattr(self.function, "__module__", None)
        return not isinstance(module, str) or module.partition(".")[0] != "pytest_rageval"

    @cached_property
    def looks_at_gold(self) -> bool:
        """Return True if the metric needs a label of the case."""
        return any(need.partition(".")[0] == "gold" for need in self.needs)

    @property
    def label(self) -> str:
        """Return the name and whether it takes a cut-off: `recall_any@k`, `mrr[@k]`."""
        if self.of_metric:
            return f"{self.name}@METRIC"
        return self.name + {"no": "", "always": "@k", "optional": "[@k]"}[self.takes_k]

    @property
    def values(self) -> str:
        """Return the values that a score may have: '0 or 1', '0 to 5', 'ms'."""
        if self.unit is not None:
            return self.unit
        low, high = self.scale
        return "0 or 1" if self.binary and not self.run_level else f"{low:g} to {high:g}"

    @property
    def doc(self) -> str:
        if self.description or self.function is None:
            return self.description
        return inspect.getdoc(self.function) or ""


@dataclass(frozen=True)
class Measure:
    """A metric with its cut-off fixed, as named by gates, result keys and headings."""

    metric: Metric
    k: int | None = None
    of: str | None = None
    """The metric that this one is about, where its name names one."""
    seconds: float = field(default=LONGEST_CALL, compare=False)
    """The deadline of a call, for a metric that is not of this package."""

    @cached_property
    def name(self) -> str:
        part = self.of or self.k
        return self.metric.name if part is None else f"{self.metric.name}@{part}"

    def __call__(self, obs: Observation | RunFacts) -> Score | NotApplicable:
        """Score one observation (or run); raise OddScoreError for a value that is no score on the metric's scale."""
        scored = self.score(obs)
        return Score(scored) if isinstance(scored, float) else scored

    @cached_property
    def score(self) -> Callable[[Any], Scored]:
        """Return the scoring function: plain float for a score without detail. Bound once, before the first case."""
        checked = self._checked
        missing = self.metric.guard
        top = self.k or 0
        options = dict(self.metric.options)
        if self.of:
            options["of"] = self.of
        if self.metric.function is None:
            return lambda _: _NOT_AT_HAND
        if self.metric.run_level and top:
            options["k"] = top
            top = 0
        function: Callable[..., Any] = partial(self.metric.function, **options) if options else self.metric.function
        low, high = self.metric.scale
        high = min(high, sys.float_info.max)
        arguments = (top,) if top else ()

        def score(obs: Any) -> Scored:
            if top and obs.asked_k is not None and top > obs.asked_k:
                return not_asked_for(obs.asked_k, top)
            if missing is not None and (reason := missing(obs)) is not None:
                return reason
            value = function(obs, *arguments)
            # The usual score first: each case takes this way once a metric.
            if value.__class__ is float and low <= value <= high:
                return value
            return value if value.__class__ is NotApplicable else checked(value)

        if not self.metric.is_foreign:
            return score
        from pytest_rageval.metrics.own_calls import WatchedCalls  # here, because most projects have no metrics

        calls = WatchedCalls(self.name, self.seconds)
        return lambda obs: calls.score(partial(score, obs))

    def arithmetic(self, obs: Observation) -> str:
        """Return the metric's formula with this case's numbers, as `1 / rank 4`; '' for a project's own metric."""
        judgement = obs.judgement_of(self.metric.name)
        if judgement is not None:
            low, high = judgement.scale
            reasoning = f": {judgement.reasoning}" if judgement.reasoning else ""
            return f"{judgement.model} gave {judgement.scores[self.metric.name]:g} on {low:g} to {high:g}{reasoning}"
        if self.metric.terms is None:
            return ""
        known = inspect.signature(self.metric.terms).parameters
        options = {name: value for name, value in self.metric.options.items() if name in known}
        formula = partial(self.metric.terms, obs, self.k or len(obs.hits), **options)
        if not self.metric.is_foreign:
            return formula()
        from pytest_rageval.metrics.own_calls import formula_of  # here, because most projects have no metrics

        return formula_of(formula, self.seconds)

    def _checked(self, scored: Scored) -> Scored:
        """Check what a function returned if it is no float within the scale: return it if it is fine, else raise."""
        if isinstance(scored, NotApplicable):
            return scored
        value = scored.value if isinstance(scored, Score) else scored
        if not hasattr(value, "__float__"):
            raise OddScoreError(f"{self.name} is {shown_value(value)}, expected a number, a Score or NotApplicable")
        try:
            value = float(value)
        except (TypeError, ValueError, OverflowError):  # an array, or a whole number beyond what a float can hold
            raise OddScoreError(f"{self.name} is {shown_value(value)}, expected a number of its scale") from None
        low, high = self.metric.scale
        if not math.isfinite(value) or not low <= value <= high:
            raise OddScoreError(f"{self.name} is {value}, outside its scale {low:g} to {high:g}")
        return Score(value, scored.detail) if isinstance(scored, Score) else value


_NOT_AT_HAND = NotApplicable("the metric is the project's own: only pytest can compute it")


def not_asked_for(asked: int, needed: int) -> NotApplicable:
    """Return why a metric over the top ranks has no value: a smaller cut-off would be another metric in disguise."""
    return NotApplicable(f"the system was asked for {asked} chunks, fewer than {needed}", is_unobserved=True)


metric = Metric
"""Declares a metric, as a decorator."""


class Registry:
    """All known metrics by name and alias."""

    def __init__(self, metrics: Iterable[Metric] = ()) -> None:
        self._metrics: dict[str, Metric] = {}
        self._aliases: dict[str, str] = {}
        self._layers: dict[str, Layer] = {}
        for metric in metrics:
            self.add(metric)

    def add(self, metric: Metric) -> None:
        """Register a metric; the same name for another definition is a SettingsError."""
        if not isinstance(metric, Metric):
            raise SettingsError(f"{shown_value(metric)} is not a metric; declare it with @metric(layer=…, better=…)")
        if metric.is_foreign:
            from pytest_rageval.metrics.declaration import check_declaration  # here, because most projects have none

            check_declaration(metric, get_args(Layer))
        registered = self._metrics.get(metric.name)
        # The same metric twice does no harm.
        if registered is not None and registered.function is not metric.function:
            raise SettingsError(f"metric {metric.name!r} is declared twice; rename one of the two")
        self._metrics[metric.name] = metric
        for alias in metric.aliases:
            self._aliases[alias] = metric.name
        if metric.aggregate:
            self._aliases[metric.aggregate] = metric.name

    def __iter__(self) -> Iterator[Metric]:
        return iter(self._metrics.values())

    def __contains__(self, name: str) -> bool:
        return name in self._metrics or name in self._aliases

    def __getitem__(self, name: str) -> Metric:
        """Return a metric by bare name or alias; unknown names are a SettingsError with the nearest known one."""
        bare = self._aliases.get(name, name)
        if bare in self._metrics:
            return self._metrics[bare]
        raise SettingsError(self._unknown(name, name))

    def _unknown(self, name: str, written: str) -> UnknownMetric:
        """Return the line about an unknown name; `written`: the name with its cut-off."""
        if name.casefold().replace("-", "_") in ("pass_rate", "passrate"):
            remedy = ", because each failing case fails the build by itself"
            return UnknownMetric(f"{written!r} is not a metric{remedy}", name)
        elsewhere = name_here(name)
        if elsewhere is not None:
            return UnknownMetric(f"unknown metric {written!r}; here it is {elsewhere}", name)
        remedy = did_you_mean(name, [*self._metrics, *self._aliases])
        return UnknownMetric(f"unknown metric {written!r}{remedy}", name)

    def layer_of(self, score: str) -> Layer:
        """Return the layer of a score by its name, cut-off included; looked up once for each name."""
        layer = self._layers.get(score)
        if layer is None:
            bare = score.partition("@")[0]
            layer = self[bare].layer
            self._layers[score] = layer
        return layer

    def by_layer(self, scores: Mapping[str, float]) -> dict[str, dict[str, float]]:
        """Return scores by layer, in the order of the layers."""
        by_layer: dict[str, dict[str, float]] = {}
        for name, value in scores.items():
            by_layer.setdefault(self.layer_of(name), {})[name] = value
        if len(by_layer) < 2:
            return by_layer
        return {layer: by_layer[layer] for layer in LAYERS if layer in by_layer}

    def measure(self, written: str, k: int) -> Measure:
        """Return the measure recall_any@5 for `recall@5`; without a cut-off, at the configured `k` if one is needed."""
        name, at, cut = self._aliases.get(written, written).partition("@")  # pass@k is a name as a whole
        if name not in self:
            raise SettingsError(self._unknown(name, written))
        metric = self[name]
        if metric.of_metric:
            return self._about(metric, cut, k)
        if not at:
            return Measure(metric, k if metric.takes_k == "always" else None)
        if metric.takes_k == "no":
            raise SettingsError(f"{written!r}: {metric.name} has no cut-off; write {metric.name!r}")
        if cut == "k":
            return Measure(metric, k)
        # ASCII: "²" is a digit to `isdigit`, and no number to `int`.
        if not cut.isascii() or not cut.isdigit() or int(cut) < 1:
            raise SettingsError(f"{written!r}: a cut-off is a whole number from 1, as in {metric.name}@5")
        return Measure(metric, int(cut))

    def _about(self, metric: Metric, written: str, k: int) -> Measure:
        """Return the measure of a metric about the metric with this name: turn_decay@mrr."""
        if not written:
            raise SettingsError(f"{metric.name!r} is about another metric; name it, as in {metric.name}@mrr")
        of = self.measure(written, k)
        if of.metric.run_level or of.metric.unit is not None:
            raise SettingsError(f"'{metric.name}@{written}': {of.name} is no score of a case; name a metric that is")
        low, high = of.metric.scale
        width = high - low
        better = of.metric.better
        if metric.better == "lower":  # declared for a metric where higher is better
            better = "higher" if better == "lower" else "lower"
        return Measure(replace(metric, better=better, scale=(-width, width)), of=of.name)


def option_types(metric: Metric) -> Mapping[str, Any]:
    """Return the annotated types of a metric's options, for checking the configuration table."""
    hints = {} if metric.function is None else get_type_hints(metric.function)
    return {name: hints.get(name, Any) for name in metric.known_options}


def is_described(metric: Metric) -> bool:
    """Return True if only the description of this metric is known."""
    return metric.function is None
