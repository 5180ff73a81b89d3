"""An interactive session with the system under test: questions, cases, judgements, and settings that change."""

from __future__ import annotations

import json
import os
from collections.abc import Coroutine, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from pytest_rageval.cases.drafts import ENDING, draft_id
from pytest_rageval.config.project import Project
from pytest_rageval.config.settings import Settings
from pytest_rageval.config.settings_sources import load_settings
from pytest_rageval.config.tables import Gates
from pytest_rageval.engine import Evaluation, Observed, Unobserved, evaluation, said_of
from pytest_rageval.errors import JudgeError, RagevalError, SettingsError, TargetError
from pytest_rageval.io.suggestions import did_you_mean
from pytest_rageval.judges.cache.cached_judge import CachedJudge
from pytest_rageval.judges.cache.sqlite_cache import SqliteCache, project_cache
from pytest_rageval.judges.judge import Judge, can_judge
from pytest_rageval.metrics.registry import Measure
from pytest_rageval.model import EvalCase, Json, Observation, Source, Trial
from pytest_rageval.prepare import Prepared, prepare
from pytest_rageval.tools.sweep.bench import Asking, ask_without_trace
from pytest_rageval.tools.sweep.grid import FIELDS, NEVER_SWEPT, Point, parse_value

T = TypeVar("T")

DIMENSIONS = ("faithfulness", "citation_accuracy", "abstention_quality", "synthesis", "relevance")
"""What the composite is made of."""
RETRIEVAL_ALONE = {"retrieval_only": True, "gates": Gates(), "gate": (), "regression": (), "tolerated": (),
                   "enabled": None}  # fmt: skip
"""For a look at what is retrieved: the project's gates would have the system asked for more chunks than k."""


@dataclass(frozen=True)
class RetrievalDiff:
    """What one question retrieves under two settings."""

    question: str
    before: Observation
    after: Observation
    settings_before: Mapping[str, Json]
    settings_after: Mapping[str, Json]


