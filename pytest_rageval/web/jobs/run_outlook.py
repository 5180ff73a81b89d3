"""What a run takes before it is started: questions, judgements, and what these cost by list prices."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import NamedTuple

from pytest_rageval.config.settings import Settings
from pytest_rageval.config.settings_sources import load_settings
from pytest_rageval.errors import SettingsError
from pytest_rageval.llm.endpoint_options import EndpointOptions
from pytest_rageval.llm.model_spec import chat_model
from pytest_rageval.llm.prices import Tariff
from pytest_rageval.plan import make_plan
from pytest_rageval.runs.judge_notes import estimate_at
from pytest_rageval.text import counted
from pytest_rageval.web.jobs.job_files import Source
from pytest_rageval.web.versions.agent_store import AgentStore

FREE = ("lexical", "none", "stub", "nli")
"""Judges that ask nobody."""


class RunOutlook(NamedTuple):
    """Lines to be shown before a run is started."""

    asked: str
    judged: str
    price: str | None


def run_outlook(agents: AgentStore, slug: str, number: int, cases: int, source: Source) -> RunOutlook:
    """What a run of an agent version over so many cases takes; SettingsError where it could not begin.

    No server is asked, and no key is needed for it.
    """
    with tempfile.TemporaryDirectory(prefix="rageval-outlook-") as folder:
        agents.write_configuration(slug, number, Path(folder))
        settings = load_settings(Path(folder), environment={})
        plan = make_plan(settings, agents.registry, Path(folder))
    times = cases * settings.repeat
    asked = "nothing is asked: the answers are there" if source != "connector" else (
        f"{counted(times, 'question')} to {settings.target}"
    )  # fmt: skip
    if settings.judge.partition(":")[0] in FREE or settings.retrieval_only or not plan.wordings:
        words = " compares words, a heuristic" if settings.judge == "lexical" else ""
        return RunOutlook(asked, f"judge {settings.judge}{words}: nobody is asked, nothing is paid", None)
    judgements = times * settings.judge_repeats * len(plan.wordings)
    judged = f"judge {settings.judge}: up to {counted(judgements, 'judgement')} ({', '.join(plan.wordings)})"
    price = estimate_at(_tariff(settings), plan, cases)
    return RunOutlook(asked, judged, price or "what a judgement costs there is not known")


def _tariff(settings: Settings) -> Tariff | None:
    """The prices of the model behind the judge; None where the spec names no model."""
    try:
        return chat_model(settings.judge, EndpointOptions(base_url=settings.judge_base_url, is_replay=True)).tariff
    except SettingsError:
        return None
