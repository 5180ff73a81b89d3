"""Checks of a judge: by canaries, and by a second judge that scores some answers of a run again."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from pytest_rageval.config.project import Project
from pytest_rageval.config.settings import Settings
from pytest_rageval.engine import Unobserved, judgements_of
from pytest_rageval.errors import JudgeError, SettingsError
from pytest_rageval.gates.verdict import GatedTrial, looks_at
from pytest_rageval.io.bounded_map import at_once
from pytest_rageval.io.masking import Mask
from pytest_rageval.io.sealed_lines import Key, record_at
from pytest_rageval.judges import judge_from_spec
from pytest_rageval.judges.cache.cached_judge import CachedJudge
from pytest_rageval.judges.cache.sqlite_cache import project_cache
from pytest_rageval.judges.canaries import Verdict, store_check, try_canaries
from pytest_rageval.judges.judge import Judge, identity_of, served_model
from pytest_rageval.judges.judge_spec import judge_endpoint
from pytest_rageval.llm.endpoint_options import Budget
from pytest_rageval.model import Judgement, Observation, Rubric
from pytest_rageval.plan import Plan
from pytest_rageval.rescore.relabel import Line
from pytest_rageval.rescore.rescore import observed_of, trial_of
from pytest_rageval.runs.reader import StoredRun
from pytest_rageval.text import printable

T = TypeVar("T")
NO_JUDGE = "there is no judge to check; name one with --judge"
FEWEST, SHARE = 20, 0.05
"""The default number of answers to check: this many, or this share of a large run."""
APART = 0.2
"""The tolerated difference of two scores as a share of their scale (a point of five); more is a disagreement."""
TOO_OFTEN = 0.2
"""Disagreement rate beyond which a judge should not be relied on."""
ROUNDING = 1e-9


def configured_judge(settings: Settings, root: Path, problem: str) -> Judge:
    """Make the configured judge, or raise a SettingsError with this problem. It belongs to one event loop."""
    budget = None if settings.max_cost is None else Budget(settings.max_cost)
    judge = judge_from_spec(settings.judge, root=root, options=judge_endpoint(settings, budget=budget))
    if judge is None:
        raise SettingsError(f"judge {settings.judge!r}: {problem}")
    return judge


async def _check_server(judge: Judge) -> None:
    """Raise a SettingsError if the judge's server says, at no cost, why it cannot be asked."""
    check: Callable[[], Awaitable[str | None]] | None = getattr(judge, "check", None)
    if check is not None and (problem := await check()) is not None:
        raise SettingsError(f"judge {judge.model!r}: {problem}")


@contextmanager
def judge_at_hand(
    project: Project, settings: Settings, mask: Mask, problem: str, tell: Callable[[str], object]
) -> Iterator[CachedJudge]:
    """Yield the judge of these settings behind the project's cache, once its server has answered.

    The caller closes the judge. `tell` gets the notes of judge and cache at the end.
    """
    if settings.judge_cache != "replay":
        asyncio.run(_closing(_check_server, configured_judge(settings, project.root, problem)))
    judge = configured_judge(settings, project.root, problem)
    cache = project_cache(project.settings, project.judge_cache_file)
    with closing(cache) if cache is not None else nullcontext():
        yield CachedJudge(judge, cache, "off" if cache is None else settings.judge_cache, mask)
    for note in (*(cache.notes if cache is not None else ()), *getattr(judge, "notes", ())):
        tell(note)


async def _closing(ask: Callable[[Judge], Awaitable[T]], judge: Judge) -> T:
    try:
        return await ask(judge)
    finally:
        await judge.aclose()


# ── canaries ──────────────────────────────────────────────────────────────────────────────────────────────────


def verdicts_on(judge: Judge, wordings: Mapping[str, Rubric], repeats: int = 1) -> list[Verdict]:
    """Return one verdict for each canary, and close the judge.

    SettingsError where its server cannot be asked, or it has no rubric that canaries are for.
    """

    async def ask(judge: Judge) -> list[Verdict]:
        await _check_server(judge)
        return await try_canaries(judge, wordings, repeats)

    if not (verdicts := asyncio.run(_closing(ask, judge))):
        raise SettingsError(f"judge {judge.model!r} has none of the rubrics that canaries are for")
    return verdicts


