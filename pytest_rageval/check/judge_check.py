"""Checks of a judge: by canaries, and by a second judge that scores some answers of a run again."""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, closing, contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

from pytest_rageval.config.project import Project
from pytest_rageval.config.settings import Settings
from pytest_rageval.errors import SettingsError
from pytest_rageval.gates.verdict import GatedTrial, looks_at
from pytest_rageval.io.masking import Mask
from pytest_rageval.io.sealed_lines import record_at
from pytest_rageval.judges.cache.sqlite_cache import project_cache
from pytest_rageval.judges.canaries import Verdict, canaries_for, rubrics_of, store_check, try_canaries
from pytest_rageval.judges.checked_judge import CheckedJudge
from pytest_rageval.judges.judge import BaseJudge, identity_of
from pytest_rageval.judges.judge_spec import judge_of_run, judge_with_cache
from pytest_rageval.model import Observation
from pytest_rageval.rescore.rejudge import Rejudge
from pytest_rageval.rescore.relabel import Line
from pytest_rageval.rescore.rescore import observed_of
from pytest_rageval.run.plan import Plan, own_rubrics
from pytest_rageval.runs.reader import StoredRun

NO_JUDGE = "there is no judge to check; name one with --judge"
PASSAGES = 1
"""Passages of usual length: those of the canaries are short."""
FEWEST, SHARE = 20, 0.05
"""The default number of answers to check: this many, or this share of a large run."""
APART = 0.2
"""The tolerated difference of two scores as a share of their scale (a point of five); more is a disagreement."""
TOO_OFTEN = 0.2
"""Disagreement rate beyond which a judge should not be relied on."""
ROUNDING = 1e-9


def configured_judge(settings: Settings, root: Path, problem: str) -> BaseJudge:
    """Make the configured judge, or raise a SettingsError with this problem. It belongs to one event loop."""
    if (judge := judge_of_run(settings, root, workers=1)) is None:
        raise SettingsError(f"judge {settings.judge!r}: {problem}")
    return judge


async def _check_server(judge: BaseJudge) -> None:
    """Raise a SettingsError if the judge's server says, at no cost, why it cannot be asked."""
    problem = await judge.check()
    if problem is not None:
        raise SettingsError(f"judge {judge.model!r}: {problem}")


@contextmanager
def judge_at_hand(
    project: Project,
    settings: Settings,
    mask: Mask,
    problem: str,
    tell: Callable[[str], object],
    judge: BaseJudge | None = None,
    prepare: Callable[[BaseJudge], object] = lambda _: None,
) -> Iterator[CheckedJudge]:
    """Yield the judge of these settings behind the project's cache, once its server has answered.

    The caller closes the judge. `tell` gets the notes of judge and cache at the end. A given `judge` takes the place
    of the configured one, and is not checked; `prepare` is called with either.
    """

    async def check() -> None:
        async with aclosing(configured_judge(settings, project.root, problem)) as checked:
            await _check_server(checked)

    if settings.judge_cache != "replay" and judge is None:
        asyncio.run(check())
    judge = judge or configured_judge(settings, project.root, problem)
    prepare(judge)
    cache = project_cache(project.settings, project.judge_cache_file)
    with closing(cache) if cache is not None else nullcontext():
        yield judge_with_cache(judge, cache, settings, mask)
    for note in (*(cache.notes if cache is not None else ()), *judge.notes):
        tell(note)


# ── canaries ──────────────────────────────────────────────────────────────────────────────────────────────────


