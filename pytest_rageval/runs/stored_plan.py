"""The plan of a stored run, rebuilt from its config.json without the project's code."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_rageval.config.settings import Settings, defaults_of_younger_settings
from pytest_rageval.config.settings_sources import tuples_of
from pytest_rageval.config.tables import Abstention, Gates, Price, Versions
from pytest_rageval.io.masking import MASK
from pytest_rageval.metrics import load_registry
from pytest_rageval.metrics.added import with_added_metrics
from pytest_rageval.metrics.registry import Metric, Registry
from pytest_rageval.run.plan import Plan, make_plan
from pytest_rageval.runs.reader import StoredRun

DESCRIBED = ("layer", "better", "scale", "binary", "aggregate", "run_level")


def described_metrics(plan: Plan) -> dict[str, dict[str, Any]]:
    """Return the measured metrics of the project's own: all that aggregation and gates need of them."""
    shipped = load_registry()
    metrics = [measure.metric for measure in (*plan.measures, *plan.run_measures)]
    own = {metric.name: metric for metric in metrics if metric.name not in shipped}
    described = {}
    for name, metric in own.items():
        described[name] = {key: getattr(metric, key) for key in DESCRIBED}
        if metric.unit is not None:
            described[name]["unit"] = metric.unit
    return described


def meanings(plan: Plan) -> dict[str, str]:
    """Return the first paragraph of the documentation of each of the project's own metrics."""
    own = {measure.metric.name: measure.metric for measure in (*plan.measures, *plan.run_measures)}
    return {name: own[name].doc.split("\n\n")[0] for name in described_metrics(plan)}


def plan_of(run: StoredRun, settings: Settings, root: Path, named: tuple[str, ...] = ()) -> Plan:
    """Return a stored run's plan by these settings. Only `named` metrics are reported if they lack a value.

    The project's own metrics are known by description only: their scores can be aggregated and gated, not recomputed.
    """
    plan = make_plan(settings, registry_of(run), root)
    return replace(plan, settings=settings.model_copy(update={"enabled": named or None}))


def settings_of(run: StoredRun, current: Settings) -> Settings:
    """Return the current settings with the run's own for all that decides results."""
    written = dict(run.config["settings"])
    shipped = load_registry()
    options = {name: value for name, value in written.pop("metric_options").items() if name in shipped}
    gates = written.pop("gates")
    abstention = written.pop("abstention", {"phrases": ()})
    versions = written.pop("versions", {})
    prices = written.pop("prices", {})
    then = defaults_of_younger_settings()
    for name, value in written.items():
        # A run of another release may have settings that this one does not know.
        if name in Settings.model_fields:
            then[name] = tuples_of(value)
    # Nothing is asked again, so that the place of the answer in a reply is not needed.
    then["mapping"] = None
    then["metric_options"] = options
    then["gates"] = Gates(case=tuple(gates["case"]), run=tuple(gates["run"]))
    # A phrase that was a credential as a whole is not known any more.
    phrases = [phrase for phrase in abstention["phrases"] if phrase != MASK]
    then["abstention"] = Abstention(phrases=tuple(phrases))
    then["versions"] = Versions(**versions)
    then["prices"] = {model: Price(**price) for model, price in prices.items()}
    then["enabled"] = tuple(run.config["metrics"])
    return current.model_copy(update=then)


def registry_of(run: StoredRun) -> Registry:
    """Return all known metrics, and the run's own ones by their descriptions."""
    registry = with_added_metrics(load_registry(), run.config.get("added_metrics", ()))
    docs = run.config.get("own_meanings", {})
    for name, description in run.config.get("own_metrics", {}).items():
        if name not in registry:
            declaration = description | {"scale": tuple(description["scale"])}
            registry.add(Metric(name=name, description=docs.get(name, ""), **declaration))
    return registry
