"""The configured judge put to the canaries, and the result kept for later runs."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from pytest_rageval.config.project import Project
from pytest_rageval.errors import SettingsError
from pytest_rageval.judges import judge_from_spec
from pytest_rageval.judges.canaries import Verdict, keep_check, try_canaries
from pytest_rageval.judges.judge import Judge
from pytest_rageval.judges.judge_spec import judge_endpoint
from pytest_rageval.llm.prices import Budget
from pytest_rageval.model import Rubric


def judge_to_check(project: Project) -> Judge:
    """The configured judge; a SettingsError where there is none. It belongs to one event loop."""
    settings = project.settings
    budget = None if settings.max_cost is None else Budget(settings.max_cost)
    judge = judge_from_spec(settings.judge, root=project.root, options=judge_endpoint(settings, budget=budget))
    if judge is None:
        raise SettingsError(f"judge {settings.judge!r}: there is no judge to check; name one with --judge")
    return judge


def verdicts_on(judge: Judge, wordings: Mapping[str, Rubric], repeats: int = 1) -> list[Verdict]:
    """One verdict for each canary. The judge is closed.

    SettingsError where its server cannot be asked, or it has no rubric that canaries are for.
    """
    verdicts = asyncio.run(_verdicts(judge, wordings, repeats))
    if not verdicts:
        raise SettingsError(f"judge {judge.model!r} has none of the rubrics that canaries are for")
    return verdicts


def keep_result(
    project: Project, judge: Judge, verdicts: Sequence[Verdict], wordings: Mapping[str, Rubric], repeats: int
) -> str | None:
    """Keep the verdicts for later runs with this judge; why they are not kept, in one line, or None."""
    if not any(verdict.scores for verdict in verdicts):
        return "not kept: no score came, which says nothing about the judge"
    path = project.judge_checks_file
    try:
        keep_check(path, judge, verdicts, wordings, repeats)
    except OSError as error:
        return f"{path}: the result cannot be kept: {error.strerror or error}"
    return None


async def _verdicts(judge: Judge, wordings: Mapping[str, Rubric], repeats: int) -> list[Verdict]:
    try:
        # Judges that ask a server can say beforehand, at no cost, why it cannot be asked.
        check = getattr(judge, "check", None)
        if check is not None and (problem := await check()) is not None:
            raise SettingsError(problem)
        return await try_canaries(judge, wordings, repeats)
    finally:
        await judge.aclose()
