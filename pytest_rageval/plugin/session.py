"""One test session with cases in it: what is ours, with which settings, how a case is evaluated and recorded.

Lives in every process: alone, on the controller of xdist, on each worker. Imports what is heavy when it is needed.
"""

from __future__ import annotations

import os
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_rageval.config.options import OPTIONS
from pytest_rageval.errors import RagevalError

if TYPE_CHECKING:
    from pytest_rageval.cases import CaseFile
    from pytest_rageval.compare.baseline import Baseline
    from pytest_rageval.config.settings import Settings
    from pytest_rageval.io.masking import Mask
    from pytest_rageval.model import CaseResult, EvalCase, Trial
    from pytest_rageval.plan import Plan
    from pytest_rageval.plugin.configured import Configured
    from pytest_rageval.plugin.evaluator import Evaluator
    from pytest_rageval.plugin.items import EvalItem
    from pytest_rageval.plugin.prefetch_batches import Stretches
    from pytest_rageval.prefetch import Ahead
    from pytest_rageval.runs.journal import RunJournal
    from pytest_rageval.runs.resume import Unfinished
    from pytest_rageval.runs.writer import Keeper


class EvalSession:
    """The state of a session, by what the hooks ask of it."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.root = config.rootpath
        self.is_worker = hasattr(config, "workerinput")
        self.is_used = False
        """Has a case file been collected, or a case evaluated?"""
        self.notes: list[str] = []
        """What a person should know at the end of the run."""
        self.collected: list[Path] = []
        """Case files of this session, on the controller of xdist those that its workers will collect."""
        self._files: dict[Path, CaseFile] = {}
        self._problem: RagevalError | None = None

    # ── what is ours ──────────────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def globs(self) -> tuple[str, ...]:
        from pytest_rageval.config.files import case_globs

        return case_globs(self.root)

    def owns(self, path: Path) -> bool:
        """Is this a case file: found by the globs, or named on the command line with a case as its first record?"""
        if path.suffix not in (".jsonl", ".csv"):
            return False
        from pytest_rageval.cases.discovery import is_case_file

        if path.is_relative_to(self.reports_folder):
            return False
        if is_case_file(path, self.root, self.globs):
            return True
        if path not in self.named_files:
            return False
        from pytest_rageval.cases import looks_like_cases

        return looks_like_cases(path)

    @cached_property
    def reports_folder(self) -> Path:
        """Where runs are kept, as far as it can be known without checking all settings: never a place of cases."""
        from pytest_rageval.config.files import reports_of

        return self.root / (self.config.getoption("rageval_reports") or reports_of(self.root))

    @cached_property
    def named_files(self) -> frozenset[Path]:
        """Files named on the command line."""
        named = (self.config.invocation_params.dir / argument.split("::")[0] for argument in self.config.args)
        return frozenset(path.resolve() for path in named if path.is_file())

    def collector(self, path: Path, parent: pytest.Collector) -> pytest.Collector:
        from pytest_rageval.plugin.items import EvalFile

        self.is_used = True
        self.collected.append(path)
        return EvalFile.from_parent(parent, path=path)

    def load(self, path: Path) -> CaseFile:
        """A case file, read once however often it is asked for."""
        from pytest_rageval.cases import load_file

        if path not in self._files:
            plan = self.plan_or_none()
            limit = {"max_line_bytes": plan.settings.max_line_bytes} if plan else {}
            self._files[path] = load_file(path, self.root, **limit)
        return self._files[path]

    @property
    def all_files(self) -> list[Path]:
        """Case files that the globs find, and those collected because they were named."""
        return list(dict.fromkeys([*self.found_files, *self.collected]))

    @cached_property
    def found_files(self) -> tuple[Path, ...]:
        """All case files that the globs find, whatever was selected."""
        from pytest_rageval.cases.discovery import find_case_files

        files = find_case_files(self.root, self.globs)
        return tuple(path for path in files if not path.is_relative_to(self.reports_folder))

    def all_cases(self) -> list[EvalCase]:
        """The cases of `all_files`; files with problems give none."""
        return [case for path in self.all_files for case in self.load(path).cases]

    def parametrize(self, metafunc: pytest.Metafunc) -> None:
        """Run a test of the user's own for each case of the file that its mark names."""
        from pytest_rageval.plugin.marked_tests import marked_cases

        self.is_used = True
        change = metafunc.config.hook.pytest_rageval_case
        cases = [change(case=case) or case for case in marked_cases(metafunc, self)]
        metafunc.parametrize("eval_case", cases, ids=[case.id for case in cases])

    def take_shard(self, items: list[pytest.Item]) -> None:
        """Deselect cases of other shards, in whatever test they are; tests without a case are in every shard."""
        plan = self.plan_or_none() if self.config.getoption("rageval_shard") else None
        if plan is None or plan.settings.shard is None:
            return
        from pytest_rageval.plugin.items import item_case
        from pytest_rageval.runs.shards import Shard

        shard = Shard.parse(plan.settings.shard)
        cases = [item_case(item) for item in items]
        kept = [case is None or shard.takes(case.key) for case in cases]
        deselected = [item for item, is_kept in zip(items, kept, strict=True) if not is_kept]
        if deselected:
            self.config.hook.pytest_deselected(items=deselected)
            items[:] = [item for item, is_kept in zip(items, kept, strict=True) if is_kept]

    # ── settings ──────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def given_options(self) -> dict[str, Any]:
        """Options of ours on the command line, by the setting they stand for."""
        given = {option.field: self.config.getoption(option.dest, None) for option in OPTIONS}
        return {name: value for name, value in given.items() if value is not None}

    @cached_property
    def plan(self) -> Plan:
        """The resolved settings; a SettingsError names everything that is wrong with them."""
        from pytest_rageval.metrics import load_registry
        from pytest_rageval.plan import make_plan
        from pytest_rageval.runs.folder import check_reports, check_run_id

        settings = self.settings
        own = self.config.hook.pytest_rageval_metrics(config=self.config)
        registry = load_registry([metric for metrics in own if metrics for metric in metrics])
        plan = make_plan(settings, registry, self.root)
        check_reports(self.root / settings.reports)
        if not self.is_worker:  # by then the controller has made the folder
            check_run_id(self.root / settings.reports, settings.run_id)
        settings.resolved_headers()
        if settings.mapping is not None:
            from pytest_rageval.targets.mapped.mapped_target import checked_mapping

            checked_mapping(settings.mapping)
        # Wrong settings too, and said before anything runs: a judge or a baseline that does not exist.
        self.configured.described_judge, self.baseline  # noqa: B018 because what they raise is what is wanted
        return plan

    def plan_or_none(self) -> Plan | None:
        """The plan, or None where settings are wrong: said once, before anything runs."""
        if self._problem is None:
            try:
                return self.plan
            except RagevalError as problem:
                self._problem = problem
        return None

    @cached_property
    def settings(self) -> Settings:
        from pytest_rageval.config.settings import load_settings

        return load_settings(self.root, self.given_options)

    @cached_property
    def mask(self) -> Mask:
        """Hides the credentials of this run in what is shown; of wrong settings those of the environment."""
        from pytest_rageval.io.masking import Mask, secrets_of_environment

        try:
            return Mask(self.settings.secrets())
        except RagevalError:
            return Mask(secrets_of_environment(os.environ))

    @cached_property
    def configured(self) -> Configured:
        from pytest_rageval.plugin.configured import Configured

        return Configured(self)

    @property
    def workers(self) -> int:
        """Among how many processes limits are divided: the workers of xdist, 1 elsewhere."""
        return int(self._told("workercount") or 1)

    @property
    def reports(self) -> Path:
        return self.root / self.settings.reports

    def raise_problem(self) -> None:
        """Stop with exit code 4 and one line a problem, if the settings are wrong."""
        if self.plan_or_none() is None and self._problem is not None:
            raise pytest.UsageError(*self.mask.value(self._problem.problems)) from None

    @property
    def baseline_file(self) -> Path:
        from pytest_rageval.compare.baseline import baseline_file

        return baseline_file(self.settings, self.root)

    @cached_property
    def baseline(self) -> Baseline | None:
        """The baseline to compare with; one that was named must exist, unless this run is to become it."""
        from pytest_rageval.compare.baseline import read_baseline

        is_named = self.settings.baseline is not None and not self.settings.update_baseline
        return read_baseline(self.baseline_file, is_required=is_named)

    @cached_property
    def run_config(self) -> dict[str, Any]:
        """The content of config.json; made on the controlling process only."""
        from pytest_rageval.runs.config import run_config

        target, judge = self.settings.target or "rag_client fixture", self.configured.described_judge
        content = run_config(self.plan, self.all_cases(), self.all_files, self.root, target, judge)
        self.config.hook.pytest_rageval_run_config(config=self.config, run_config=content)
        return self.mask.value(content)

    @property
    def config_hash(self) -> str:
        """The hash of config.json, on every process."""
        return self._told("rageval_config_hash") if self.is_worker else str(self.run_config["config_hash"])

    # ── keeping ───────────────────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def keeper(self) -> Keeper:
        """The run that is written; on the controlling process only. A SettingsError where it cannot be resumed."""
        from pytest_rageval.runs.reader import open_run
        from pytest_rageval.runs.writer import Keeper

        if self.settings.resume is None:
            return Keeper.new(self.reports, self.plan, self.run_config)
        return Keeper.resuming(open_run(self.reports, self.settings.resume), self.plan, self.run_config)

    @cached_property
    def journal(self) -> RunJournal:
        """Where this process writes what it observes."""
        from pytest_rageval.runs.folder import RunFolder
        from pytest_rageval.runs.journal import RunJournal

        if not self.is_worker:
            return RunJournal(self.keeper.folder, self.settings, None, self.unfinished)
        folder = self._told("rageval_run")
        return RunJournal(
            RunFolder(Path(folder)) if folder else None, self.settings, self._told("workerid"), self.unfinished
        )

    @cached_property
    def unfinished(self) -> Unfinished | None:
        """What the run that is resumed has done, None where this run is a new one."""
        if self.settings.resume is None:
            return None
        from pytest_rageval.runs.resume import Unfinished

        return Unfinished(Path(self._told("rageval_run")) if self.is_worker else self.keeper.folder.path)

    def _told(self, name: str) -> str:
        """What the controller told this worker of xdist; an empty string on any other process."""
        return str(getattr(self.config, "workerinput", {}).get(name, ""))

    # ── evaluating ────────────────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def ahead(self) -> Ahead:
        from pytest_rageval.prefetch import Ahead

        return Ahead(self.plan, self.journal)

    @cached_property
    def stretches(self) -> Stretches:
        from pytest_rageval.plugin.prefetch_batches import Stretches

        return Stretches(self)

    def check_asking_allowed(self) -> None:
        if self.settings.dry_run:
            pytest.skip("dry run: not asked")

    def trials(self, case: EvalCase, test: str | None = None) -> list[Trial]:
        """The askings of one case."""
        from pytest_rageval.model import Trial

        return [Trial(case, number, test) for number in range(self.settings.repeat)]

    def is_done(self, case: EvalCase) -> bool:
        """Has the run that is resumed a result of this case?"""
        return self.unfinished is not None and self.unfinished.is_done(case.key)

    def evaluate(self, item: EvalItem) -> CaseResult:
        """The item's result; what could not be asked, judged or scored is raised as an error in one line."""
        from pytest_rageval.engine import evaluation
        from pytest_rageval.text import printable

        if self.unfinished is not None and self.is_done(item.case):
            result = self.unfinished.result(item.case)
        else:
            observed = self.stretches.observed(item)
            item.evaluation = evaluation(self.trials(item.case), observed, self.plan, item.attempts)
            result = item.evaluation.overall
        if result.error is not None:
            if result.error.kind == "missing" and self.settings.allow_partial:
                pytest.skip(printable(result.error.message))
            pytest.fail(printable(f"{result.error.kind}: {result.error.message}"), pytrace=False)
        return result

    def assert_gates(self, item: EvalItem) -> None:
        from pytest_rageval.plugin.case_verdict import assert_gates

        assert item.result is not None
        assert_gates(item.result, self)

    def evaluator(self, node: pytest.Item, target: object, judge: object, cache: object) -> Evaluator:
        from pytest_rageval.plugin.evaluator import Evaluator

        self.is_used = True
        self.raise_problem()
        return Evaluator(self, node, target, judge, cache)

    def attach(self, item: pytest.Item, report: pytest.TestReport) -> None:
        """Put the records of an item on its report."""
        if self.is_used:
            from pytest_rageval.plugin.report_payload import attach

            attach(item, report, self)

    def close(self) -> None:
        if "ahead" in self.__dict__:
            if "stretches" in self.__dict__:
                self.stretches.close()
            self.ahead.close()
        if "journal" in self.__dict__:
            self.journal.close()
        if "keeper" in self.__dict__ and self.keeper.rows:
            with suppress(OSError):  # of a full disk: what workers wrote stays for the run that resumes this one
                self.keeper.settle()


RUN = pytest.StashKey[EvalSession]()
