"""Preparation of a run: everything that it needs, and its configuration, made from settings.

`prepare` reports all that is wrong with the settings and opens nothing that must be closed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pytest_rageval.assertions.reading import is_metric_of_assertions
from pytest_rageval.cases.gold_places import unwinnable
from pytest_rageval.cases.loading import CaseFile
from pytest_rageval.cases.note_folder import NoteFolder
from pytest_rageval.comparison.baseline import Side, project_baseline
from pytest_rageval.config.project import Project
from pytest_rageval.config.settings import Settings
from pytest_rageval.errors import CaseError, JudgeUnavailable, Problems, SettingsError, UnknownMetric
from pytest_rageval.gates.gate import too_few_cases, unknown_values
from pytest_rageval.io.masking import Mask
from pytest_rageval.judges.judge import BaseJudge, described_judge
from pytest_rageval.judges.judge_spec import judge_of_run
from pytest_rageval.matching.dialects import FileNames, namesakes_of
from pytest_rageval.metrics import load_registry
from pytest_rageval.metrics.added import added_metrics, with_added_metrics
from pytest_rageval.metrics.registry import Metric, Registry
from pytest_rageval.model import EvalCase
from pytest_rageval.run.plan import Plan, make_plan
from pytest_rageval.run.prefetch import BackgroundLoop
from pytest_rageval.runs.config import run_config
from pytest_rageval.runs.folder import check_reports, check_run_id
from pytest_rageval.runs.run_ref import find_run
from pytest_rageval.targets import check_target, target_from_spec
from pytest_rageval.targets.target import BaseTarget, Connection, limits_of_system

NO_TARGET = (
    'no target: say which system to ask with --target, e.g. --target demo, or target = "http://localhost:8080" in '
    "[tool.rageval]; a rag_client fixture is for pytest alone"
)


@dataclass(frozen=True, slots=True)
class Preparation:
    """Settings and what they name. `judge` is None if nothing is judged."""

    project: Project
    plan: Plan
    judge: BaseJudge | None
    baseline: Side | None
    assumed: frozenset[str] = frozenset()
    """Metrics that the settings name and that only cases, which are read later, can add."""

    @property
    def settings(self) -> Settings:
        return self.project.settings

    @property
    def mask(self) -> Mask:
        return self.plan.mask

    def knowing(self, namesakes: Iterable[str], added_metrics: Collection[str] = ()) -> Preparation:
        """Return this for a run of known cases; raise SettingsError if the settings name a metric that none adds.

        namesakes      paths of golds, with names that several files have
        added_metrics  the metrics that the cases add to the run
        """
        plan = self.plan
        if added_metrics or self.assumed:
            declared = Registry(metric for metric in plan.registry if metric.name not in self.assumed)
            registry = with_added_metrics(declared, added_metrics)
            plan = make_plan(plan.settings, registry, self.project.root)
        rules = plan.place_rules._replace(golds=FileNames(namesakes))
        return replace(self, plan=replace(plan, place_rules=rules), assumed=frozenset())


def prepare(
    project: Project,
    own_metrics: Iterable[Metric] = (),
    *,
    workers: int = 1,
    is_worker: bool = False,
    is_before_cases: bool = False,
) -> Preparation:
    """Look up all that the settings name; raise a SettingsError with everything that is wrong.

    JudgeUnavailable where all is well but the judge's server, which was to say which model it has.

    workers     among how many processes limits and budget are divided
    is_worker   is this one of them? Then the run's folder has been made elsewhere
    is_before_cases
                cases, which may add metrics, are read later: `knowing` refuses names of metrics that they do not add
    """
    problems = Problems()
    project = problems.attempt(_with_run_id, project) or project
    root, settings = project
    registry = problems.attempt(load_registry, list(own_metrics))
    plan = None
    assumed: Sequence[UnknownMetric] = ()
    before_plan = len(problems)
    if registry is not None:
        if is_before_cases:
            assumed = _metrics_to_come(settings, registry, root)
            registry = with_added_metrics(registry, {unknown.name for unknown in assumed})
        plan = problems.attempt(make_plan, settings, registry, root)
    problems.attempt(_check_run_id, settings)
    problems.attempt(check_reports, project.reports)
    problems.attempt(lambda: project.notes)
    if not is_worker:
        problems.attempt(check_run_id, project.reports, settings.run_id)
    problems.attempt(settings.resolved_headers)
    if settings.mapping is not None:
        from pytest_rageval.targets.mapped_target import checked_mapping  # here, because it loads httpx

        problems.attempt(checked_mapping, settings.mapping)
    baseline = problems.attempt(project_baseline, project)
    if problems:
        # All that is wrong is said together, even what the cases might have mended.
        problems[before_plan:before_plan] = assumed
    problems.raise_all()
    assert plan is not None
    # The judge last: making one may ask its server for its model.
    judge = None if settings.retrieval_only else judge_of_run(settings, root, workers)
    return Preparation(project, plan, judge, baseline, frozenset(unknown.name for unknown in assumed))


def _metrics_to_come(settings: Settings, registry: Registry, root: Path) -> list[UnknownMetric]:
    """Return the problems of metrics that assertions of cases may still add; none if other metrics are unknown too."""
    try:
        make_plan(settings, registry, root)
    except SettingsError as error:
        unknown = [problem for problem in error.problems if isinstance(problem, UnknownMetric)]
        if len(unknown) < len(error.problems) or not all(is_metric_of_assertions(each.name) for each in unknown):
            return []
        try:
            make_plan(settings, with_added_metrics(registry, {each.name for each in unknown}), root)
        except SettingsError:  # such as a cut-off, which metrics of assertions never have
            return []
        return unknown
    return []


def _check_run_id(settings: Settings) -> None:
    """Raise SettingsError if the run's id holds a credential: it names the folder, and stands in every report."""
    run_id = settings.run_id or ""
    if Mask(settings.secrets()).text(run_id) != run_id:
        raise SettingsError("--rageval-run-id holds a credential of the environment; name the run otherwise")


