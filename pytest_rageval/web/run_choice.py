"""A chosen agent and dataset version, perhaps with uploaded answers: what a run takes, its warnings, its job."""

from __future__ import annotations

import json
import shutil
import socket
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from urllib.parse import urlsplit

from pytest_rageval.config.settings import Settings
from pytest_rageval.errors import CaseError, SettingsError
from pytest_rageval.io.atomic import write_text
from pytest_rageval.io.masking import public_target
from pytest_rageval.judges.judge_spec import asks_server
from pytest_rageval.llm.chat_model import chat_model
from pytest_rageval.llm.endpoint_options import EndpointOptions, Tariff
from pytest_rageval.matching.passages import contexts
from pytest_rageval.model import NOWHERE, EvalCase
from pytest_rageval.run.plan import make_plan
from pytest_rageval.runs.judge_notes import estimate_at
from pytest_rageval.targets.answer_files import load_answers
from pytest_rageval.targets.answers_target import AnswersTarget
from pytest_rageval.text import counted, duration
from pytest_rageval.web.jobs.job import CONFIGURATION, Job, Source
from pytest_rageval.web.keys import needed_keys
from pytest_rageval.web.versions.agent import MAIN_RUBRIC, AgentVersion
from pytest_rageval.web.versions.agent_store import AgentStore, agent_warnings, configured
from pytest_rageval.web.versions.dataset_store import DatasetStore, DatasetVersion

CASES = "evalcases"
"""Folder of a job's case file, which is named without its version, so that case keys stay."""
NEED_CONTEXTS = ("groundedness", "faithfulness", "claim_support", "citation_accuracy", "synthesis", "composite")
"""Metrics that compare an answer with its contexts, and have no value without any."""
PROBE_S = 1.5


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

    @property
    def is_asked(self) -> bool:
        return self.source == "connector"

    def outlook(self, seconds_a_case: float | None = None) -> list[str]:
        """Return what the run takes, a line each; raise SettingsError if it cannot begin.

        seconds_a_case  what a case of the agent took the last time, if it ran before
        """
        self.agent.check_sound()
        self.datasets.read(self.dataset.slug, self.dataset.number).check_sound()
        if self.is_asked and self.agent.agent.target is None:
            raise SettingsError(f"{self.agent.title} names no system to ask; upload its answers, or give it one")
        with configured(self.agent.agent, self.agents.registry) as (settings, folder):
            plan = make_plan(settings, self.agents.registry, folder)
        cases = len(self.cases)
        times = cases * settings.repeat
        asked = "nothing is asked"
        if self.is_asked:
            asked = f"{counted(times, 'question')} to {self.agent.agent.target_in_words}"
        judge = public_target(settings.judge)
        lines = [f"{counted(cases, 'case')}; {asked}"]
        if not asks_server(settings.judge) or settings.retrieval_only or not plan.wordings:
            how = "compares words, which is rough" if settings.judge == "lexical" else "is free"
            lines.append(f"judge {judge} {how}: nothing is paid")
        else:
            judgements = times * plan.most_repeats * len(plan.wordings)
            lines.append(f"judge {judge}: up to {counted(judgements, 'judgement')}")
            lines.append(estimate_at(_tariff(settings), plan, cases) or "what a judgement costs there is not known")
        if seconds_a_case is not None:
            lines.append(f"about {duration(1000 * seconds_a_case * cases)}, as the last run of this agent took")
        return lines

    def warnings(self, env_file: Path | None, answers: AnswersUpload | None = None) -> list[str]:
        """Return what to beware of; this tries to connect to the agent's server, once."""
        agent = self.agent.agent
        warnings = [version.problem for version in (self.agent, self.dataset) if version.problem is not None]
        keys = needed_keys(agent, env_file, is_asked=self.is_asked)
        warnings += [
            f"{key.name} is not set, which {key.purpose} needs: put it into .env or the environment"
            for key in keys
            if not key.is_set
        ]
        if self.is_asked and agent.target:
            warnings += _unreachable(agent.target)
        model_names = answers.model_names if answers is not None else ()
        warnings += agent_warnings(agent, self.agents.registry, model_names)
        warnings += self._unmeasured()
        if answers is not None:
            warnings += self._without_contexts(answers)
        return warnings

    def _unmeasured(self) -> Iterator[str]:
        if MAIN_RUBRIC in self.agent.agent.thresholds and not any(case.gold.answers for case in self.cases):
            yield (
                f"no case of {self.dataset.title} has a reference answer: the threshold of {MAIN_RUBRIC} would look at "
                "nothing, which fails a run; add references, or take the threshold out of the agent"
            )

    def _without_contexts(self, answers: AnswersUpload) -> Iterator[str]:
        if answers.without_contexts:
            yield (
                f"{counted(answers.without_contexts, 'answer')} of {answers.answers} come without contexts: "
                "faithfulness, groundedness and whatever else is held against contexts are skipped for them"
            )
        if left_out := self.left_out(answers):
            names = ", ".join(left_out)
            yield f"thresholds of {self.agent.title} that would look at nothing do not count: {names}"

    def left_out(self, answers: AnswersUpload | None) -> list[str]:
        """Return the metrics whose gates would have nothing to check, because no answer has contexts."""
        if answers is None or answers.without_contexts < answers.answers:
            return []
        return [name for name in self.agent.agent.thresholds if name in NEED_CONTEXTS]

    def lay_out(
        self, folder: Path, description: str, baseline: str | None, file: Path | None, answers: AnswersUpload | None
    ) -> Job:
        """Write what the run reads into its job's folder; `file` holds the uploaded `answers`."""
        agent = self.agent
        dataset = self.dataset
        self.agents.write_configuration(agent.slug, agent.number, folder)
        cases = self.datasets.run_path(dataset.slug, dataset.number)
        (folder / CASES).mkdir()
        shutil.copyfile(cases, folder / CASES / f"{dataset.slug}.jsonl")
        # A gate that looks at nothing fails a run, and without contexts these can look at nothing.
        arguments = [f"--gate={metric} off" for metric in self.left_out(answers)]
        if file is not None:
            shutil.copyfile(file, folder / f"answers{file.suffix}")
            arguments += ["--target", f"answers:answers{file.suffix}"]
        if description:
            arguments.append(f"--description={description}")
        # Always named: the baseline of the project's configuration is not meant for runs of the browser.
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


