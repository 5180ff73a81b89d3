"""A session with cases in it: settings prepared, cases loaded, items evaluated on the session's run.

Lives in every process; what differs between them is its role, see `Controller` and `Worker`.
"""

from __future__ import annotations

import math
import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import pytest

from pytest_rageval.cases.loading import CaseFile, load_file
from pytest_rageval.cases.masked_keys import without_masked_keys
from pytest_rageval.comparison.outcomes import Ending
from pytest_rageval.config.project import Project
from pytest_rageval.config.settings import Settings
from pytest_rageval.config.settings_sources import load_settings
from pytest_rageval.errors import RagevalError
from pytest_rageval.io.case_output import Output
from pytest_rageval.io.environment_secrets import secrets_of_environment
from pytest_rageval.io.masking import Mask
from pytest_rageval.io.messages import escape_text
from pytest_rageval.metrics.assertions import checked_metric_names
from pytest_rageval.model import CaseResult, EvalCase
from pytest_rageval.plugin.case_hook import marked_cases, metrics_of_hook, with_case_hook
from pytest_rageval.plugin.display.captured_output import CapturedOutput, clean_report
from pytest_rageval.plugin.display.progress_line import ProgressLine
from pytest_rageval.plugin.evaluator import RUNS, Evaluator
from pytest_rageval.plugin.fixture_adapter import FixtureAdapter
from pytest_rageval.plugin.items import PARTS, EvalFile, EvalItem, item_case, keywords, own_nodeid
from pytest_rageval.plugin.light_session import LightSession
from pytest_rageval.plugin.report_payload import CALLS, attach, drop_place_of_ours, is_of_case
from pytest_rageval.run.case_blocks import CaseBlocks, EvaluatedCase
from pytest_rageval.run.finish import FinishedRun
from pytest_rageval.run.ongoing_run import OngoingRun
from pytest_rageval.run.prefetch import FIRST_CALLS, calls_of
from pytest_rageval.run.prepare import Preparation, check_gate_conditions, prepare
from pytest_rageval.run.scoring import Evaluation
from pytest_rageval.runs.results_file import RunWriter
from pytest_rageval.runs.shards import Shard
from pytest_rageval.text import counted, printable


class Role(Protocol):
    """What differs between the process that writes a run and a worker of xdist."""

    def open_run(self, own_test: pytest.Item | None) -> OngoingRun:
        """Open or join the run; `own_test`: the test of the project that needs it."""


