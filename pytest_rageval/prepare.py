"""The two steps before the first question: settings become everything a run needs, and the run is opened.

`prepare` says all that is wrong with the settings and makes nothing that has to be closed. `open_run` makes the run's
folder, its files and the loop that asks. Neither knows pytest: the plugin and the command use both.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_rageval.cases import CaseFile
from pytest_rageval.cases.notes.gold_places import unwinnable
from pytest_rageval.cases.notes.note_folder import NoteFolder
from pytest_rageval.comparison.baseline import Baseline, project_baseline
from pytest_rageval.config.project import Project
from pytest_rageval.config.settings import Settings
from pytest_rageval.errors import CaseError, JudgeUnavailable, Problems, SettingsError
from pytest_rageval.gates.gate import unknown_values
from pytest_rageval.io.masking import Mask
from pytest_rageval.judges.judge import Judge, described_judge
from pytest_rageval.judges.judge_spec import judge_of_run
from pytest_rageval.metrics import load_registry
from pytest_rageval.metrics.registry import Metric
from pytest_rageval.model import EvalCase
from pytest_rageval.plan import Plan, make_plan
from pytest_rageval.prefetch import BackgroundLoop, Prefetcher
from pytest_rageval.runs.config import run_config
from pytest_rageval.runs.disk.folder import RunFolder, check_reports, check_run_id
from pytest_rageval.runs.disk.journal import RunJournal
from pytest_rageval.runs.disk.reader import open_stored_run
from pytest_rageval.runs.disk.resume import Unfinished
from pytest_rageval.runs.disk.run_ref import find_run
from pytest_rageval.runs.disk.writer import Keeper
from pytest_rageval.targets import check_target, target_from_spec
from pytest_rageval.targets.connection import Connection
from pytest_rageval.targets.target import Target

NO_TARGET = (
    'no target: say which system to ask with --target, e.g. --target demo, or target = "http://localhost:8080" in '
    "[tool.rageval]; a rag_client fixture is for pytest alone"
)


@dataclass(frozen=True, slots=True)
class Prepared:
    """Settings, and what they stand for. `judge` is None where nothing is judged."""

    project: Project
    plan: Plan
    judge: Judge | None
    baseline: Baseline | None

    @property
    def settings(self) -> Settings:
        return self.project.settings

    @property
    def mask(self) -> Mask:
        return self.plan.mask


def prepare(
    project: Project, own_metrics: Iterable[Metric] = (), *, workers: int = 1, is_worker: bool = False
) -> Prepared:
    """Look up all that the settings name; a SettingsError says everything that is wrong with them.

    JudgeUnavailable where all is well but the judge's server, which was to say which model it has.

    workers     among how many processes limits and budget are divided
    is_worker   is this one of them? Then the run's folder has been made elsewhere
    """
    problems = Problems()
    project = problems.attempt(_with_run_id, project) or project
    root, settings = project
    registry = problems.attempt(load_registry, list(own_metrics))
    plan = None if registry is None else problems.attempt(make_plan, settings, registry, root)
    problems.attempt(check_reports, project.reports)
    problems.attempt(lambda: project.notes)
    if not is_worker:
        problems.attempt(check_run_id, project.reports, settings.run_id)
    problems.attempt(settings.resolved_headers)
    if settings.mapping is not None:
        from pytest_rageval.targets.mapped_target import checked_mapping  # here, because it loads httpx

        problems.attempt(checked_mapping, settings.mapping)
    baseline = problems.attempt(project_baseline, project)
    problems.raise_all()
    assert plan is not None
    # The judge last: making one may ask its server which model it has.
    judge = None if settings.retrieval_only else judge_of_run(settings, root, workers)
    return Prepared(project, plan, judge, baseline)


def _with_run_id(project: Project) -> Project:
    """With the id of the run that a target like `run:latest` means: config.json says which one it was."""
    kind, _, reference = (project.settings.target or "").partition(":")
    if kind != "run" or not reference:
        return project
    try:
        folder = find_run(project.reports, reference, project.baseline_file, is_finished=True)
    except SettingsError as error:
        raise SettingsError(*(f"target run:{reference}: {problem}" for problem in error.problems)) from None
    if folder.resolve().parent != (project.reports / "runs").resolve():
        raise SettingsError(f"target run:{reference}: that run is not in {project.reports / 'runs'}; copy it there")
    return project._replace(settings=project.settings.model_copy(update={"target": f"run:{folder.name}"}))


def make_target(project: Project) -> Target:
    """The configured target, which exists; SettingsError or CaseError where it cannot be made."""
    if project.settings.target is None:
        raise SettingsError(NO_TARGET)
    return target_in(project, project.settings.target)


def target_in(project: Project, spec: str, environment: Mapping[str, str] | None = None) -> Target:
    """The target of this spelling, asked as the project says; its mapping belongs to the configured one alone.

    environment  where its headers and keys are looked up, if not in that of this process
    """
    settings = project.settings
    connection = Connection(
        timeout=settings.timeout, retries=settings.retries, concurrency=settings.concurrency,
        max_bytes=settings.max_response_bytes, headers=settings.resolved_headers(environment),
        environment=environment,
    )  # fmt: skip
    mapping = settings.mapping if spec == settings.target else None
    return target_from_spec(spec, root=project.root, reports=project.reports, connection=connection, mapping=mapping)


def check_can_answer(prepared: Prepared, target: Target, cases: Sequence[EvalCase]) -> None:
    """CaseError where the configured target cannot be reached or lacks answers."""
    settings = prepared.settings
    if problems := check_target(target, settings.target or "", cases, is_partial_allowed=settings.allow_partial):
        raise CaseError(*problems)


def check_gate_conditions(prepared: Prepared, files: Sequence[CaseFile]) -> None:
    """SettingsError where a written gate is for cases that do not exist: it would look at nothing, and hold.

    Silent where a file could not be read: its cases are not known.
    """
    cases = [case for file in files for case in file.cases]
    if not cases or any(file.problems for file in files):
        return
    if problems := list(unknown_values(prepared.plan.case_gates, cases)):
        raise SettingsError(*problems)


@dataclass(frozen=True, slots=True)
class OpenRun:
    """A run that is being asked, as one process of it sees it. `writer` is None on a worker."""

    config_hash: str
    writer: Keeper | None
    journal: RunJournal
    unfinished: Unfinished | None
    prefetcher: Prefetcher

    def is_done(self, case: EvalCase) -> bool:
        """Has the run that is resumed a result of this case?"""
        return self.unfinished is not None and self.unfinished.is_done(case.key)

    def stop_asking(self) -> None:
        """End the loop: nothing is observed any more; safe to call twice."""
        self.prefetcher.loop.close()

    def close(self) -> None:
        """Give files and lock back, whatever happens; safe to call twice."""
        try:
            self.stop_asking()
        finally:
            self.journal.close()
            if self.writer is not None:
                self.writer.folder.close()


def open_run(
    prepared: Prepared,
    cases: Collection[EvalCase],
    files: Iterable[Path],
    *,
    is_judge_asked: bool = True,
    judges: Collection[str | None] = (None,),
    target: str | None = None,
    add_to_config: Callable[[dict[str, Any]], object] = lambda _: None,
) -> OpenRun:
    """Begin a run, or go on with the one that is resumed; SettingsError where that cannot be.

    cases, files    all that there are, whatever was selected
    is_judge_asked  is it the configured judge that judges? Then its server must be there
    judges          who judges any of the cases: None for the configured judge, else the place of a fixture's
    target          what cases are put to, where that is not the configured target
    add_to_config   may add to what config.json holds
    """
    loop = BackgroundLoop(prepared.settings.longest_call)
    with ExitStack() as opened:
        opened.callback(loop.close)
        if is_judge_asked:
            check_judge(prepared, loop)
        config = _config(prepared, cases, files, judges, target or prepared.settings.target, add_to_config)
        try:
            writer = _writer(prepared, config)
        except OSError as error:
            raise SettingsError(
                f"reports: {error.filename} cannot be written: {error.strerror}; make room, or set another folder with "
                "reports"
            ) from None
        opened.callback(writer.folder.close)
        unfinished = Unfinished(writer.folder.path) if prepared.settings.resume is not None else None
        opened.pop_all()  # all went well: from now on the run closes them
    journal = RunJournal(writer.folder, prepared.settings, None, unfinished)
    return OpenRun(str(config["config_hash"]), writer, journal, unfinished, Prefetcher(prepared.plan, journal, loop))


def join_run(prepared: Prepared, folder: Path | None, worker: str, config_hash: str) -> OpenRun:
    """The part of a worker in a run that the controlling process has opened; without a folder nothing is written."""
    unfinished = Unfinished(folder) if folder is not None and prepared.settings.resume is not None else None
    journal = RunJournal(RunFolder(folder) if folder else None, prepared.settings, worker, unfinished)
    loop = BackgroundLoop(prepared.settings.longest_call)
    return OpenRun(config_hash, None, journal, unfinished, Prefetcher(prepared.plan, journal, loop))


def config_without_cases(prepared: Prepared) -> Mapping[str, Any]:
    """What config.json would hold of this run, its cases left out: equal wherever the run would be the same."""
    return _config(prepared, (), (), (None,), None, lambda _: None)


def check_judge(prepared: Prepared, loop: BackgroundLoop) -> None:
    """JudgeUnavailable where the judge's server cannot be asked; nothing is asked in replay."""
    settings, judge = prepared.settings, prepared.judge
    check = getattr(judge, "check", None)
    if judge is None or check is None or settings.judge_cache == "replay" or settings.retrieval_only:
        return
    if (problem := loop.run(check())) is not None:
        raise JudgeUnavailable(f"judge {judge.model!r}: {problem}")


