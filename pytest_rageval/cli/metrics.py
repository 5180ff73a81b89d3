"""`rageval metrics`: every metric with its definition, read from where it is declared."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from typing import Any, Literal, get_args, get_origin

import click

from pytest_rageval.cli.options import JSON, echo_json
from pytest_rageval.config.project import find_project
from pytest_rageval.metrics import load_registry
from pytest_rageval.metrics.definitions_page import NAMES, metrics_page
from pytest_rageval.metrics.judged import with_rubric_metrics
from pytest_rageval.metrics.registry import LAYERS, Metric, option_types
from pytest_rageval.plan import own_rubrics


@click.command()
@click.argument("name", required=False)
@JSON
@click.option("--markdown", is_flag=True, help="Print the page of all metrics as Markdown.")
def metrics(name: str | None, as_json: bool, markdown: bool) -> None:
    """List all metrics by layer, or say everything about the metric NAME (recall@5 means recall_any).

    Metrics that rubrics of the project make are among them.
    """
    registry = load_registry()
    if not markdown:
        project = find_project()
        registry = with_rubric_metrics(
            registry, own_rubrics(project.settings, project.root).values(), project.settings.rubrics
        )
    if markdown:
        if name is not None or as_json:
            raise click.UsageError("--markdown prints all metrics; leave NAME and --json out")
        click.echo(metrics_page(registry), nl=False)
        return
    if name is not None:
        metric = registry.measure(name, k=5).metric
        if as_json:
            echo_json(describe(metric), default=str)
        else:
            click.echo("\n".join(_in_full(metric)))
        return
    listed = sorted(registry, key=lambda metric: list(LAYERS).index(metric.layer))
    if as_json:
        echo_json({"metrics": [describe(metric) for metric in listed]}, default=str)
    else:
        click.echo("\n".join(_by_layer(listed)))


def describe(metric: Metric) -> dict[str, Any]:
    """Return a metric's declaration as plain values: what `--json` prints."""
    types = option_types(metric)
    return {
        "name": metric.name,
        "aliases": list(metric.aliases),
        "aggregate": metric.aggregate or metric.name,
        "layer": metric.layer,
        "layer_title": LAYERS[metric.layer],
        "scale": list(metric.scale),
        "better": metric.better,
        "binary": metric.binary,
        "cut_off": metric.takes_k,
        "run_level": metric.run_level,
        "on_by_default": metric.on_by_default,
        "needs": list(metric.needs),
        "gates": list(metric.gates),
        "yields_to": metric.yields_to,
        "options": {
            option: {
                "default": None if parameter.default is inspect.Parameter.empty else parameter.default,
                "choices": list(get_args(types[option])) if get_origin(types[option]) is Literal else None,
            }
            for option, parameter in metric.known_options.items()
        },
        "doc": metric.doc,
    }


def _by_layer(listed: Iterable[Metric]) -> Iterator[str]:
    rows = [
        (metric, NAMES[metric.takes_k].format(metric.name), metric.values, _first_sentence(metric)) for metric in listed
    ]
    name_width = max(len(name) for _, name, _, _ in rows)
    scale_width = max(len(scale) for _, _, scale, _ in rows)
    layer = None
    for metric, name, scale, sentence in rows:
        if metric.layer != layer:
            if layer is not None:
                yield ""
            layer = metric.layer
            yield _title(metric)
        yield f"  {name:{name_width}}  {scale:{scale_width}}  {metric.better:6}  {sentence}"
    yield ""
    yield "@k: takes a cut-off, as in recall_any@5; [@k]: may take one. In full: rageval metrics NAME"


def _in_full(metric: Metric) -> Iterator[str]:
    yield f"{NAMES[metric.takes_k].format(metric.name)}: {_title(metric)}"
    yield ""
    yield metric.doc
    yield ""
    described = describe(metric)
    facts = {
        "scale": f"{metric.values}, {metric.better} is better",
        "also called": ", ".join(metric.aliases),
        "mean called": metric.aggregate,
        "scored": "once a run" if metric.run_level else "each case",
        "on by default": "yes" if metric.on_by_default else "no: name it in `metrics`",
        "needs": ", ".join(metric.needs),
    }
    for label, value in facts.items():
        if value:
            yield f"{label + ':':15}{value}"
    for option, allowed in described["options"].items():
        choices = " | ".join(map(str, allowed["choices"] or ["any"]))
        yield f"{'option:':15}{option} = {allowed['default']!r} ({choices})"
    for gate in metric.gates:
        stands_back = f" (not where that of {metric.yields_to} looks at the case)" if metric.yields_to else ""
        yield f"{'default gate:':15}{gate}{stands_back}"


def _title(metric: Metric) -> str:
    title = LAYERS[metric.layer]
    return title.capitalize() if metric.layer == title else f"{metric.layer} {title}"


def _first_sentence(metric: Metric) -> str:
    paragraph = " ".join(metric.doc.partition("\n\n")[0].split())
    return paragraph.partition(". ")[0].rstrip(".")
