"""A chosen agent and dataset version: the outlook of a run, its warnings, and its job."""

from __future__ import annotations

import json
import shutil
import tempfile
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from pytest_rageval.config.settings import Settings
from pytest_rageval.config.settings_sources import load_settings
from pytest_rageval.errors import SettingsError
from pytest_rageval.io.atomic import write_text
from pytest_rageval.judges.judge_spec import asks_server
from pytest_rageval.llm.chat_model import chat_model
from pytest_rageval.llm.endpoint_options import EndpointOptions, Tariff
from pytest_rageval.model import EvalCase
from pytest_rageval.plan import make_plan
from pytest_rageval.runs.judge_notes import estimate_at
from pytest_rageval.text import counted
from pytest_rageval.web.jobs.job import CONFIGURATION, Job, Source
from pytest_rageval.web.uploads.answers_upload import AnswersUpload
from pytest_rageval.web.versions.agent import MAIN_RUBRIC, AgentVersion
from pytest_rageval.web.versions.agent_check import agent_warnings
from pytest_rageval.web.versions.agent_store import AgentStore
from pytest_rageval.web.versions.dataset_store import DatasetStore, DatasetVersion

CASES = "evalcases"
"""Folder of a job's case file. The file is named after the dataset without its version, so that case keys stay."""

NEED_CONTEXTS = ("groundedness", "faithfulness", "claim_support", "citation_accuracy", "synthesis", "composite")
"""Metrics that compare an answer with its contexts, and have no value without any."""


@dataclass(frozen=True)
class RunChoice:
    """An existing agent version and dataset version, with the source of the answers."""

    agents: AgentStore
    datasets: DatasetStore
    agent: AgentVersion
    dataset: DatasetVersion
    source: Source

    @cached_property
    def cases(self) -> Sequence[EvalCase]:
        return self.datasets.cases(self.dataset.slug, self.dataset.number)

    @property
    def title(self) -> str:
        return f"{self.agent.title} × {self.dataset.title}"

    def check(self) -> None:
        """Raise SettingsError if a version was changed after it was saved, or the agent has no target to query."""
        self.datasets.checked_path(self.dataset.slug, self.dataset.number)
        if self.source == "connector" and self.agent.agent.target is None:
            raise SettingsError(f"{self.agent.title} names no system to ask; upload its answers, or give it a target")

    def outlook(self) -> RunOutlook:
        """Return what the run takes, or raise SettingsError if it cannot begin."""
        self.check()
        return run_outlook(self.agents, self.agent.slug, self.agent.number, len(self.cases), self.source)

    def warnings(self, answers: AnswersUpload | None = None) -> list[str]:
        """Return the warnings to show before the run starts."""
        warnings = agent_warnings(self.agent.agent, self.agents.registry, answers.model_names if answers else ())
        doubts = [version.problem for version in (self.agent, self.dataset) if version.problem is not None]
        if MAIN_RUBRIC in self.agent.agent.thresholds and not any(case.gold.answers for case in self.cases):
            warnings.append(
                f"no case of {self.dataset.title} has a reference answer: the threshold of {MAIN_RUBRIC} would look at "
                "nothing, which fails a run; add references, or take the threshold out of the agent"
            )
        if answers is not None and answers.without_contexts:
            warnings.append(
                f"{counted(answers.without_contexts, 'answer')} of {answers.answers} come without contexts: "
                "faithfulness, groundedness and whatever else is held against contexts are skipped for them"
            )
            if left_out := self.left_out(answers):
                names = ", ".join(left_out)
                warnings.append(f"thresholds of {self.agent.title} that would look at nothing do not count: {names}")
        return [*doubts, *warnings]

    def left_out(self, answers: AnswersUpload | None) -> list[str]:
        """Return the metrics whose gates would have nothing to check, because no answer has contexts."""
        if answers is None or answers.without_contexts < answers.answers:
            return []
        return [name for name in self.agent.agent.thresholds if name in NEED_CONTEXTS]

    def comparable_versions(self) -> list[int]:
        """Return the versions of the agent whose runs are comparable with this one."""
        versions, _ = self.agents.versions(self.agent.slug)
        return [version.number for version in versions if version.agent.measures_as(self.agent.agent)]

    def lay_out(
        self, folder: Path, description: str, baseline: str | None, file: Path | None, answers: AnswersUpload | None
    ) -> Job:
        """Write what the run reads into its job's folder; `file` holds the uploaded `answers`."""
        agent, dataset = self.agent, self.dataset
        self.agents.write_configuration(agent.slug, agent.number, folder)
        cases = self.datasets.checked_path(dataset.slug, dataset.number)
        (folder / CASES).mkdir()
        shutil.copyfile(cases, folder / CASES / f"{dataset.slug}.jsonl")
        arguments = [f"--gate={metric} off" for metric in self.left_out(answers)]
        if file is not None:
            shutil.copyfile(file, folder / f"answers{file.suffix}")
            arguments += ["--target", f"answers:answers{file.suffix}"]
        if description:
            arguments.append(f"--description={description}")
        arguments += ["--baseline", "none" if baseline is None else f"run:{baseline}"]
        job = Job(
            id=folder.name,
            agent=agent.slug,
            agent_version=agent.number,
            dataset=dataset.slug,
            dataset_version=dataset.number,
            source=self.source,
            description=description,
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            cases=len(self.cases),
            warnings=tuple(self.warnings(answers)),
            arguments=tuple(arguments),
        )
        add_origin(folder / CONFIGURATION, job)
        return job