def run_check(project: Project, judge: Judge, plan: Plan) -> Mapping[str, Any] | None:
    """What the last check of this judge says about the rubrics of the plan; None where it was never checked."""
    from pytest_rageval.judges.canaries import (
        check_of_run,
        kept_check,
    )  # here, because few judges are models

    return check_of_run(kept_check(project.judge_checks_file, judge), judge, plan.wordings)


def _writer(prepared: Prepared, config: Mapping[str, Any]) -> Keeper:
    project, resumed = prepared.project, prepared.settings.resume
    if resumed is None:
        return Keeper.new(project.reports, prepared.plan, config)
    stored = open_stored_run(project.reports, resumed, project.baseline_file)
    return Keeper.resuming(stored, prepared.plan, config)


def _config(
    prepared: Prepared,
    cases: Collection[EvalCase],
    files: Iterable[Path],
    judges: Collection[str | None],
    target: str | None,
    add_to_config: Callable[[dict[str, Any]], object],
) -> Mapping[str, Any]:
    """The content of config.json."""
    used_target = target or "rag_client fixture"
    described = _described_judges(prepared, judges)
    content = run_config(prepared.plan, cases, files, prepared.project.root, used_target, described)
    judge = prepared.judge
    if described is not None and None in judges and judge is not None and not judge.heuristic:
        content["judge_check"] = run_check(prepared.project, judge, prepared.plan)
    if (notes := prepared.project.notes) is not None:
        content["labels"] = {"cases": len(cases), "cannot_be_won": unwinnable(cases, NoteFolder(notes))}
    add_to_config(content)
    config: Mapping[str, Any] = prepared.mask.value(content)
    return config


def _described_judges(prepared: Prepared, judges: Collection[str | None]) -> dict[str, Any] | None:
    """Who judges: the configured judge, the places of fixtures that give one, or both; None where nothing is judged."""
    settings, judge = prepared.settings, prepared.judge
    if settings.retrieval_only:
        return None
    is_configured = judge is not None and None in judges
    described = described_judge(judge, settings.judge_temperature) if judge is not None and is_configured else {}
    if fixtures := sorted(place for place in judges if place is not None):
        described["fixture"] = fixtures
    return described or None
