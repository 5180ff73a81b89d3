"""`rageval metrics`: every metric with its definition, read from where it is declared."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterable, Iterator
from typing import Any, Literal, get_args, get_origin

import click

from pytest_rageval.metrics import load_registry
from pytest_rageval.metrics.reference.definitions_page import NAMES, metrics_page
from pytest_rageval.metrics.registry import LAYERS, Metric, option_types


@click.command()
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
@click.option("--markdown", is_flag=True, help="Print the page of all metrics as Markdown.")
def metrics(name: str | None, as_json: bool, markdown: bool) -> None:
    """List all metrics by layer, or say everything about the metric NAME (recall@5 means recall_any)."""
    registry = load_registry()
    if markdown:
        if name is not None or as_json:
            raise click.UsageError("--markdown prints all metrics; leave NAME and --json out")
        click.echo(metrics_page(registry), nl=False)
        return
    if name is not None:
        one = registry.measure(name, k=5).metric
        click.echo(_as_json(describe(one)) if as_json else "\n".join(_in_full(one)))
        return
    listed = sorted(registry, key=lambda one: list(LAYERS).index(one.layer))
    click.echo(_as_json([describe(one) for one in listed]) if as_json else "\n".join(_by_layer(listed)))


def describe(one: Metric) -> dict[str, Any]:
    """A metric's declaration as plain values: what `--json` prints."""
    types = option_types(one)
    return {
        "name": one.name,
        "aliases": list(one.aliases),
        "aggregate": one.aggregate or one.name,
        "layer": one.layer,
        "layer_title": LAYERS[one.layer],
        "scale": list(one.scale),
        "better": one.better,
        "binary": one.binary,
        "cut_off": one.takes_k,
        "run_level": one.run_level,
        "on_by_default": one.on_by_default,
        "needs": list(one.needs),
        "gates": list(one.gates),
        "yields_to": one.yields_to,
        "options": {
            option: {
                "default": None if parameter.default is inspect.Parameter.empty else parameter.default,
                "choices": list(get_args(types[option])) if get_origin(types[option]) is Literal else None,
            }
            for option, parameter in one.known_options.items()
        },
        "doc": one.doc,
    }


def _as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2, default=str)


def _by_layer(listed: Iterable[Metric]) -> Iterator[str]:
    rows = [(one, NAMES[one.takes_k].format(one.name), one.values, _first_sentence(one)) for one in listed]
    name_width = max(len(name) for _, name, _, _ in rows)
    scale_width = max(len(scale) for _, _, scale, _ in rows)
    layer = None
    for one, name, scale, sentence in rows:
        if one.layer != layer:
            if layer is not None:
                yield ""
            layer = one.layer
            yield _title(one)
        yield f"  {name:{name_width}}  {scale:{scale_width}}  {one.better:6}  {sentence}"
    yield ""
    yield "@k: takes a cut-off, as in recall_any@5; [@k]: may take one. In full: rageval metrics NAME"


def _in_full(one: Metric) -> Iterator[str]:
    yield f"{NAMES[one.takes_k].format(one.name)}: {_title(one)}"
    yield ""
    yield one.doc
    yield ""
    described = describe(one)
    facts = {
        "scale": f"{one.values}, {one.better} is better",
        "also called": ", ".join(one.aliases),
        "mean called": one.aggregate,
        "scored": "once a run" if one.run_level else "each case",
        "on by default": "yes" if one.on_by_default else "no: name it in `metrics`",
        "needs": ", ".join(one.needs),
    }
    for label, value in facts.items():
        if value:
            yield f"{label + ':':15}{value}"
    for option, allowed in described["options"].items():
        choices = " | ".join(map(str, allowed["choices"] or ["any"]))
        yield f"{'option:':15}{option} = {allowed['default']!r} ({choices})"
    for gate in one.gates:
        stands_back = f" (not where a model judged {one.yields_to})" if one.yields_to else ""
        yield f"{'default gate:':15}{gate}{stands_back}"


def _title(one: Metric) -> str:
    title = LAYERS[one.layer]
    return title.capitalize() if one.layer == title else f"{one.layer} {title}"


def _first_sentence(one: Metric) -> str:
    paragraph = " ".join(one.doc.partition("\n\n")[0].split())
    return paragraph.partition(". ")[0].rstrip(".")