def add_origin(file: Path, job: Job) -> None:
    """Add to the configuration a table that names the versions that the run is made from."""
    configuration = file.read_text(encoding="utf-8")
    prefix = "tool.rageval." if "tool" in tomllib.loads(configuration) else ""
    names = ("agent", "agent_version", "dataset", "dataset_version", "source")
    lines = (f"{name} = {json.dumps(getattr(job, name), ensure_ascii=False)}" for name in names)
    write_text(file, f"{configuration.rstrip()}\n\n[{prefix}origin]\n" + "\n".join(lines) + "\n")


class RunOutlook(NamedTuple):
    """The lines that a page shows before a run starts."""

    asked: str
    judged: str
    price: str | None


def run_outlook(agents: AgentStore, slug: str, number: int, cases: int, source: Source) -> RunOutlook:
    """Return what a run of an agent version over this many cases takes; raise SettingsError if it cannot begin.

    This queries no server and needs no key.
    """
    with tempfile.TemporaryDirectory(prefix="rageval-outlook-") as folder:
        agents.write_configuration(slug, number, Path(folder))
        settings = load_settings(Path(folder), environment={})
        plan = make_plan(settings, agents.registry, Path(folder))
    times = cases * settings.repeat
    asked = (
        "nothing is asked: the answers are there"
        if source != "connector"
        else (f"{counted(times, 'question')} to {settings.target}")
    )
    if not asks_server(settings.judge) or settings.retrieval_only or not plan.wordings:
        words = " compares words, a heuristic" if settings.judge == "lexical" else ""
        return RunOutlook(asked, f"judge {settings.judge}{words}: nobody is asked, nothing is paid", None)
    requests, repeats = plan.judge_requests
    judgements = times * repeats * len(plan.wordings)
    judged = f"judge {settings.judge}: up to {counted(judgements, 'judgement')} ({', '.join(plan.wordings)})"
    if requests < len(plan.wordings):
        judged += f" in {counted(times * repeats * requests, 'request')}"
    price = estimate_at(_tariff(settings), plan, cases)
    return RunOutlook(asked, judged, price or "what a judgement costs there is not known")


def _tariff(settings: Settings) -> Tariff | None:
    """Return the prices of the judge's model, or None if the spec names no model."""
    try:
        return chat_model(settings.judge, EndpointOptions(base_url=settings.judge_base_url, is_replay=True)).tariff
    except SettingsError:
        return None