def _unreachable(target: str) -> Iterator[str]:
    """Yield a warning if nothing listens at a target's address."""
    address = target if target.startswith("http") else f"http{target.partition('@http')[2]}"
    try:
        parts = urlsplit(address)
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        return
    if parts.hostname:
        try:
            socket.create_connection((parts.hostname, port), PROBE_S).close()
        except OSError as error:
            yield f"{parts.hostname}:{port} cannot be reached: {error.strerror or error}; is the system running?"


def _tariff(settings: Settings) -> Tariff | None:
    """Return the prices of the judge's model, or None if the spec names no model."""
    try:
        return chat_model(settings.judge, EndpointOptions(base_url=settings.judge_base_url, is_replay=True)).tariff
    except SettingsError:
        return None


ANSWER_SUFFIXES = (".csv", ".jsonl")
ALL = 10_000
"""Number of chunks of an answer to consider: more than any cut-off."""


@dataclass(frozen=True, slots=True)
class AnswersUpload:
    """Answers that cover every case.

    model_names       models that wrote the answers, according to the file
    without_contexts  number of answers without contexts, to which groundedness and the like do not apply
    """

    answers: int
    model_names: tuple[str, ...]
    without_contexts: int


def read_answers_upload(path: Path, shown_as: str, cases: Sequence[EvalCase], most_rows: int) -> AnswersUpload:
    """Read the answers in a file, or raise CaseError with every problem, missing and unknown ids among them.

    shown_as  the name of the person's file
    cases     all cases of the dataset
    """
    if path.suffix not in ANSWER_SUFFIXES:
        raise CaseError(f"{shown_as}: answers are a file that ends with {' or '.join(ANSWER_SUFFIXES)}")
    file = load_answers(path, shown_as=shown_as, most_rows=most_rows)
    target = AnswersTarget(file)
    cases = [replace(case, source=NOWHERE) for case in cases]  # so that problems name cases by their ids
    if problems := target.check_coverage(cases):
        raise CaseError(*problems)
    answers = [answer for case in cases if (answer := target.of(case)) is not None]
    written_names = [answer.extra.get("model_name") for answer in answers]
    names = {name for name in written_names if isinstance(name, str) and name}
    bare = sum(not contexts(case, answer, ALL) for case, answer in zip(cases, answers, strict=True))
    return AnswersUpload(len(answers), tuple(sorted(names)), bare)