class ActiveSession:
    """A session with cases on any process, called by hooks, items and fixtures.

    role      that of this process
    mask      masks the credentials of this run in the output; if settings are wrong, those of the environment
    run       None until the first question is near, and in a dry run
    expected  cases by node id, on the process that writes the run: each must have a record at the end
    progress_line  shown while an item waits, where it is wanted
    finished  the finished run, or None
    """

    role: Role

    def __init__(self, session: LightSession) -> None:
        self.session = session
        self.config = session.config
        self.run: OngoingRun | None = None
        self.expected: dict[str, EvalCase] = {}
        self.finished: FinishedRun | None = None
        self.progress_line: ProgressLine | None = None
        self._files: dict[Path, CaseFile] = {}
        self._collectors: list[EvalFile] = []
        self._uncounted = FIRST_CALLS
        """How many more calls of this process can decide that the run breaks off."""
        # Before the settings are read: an error in them may quote a variable.
        self.mask = Mask(secrets_of_environment(os.environ))
        self._prepared: Preparation | RagevalError
        try:
            settings = load_settings(session.root, session.given_options)
            self.mask = Mask(settings.secrets())
            self._prepared = self._prepare(settings)
            self._fixtures = FixtureAdapter(self._prepared, session.notes)
            self._is_dry_run = settings.dry_run
        except RagevalError as problem:
            self._prepared = problem
        self.captured = CapturedOutput(self.config, self.mask, session.routing)
        self.config.pluginmanager.register(self.captured, "rageval-capture")

    # ── settings ──────────────────────────────────────────────────────────────────────────────────────────────

    def _prepare(self, settings: Settings) -> Preparation:
        own_metrics = metrics_of_hook(self.config)
        session = self.session
        if session.is_worker:
            # The limits on calls are the run's, over all workers.
            share: dict[str, float] = {"concurrency": math.ceil(settings.concurrency / session.workers)}
            if settings.requests_per_minute is not None:
                share["requests_per_minute"] = settings.requests_per_minute / session.workers
            settings = settings.model_copy(update=share)
        return prepare(
            Project(session.root, settings),
            own_metrics,
            workers=session.workers,
            is_worker=session.is_worker,
            is_before_cases=True,
        )

    @property
    def is_prepared(self) -> bool:
        return isinstance(self._prepared, Preparation)

    @property
    def prepared(self) -> Preparation:
        """Return the settings and what they stand for; a usage error with one line a problem if they are wrong."""
        if isinstance(self._prepared, Preparation):
            return self._prepared
        # Kept until it is asked for: a session whose settings are wrong still shows its help, and lists its tests.
        raise pytest.UsageError(*self.mask.value(self._prepared.problems)) from None

    def check_settings(self) -> None:
        """End the session with a usage error if the settings are wrong."""
        assert self.prepared

    @property
    def settings(self) -> Settings:
        return self.prepared.settings

    @property
    def fixtures(self) -> FixtureAdapter:
        """Return what passes between the session and its fixtures; a usage error if settings are wrong."""
        self.check_settings()
        return self._fixtures

    @contextmanager
    def usage_errors(self) -> Iterator[None]:
        """End the session with exit code 4 and a line a problem, if the user can mend what is wrong."""
        try:
            yield
        except RagevalError as error:
            raise pytest.UsageError(*self.mask.value(error.problems)) from None

    # ── cases ─────────────────────────────────────────────────────────────────────────────────────────────────

    def collector(self, path: Path, parent: pytest.Collector) -> pytest.Collector:
        self.session.collected.append(path)
        named: dict[str, Any] = {}
        relative = os.path.relpath(path, self.session.root)
        shown = escape_text(relative)
        if shown != relative:
            # pytest prints node ids as they are: a line break in a name could begin a command to a CI service.
            named |= {"nodeid": shown, "name": escape_text(path.name)}
        self._collectors.append(EvalFile.from_parent(parent, path=path, runner=self, **named))
        return self._collectors[-1]

    def pytest_collection_finish(self) -> None:
        """Look up the hooks of all items, without those of `conftest.py` files of other folders."""
        for collector in self._collectors:
            # Now, since pytest knows all `conftest.py` files only once it has collected.
            collector.hooks = collector.ihook

    def load(self, path: Path) -> CaseFile:
        """Read a case file once, and apply the project's hook to its cases."""
        # Several collectors, checks and marks ask for the same file.
        if path not in self._files:
            limit = {"max_line_bytes": self.settings.max_line_bytes} if self.is_prepared else {}
            file = load_file(path, self.session.root, **limit)
            file = with_case_hook(file, self.session.of_pytest)
            if self.is_prepared:
                file = checked_metric_names(file, self.prepared.plan.registry)
                file = without_masked_keys(file, self.prepared.mask)
            self._files[path] = file
        return self._files[path]

    def is_reported(self, path: Path) -> bool:
        """Return True if the controller of xdist has reported the problems of this file."""
        return str(path) in self.session.worker_input("rageval_checked").split(os.pathsep)

    def all_cases(self) -> list[EvalCase]:
        """Return the cases of all found and named files; files with problems give none."""
        return [case for path in self.session.all_files for case in self.load(path).cases]

    def check_gates(self) -> None:
        """Raise a usage error if a written gate is for cases that do not exist; ignore it if a file cannot be read."""
        for path in self.session.all_files:
            self.load(path)
        with self.usage_errors():
            check_gate_conditions(self.prepared, [*self._files.values()])

    def parametrize(self, metafunc: pytest.Metafunc) -> None:
        """Run a test of the project's own for each case of the file that its mark names."""
        cases = marked_cases(metafunc, self.load)
        metafunc.parametrize("eval_case", cases, ids=[case.id for case in cases])

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        """Let `-k` find a test of the project's own by its case; pytest escapes an id that is not ASCII."""
        if not isinstance(item, EvalItem) and (case := item_case(item)) is not None:
            item.extra_keyword_matches.update(keywords(case))

    @pytest.hookimpl(trylast=True)  # once plugins have multiplied items
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Deselect cases of other shards, in whatever test they are, and leave one item a case.

        Items are multiplied by `--keep-duplicates`, plugins, and files named twice.
        """
        if self.is_prepared and self.settings.shard is not None:
            self._deselect_other_shards(items, Shard.parse(self.settings.shard))
        # By its real path: a link to a case file would ask its cases twice. Once a file, as each look asks the disk.
        real_path = cache(os.path.realpath)
        kept: dict[object, pytest.Item] = {}
        for number, item in enumerate(items):
            key: object = number
            if isinstance(item, EvalItem):
                key = (real_path(item.path), item.case.id)
            kept.setdefault(key, item)
        left_out = len(items) - len(kept)
        if left_out:
            items[:] = kept.values()
            self.session.notes.append(
                f"left out {counted(left_out, 'duplicate item')} of cases; --rageval-repeat N asks each case N times"
            )

    def _deselect_other_shards(self, items: list[pytest.Item], shard: Shard) -> None:
        own: list[pytest.Item] = []
        others: list[pytest.Item] = []
        for item in items:
            case = item_case(item)
            is_own = case is None or shard.takes(case.unit)
            (own if is_own else others).append(item)
        if others:
            # pytest counts them, and other plugins hear of them.
            self.config.hook.pytest_deselected(items=others)
            items[:] = own

    # ── the run ───────────────────────────────────────────────────────────────────────────────────────────────

    def opened(self, own_test: pytest.Item | None = None) -> OngoingRun:
        """Return the run, opened or joined where it is not yet; `own_test`: the test of the project that needs it."""
        if self.run is None:
            self.begin(self.role.open_run(own_test))
            assert self.run is not None
        return self.run

    def begin(self, run: OngoingRun) -> None:
        """Evaluate the session's cases on this run from now on."""
        self.run = run
        self._fixtures.run = run
        self.captured.begin()
        run.prefetcher.new_output = self.captured.output

    @property
    def writer(self) -> RunWriter:
        """Return the writer of the run, on the controlling process."""
        return self.opened().writer

    def stop_asking(self) -> None:
        """Close what asks and judges; safe to call twice."""
        if self.run is not None:
            try:
                self._fixtures.close()
            finally:
                self.run.stop_asking()
                self.captured.end()

    def close(self) -> None:
        """Release files and lock, whatever happens."""
        if self.run is not None:
            try:
                self.stop_asking()
            finally:
                self.run.close()

    # ── evaluating ────────────────────────────────────────────────────────────────────────────────────────────

    def check_asking_allowed(self) -> None:
        if self._is_dry_run:
            pytest.skip("dry run: not asked")

    def evaluate(self, item: EvalItem) -> tuple[CaseResult, Ending]:
        """Return the item's result and outcome; an error of one line if it has none."""
        run = self.opened()
        if run.unfinished is not None and run.is_done(item.case):
            result = run.unfinished.result(item.case)
            end = run.ending(result)
        else:
            evaluated = self._evaluated(item, run)
            item.evaluated = evaluated
            if self.progress_line is not None:
                self.progress_line.wipe()
            self._show(evaluated.printed)
            result = evaluated.result
            end = Ending(result.outcome, result.reason)
        if result.error is not None:
            if end.outcome == "skipped":
                # An answer is missing, and the settings allow that.
                pytest.skip(printable(result.error.message))
            pytest.fail(printable(f"{result.error.kind}: {result.error.message}"), pytrace=False)
        return result, end

    def _evaluated(self, item: EvalItem, run: OngoingRun) -> EvaluatedCase:
        target, judge = self._fixtures.target_and_judge(*[item.funcargs[name] for name in PARTS])
        batch = item.batch
        # A plugin that runs a test again wants a new answer, not the one that its block has.
        if batch is None or item.attempts > 1:
            return run.evaluated(run.decided_now(item.case, target, judge, item.attempts))
        if batch.blocks is None:
            batch.fixtures = {name: item.funcargs[name] for name in PARTS}
            batch.blocks = CaseBlocks(run, batch.cases, target, judge)
        return batch.blocks.case(item.position)

    def _show(self, printed: Output) -> None:
        """Show what asking, judging and scoring printed as the output of the test under way."""
        if printed:
            self.captured.replay(printed)

    def evaluator(self, node: pytest.Item, client: object, judge: object, cache: object) -> Evaluator:
        """Return the `rageval` fixture of one test."""
        target, cached_judge = self.fixtures.target_and_judge(client, judge, cache)

        def evaluate(case: EvalCase) -> tuple[Evaluation, Ending]:
            self.check_asking_allowed()
            run = self.opened(node)
            # A plugin may run the test again: its answer is then another attempt.
            runs_before = node.stash.get(RUNS, {}).get(case.key, 0)
            decided = run.decided_now(case, target, cached_judge, runs_before + 1, own_nodeid(node))
            self._show(decided.printed)
            return decided.evaluation, decided.ending

        return Evaluator(node, evaluate)

    @pytest.hookimpl(wrapper=True, tryfirst=True)  # outermost, so that marks such as xfail come first
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Put the records of an item on its report, masked."""
        report = yield
        # Behind all other hooks: one of the project that replaces the report would lose its records.
        is_ours = is_of_case(item)
        if is_ours:
            drop_place_of_ours(report)
        clean_report(report, self.mask, is_of_case=is_ours)
        is_final = report.when == "call" or (report.when == "setup" and not report.passed)
        if is_ours and is_final and self.is_prepared and not (self._is_dry_run or self.config.option.setuponly):
            printed = self.captured.output()
            with printed:
                evaluations = attach(item, report, call.excinfo and call.excinfo.value, self.opened())
            if printed:
                self.captured.add_to_report(printed, item, report)
            if evaluations and self._uncounted > 0:
                calls = calls_of(evaluations)
                report.__dict__[CALLS] = calls
                self._uncounted -= len(calls)
        return report