class TriedJudge(NamedTuple):
    """A judge with a verdict for each canary, and why they could not be stored, in one line."""

    judge: BaseJudge
    verdicts: Sequence[Verdict]
    note: str | None

    @property
    def is_sound(self) -> bool:
        return all(verdict.passed for verdict in self.verdicts)

    def conclusions(self) -> Iterator[str]:
        """Yield one line each on what the judge can and cannot be trusted with."""
        model, by_rubric = self.judge.model, rubrics_of(self.verdicts)
        if trusted := [rubric for rubric, group in by_rubric.items() if all(verdict.passed for verdict in group)]:
            yield f"{model} can be trusted with {', '.join(trusted)}, as far as these canaries tell"
        for rubric, group in by_rubric.items():
            failed = [verdict for verdict in group if not verdict.passed]
            names = ", ".join(verdict.canary for verdict in failed)
            # The same bad answer without the attack got a low score, so the attack raised it.
            if failed and all(verdict.is_attack and verdict.score is not None for verdict in failed):
                yield f"{model} is talked into a better score for {rubric}: {names}"
            elif failed:
                yield f"{model} cannot be trusted with {rubric}, {len(failed)} of {len(group)} canaries failed: {names}"


def try_judge(project: Project, tell_cost: Callable[[str], object], repeats: int = 1) -> TriedJudge:
    """Put canaries to the configured judge, and store the verdicts for later runs with it.

    SettingsError where its server cannot be asked, or it has no rubric that canaries are for.
    """
    wordings = own_rubrics(project.settings, project.root)
    judge = configured_judge(project.settings, project.root, NO_JUDGE)
    tariff = judge.tariff
    if tariff is not None:
        prompts = [rubric.prompt for rubric, _ in canaries_for(judge, wordings)]
        dollars = tariff.estimate(prompts, passages=PASSAGES, times=repeats)
        cost = "its price is not known" if dollars is None else f"about ${dollars:.2f} by list prices"
        tell_cost(f"judge {tariff.model}: {len(prompts) * repeats} short requests, {cost}")

    async def ask() -> list[Verdict]:
        async with aclosing(judge):
            await _check_server(judge)
            return await try_canaries(judge, wordings, repeats)

    if not (verdicts := asyncio.run(ask())):
        raise SettingsError(f"judge {judge.model!r} has none of the rubrics that canaries are for")
    if not any(verdict.scores for verdict in verdicts):
        return TriedJudge(judge, verdicts, "not kept: no score came, which says nothing about the judge")
    path = project.judge_checks_file
    try:
        store_check(path, judge, verdicts, wordings, repeats)
    except OSError as error:
        return TriedJudge(judge, verdicts, f"{path}: the result cannot be kept: {error.strerror or error}")
    return TriedJudge(judge, verdicts, None)


# ── a second judge ────────────────────────────────────────────────────────────────────────────────────────────


class JudgementPair(NamedTuple):
    """One score of one answer by both judges, as shares of their scales, 0 to 1; `gate`: a gate between them."""

    case_key: str
    trial: int
    rubric: str
    score: str
    first: float
    second: float
    gate: str | None = None

    @property
    def disagrees(self) -> bool:
        return abs(self.first - self.second) > APART + ROUNDING or self.gate is not None


class SpotCheck(NamedTuple):
    """The result of a spot check.

    figures      what metrics.json holds of it, without texts: `spot_check_n` answers have a score by both, and the
                 `disagreement_rate` is the share of them with at least one disagreement; of `failed` others the second
                 judge gave none; `by_rubric` counts scores, of which some rubrics give several an answer
    problem      the first error of the second judge
    served       models that the servers of both report; a second opinion of the same model is none
    """

    figures: Mapping[str, Any]
    disagreeing: Sequence[JudgementPair]
    problem: str | None
    served: frozenset[str]


