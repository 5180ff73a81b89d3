"""The checks of `rageval doctor`: configuration, cases, system, judge, cache, places. None of them costs anything."""

from __future__ import annotations

import asyncio
import queue
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import suppress
from importlib.util import find_spec
from itertools import chain
from typing import Any

from pytest_rageval.cases.discovery import find_case_files, unread_note
from pytest_rageval.cases.gold_places import unwinnable
from pytest_rageval.cases.loading import load_file
from pytest_rageval.cases.note_folder import NoteFolder
from pytest_rageval.cases.project_cases import pattern_problems, readable_cases
from pytest_rageval.check.diagnosis import Diagnosis, failure, success, warning
from pytest_rageval.check.target_check import look_at_target
from pytest_rageval.comparison.baseline import project_baseline
from pytest_rageval.config.files import has_table
from pytest_rageval.config.project import Project
from pytest_rageval.errors import RagevalError, SettingsError, UnknownMetric
from pytest_rageval.gates.gate import doubtful_limits, too_few_cases, unknown_values
from pytest_rageval.http.failures import HttpFailure
from pytest_rageval.io.masking import Mask, public_target
from pytest_rageval.judges.cache.sqlite_cache import connect, open_exclusively
from pytest_rageval.judges.judge import BaseJudge, described_judge
from pytest_rageval.judges.judge_spec import judge_of_run
from pytest_rageval.llm.chat_model import body_of
from pytest_rageval.llm.chat_protocol import below
from pytest_rageval.metrics import load_registry
from pytest_rageval.metrics.added import project_registry
from pytest_rageval.metrics.assertions import checked_metric_names
from pytest_rageval.metrics.ontology.rates import load_validator
from pytest_rageval.run.plan import make_plan
from pytest_rageval.run.prepare import run_check
from pytest_rageval.runs.folder import check_reports
from pytest_rageval.runs.judge_notes import doubts_about
from pytest_rageval.text import counted

ALL_CHECKS_S = 3.0
"""Seconds for all checks together, so that the command, which takes a second to start, ends within five."""


Check = Callable[[Project], Iterable[Diagnosis]]
"""A check of one subject. Only that of the target asks anything: one question, of a server or of the project's code."""


def diagnoses(
    checks: Mapping[str, Check], project: Project, seconds: float = ALL_CHECKS_S
) -> Iterator[tuple[str, Diagnosis]]:
    """Yield diagnoses by subject, in the order of the checks, which run at the same time.

    A check that is not done in time is a warning of its own, and is left behind.
    """
    deadline = time.monotonic() + seconds
    mask = Mask(project.settings.secrets())
    started = [(subject, _start(subject, check, project)) for subject, check in checks.items()]
    for subject, done in started:
        try:
            result = done.get(timeout=max(deadline - time.monotonic(), 0.01))
        except queue.Empty:
            result = [warning(f"not done within {seconds:g} s", "look into it by itself")]
        for finding in result:
            # A check quotes what the system, its server or the project's code says.
            yield subject, finding.masked(mask)


def _start(subject: str, check: Check, project: Project) -> queue.SimpleQueue[list[Diagnosis]]:
    """Start a check in a daemon thread, and return the queue that receives its findings."""
    done: queue.SimpleQueue[list[Diagnosis]] = queue.SimpleQueue()

    def look() -> None:
        try:
            done.put(list(check(project)))
        except RagevalError as error:
            done.put([failure(problem) for problem in error.problems])
        except Exception as error:  # noqa: BLE001  one check that breaks must not hide what the others found
            done.put([failure(f"the check itself failed: {type(error).__name__}: {error}", "report it")])

    threading.Thread(target=look, name=f"doctor {subject}", daemon=True).start()
    return done


LITTLE = 2**30
"""Free bytes below which there is a warning."""
TOO_LITTLE = 64 * 2**20
"""Free bytes below which there is a problem."""
EXTRAS = {
    "web": ("fastapi", "python_multipart"), "cli": ("textual",), "ontology": ("rdflib", "pyshacl"),
    "prices": ("genai_prices",), "nli": ("onnxruntime", "tokenizers"),
    "any-llm": ("any_llm",), "deepeval": ("deepeval",), "parquet": ("pyarrow",), "yaml": ("yaml",), "ray": ("ray",),
}  # fmt: skip
"""Optional parts of the installation, by the modules that each needs."""
MOST_PROBLEMS = 10
"""Problems of case files to show; `rageval cases validate` lists all."""
# Commands that mend what is wrong, or say more of it.
INIT = "rageval init --yes"
VALIDATE = "rageval cases validate"
AUDIT = "rageval cases audit"
JUDGE = "rageval doctor --judge"
SERVER_S = 2.0
"""Seconds for the judge's server to say that it is there."""