def keep_result(
    project: Project, judge: Judge, verdicts: Sequence[Verdict], wordings: Mapping[str, Rubric], repeats: int
) -> str | None:
    """Store the verdicts for later runs with this judge; return in one line why that failed, or None."""
    if not any(verdict.scores for verdict in verdicts):
        return "not kept: no score came, which says nothing about the judge"
    path = project.judge_checks_file
    try:
        store_check(path, judge, verdicts, wordings, repeats)
    except OSError as error:
        return f"{path}: the result cannot be kept: {error.strerror or error}"
    return None


# ── a second judge ────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class JudgementPair:
    """One score of one answer by both judges, as shares of their scales, 0 to 1; `gate`: a gate between them."""

    case_key: str
    trial: int
    rubric: str
    score: str
    first: float
    second: float
    gate: str | None = None

    @property
    def difference(self) -> float:
        return abs(self.first - self.second)

    @property
    def disagrees(self) -> bool:
        return self.difference > APART + ROUNDING or self.gate is not None


@dataclass(frozen=True, slots=True)
class SpotCheck:
    """The result of a spot check. `n` answers have a score by both; of `failed` others the second judge gave none.

    `served`: models that the servers of both report; a second opinion of the same model is none.
    """

    first_judge: str
    second_judge: str
    n: int
    failed: int
    pairs: tuple[JudgementPair, ...]
    problem: str | None
    served: frozenset[str] = frozenset()

    @property
    def disagreeing(self) -> tuple[JudgementPair, ...]:
        return tuple(pair for pair in self.pairs if pair.disagrees)

    @property
    def rate(self) -> float:
        """Return the share of the answers with at least one disagreement."""
        return len({(pair.case_key, pair.trial) for pair in self.disagreeing}) / self.n

    @property
    def by_rubric(self) -> dict[str, dict[str, Any]]:
        pairs_by_rubric: dict[str, list[JudgementPair]] = {}
        for pair in self.pairs:
            pairs_by_rubric.setdefault(pair.rubric, []).append(pair)
        return {rubric: _counted(pairs) for rubric, pairs in sorted(pairs_by_rubric.items())}

    def in_short(self) -> dict[str, Any]:
        """Return the figures for aggregate_metrics."""
        return {"disagreement_rate": self.rate, "spot_check_n": self.n}

    def as_mapping(self) -> dict[str, Any]:
        """Return the figures for metrics.json, without texts."""
        return {
            **self.in_short(),
            "judge": self.first_judge,
            "second_judge": self.second_judge,
            "failed": self.failed,
            "by_rubric": self.by_rubric,
            "disagreements": [asdict(pair) for pair in self.disagreeing],
        }


def _counted(pairs: Sequence[JudgementPair]) -> dict[str, Any]:
    """Count the scores of one rubric that disagree; some rubrics give several scores an answer."""
    disagreeing = sum(pair.disagrees for pair in pairs)
    return {
        "n": len(pairs),
        "disagreeing": disagreeing,
        "disagreement_rate": disagreeing / len(pairs),
        "mean_difference": math.fsum(pair.difference for pair in pairs) / len(pairs),
    }


def check_by_second_judge(
    run: StoredRun, first: Plan, second: Plan, judge: Judge, n: int | None, watch: Callable[[int], None]
) -> SpotCheck:
    """Let another judge score `n` of the run's judged answers, or the same one with another plan's prompts.

    Which ones follows from the run's configuration: the same every time. `first` is the run's own plan, whose gates
    count. A SettingsError where nothing can be compared.
    """
    if _is_same_judge(run, first, second, judge):
        raise SettingsError(
            f"judge {identity_of(judge)!r} is the run's own, with the same rubrics; a spot check needs another judge "
            "(--second-judge), or rubrics of other wording (--rubrics)"
        )
    lines = list(_chosen(run, n))
    if not lines:
        raise SettingsError(f"run {run.run_id} has no judgements to check; `rageval judge {run.run_id}` makes some")
    check = _SecondJudge(run, second, judge)
    replies = list(at_once(check.ask, lines, second.settings.concurrency, close=judge.aclose, watch=watch))
    pairs: list[JudgementPair] = []
    for line, judgements in zip(lines, replies, strict=True):
        observed = observed_of(line, run.config)
        if judgements is not None and isinstance(observed, Observation):
            pairs += _pairs(line, observed, judgements, first)
    compared = {(pair.case_key, pair.trial) for pair in pairs}
    if not compared:
        why = check.problem or "it gives none of the scores that the run has"
        raise SettingsError(f"judge {judge.model!r} cannot be compared with the run's: {printable(why)}")
    models = {judgement["model"] for line in lines for judgement in line["judgements"].values()}
    failed = sum(judgements is None for judgements in replies)
    served = _served(lines) & {served_model(judgement) for reply in replies for judgement in (reply or {}).values()}
    return SpotCheck(
        ", ".join(sorted(models)),
        judge.model,
        len(compared),
        failed,
        tuple(pairs),
        check.problem,
        frozenset(name for name in served if name is not None),
    )


