"""An interactive session with the system under test: questions, cases, judgements, and settings that change."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pytest_rageval.cases.drafts import ENDING, add_drafts, draft_id
from pytest_rageval.config.project import Project
from pytest_rageval.config.settings import Settings
from pytest_rageval.config.settings_sources import load_settings
from pytest_rageval.errors import JudgeError, SettingsError
from pytest_rageval.io.case_output import Output
from pytest_rageval.io.suggestions import did_you_mean
from pytest_rageval.judges.cache.sqlite_cache import SqliteCache, project_cache
from pytest_rageval.judges.judge import BaseJudge, can_judge
from pytest_rageval.judges.judge_spec import judge_with_cache
from pytest_rageval.links import docs_page
from pytest_rageval.metrics.registry import Measure
from pytest_rageval.model import EvalCase, Json, Observation, Source, Trial
from pytest_rageval.run.engine import judgements_of
from pytest_rageval.run.prepare import Preparation, prepare
from pytest_rageval.run.scoring import AskFailure, Evaluation, Observed, evaluation
from pytest_rageval.tune.sweep.asking import NOT_TUNED, AskingLoop
from pytest_rageval.tune.sweep.grid import FIELDS, NEVER_SWEPT, Point, parse_value

DIMENSIONS = ("faithfulness", "citation_accuracy", "abstention_quality", "synthesis", "relevance")
"""The parts of the composite."""
SETTABLE = (*FIELDS, "min_score", "chunk_max_tokens", "chunk_overlap")
"""Parameters that completion offers."""


@dataclass(frozen=True)
class RetrievalDiff:
    """The chunks that one question retrieves under two settings."""

    question: str
    before: Observation
    after: Observation
    settings_before: Mapping[str, Json]
    settings_after: Mapping[str, Json]


class ReplSession:
    """An interactive session with one target, on a loop of its own; ended by `close`. Failures are RagevalErrors.

    `parameters`: those set in this session, over the configured ones.
    """

    def __init__(
        self,
        project: Project,
        options: Mapping[str, Any],
        cases: Sequence[EvalCase],
        files: Sequence[Path],
        new_output: Callable[[], Output] = Output,
    ) -> None:
        """Make the target; `new_output` as for `AskingLoop`."""
        self.project = project
        self.cases = cases
        self.parameters: dict[str, Json] = {}
        self._files = files
        self._options = options
        self._before: dict[str, Json] = {}
        self._last: EvalCase | None = None
        self._judge: BaseJudge | None = None
        self._cache: SqliteCache | None = None
        self._asking = AskingLoop.of(self._prepared(), new_output)

    def close(self) -> None:
        """Release target, judge and cache."""
        replace(self._asking, judge=self._judge).close()
        if self._cache is not None:
            self._cache.close()

    # ── settings ──────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def settings(self) -> dict[str, Json]:
        """Return k and everything else that is sent with a question now."""
        return self._sent(self.parameters)

    def _sent(self, parameters: Mapping[str, Json]) -> dict[str, Json]:
        settings = self._settings(parameters)
        return {"k": settings.k, **settings.ask_params}

    def set(self, name: str, written: str) -> None:
        """Set a parameter for later questions; an empty text removes it."""
        if name in NEVER_SWEPT or not name.isidentifier():
            raise SettingsError(
                f"set: {name!r} cannot be set; write a parameter of the system, as in set min_score 0.3"
            )
        if not written and name not in self.parameters:
            raise SettingsError(f"set: {name!r} was not set{did_you_mean(name, self.parameters)}")
        changed = {key: value for key, value in self.parameters.items() if key != name}
        if written:
            changed[name] = parse_value(written)
        try:
            self._settings(changed)
        except SettingsError as error:
            problems = [line.replace("--rageval-", "") for line in error.problems]
            raise SettingsError(*(f"set: {problem}" for problem in problems)) from None
        self._before = self.parameters
        self.parameters = changed

    # ── asking ────────────────────────────────────────────────────────────────────────────────────────────────

    def query(self, question: str) -> Observation:
        """Ask a free question and return its observation."""
        return self.evaluated(EvalCase("query", question, source=Source("", 0)))

    def evaluated(self, case: EvalCase) -> Observation:
        """Ask a case and match what it retrieves to its gold."""
        observation = self.answered(case)
        self._last = case
        return observation

    def diff(self) -> RetrievalDiff:
        """Ask the last question under the settings before the last change and under the present ones."""
        if self._last is None:
            raise SettingsError("diff: nothing was asked yet; write a question first")
        if self._before == self.parameters:
            raise SettingsError("diff: no setting was changed; change one first, as in set k 10")
        return RetrievalDiff(
            question=self._last.question,
            before=self.answered(self._last, self._before),
            after=self.answered(self._last),
            settings_before=self._sent(self._before),
            settings_after=self.settings,
        )

    def save(self) -> tuple[Path, str]:
        """Store the last question as a draft; return the file and the draft's id."""
        if self._last is None:
            raise SettingsError("save: nothing was asked yet; write a question first")
        if self.project.settings.redact:
            raise SettingsError("save: redact keeps questions out of all files")
        question = self._last.question
        case_file = self._files[0] if self._files else self.project.root / "evalcases" / "cases.jsonl"
        path = case_file.with_suffix(ENDING)
        new_id = draft_id(question)
        draft: dict[str, Json] = {"id": new_id, "question": question, "tags": ["draft"]}
        try:
            is_new = add_drafts(path, [draft])
        except OSError as error:
            raise SettingsError(f"{path} cannot be written: {error.strerror}") from None
        if not is_new:
            raise SettingsError(f"{path}: this question is there already, as {new_id}")
        return path, new_id

    def case(self, reference: str) -> EvalCase:
        """Return the case with this id, key or position from 0 on."""
        if reference.isdecimal() and int(reference) < len(self.cases):
            return self.cases[int(reference)]
        named = [case for case in self.cases if reference in (case.key, case.id)]
        if len(named) == 1:
            return named[0]
        if named:
            keys = ", ".join(case.key for case in named)
            raise SettingsError(f"{reference!r} is the id of {len(named)} cases; write one of {keys}")
        numbers = f"; cases are numbered 0 to {len(self.cases) - 1}" if self.cases else "; there are no cases"
        remedy = did_you_mean(reference, [case.id for case in self.cases], numbers)
        raise SettingsError(f"there is no case {reference!r}{remedy}")

    def answered(self, case: EvalCase, parameters: Mapping[str, Json] | None = None) -> Observation:
        """Ask a case under these parameters or the present ones, and return its observation with its answer."""
        observed = self._ask(self._prepared(parameters), [case])[case.key]
        if isinstance(observed, AskFailure):
            raise SettingsError(f"{observed.problem.kind}: {observed.problem.message}")
        return observed

    def judged(self, observation: Observation) -> Observation:
        """Judge the answer in the five dimensions, in one call if the judge can."""
        judge = self._made_judge()
        names = ("composite",) if can_judge(judge, "composite") else DIMENSIONS
        plan = self._prepared(retrieval_only=False, enabled=names).plan
        judging = judgements_of(judge, observation.case, observation.answer, plan, dialogue=observation.dialogue)
        try:
            return replace(observation, judgements=self._asking.loop.run(judging))
        except JudgeError as error:
            raise SettingsError(f"judge {judge.model}: {error.kind}: {plan.mask.message(str(error))}") from None

    def report(self) -> list[Evaluation]:
        """Ask every case now, and gate it as in a run without a judge."""
        if not self.cases:
            raise SettingsError(f"report: there are no cases; write some, see {docs_page('cases')}")
        prepared = self._prepared(tuned={})
        observed = self._ask(prepared, self.cases)
        return [evaluation([Trial(case)], [observed[case.key]], prepared.plan) for case in self.cases]

    def measure(self, name: str) -> Measure:
        """Return a metric by its name, at the present k; raise SettingsError if it is unknown."""
        prepared = self._prepared()
        return prepared.plan.registry.measure(name, prepared.settings.k)

    @property
    def metric_names(self) -> list[str]:
        return [metric.name for metric in self._prepared().plan.registry]

    def _settings(self, parameters: Mapping[str, Json]) -> Settings:
        return load_settings(self.project.root, Point(parameters).options(self._options))

    def _prepared(
        self, parameters: Mapping[str, Json] | None = None, tuned: Mapping[str, Any] = NOT_TUNED, **update: Any
    ) -> Preparation:
        """Prepare questions with these parameters or the present ones, without gates unless `tuned` leaves them."""
        settings = self._settings(self.parameters if parameters is None else parameters)
        settings = settings.model_copy(update={**tuned, "retrieval_only": True, **update})
        return prepare(self.project._replace(settings=settings))

    def _ask(self, prepared: Preparation, cases: Sequence[EvalCase]) -> dict[str, Observed]:
        try:
            return self._asking.ask(prepared, cases)
        except KeyboardInterrupt:
            self._asking.loop.cancel()
            raise

    def _made_judge(self) -> BaseJudge:
        if self._judge is None:
            prepared = self._prepared(retrieval_only=False)
            if prepared.judge is None:
                raise SettingsError("judge: no judge is configured; name one with --judge")
            settings = prepared.settings
            self._cache = project_cache(settings, self.project.judge_cache_file)
            self._judge = judge_with_cache(prepared.judge, self._cache, settings, prepared.mask)
        return self._judge