def look_at_reports(project: Project) -> Iterator[Diagnosis]:
    """Check that the folder of runs can be written and has room."""
    check_reports(project.reports)
    runs = sum(1 for _ in project.reports.glob("runs/*/config.json"))
    baseline = "no baseline yet" if project_baseline(project) is None else "with a baseline"
    yield success(f"{project.settings.reports}/ can be written: {counted(runs, 'run')}, {baseline}")
    nearest = next(folder for folder in (project.reports, *project.reports.parents) if folder.exists())
    free = shutil.disk_usage(nearest).free
    shown = f"{free / 2**30:.1f} GiB free"
    remedy = "make room; rageval runs prune removes runs"
    if free < TOO_LITTLE:
        yield failure(shown, remedy)
    elif free < LITTLE:
        yield warning(shown, remedy)
    else:
        yield success(shown)


def look_at_ontology(project: Project) -> Iterator[Diagnosis]:
    """Read the files that the graph's claims are checked against."""
    places = project.settings.ontology
    if places is None:
        yield success("none: claims of a knowledge graph are checked against none")
        return
    validator = load_validator(places, project.root)
    yield success(f"{', '.join(places)}, sha256 {validator.digest[:12]}")


def look_at_extras(_: Project) -> Iterator[Diagnosis]:
    """List the installed and the missing extras."""
    installed = [name for name, modules in EXTRAS.items() if all(map(find_spec, modules))]
    missing = [name for name in EXTRAS if name not in installed]
    fix = f"pip install 'pytest-rageval[{missing[0]}]', for one that you need" if missing else ""
    yield success(f"installed: {', '.join(installed) or 'none'}; not: {', '.join(missing) or 'none'}", fix)


def look_at_configuration(project: Project) -> Iterator[Diagnosis]:
    """Check the names in the settings, rubrics, gates and their conditions, and the baseline."""
    try:
        plan = make_plan(project.settings, project_registry(project), project.root)
    except SettingsError as error:
        for problem in error.problems:
            if isinstance(problem, UnknownMetric):
                yield warning(problem, "nothing, where conftest.py or a hook declares this metric")
            else:
                yield failure(problem)
        return
    if not has_table(project.root):
        has_pyproject = (project.root / "pyproject.toml").is_file()
        file = "[tool.rageval] into pyproject.toml" if has_pyproject else "rageval.toml"
        fix = f"write {file}, with target = …, or let `rageval init` do it"
        yield warning("no configuration", fix, INIT)
    loaded = [load_file(path, project.root) for path in find_case_files(project.root, project.settings.cases)]
    if loaded and not any(file.problems for file in loaded):
        cases = [*chain.from_iterable(file.cases for file in loaded)]
        for problem in unknown_values(plan.case_gates, cases):
            yield failure(problem)
        for problem in too_few_cases(plan.run_gates, len(cases)):
            yield failure(problem)
    for doubt in doubtful_limits([*plan.case_gates, *plan.run_gates]):
        yield warning(doubt)
    try:
        project_baseline(project)
    except SettingsError as error:
        yield from (failure(problem) for problem in error.problems)
    gates = len(plan.case_gates) + len(plan.run_gates)
    metrics = len(plan.measures) + len(plan.run_measures)
    yield success(f"{counted(metrics, 'metric')}, {counted(gates, 'gate')}")


def look_at_cases(project: Project) -> Iterator[Diagnosis]:
    """Check that there are case files, and that all can be read."""
    globs = project.settings.cases
    files = find_case_files(project.root, globs)
    if not files:
        what = f"no case files; looked for {', '.join(globs)}"
        yield failure(what, "write evalcases/NAME.jsonl", INIT)
        return
    registry = load_registry()
    loaded = [checked_metric_names(load_file(path, project.root), registry) for path in files]
    problems = list(chain.from_iterable(file.problems for file in loaded))
    for problem in problems[:MOST_PROBLEMS]:
        yield failure(problem, command=VALIDATE)
    if len(problems) > MOST_PROBLEMS:
        yield failure(f"{len(problems) - MOST_PROBLEMS} more problems", VALIDATE, VALIDATE)
    for problem in pattern_problems(project.root, globs, files):
        yield failure(problem)
    unread = unread_note(files, project.root)
    if unread is not None:
        yield warning(unread)
    number = sum(len(file.cases) for file in loaded)
    yield success(f"{counted(number, 'case')} in {counted(len(files), 'file')}")