class Session:
    """Asks one target, on a loop of its own; closed by `close`. Whatever cannot be done is a RagevalError.

    `parameters`: what was set in this session, over what is configured.
    """

    def __init__(
        self, project: Project, options: Mapping[str, Any], cases: Sequence[EvalCase], files: Sequence[Path]
    ) -> None:
        self.project, self.cases = project, cases
        self.parameters: dict[str, Json] = {}
        self._files, self._options = files, options
        self._before: dict[str, Json] = {}
        self._last: tuple[str, Observation] | None = None
        self._judge: Judge | None = None
        self._cache: SqliteCache | None = None
        self._asking = Asking.of(self._prepared())

    def close(self) -> None:
        """Give target, judge and cache back."""
        replace(self._asking, judge=self._judge).close()
        if self._cache is not None:
            self._cache.close()

    # ── settings ──────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def settings(self) -> dict[str, Json]:
        """k and all that goes out with a question, as they are now."""
        settings = self._settings(self.parameters)
        return {"k": settings.k, **settings.ask_params}

    def set(self, name: str, written: str) -> None:
        """Set a parameter for what is asked from now on; an empty text takes it back."""
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
            raise SettingsError(*(f"set: {line.replace('--rageval-', '')}" for line in error.problems)) from None
        self._before, self.parameters = self.parameters, changed

    # ── asking ────────────────────────────────────────────────────────────────────────────────────────────────

    def query(self, question: str) -> Observation:
        """What a question of one's own retrieves."""
        observation = self._observed(EvalCase("query", question, source=Source("", 0)))
        self._last = (question, observation)
        return observation

    def evaluated(self, case: EvalCase) -> Observation:
        """What a case retrieves, matched to its gold."""
        observation = self._observed(case)
        self._last = (case.question, observation)
        return observation

    def diff(self) -> RetrievalDiff:
        """The last question under the settings before the last change, and as they are now."""
        if self._last is None:
            raise SettingsError("diff: nothing was asked yet; write a question first")
        if self._before == self.parameters:
            raise SettingsError("diff: no setting was changed; change one first, as in set k 10")
        question, case = self._last[0], self._last[1].case
        before, after = self._observed(case, self._before), self._observed(case)
        settings = self._settings(self._before)
        return RetrievalDiff(question, before, after, {"k": settings.k, **settings.ask_params}, self.settings)

    def save(self) -> tuple[Path, str]:
        """Keep the last question as a draft; returns the file and the draft's id."""
        if self._last is None:
            raise SettingsError("save: nothing was asked yet; write a question first")
        if self.project.settings.redact:
            raise SettingsError("save: redact keeps questions out of all files")
        case_file = self._files[0] if self._files else self.project.root / "evalcases" / "cases.jsonl"
        path = _drafts_beside(case_file)
        return path, _save_draft(path, self._last[0])

    def case(self, reference: str) -> EvalCase:
        """The case with this id, key or position from 0 on."""
        if reference.isdecimal() and int(reference) < len(self.cases):
            return self.cases[int(reference)]
        named = [case for case in self.cases if reference in (case.key, case.id)]
        if len(named) == 1:
            return named[0]
        if named:
            raise SettingsError(
                f"{reference!r} is the id of {len(named)} cases; write one of {', '.join(_keys(named))}"
            )
        last = f"; cases are numbered 0 to {len(self.cases) - 1}" if self.cases else "; there are no cases"
        raise SettingsError(
            f"there is no case {reference!r}{did_you_mean(reference, [c.id for c in self.cases], last)}"
        )

    def answered(self, case: EvalCase) -> Observation:
        """What a case comes to with its answer, before anybody judges it."""
        return self._observed(case)

    def judged(self, observation: Observation) -> Observation:
        """The observation with the judgements of its answer: the five dimensions, in one call where the judge can."""
        judge = self._made_judge()
        names = ("composite",) if can_judge(judge, "composite") else DIMENSIONS
        plan = self._prepared(is_retrieval=False, enabled=names).plan
        judging = said_of(judge, observation.case, observation.answer, plan)
        try:
            return replace(observation, judgements=self._wait(judging))
        except JudgeError as error:
            raise SettingsError(f"judge {judge.model}: {error.kind}: {plan.mask.message(str(error))}") from None

    def report(self) -> list[Evaluation]:
        """Every case asked now and gated as a run without a judge is."""
        if not self.cases:
            raise SettingsError("report: there are no cases; write some, see docs/cases.md")
        prepared = self._prepared(gated=True)
        observed = self._ask(prepared, self.cases)
        return [evaluation([Trial(case)], [observed[case.key]], prepared.plan) for case in self.cases]

    def measure(self, name: str) -> Measure:
        """A metric by its name, at the present k; SettingsError where there is none."""
        prepared = self._prepared()
        return prepared.plan.registry.measure(name, prepared.settings.k)

    @property
    def metric_names(self) -> list[str]:
        return [metric.name for metric in self._prepared().plan.registry]

    # ── inside ────────────────────────────────────────────────────────────────────────────────────────────────

    def _settings(self, parameters: Mapping[str, Json]) -> Settings:
        return load_settings(self.project.root, Point(parameters).options(self._options))

    def _prepared(
        self, parameters: Mapping[str, Json] | None = None, *, is_retrieval: bool = True, gated: bool = False,
        enabled: tuple[str, ...] | None = None,
    ) -> Prepared:  # fmt: skip
        settings = self._settings(self.parameters if parameters is None else parameters)
        alone = {**RETRIEVAL_ALONE, "retrieval_only": is_retrieval, "enabled": enabled}
        update = {"retrieval_only": True} if gated else alone
        return prepare(self.project._replace(settings=settings.model_copy(update=update)))

    def _observed(self, case: EvalCase, parameters: Mapping[str, Json] | None = None) -> Observation:
        prepared = self._prepared(parameters)
        observed = self._ask(prepared, [case])[case.key]
        if isinstance(observed, Unobserved):
            raise SettingsError(f"{observed.problem.kind}: {observed.problem.message}")
        return observed

    def _ask(self, prepared: Prepared, cases: Sequence[EvalCase]) -> dict[str, Observed]:
        try:
            return ask_without_trace(self._asking, prepared, cases)
        except KeyboardInterrupt:
            self._asking.loop.cancel()
            raise

    def _made_judge(self) -> Judge:
        if self._judge is None:
            prepared = self._prepared(is_retrieval=False)
            if prepared.judge is None:
                raise SettingsError("judge: no judge is configured; name one with --judge")
            settings = prepared.settings
            self._cache = project_cache(settings, self.project.judge_cache_file)
            self._judge = CachedJudge(prepared.judge, self._cache, settings.judge_cache, prepared.mask)
        return self._judge

    def _wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        future: Future[T] = Future()
        self._asking.loop.start([_hand_over(coroutine, future)])
        try:
            return self._asking.loop.wait(future)
        except KeyboardInterrupt:
            self._asking.loop.cancel()
            raise


async def _hand_over(coroutine: Coroutine[Any, Any, T], future: Future[T]) -> None:
    try:
        future.set_result(await coroutine)
    except (RagevalError, JudgeError, TargetError) as error:
        future.set_exception(error)
    except Exception as error:  # noqa: BLE001  a judge of the project's own: unseen, it would hang whoever waits
        future.set_exception(SettingsError(f"{type(error).__name__}: {error}"))


def _keys(cases: Sequence[EvalCase]) -> list[str]:
    return [case.key for case in cases]


SETTABLE = (*FIELDS, "min_score", "chunk_max_tokens", "chunk_overlap")
"""Parameters that completion offers."""


def _drafts_beside(case_file: Path) -> Path:
    """The file of the drafts that belong to a case file."""
    return case_file.with_name(case_file.name.removesuffix(case_file.suffix) + ENDING)


def _save_draft(path: Path, question: str) -> str:
    """Append a question as a draft; returns its id. SettingsError where it is there already, or cannot be written."""
    new_id = draft_id(question)
    record = {"id": new_id, "question": question, "tags": ["draft"]}
    try:
        before = path.read_bytes() if path.exists() else b""
        if json.dumps(new_id).encode() in before:
            raise SettingsError(f"{path}: this question is there already, as {new_id}")
        path.parent.mkdir(parents=True, exist_ok=True)
        line = json.dumps(record, ensure_ascii=False).encode() + b"\n"
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            os.write(descriptor, line if not before or before.endswith(b"\n") else b"\n" + line)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise SettingsError(f"{path} cannot be written: {error.strerror}") from None
    return new_id
