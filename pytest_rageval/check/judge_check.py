"""Checks of a judge by canaries, and the judge that commands ask outside of a run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import aclosing, closing, contextmanager, nullcontext
from pathlib import Path
from typing import NamedTuple

from pytest_rageval.config.project import Project
from pytest_rageval.config.settings import Settings
from pytest_rageval.errors import SettingsError
from pytest_rageval.io.masking import Mask, public_target
from pytest_rageval.judges.cache.sqlite_cache import project_cache
from pytest_rageval.judges.canaries import Verdict, canaries_for, rubrics_of, store_check, try_canaries
from pytest_rageval.judges.checked_judge import CheckedJudge
from pytest_rageval.judges.judge import BaseJudge
from pytest_rageval.judges.judge_spec import judge_of_run, judge_with_cache
from pytest_rageval.run.judged_rubrics import own_rubrics

NO_JUDGE = "there is no judge to check; name one with --judge"
PASSAGES = 1
"""Passages of usual length: those of the canaries are short."""


def configured_judge(settings: Settings, root: Path, problem: str) -> BaseJudge:
    """Make the configured judge, or raise a SettingsError with this problem. It belongs to one event loop."""
    judge = judge_of_run(settings, root, workers=1)
    if judge is None:
        raise SettingsError(f"judge {public_target(settings.judge)!r}: {problem}")
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
    notes_of_cache = cache.notes if cache is not None else ()
    for note in (*notes_of_cache, *judge.notes):
        tell(note)


class JudgeConclusion(NamedTuple):
    """A line about the rubrics that a judge can be trusted with, or about one that it cannot."""

    line: str
    is_trusted: bool


class TriedJudge(NamedTuple):
    """A judge with a verdict for each canary, and why they could not be stored, in one line."""

    judge: BaseJudge
    verdicts: Sequence[Verdict]
    note: str | None

    @property
    def is_sound(self) -> bool:
        return all(verdict.passed for verdict in self.verdicts)

    def conclusions(self) -> Iterator[JudgeConclusion]:
        """Yield the rubrics that the judge can be trusted with, in one line, and a line for each other one."""
        model = self.judge.model
        by_rubric = rubrics_of(self.verdicts)
        failed_by_rubric: dict[str, list[Verdict]] = {}
        for rubric, group in by_rubric.items():
            failed_by_rubric[rubric] = [verdict for verdict in group if not verdict.passed]
        trusted = [rubric for rubric, failed in failed_by_rubric.items() if not failed]
        if trusted:
            line = f"{model} can be trusted with {', '.join(trusted)}, as far as these canaries tell"
            yield JudgeConclusion(line, is_trusted=True)
        for rubric, failed in failed_by_rubric.items():
            if not failed:
                continue
            names = ", ".join(verdict.canary for verdict in failed)
            # The same bad answer without the attack got a low score, so the attack raised it.
            if all(verdict.is_attack and verdict.score is not None for verdict in failed):
                line = f"{model} is talked into a better score for {rubric}: {names}"
            else:
                share = f"{len(failed)} of {len(by_rubric[rubric])} canaries failed"
                line = f"{model} cannot be trusted with {rubric}, {share}: {names}"
            yield JudgeConclusion(line, is_trusted=False)


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

    verdicts = asyncio.run(ask())
    if not verdicts:
        raise SettingsError(f"judge {judge.model!r} has none of the rubrics that canaries are for")
    if not any(verdict.scores for verdict in verdicts):
        return TriedJudge(judge, verdicts, "not kept: no score came, which says nothing about the judge")
    path = project.judge_checks_file
    try:
        store_check(path, judge, verdicts, wordings, repeats)
    except OSError as error:
        return TriedJudge(judge, verdicts, f"{path}: the result cannot be kept: {error.strerror or error}")
    return TriedJudge(judge, verdicts, None)