def look_at_labels(project: Project) -> Iterator[Diagnosis]:
    """Check golds against the notes, if their folder is configured."""
    if project.notes is None:
        return
    cases = [case for case in readable_cases(project) if case.gold.supports]
    lost = unwinnable(cases, NoteFolder(project.notes))
    if lost:
        what = f"{len(lost)} of {counted(len(cases), 'case')} cannot be won: the notes lack their golds"
        yield failure(what, f"{AUDIT} says which and why", AUDIT)
    else:
        yield success(f"the notes hold the golds of {counted(len(cases), 'case')}")


def look_at_judge(project: Project) -> Iterator[Diagnosis]:
    """Check that the configured judge can be asked, is pinned and was tried."""
    settings = project.settings
    if settings.retrieval_only:
        yield success("retrieval only: nothing is judged")
        return
    if settings.judge.startswith(("http://", "https://")):
        silence = _in_time(_silence(settings.judge))
        if silence:
            yield failure(f"{public_target(settings.judge)}: {silence}", "start the server")
            return
    judge = judge_of_run(settings, project.root, workers=1)
    if judge is None:
        yield success("none: nothing is judged")
        return
    problem = _in_time(_cannot_be_asked(judge, is_replay=settings.judge_cache == "replay"))
    if problem is not None:
        yield failure(f"{judge.model}: {problem}", 'start the server, or set judge_cache = "replay"')
        return
    yield from _of_the_judge(project, judge)


def _of_the_judge(project: Project, judge: BaseJudge) -> Iterator[Diagnosis]:
    if judge.heuristic:
        yield success(f"{judge.model}, a heuristic without a model: its scores gate only where you wrote the gate")
        return
    yield success(judge.model)
    check = run_check(project, judge, make_plan(project.settings, project_registry(project), project.root))
    for doubt in doubts_about(described_judge(judge, project.settings.judge_temperature), check):
        yield warning(doubt.text, command=JUDGE if doubt.is_unchecked else "")
    if check is None or check["unchecked"]:
        return
    if not any(rubric["failed"] for rubric in check["rubrics"].values()):
        yield success(f"passed all canaries on {check['checked'][:10]}")


def look_at_cache(project: Project) -> Iterator[Diagnosis]:
    """Check that the judge cache can be opened, and is not empty for a replay."""
    path = project.judge_cache_file
    is_replay = project.settings.judge_cache == "replay"
    if not path.exists() and is_replay:
        fix = 'rageval judge-cache import FILE, or run once with judge_cache = "use"'
        yield failure(f"{path}: not there, and with replay nothing is judged anew", fix)
        return
    if not path.exists():
        yield success("none yet; the first run makes it")
        return
    try:
        connection = open_exclusively(lambda: connect(path, create=False), path.parent)
        try:
            (number,) = connection.execute("SELECT count(*) FROM judgements").fetchone()
        finally:
            connection.close()
    except (OSError, sqlite3.Error) as error:
        yield failure(f"{path}: cannot be opened: {error}", "the next run sets it aside and begins anew")
        return
    yield success(counted(number, "judgement"))


CHECKS: Mapping[str, Check] = {
    "configuration": look_at_configuration,
    "cases": look_at_cases,
    "labels": look_at_labels,
    "target": look_at_target,
    "judge": look_at_judge,
    "cache": look_at_cache,
    "ontology": look_at_ontology,
    "reports": look_at_reports,
    "extras": look_at_extras,
}
"""In the order in which they are shown; a further check is one function and one line here."""


async def _silence(url: str) -> str | None:
    """Ask a server for its models; the caller says if it does not answer in time."""
    with suppress(HttpFailure):  # reported in full when the judge is made
        await body_of(below(url, "/models"), {})
    return None


async def _cannot_be_asked(judge: BaseJudge, *, is_replay: bool) -> str | None:
    """Return why the judge's server cannot be asked; ask nothing if a run would not ask either."""
    try:
        return None if is_replay else await judge.check()
    finally:
        await judge.aclose()


def _in_time(asking: Coroutine[Any, Any, str | None]) -> str | None:
    async def ask() -> str | None:
        try:
            async with asyncio.timeout(SERVER_S):
                return await asking
        except TimeoutError:
            return f"its server did not answer within {SERVER_S:g} s"

    return asyncio.run(ask())
