"""`rageval calibrate`: compare a judge's scores with people's labels of the same answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from pytest_rageval.check.calibrate import BETTER, Calibration, UnlabelledCases
from pytest_rageval.check.calibration_record import store_calibration
from pytest_rageval.check.judge_check import judge_at_hand
from pytest_rageval.check.judged_labels import (
    Examination,
    JudgedLabel,
    UnscoredLabel,
    judge_labels,
    labelled_answers,
)
from pytest_rageval.check.labels import Label, read_labels
from pytest_rageval.cli.options import FORM_JSON, echo_json, exit_codes, run_options, settings_given
from pytest_rageval.cli.output import Progress, echo_view
from pytest_rageval.config.project import Project, find_project
from pytest_rageval.config.settings import Settings
from pytest_rageval.errors import SettingsError
from pytest_rageval.gates.gate import Gate, parse_gate, resolve
from pytest_rageval.io.masking import Mask
from pytest_rageval.judges.judge import several_served
from pytest_rageval.judges.rubrics import load_rubric
from pytest_rageval.metrics import load_registry
from pytest_rageval.metrics.judged import with_rubric_metrics
from pytest_rageval.metrics.registry import Registry
from pytest_rageval.run.judged_rubrics import own_rubrics
from pytest_rageval.runs.reader import StoredRun, open_stored_run
from pytest_rageval.text import printable
from pytest_rageval.views.calibration import calibration_view


@click.command()
@click.argument("labels", type=click.Path(path_type=Path))
@run_options("judge", "judge-base-url", "reports")
@click.option("--judge-cache", metavar="MODE", help="use, refresh, off or replay (default: as configured).")
@click.option("--rubric", default="groundedness", show_default=True, help="The rubric that was labelled.")
@click.option(
    "--gate",
    "written",
    metavar="GATE",
    help="Limit of a pass, as in 'groundedness >= 3.5' (default: as configured, else the metric's own).",
)
@click.option("--run", metavar="RUN", help="The run of labels that name a case and no run.")
@click.option("--unlabelled", metavar="RUN", help="Estimate how many answers of this run people would pass.")
@click.option("--format", "form", type=click.Choice(["terminal", "json"]), default="terminal", show_default=True)
@FORM_JSON
@exit_codes({0: "compared", 1: "some answers could not be judged"})
def calibrate(
    labels: Path,
    judge_cache: str | None,
    rubric: str,
    written: str | None,
    run: str | None,
    unlabelled: str | None,
    form: str,
    **options: Any,
) -> None:
    """Compare a judge with people's LABELS (CSV or JSONL) of the same answers.

    A label has human_score (on the rubric's scale), human_pass, or both. Its answer is in the same row (question,
    answer, contexts) or in a run (case_key). A judge_score in the row, or the score in the run, is used as it is,
    unless --judge is given.
    """
    given = settings_given(options)
    project = find_project({**given, "judge_cache": judge_cache})
    settings = project.settings
    how = _examination(project, rubric, written)
    rows = read_labels(labels, how.rubric.scale, settings.max_line_bytes)
    open_run = partial(open_stored_run, project.reports, baseline=project.baseline_file)
    answers = labelled_answers(rows, open_run, run)
    more = None
    if unlabelled is not None:
        more = _unlabelled(open_run, unlabelled, how.gate, rows, run)
    judged = _judged(project, answers, how, is_named="judge" in given)
    result = Calibration(judged, how.gate, rubric, more)
    _keep(project.reports, labels.name, result)
    if form == "json":
        echo_json(result.as_mapping(), ["rageval judge-check"] if result.errors else ())
    else:
        echo_view(calibration_view(result, show_texts=not settings.redact))
    raise SystemExit(1 if result.errors else 0)


def _keep(reports: Path, labels: str, result: Calibration) -> None:
    """Store the calibration if one judge gave all scores."""
    identities = {case.judge for case in result.cases}
    identity = identities.pop() if len(identities) == 1 else None
    if identity is None:
        return
    try:
        store_calibration(reports, identity, labels, result)
    except OSError as error:
        click.echo(f"{reports}: the calibration cannot be kept: {error.strerror or error}", err=True)


def _examination(project: Project, rubric: str, written: str | None) -> Examination:
    """Return the rubric to judge by, and the gate; raise SettingsError if labels cannot be compared by them."""
    settings = project.settings
    own = own_rubrics(settings, project.root)
    registry = with_rubric_metrics(load_registry(), own.values(), settings.rubrics)
    comparable = (metric for metric in registry if metric.rubrics == (metric.name,) and metric.better == "higher")
    names = [metric.name for metric in comparable]
    if rubric not in names:
        raise SettingsError(f"--rubric {printable(rubric)!r}: labels are compared by one of {', '.join(names)}")
    gate = _gate(settings, registry, rubric, written)
    if gate.measure is None or gate.name != rubric:
        raise SettingsError(f"--gate {str(gate)!r} is not on {rubric}, which the labels are of")
    if gate.op not in BETTER:
        raise SettingsError(f"gate {str(gate)!r}: passing begins at a lower limit; write {rubric} >= LIMIT")
    return Examination(gate, own.get(rubric) or load_rubric(rubric), settings)


def _gate(settings: Settings, registry: Registry, rubric: str, written: str | None) -> Gate:
    """Return the gate of the command line, else the project's first without a condition, else the metric's own."""
    if written is not None:
        gate = resolve(parse_gate(written, "--gate"), registry, settings.k)
        if gate.when or gate.off or gate.scope == "run":
            raise SettingsError(f"--gate {written!r}: write METRIC >= LIMIT, without 'run', 'when' and 'off'")
        return gate
    sources = [("gates.case", text) for text in settings.gates.case]
    sources += [(f"metric {rubric}", text) for text in registry[rubric].gates]
    for place, text in sources:
        gate = resolve(parse_gate(text, place), registry, settings.k)
        if gate.name == rubric and not gate.when and not gate.off:
            return gate
    raise SettingsError(f"{rubric} has no gate: say where passing begins with --gate '{rubric} >= LIMIT'")


def _unlabelled(
    open_run: Callable[[str], StoredRun], unlabelled_run: str, gate: Gate, labels: Sequence[Label], run: str | None
) -> UnlabelledCases:
    """Return the run's unlabelled cases; labelled ones count among the labels."""
    stored = open_run(unlabelled_run)
    here = stored.path.resolve()
    folders: dict[str, Path] = {}
    labelled_here: list[str] = []
    for label in labels:
        name = label.run or run
        if label.case_key is None or name is None:
            continue
        if name not in folders:
            # Different names, such as `latest` and an id, can mean the same run.
            folders[name] = open_run(name).path.resolve()
        if folders[name] == here:
            labelled_here.append(label.case_key)
    return UnlabelledCases.of(stored, gate, labelled_here)


def _judged(
    project: Project, answers: Sequence[UnscoredLabel], how: Examination, *, is_named: bool
) -> list[JudgedLabel]:
    """Return all labels with the judge's scores, in their order.

    Judge only those whose score is not recorded, or all if the command line names the judge.
    """
    judged = {answer.label.id: how.known(answer, is_judged_again=is_named) for answer in answers}
    rest = [each for each in judged.values() if isinstance(each, UnscoredLabel) and not each.reason]
    if not rest:
        return list(judged.values())
    problem = "there is no judge to compare; name one with --judge"
    mask = Mask(project.settings.secrets())
    with judge_at_hand(project, project.settings, mask, problem, _tell) as judge:
        if how.rubric.name not in judge.rubrics:
            raise SettingsError(f"judge {printable(judge.model)!r} does not have the rubric {how.rubric.name}")
        with Progress("judged", len(rest)) as watch:
            for result in judge_labels(rest, judge, how, watch):
                judged[result.label.id] = result
    note = several_served(judge.identity, judge.served)
    if note is not None:
        click.echo(note, err=True)
    return list(judged.values())


def _tell(note: str) -> None:
    click.echo(printable(note), err=True)