def check_by_second_judge(
    run: StoredRun, first: Plan, second: Plan, judge: BaseJudge, n: int | None, watch: Callable[[int], None]
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
    lines = _drawn_lines(run, n)
    if not lines:
        raise SettingsError(f"run {run.run_id} has no judgements to check; `rageval judge {run.run_id}` makes some")
    again = Rejudge(run, second, judge, watch)
    rejudged = [*again.lines(iter(lines))]
    pairs = [pair for both in zip(lines, rejudged, strict=True) for pair in _pairs(*both, run, first)]
    if not pairs:
        raise SettingsError(f"judge {judge.model!r} cannot be compared: it gives none of the scores that the run has")
    before, now = ([each for line in of for each in line["judgements"].values()] for of in (lines, rejudged))
    served = [{each.get("extra", {}).get("served_model") for each in judgements} for judgements in (before, now)]
    disagreeing = [pair for pair in pairs if pair.disagrees]
    answers, apart = ({(pair.case_key, pair.trial) for pair in each} for each in (pairs, disagreeing))
    figures = {
        "disagreement_rate": len(apart) / len(answers),
        "spot_check_n": len(answers),
        "judge": ", ".join(sorted({each["model"] for each in before})),
        "second_judge": judge.model,
        "failed": again.failed,
        "by_rubric": {
            rubric: _agreement_of([pair for pair in pairs if pair.rubric == rubric])
            for rubric in sorted({pair.rubric for pair in pairs})
        },
        "disagreements": [pair._asdict() for pair in disagreeing],
    }
    problem = None if again.problem is None else f"{again.problem.kind}: {again.problem.message}"
    return SpotCheck(figures, disagreeing, problem, frozenset(filter(None, served[0] & served[1])))


def _drawn_lines(run: StoredRun, n: int | None) -> list[Line]:
    """Draw judged observations: `n`, or by default a share of the run."""
    places = run.observation_places()
    judged = sorted(key for key, place in places.items() if record_at(place)["judgements"])
    size = min(len(judged), n or max(FEWEST, math.ceil(SHARE * len(judged))))
    draw = random.Random(f"spot check of {run.config['config_hash']}")  # noqa: S311 because it is to be the same again
    return [record_at(places[key]) for key in sorted(draw.sample(judged, size))]


def _agreement_of(scores: Sequence[JudgementPair]) -> dict[str, float]:
    disagreeing = sum(pair.disagrees for pair in scores)
    return {
        "n": len(scores),
        "disagreeing": disagreeing,
        "disagreement_rate": disagreeing / len(scores),
        "mean_difference": math.fsum(abs(pair.first - pair.second) for pair in scores) / len(scores),
    }


def _is_same_judge(run: StoredRun, first: Plan, second: Plan, judge: BaseJudge) -> bool:
    """Return True if the second judge has the same identity and the same prompts as the first."""
    configured = run.config["judge"] or {}
    if "identity" in configured:
        is_same = configured["identity"] == identity_of(judge)
    else:  # without an identity, as of a fixture's judge, only the model is known
        judged = {record["judge"]["model"] for record in run.records() if record["judge"]}
        is_same = judge.model in (judged if "fixture" in configured else {configured.get("model")})
    versions = ({name: wording.prompt_version for name, wording in plan.wordings.items()} for plan in (first, second))
    return is_same and next(versions) == next(versions)


def _pairs(line: Line, rejudged: Line, run: StoredRun, plan: Plan) -> Iterator[JudgementPair]:
    obs, again = observed_of(line, run.config), observed_of(rejudged, run.config)
    if not isinstance(obs, Observation) or not isinstance(again, Observation):
        return
    for rubric in filter(again.judgements.__contains__, obs.judgements):
        both = obs.judgements[rubric], again.judgements[rubric]
        for name in sorted(both[0].scores.keys() & both[1].scores.keys()):
            first, second = ((of.scores[name] - of.scale[0]) / (of.scale[1] - of.scale[0]) for of in both)
            gate = _gate_between(name, first, second, obs, plan)
            yield JudgementPair(line["case_key"], line["trial"], rubric, name, first, second, gate)


def _gate_between(name: str, first: float, second: float, obs: Observation, plan: Plan) -> str | None:
    """Return the gate that only one of two scores passes, which are shares of the scale."""
    for gate in plan.case_gates:
        if gate.measure is None or gate.measure.metric.name != name:
            continue
        low, high = gate.measure.metric.scale
        passes = {gate.holds(low + share * (high - low)) for share in (first, second)}
        if len(passes) > 1 and looks_at(gate, GatedTrial(obs, {gate.name: first})):
            return str(gate)
    return None
