"""The checks of `rageval doctor`: configuration, cases, judge, cache. None of them costs anything."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator

from pytest_rageval.cases import find_case_files, load_file
from pytest_rageval.cases.notes.gold_places import unwinnable
from pytest_rageval.cases.notes.note_folder import NoteFolder
from pytest_rageval.compare.baseline import project_baseline
from pytest_rageval.config.files import has_table
from pytest_rageval.config.project import Project
from pytest_rageval.errors import SettingsError
from pytest_rageval.gates.gate import doubtful_limits, unknown_values
from pytest_rageval.http.failures import HttpFailure
from pytest_rageval.io.masking import public_target
from pytest_rageval.judges import judge_from_spec
from pytest_rageval.judges.cache.cache_file import connect, open_alone
from pytest_rageval.judges.canaries.check_record import check_of_run, kept_check
from pytest_rageval.judges.judge import Judge
from pytest_rageval.judges.judge_endpoint import judge_endpoint
from pytest_rageval.llm.chat_protocol import below
from pytest_rageval.llm.endpoint import body_of
from pytest_rageval.metrics import load_registry
from pytest_rageval.plan import make_plan
from pytest_rageval.text import counted
from pytest_rageval.workbench.doctor.diagnosis import Check, Diagnosis
from pytest_rageval.workbench.doctor.place_checks import look_at_extras, look_at_ontology, look_at_reports
from pytest_rageval.workbench.doctor.target_checks import look_at_target

MOST_PROBLEMS = 10
"""Of case files that are shown; `rageval cases validate` lists all."""
INIT, VALIDATE, AUDIT, JUDGE = (
    "rageval init --yes",
    "rageval cases validate",
    "rageval cases audit",
    "rageval doctor --judge",
)
"""Commands that mend what is wrong, or say more of it."""
SERVER_S = 2.0
"""Seconds for the judge's server to say that it is there."""


def look_at_configuration(project: Project) -> Iterator[Diagnosis]:
    """Names in the settings, rubrics and gates, conditions of gates, the baseline: all that a run would refuse."""
    try:
        plan = make_plan(project.settings, load_registry(), project.root)
    except SettingsError as error:
        for problem in error.problems:
            if problem.startswith("unknown metric"):
                yield Diagnosis("warning", problem, "nothing, where conftest.py or a hook declares this metric")
            else:
                yield Diagnosis("problem", problem)
        return
    if not has_table(project.root):
        is_python = (project.root / "pyproject.toml").is_file()
        file = "[tool.rageval] into pyproject.toml" if is_python else "rageval.toml"
        fix = f"write {file}, with target = …, or let `rageval init` do it"
        yield Diagnosis("warning", "no configuration", fix, INIT)
    loaded = [load_file(path, project.root) for path in find_case_files(project.root, project.settings.cases)]
    if loaded and not any(file.problems for file in loaded):
        cases = [case for file in loaded for case in file.cases]
        yield from (Diagnosis("problem", problem) for problem in unknown_values(plan.case_gates, cases))
    yield from (Diagnosis("warning", line) for line in doubtful_limits([*plan.case_gates, *plan.run_gates]))
    try:
        project_baseline(project)
    except SettingsError as error:
        yield from (Diagnosis("problem", problem) for problem in error.problems)
    gates = len(plan.case_gates) + len(plan.run_gates)
    yield Diagnosis("ok", f"{counted(len(plan.measures) + len(plan.run_measures), 'metric')}, {counted(gates, 'gate')}")


def look_at_cases(project: Project) -> Iterator[Diagnosis]:
    """Case files: are there any, and can all be read?"""
    globs = project.settings.cases
    files = find_case_files(project.root, globs)
    if not files:
        what = f"no case files; looked for {', '.join(globs)}"
        yield Diagnosis("problem", what, "write evalcases/NAME.jsonl", INIT)
        return
    loaded = [load_file(path, project.root) for path in files]
    problems = [problem for file in loaded for problem in file.problems]
    for problem in problems[:MOST_PROBLEMS]:
        yield Diagnosis("problem", problem, command=VALIDATE)
    if len(problems) > MOST_PROBLEMS:
        yield Diagnosis("problem", f"{len(problems) - MOST_PROBLEMS} more problems", VALIDATE, VALIDATE)
    number = sum(len(file.cases) for file in loaded)
    yield Diagnosis("ok", f"{_many(number, 'case')} in {_many(len(files), 'file')}")


def look_at_labels(project: Project) -> Iterator[Diagnosis]:
    """Golds against the notes, where their folder is configured: can every case be won?"""
    if (notes := project.notes) is None:
        return
    files = find_case_files(project.root, project.settings.cases)
    cases = [case for path in files for case in load_file(path, project.root).cases]
    lost = unwinnable(cases, NoteFolder(notes))
    if lost:
        what = f"{len(lost)} of {_many(len(cases), 'case')} cannot be won: the notes lack their golds"
        yield Diagnosis("problem", what, f"{AUDIT} says which and why", AUDIT)
    else:
        yield Diagnosis("ok", f"the notes hold the golds of {_many(len(cases), 'case')}")


