"""A judge as a run asks it: within the time of a call, its verdicts checked, and kept where there is a cache."""

from __future__ import annotations

from pytest_rageval.config.settings import Settings
from pytest_rageval.io.masking import Mask
from pytest_rageval.judges.cache.cached_judge import CachedJudge
from pytest_rageval.judges.judge import Judge, JudgementCache
from pytest_rageval.judges.time_bound import TimeBoundJudge


def asked_judge(judge: Judge, cache: JudgementCache | None, settings: Settings, mask: Mask) -> Judge:
    """The judge with its cache; one that is not of this package may take no longer than a call."""
    if not type(judge).__module__.startswith("pytest_rageval."):
        judge = TimeBoundJudge(judge, settings.longest_call, settings.longest_call_in_words)
    # In mode `off` as well: it checks what a judge says before anybody sees it.
    mode = settings.judge_cache if cache is not None else "off"
    return CachedJudge(judge, cache, mode, mask)
