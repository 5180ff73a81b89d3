"""`evaluate`: ask, judge, score, gate and record cases by one call, in a script or a notebook."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from pytest_rageval.api.case_sources import Cases, given_cases
from pytest_rageval.api.evaluated_run import EvaluatedRun
from pytest_rageval.config.options import OPTIONS
from pytest_rageval.config.project import Project, find_project
from pytest_rageval.errors import SettingsError
from pytest_rageval.io.case_output import Output
from pytest_rageval.io.suggestions import did_you_mean
from pytest_rageval.judges import judge_from_object
from pytest_rageval.judges.judge import BaseJudge
from pytest_rageval.metrics.registry import Metric
from pytest_rageval.model import EvalCase
from pytest_rageval.render.run_reports import write_all_reports
from pytest_rageval.run.case_blocks import EvaluatedCase
from pytest_rageval.run.extent import Extent
from pytest_rageval.run.ongoing_run import OngoingRun
from pytest_rageval.run.prepare import Preparation, check_can_answer, make_target, prepare, run_configuration
from pytest_rageval.targets import target_from_object
from pytest_rageval.targets.target import BaseTarget
from pytest_rageval.text import printable

OWN_ARGUMENTS = frozenset({"target", "judge", "metrics", "resume", "shard", "dry_run"})
"""Options of pytest that are arguments here, or have no meaning for a call that returns a run."""


def evaluate(
    cases: Cases,
    target: object = None,
    *,
    judge: object = None,
    metrics: Sequence[str | Metric] | None = None,
    **options: Any,
) -> EvaluatedRun:
    """Evaluate cases, and return the run. Works in a script and inside a running event loop, such as a notebook's.

    cases    a case file or a folder of them; EvalCase objects; or mappings with the keys of a case file
    target   a function from a question to an answer, sync or async; an HTTP client; a Target; or a target as in
             `--rageval-target`. Default: the project's
    judge    a judge as in `--rageval-judge` ("none" for no judge), or a judge object. Default: the project's
    metrics  names of metrics or layers, and metrics of your own. Default: those that are on
    options  options of pytest by their name without `--rageval-`, as in `k=10`, `reports="notebook-runs"`, `repeat=3`

    The run is stored in the project's folder of reports, or in the folder that `reports` names. If the `run_id`
    exists, it gets a suffix, and a note tells: cells of notebooks run several times.
    Raise SettingsError or CaseError with all problems before anything is asked. Ctrl-C ends the run, and results so
    far stay on disk.
    """
    with _named_as_arguments():
        project, note = _with_free_run_id(find_project(_options(options, target, judge, metrics)))
        own_metrics = [metric for metric in metrics or () if isinstance(metric, Metric)]
        prepared = prepare(project, own_metrics, is_before_cases=True)
    cases_to_ask = given_cases(cases, prepared.project)
    asked_target = _target(target, prepared, cases_to_ask)
    root = prepared.project.root
    own_judge = None if judge is None or isinstance(judge, str) else judge_from_object(judge)
    sources = dict.fromkeys(root / case.source.file for case in cases_to_ask)
    case_files = [path for path in sources if path.is_file()]  # given cases may be in none
    judges: tuple[str | None, ...] = (None,)
    if own_judge is not None:
        judges = (f"evaluate(judge={type(judge).__name__})",)
    named_target = None
    if target is not None and not isinstance(target, str):
        named_target = f"evaluate(target={_name(target)})"
    config = run_configuration(prepared, cases_to_ask, case_files, judges=judges, target=named_target)
    run = OngoingRun.open(prepared, config, is_judge_asked=own_judge is None)
    try:
        is_interrupted = _ask(run, cases_to_ask, asked_target, own_judge)
        if not run.has_results() and is_interrupted:
            raise KeyboardInterrupt
        evaluated = _finished(run, cases_to_ask, note, is_interrupted=is_interrupted)
    finally:
        run.close()
    if is_interrupted:
        raise KeyboardInterrupt
    return evaluated


@contextmanager
def _named_as_arguments() -> Iterator[None]:
    """Name options in messages as arguments of `evaluate`: `run_id` for `--rageval-run-id`."""
    try:
        yield
    except SettingsError as error:
        raise SettingsError(*map(_as_argument, error.problems)) from None


def _as_argument(problem: str) -> str:
    return _OPTION.sub(lambda match: match[1].replace("-", "_"), problem)


_OPTION = re.compile(r"--rageval-([a-z][a-z-]*[a-z]|k\b)")


def _with_free_run_id(project: Project) -> tuple[Project, list[str]]:
    """Return the project with a run id that no run has, and a note if that is another one than was asked for."""
    wanted = project.settings.run_id
    runs = project.reports / "runs"
    if wanted is None or not (runs / wanted).exists():
        return project, []
    number = 2
    while (runs / f"{wanted}_{number}").exists():
        number += 1
    free = f"{wanted}_{number}"
    note = f"run_id: a run {wanted!r} is in {runs} already, so this one is {free!r}"
    settings = project.settings.model_copy(update={"run_id": free})
    return project._replace(settings=settings), [note]


def _options(
    options: dict[str, Any], target: object, judge: object, metrics: Sequence[str | Metric] | None
) -> dict[str, Any]:
    fields = {option.name.replace("-", "_"): option for option in OPTIONS}
    allowed = fields.keys() - OWN_ARGUMENTS
    problems = [
        f"evaluate: {name} is not an option{did_you_mean(name, [*allowed])}" for name in options if name not in allowed
    ]
    if problems:
        raise SettingsError(*problems)
    values = {fields[name].field: value for name, value in options.items()}
    if isinstance(target, str):
        values["target"] = target
    if isinstance(judge, str):
        values["judge"] = judge
    if metrics is not None:
        if isinstance(metrics, str):
            raise SettingsError(f"evaluate: metrics is a text, expected a list, as in metrics=[{metrics!r}]")
        names = (metric.name if isinstance(metric, Metric) else metric for metric in metrics)
        values[fields["metrics"].field] = ",".join(names)
    return values


def _target(target: object, prepared: Preparation, cases: Sequence[EvalCase]) -> BaseTarget:
    if target is None or isinstance(target, str):
        configured = make_target(prepared.project)
        check_can_answer(prepared, configured, cases)
        return configured
    settings = prepared.settings
    return target_from_object(
        target, name=_name(target), timeout=settings.timeout, max_bytes=settings.max_response_bytes
    )


def _name(target: object) -> str:
    named = target if hasattr(target, "__qualname__") else type(target)
    return f"{named.__module__}.{named.__qualname__}"


def _ask(run: OngoingRun, cases: Sequence[EvalCase], target: BaseTarget, judge: BaseJudge | None) -> bool:
    """Record the results of all cases; return True if Ctrl-C ended it.

    What their code prints is shown as it comes, line by line: the script is the user's own.
    """

    def clean(text: str) -> str:
        return printable(run.prepared.mask.output(text))

    def show(case: EvaluatedCase) -> None:
        for name, rest in case.printed.texts():
            print(clean(rest), file=getattr(sys, name))

    run.prefetcher.new_output = partial(Output, clean)
    try:
        run.evaluate_here(run.waiting(cases), target, clean, show, judge)
    except KeyboardInterrupt:
        return True
    return False


def _finished(
    run: OngoingRun, cases: Sequence[EvalCase], notes: Sequence[str], *, is_interrupted: bool
) -> EvaluatedRun:
    keys = {case.key for case in cases}
    status = run.exit_status(is_interrupted=is_interrupted)
    extent = Extent(every=keys, expected=keys, is_ended_early=is_interrupted, exit_status=status)
    finished = run.finish(extent)
    project = run.prepared.project
    reports = write_all_reports(
        finished.stored, run.prepared.plan, finished.cases, project.baseline_file, exit_status=status
    )
    run.accept(finished)
    return EvaluatedRun(finished.folder, project, (*notes, *finished.notes, *reports.problems))