def look_at_judge(project: Project) -> Iterator[Diagnosis]:
    """The configured judge: can it be asked, is it pinned, was it tried?"""
    settings = project.settings
    if settings.retrieval_only:
        yield Diagnosis("ok", "retrieval only: nothing is judged")
        return
    if settings.judge.startswith(("http://", "https://")) and (silence := _silence(settings.judge)) is not None:
        yield Diagnosis("problem", f"{public_target(settings.judge)}: {silence}", "start the server")
        return
    judge = judge_from_spec(settings.judge, root=project.root, options=judge_endpoint(settings))
    if judge is None:
        yield Diagnosis("ok", "none: nothing is judged")
        return
    if (problem := _cannot_be_asked(judge, is_replay=settings.judge_cache == "replay")) is not None:
        yield Diagnosis("problem", f"{judge.model}: {problem}", 'start the server, or set judge_cache = "replay"')
        return
    yield from _of_the_judge(project, judge)


def _of_the_judge(project: Project, judge: Judge) -> Iterator[Diagnosis]:
    if judge.heuristic:
        yield Diagnosis(
            "ok", f"{judge.model}, a heuristic without a model: its scores gate only where you wrote the gate"
        )
        return
    yield Diagnosis("ok", judge.model)
    if getattr(judge, "is_pinned", None) is False:
        fix = "name a dated or numbered version"
        yield Diagnosis("warning", f"{judge.model} is not pinned: the name may mean another model tomorrow", fix)
    if temperature := project.settings.judge_temperature:
        yield Diagnosis("warning", f"temperature {temperature:g}: scores vary from run to run", "judge_temperature = 0")
    plan = make_plan(project.settings, load_registry(), project.root)
    check = check_of_run(kept_check(project.judge_checks_file, judge), judge, plan.wordings)
    if check is None:
        yield Diagnosis("warning", "never checked: nobody knows whether it can be trusted", JUDGE, JUDGE)
        return
    failed = [
        f"{name} {len(of['failed'])} of {of['canaries']}" for name, of in check["rubrics"].items() if of["failed"]
    ]
    if check["unchecked"]:
        names = ", ".join(check["unchecked"])
        yield Diagnosis("warning", f"not checked with {names} as worded now", JUDGE, JUDGE)
    if failed:
        when = check["checked"][:10]
        yield Diagnosis("warning", f"failed canaries on {when}: {', '.join(failed)}", "take a larger or newer model")
    elif not check["unchecked"]:
        yield Diagnosis("ok", f"passed all canaries on {check['checked'][:10]}")


def look_at_cache(project: Project) -> Iterator[Diagnosis]:
    """The judge cache: can it be opened, and does a replay find anything in it?"""
    path, is_replay = project.judge_cache_file, project.settings.judge_cache == "replay"
    if not path.exists():
        if is_replay:
            fix = 'rageval judge-cache import FILE, or run once with judge_cache = "use"'
            yield Diagnosis("problem", f"{path}: not there, and with replay nothing is judged anew", fix)
        else:
            yield Diagnosis("ok", "none yet; the first run makes it")
        return
    try:
        connection = open_alone(lambda: connect(path, create=False), path.parent)
        try:
            (number,) = connection.execute("SELECT count(*) FROM judgements").fetchone()
        finally:
            connection.close()
    except (OSError, sqlite3.Error) as error:
        yield Diagnosis("problem", f"{path}: cannot be opened: {error}", "the next run sets it aside and begins anew")
        return
    yield Diagnosis("ok", _many(number, "judgement"))


CHECKS = (
    Check("configuration", look_at_configuration),
    Check("cases", look_at_cases),
    Check("labels", look_at_labels),
    Check("target", look_at_target),
    Check("judge", look_at_judge),
    Check("cache", look_at_cache),
    Check("ontology", look_at_ontology),
    Check("reports", look_at_reports),
    Check("extras", look_at_extras),
)
"""In the order in which they are shown; a further check is one function and one line here."""


def _silence(url: str) -> str | None:
    """Why the name of the model at a URL cannot be asked for, where its server does not answer in time."""

    async def ask() -> str | None:
        try:
            async with asyncio.timeout(SERVER_S):
                await body_of(below(url, "/models"), {})
        except TimeoutError:
            return _TOO_LATE
        except HttpFailure:  # said in full where the judge is made
            return None
        return None

    return asyncio.run(ask())


_TOO_LATE = f"its server did not answer within {SERVER_S:g} s"


def _cannot_be_asked(judge: Judge, *, is_replay: bool) -> str | None:
    """Why the judge's server cannot be asked, or None; nothing is asked where a run would not ask either."""
    check = getattr(judge, "check", None)

    async def ask() -> str | None:
        try:
            async with asyncio.timeout(SERVER_S):
                problem: str | None = await check() if check is not None and not is_replay else None
                return problem
        except TimeoutError:
            return _TOO_LATE
        finally:
            await judge.aclose()

    return asyncio.run(ask())


def _many(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