def _served(lines: Sequence[Line]) -> set[str | None]:
    """Return the models that the servers reported when the run was judged."""
    judgements = (judgement for line in lines for judgement in line["judgements"].values())
    return {judgement.get("extra", {}).get("served_model") for judgement in judgements}


def _is_same_judge(run: StoredRun, first: Plan, second: Plan, judge: Judge) -> bool:
    """Return True if the second judge has the same identity and the same prompts as the first."""
    configured = run.config["judge"] or {}
    if "identity" in configured:
        is_same = configured["identity"] == identity_of(judge)
    else:  # without an identity, as of a fixture's judge, only the model is known
        judged = {record["judge"]["model"] for record in run.records() if record["judge"]}
        is_same = judge.model in (judged if "fixture" in configured else {configured.get("model")})
    return is_same and _prompt_versions(first) == _prompt_versions(second)


def _prompt_versions(plan: Plan) -> dict[str, str]:
    return {name: wording.prompt_version for name, wording in plan.wordings.items()}


def _chosen(run: StoredRun, n: int | None) -> Iterator[Line]:
    """Return judged observations, drawn by the hash of the configuration, in the order of their keys."""
    places = run.observation_places()
    judged: list[Key] = sorted(key for key, place in places.items() if record_at(place)["judgements"])
    size = min(len(judged), n or max(FEWEST, math.ceil(SHARE * len(judged))))
    draw = random.Random(f"spot check of {run.config['config_hash']}")  # noqa: S311 because it is to be the same again
    for key in sorted(draw.sample(judged, size)):
        yield record_at(places[key])


class _SecondJudge:
    """Asks the second judge; a JudgeError is an answer less, and the first one is told."""

    def __init__(self, run: StoredRun, plan: Plan, judge: Judge) -> None:
        self._run, self._plan, self._judge = run, plan, judge
        self.problem: str | None = None

    async def ask(self, line: Line) -> dict[str, Judgement] | None:
        observed = observed_of(line, self._run.config)
        if isinstance(observed, Unobserved):
            return None
        try:
            trial = trial_of(line)
            return await judgements_of(self._judge, trial.case, observed.answer, self._plan, trial.number)
        except JudgeError as error:
            if error.kind == "budget":
                raise SettingsError(f"{error}; the spot check was not finished") from None
            self.problem = self.problem or f"{error.kind}: {error}"
            return None


def _pairs(line: Line, obs: Observation, judgements: Mapping[str, Judgement], plan: Plan) -> Iterator[JudgementPair]:
    for rubric, before in obs.judgements.items():
        now = judgements.get(rubric)
        for name in sorted(before.scores.keys() & now.scores.keys()) if now is not None else ():
            assert now is not None
            shares = _share(before, name), _share(now, name)
            gate = _between(name, *shares, obs, plan)
            yield JudgementPair(line["case_key"], line["trial"], rubric, name, *shares, gate)


def _share(judgement: Judgement, name: str) -> float:
    low, high = judgement.scale
    return (judgement.scores[name] - low) / (high - low)


def _between(name: str, first_share: float, second_share: float, obs: Observation, plan: Plan) -> str | None:
    """Return the gate that only one of the two scores passes."""
    for gate in plan.case_gates:
        if gate.measure is None or gate.measure.metric.name != name:
            continue
        if not looks_at(gate, GatedTrial(obs, {gate.name: first_share})):
            continue
        low, high = gate.measure.metric.scale
        if gate.holds(low + first_share * (high - low)) != gate.holds(low + second_share * (high - low)):
            return str(gate)
    return None
