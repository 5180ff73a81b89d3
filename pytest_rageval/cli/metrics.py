"""`rageval metrics`: every metric with its definition, read from where it is declared."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Literal, get_args, get_origin

import click

from pytest_rageval.cli.options import JSON, echo_json
from pytest_rageval.config.project import find_project
from pytest_rageval.metrics import load_registry
from pytest_rageval.metrics.added import project_registry
from pytest_rageval.metrics.definitions_page import metric_facts, metrics_page
from pytest_rageval.metrics.doc_parts import doc_parts
from pytest_rageval.metrics.judged import with_rubric_metrics
from pytest_rageval.metrics.layer_titles import by_layer
from pytest_rageval.metrics.registry import LAYERS, Metric, option_types
from pytest_rageval.run.judged_rubrics import own_rubrics


@click.command()
@click.argument("name", required=False)
@JSON
@click.option("--markdown", is_flag=True, help="Print the page of all metrics as Markdown.")
def metrics(name: str | None, as_json: bool, markdown: bool) -> None:
    """List all metrics by layer, or define the metric NAME (recall@5 means recall_any).

    Metrics that rubrics and assertions of the project make are among them.
    """
    registry = load_registry()
    if markdown:
        if name is not None or as_json:
            raise click.UsageError("--markdown prints all metrics; leave NAME and --json out")
        click.echo(metrics_page(registry), nl=False)
        return
    project = find_project()
    rubrics = own_rubrics(project.settings, project.root).values()
    registry = with_rubric_metrics(registry, rubrics, project.settings.rubrics)
    for each in project_registry(project):
        if each.name not in registry:
            registry.add(each)
    named = None if name is None else registry.measure(name, k=5).metric
    layers = by_layer(registry)
    if as_json and named is None:
        every = chain.from_iterable(layers.values())
        echo_json({"metrics": [describe(metric) for metric in every]}, default=str)
    elif as_json and named is not None:
        echo_json(describe(named), default=str)
    else:
        lines = _listed(layers) if named is None else _in_full(named)
        click.echo("\n".join(lines))


def describe(metric: Metric) -> dict[str, Any]:
    """Return a metric's declaration as plain values: what `--json` prints."""
    types = option_types(metric)
    options = {name: _option(parameter, types[name]) for name, parameter in metric.known_options.items()}
    return {
        "name": metric.name,
        "aliases": list(metric.aliases),
        "aggregate": metric.aggregate or metric.name,
        "layer": metric.layer,
        "layer_title": LAYERS[metric.layer],
        "scale": list(metric.scale),
        "unit": metric.unit,
        "better": metric.better,
        "binary": metric.binary,
        "cut_off": metric.takes_k,
        "run_level": metric.run_level,
        "on_by_default": metric.on_by_default,
        "needs": list(metric.needs),
        "gates": list(metric.gates),
        "yields_to": metric.yields_to,
        "options": options,
        "doc": metric.doc,
    }


def _option(parameter: inspect.Parameter, kind: Any) -> dict[str, Any]:
    has_default = parameter.default is not inspect.Parameter.empty
    has_choices = get_origin(kind) is Literal
    return {
        "default": parameter.default if has_default else None,
        "choices": list(get_args(kind)) if has_choices else None,
    }


def _listed(layers: Mapping[str, Sequence[Metric]]) -> Iterator[str]:
    every = list(chain.from_iterable(layers.values()))
    label_width = max(len(metric.label) for metric in every)
    values_width = max(len(metric.values) for metric in every)
    for title, group in layers.items():
        yield title
        for metric in group:
            sentence = doc_parts(metric).definition.partition(". ")[0].rstrip(".")
            label = metric.label.ljust(label_width)
            values = metric.values.ljust(values_width)
            yield f"  {label}  {values}  {metric.better:6}  {sentence}"
        yield ""
    yield "@k: takes a cut-off, as in recall_any@5; [@k]: may take one. In full: rageval metrics NAME"


def _in_full(metric: Metric) -> Iterator[str]:
    (title,) = by_layer([metric])
    yield f"{metric.label}: {title}"
    yield ""
    yield metric.doc
    yield ""
    for name, text in metric_facts(metric).items():
        # The facts are written for a table in Markdown.
        line = f"{name + ':':15}{text}"
        yield line.replace("`", "").replace("\\|", "|")