def _with_run_id(project: Project) -> Project:
    """Replace a target like `run:latest` by the run's id, so that config.json names the run."""
    kind, _, reference = (project.settings.target or "").partition(":")
    if kind != "run" or not reference:
        return project
    try:
        folder = find_run(project.reports, reference, project.baseline_file, is_finished=True)
    except SettingsError as error:
        raise SettingsError(*(f"target run:{reference}: {problem}" for problem in error.problems)) from None
    runs = project.reports / "runs"
    if folder.resolve().parent != runs.resolve():
        raise SettingsError(f"target run:{reference}: that run is not in {runs}; copy it there")
    settings = project.settings.model_copy(update={"target": f"run:{folder.name}"})
    return project._replace(settings=settings)


def make_target(project: Project) -> BaseTarget:
    """Make the configured target; raise SettingsError or CaseError if it cannot be made."""
    if project.settings.target is None:
        raise SettingsError(NO_TARGET)
    return target_in(project, project.settings.target)


def target_in(project: Project, spec: str, environment: Mapping[str, str] | None = None) -> BaseTarget:
    """Make the target of this specification with the project's settings; the mapping is the configured target's alone.

    environment  the variables of its headers and keys, instead of this process's
    """
    settings = project.settings
    connection = Connection(
        timeout=settings.timeout,
        retries=settings.retries,
        limits=limits_of_system(settings),
        max_bytes=settings.max_response_bytes,
        headers=settings.resolved_headers(environment),
        environment=environment,
    )
    mapping = settings.mapping if spec == settings.target else None
    return target_from_spec(spec, root=project.root, reports=project.reports, connection=connection, mapping=mapping)


def check_can_answer(prepared: Preparation, target: BaseTarget, cases: Sequence[EvalCase]) -> None:
    """Raise CaseError if the configured target cannot be reached or lacks answers."""
    settings = prepared.settings
    problems = check_target(target, settings.target or "", cases, is_partial_allowed=settings.allow_partial)
    if problems:
        raise CaseError(*problems)


def check_gate_conditions(prepared: Preparation, files: Sequence[CaseFile]) -> None:
    """Raise SettingsError if a written gate is for cases that do not exist, or needs more cases than there are.

    Silent where a file could not be read: its cases are not known.
    """
    cases = [case for file in files for case in file.cases]
    if any(file.problems for file in files):
        return
    if prepared.assumed:
        prepared = prepared.knowing((), added_metrics(cases))
    if not cases:
        return
    problems = list(unknown_values(prepared.plan.case_gates, cases))
    problems += too_few_cases(prepared.plan.run_gates, len(cases))
    if problems:
        raise SettingsError(*problems)


def check_judge(prepared: Preparation, loop: BackgroundLoop) -> None:
    """Raise JudgeUnavailable if the judge's server cannot be asked; ask nothing in replay."""
    settings = prepared.settings
    judge = prepared.judge
    is_replay = settings.judge_cache == "replay"
    if judge is None or judge.is_local or is_replay or settings.retrieval_only:
        return
    problem = loop.run(judge.check())
    if problem is not None:
        raise JudgeUnavailable(f"judge {judge.model!r}: {problem}")


def run_check(project: Project, judge: BaseJudge, plan: Plan) -> Mapping[str, Any] | None:
    """Return what the judge's last check says about the plan's rubrics; None if it was never checked."""
    from pytest_rageval.judges.canaries import check_of_run, stored_check  # here, because few judges are models

    return check_of_run(stored_check(project.judge_checks_file, judge), judge, plan.wordings)


def run_configuration(
    prepared: Preparation,
    cases: Collection[EvalCase] = (),
    files: Iterable[Path] = (),
    *,
    judges: Collection[str | None] = (None,),
    target: str | None = None,
) -> dict[str, Any]:
    """Return the content of config.json, credentials not yet masked; without cases, equal on every machine.

    cases, files    all that there are, whatever was selected
    judges          who judges any of the cases: None for the configured judge, else the place of a fixture's
    target          what cases are put to, if that is not the configured target
    """
    used_target = target or prepared.settings.target or "rag_client fixture"
    names_of_added = added_metrics(cases)
    if names_of_added or prepared.assumed:
        prepared = prepared.knowing((), names_of_added)
    described = _described_judges(prepared, judges)
    content = run_config(prepared.plan, cases, files, prepared.project.root, used_target, described)
    judge = prepared.judge
    if described is not None and None in judges and judge is not None and not judge.heuristic:
        content["judge_check"] = run_check(prepared.project, judge, prepared.plan)
    namesakes = namesakes_of(cases)
    if namesakes:
        content["namesakes"] = namesakes
    if names_of_added:
        content["added_metrics"] = names_of_added
    notes = prepared.project.notes
    if notes is not None:
        content["labels"] = {"cases": len(cases), "cannot_be_won": unwinnable(cases, NoteFolder(notes))}
    return content


def _described_judges(prepared: Preparation, judges: Collection[str | None]) -> dict[str, Any] | None:
    """Describe the configured judge, and list the fixtures that give one; None if nothing is judged."""
    settings = prepared.settings
    if settings.retrieval_only:
        return None
    described: dict[str, Any] = {}
    if prepared.judge is not None and None in judges:
        described = described_judge(prepared.judge, settings.judge_temperature)
    fixtures = sorted(place for place in judges if place is not None)
    if fixtures:
        described["fixture"] = fixtures
    return described or None
