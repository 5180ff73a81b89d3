"""`rageval explain RUN CASE`: one case of a run, everything."""

from __future__ import annotations

from pathlib import Path

import click

from pytest_rageval.metrics import load_registry
from pytest_rageval.plan import make_plan
from pytest_rageval.report.explain import explanation
from pytest_rageval.runs.stored import StoredRun, open_run
from pytest_rageval.settings import Settings, load_settings


@click.command()
@click.argument("run")
@click.argument("case")
@click.option("--reports", metavar="DIR", help="Folder of runs (default: as configured).")
def explain(run: str, case: str, reports: str | None) -> None:
    """Explain CASE (an id or key) of RUN (an id, `latest`, `latest~1` or a folder): gold, what came, every metric's
    arithmetic and every gate."""
    root = Path.cwd()
    settings = load_settings(root, {"reports": reports})
    stored = open_run(root / settings.reports, run)
    record = stored.find(case)
    plan = make_plan(settings_of(stored, settings), load_registry(), root)
    for line in explanation(record, stored.observation(record["case_key"]), plan):
        click.echo(line)


def settings_of(run: StoredRun, settings: Settings) -> Settings:
    """The settings that the run had, where they decide about results; metrics of the project's own are left out."""
    registry = load_registry()
    told = dict(run.config["settings"])
    kept = {name: value for name, value in told["metric_options"].items() if name in registry}
    return settings.model_copy(
        update={
            "k": told["k"],
            "gold_by": told["gold_by"],
            "ontology": told.get("ontology"),
            "metric_options": kept,
            "enabled": tuple(name for name in run.config["metrics"] if name.partition("@")[0] in registry),
            "gates": type(settings.gates)(case=_known(told["gates"]["case"], registry)),
            "gate": _known(told["gate"], registry),
            "regression": (),
        }
    )


def _known(gates: list[str], registry: object) -> tuple[str, ...]:
    from pytest_rageval.gates import parse_gate
    from pytest_rageval.metrics.registry import Registry

    assert isinstance(registry, Registry)
    return tuple(text for text in gates if parse_gate(text, "run").metric.partition("@")[0] in registry)
