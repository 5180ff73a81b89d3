"""`rageval cases`: check, count, describe, convert, export, draft and audit cases."""

from __future__ import annotations

import asyncio
import os
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

import click

from pytest_rageval.cases.discovery import unread_note
from pytest_rageval.cases.drafts import ENDING, add_drafts, answer_draft, check_is_drafts, drafts_file_of
from pytest_rageval.cases.loading import CaseFile, path_text
from pytest_rageval.cases.project_cases import sound_cases
from pytest_rageval.cases.schema import case_schema
from pytest_rageval.check.audit import (
    AuditFinding,
    audit_in_words,
    declining_golds_line,
    findings_in_files,
    findings_in_index,
    findings_in_notes,
    findings_in_runs,
)
from pytest_rageval.cli.case_export import export_cases
from pytest_rageval.cli.case_files import PATHS, case_files, unmatched_patterns
from pytest_rageval.cli.conversion import convert
from pytest_rageval.cli.options import FOLDER, JSON, REPORTS, echo_json, exit_codes, output_option
from pytest_rageval.cli.stored_run import open_run
from pytest_rageval.cli.traces import cases_from_traces
from pytest_rageval.comparison.case_diff import representative_trial
from pytest_rageval.config.project import Project, find_project
from pytest_rageval.errors import SettingsError
from pytest_rageval.io.environment_secrets import secrets_of_environment
from pytest_rageval.io.json_text import json_text
from pytest_rageval.io.masking import Mask
from pytest_rageval.io.messages import escape_text
from pytest_rageval.model import Chunk, EvalCase, Gold
from pytest_rageval.model.case_fields import DESCRIPTIVE_FIELDS, DescriptiveField
from pytest_rageval.run.prepare import make_target
from pytest_rageval.runs.records.record_files import record_at
from pytest_rageval.targets.http_target import ListsChunks
from pytest_rageval.text import counted, printable


@click.group()
def cases() -> None:
    """Check, count, describe and convert case files."""


for other in (cases_from_traces, convert, export_cases):
    cases.add_command(other)


@cases.command("draft")
@click.argument("run")
@click.argument("case")
@output_option(f"The file of drafts to add to (default: the one beside the case's file, X{ENDING}).")
@REPORTS
def draft_answer(run: str, case: str, output: Path | None, reports: str | None) -> None:
    """Draft a case from the answer to CASE (its key or id) in RUN: question, bad answer, what it cited, no gold.

    No run asks drafts before a person labels them. A question that exists as a case or draft is left out.
    """
    project, stored = open_run(run, reports=reports)
    key = stored.find(case)["case_key"]
    records = {trial: record_at(place) for (name, trial), place in stored.record_places().items() if name == key}
    record = representative_trial(records)
    place = stored.observation_places().get((key, record["trial"]))
    observation = record_at(place) if place else None
    draft = answer_draft(record, observation, stored.run_id)
    if draft is None:
        raise SettingsError(f"run {stored.run_id} keeps no texts (redact): there is no question to draft a case from")
    path = output or project.root / drafts_file_of(record)
    check_is_drafts(path)
    masked_draft = Mask(project.settings.secrets()).value(draft)
    what = "nothing new"
    if add_drafts(path, [masked_draft]):
        what = f"a new draft, {draft['id']}; no run asks it before it is labelled"
    click.echo(printable(f"{path}: {what}"))


@cases.command()
@PATHS
@JSON
@exit_codes({0: "no problems", 1: "problems", 2: "wrong usage, or nothing to check"})
def validate(paths: Sequence[Path], *, as_json: bool) -> None:
    """Load case files and list everything that is wrong with them.

    PATHS are files or folders; without any, the files that `cases` in the configuration names, below the current
    folder.
    """
    files = case_files(paths)
    unmatched = [] if paths else unmatched_patterns(files)
    number = sum(len(file.cases) for file in files)
    problems = [*chain.from_iterable(file.problems for file in files), *unmatched]
    if as_json:
        listed = [_validated(file) for file in files]
        broken = [path_text(file.path) for file in files if file.problems]
        commands = ["rageval cases audit", "rageval run"]
        if broken:
            commands = [f"rageval cases validate {shlex.join(broken)}"]
        echo_json({"cases": number, "problems": len(problems), "files": listed}, commands)
    else:
        for problem in problems:
            click.echo(problem)
        counts = (counted(len(files), "file"), counted(number, "case"), counted(len(problems), "problem"))
        click.echo(", ".join(counts))
    unread = unread_note([file.path for file in files], Path.cwd())
    if unread is not None:
        click.secho(unread, fg="yellow", err=True)
    declining = declining_golds_line(chain.from_iterable(file.cases for file in files))
    if declining is not None:
        click.secho(escape_text(declining), fg="yellow", err=True)
    if unmatched:
        raise SystemExit(2)
    raise SystemExit(1 if problems else 0)


def _validated(file: CaseFile) -> dict[str, object]:
    return {"path": path_text(file.path), "cases": len(file.cases), "problems": list(file.problems)}


@cases.command()
@PATHS
@JSON
@exit_codes({1: "records with problems were not counted"})
def stats(paths: Sequence[Path], *, as_json: bool) -> None:
    """Count the valid cases by file, format, category and other labels, answerability and kind of gold.

    PATHS as for `validate`. Records with problems are counted separately.
    """
    files = case_files(paths)
    counts = Mask(secrets_of_environment(os.environ)).value(_counts(files))
    problems = sum(len(file.problems) for file in files)
    number = sum(len(file.cases) for file in files)
    if as_json:
        command = "rageval cases validate" if problems else "rageval cases audit"
        echo_json({"cases": number, "problems": problems, **counts}, [command])
    else:
        click.echo(f"{counted(number, 'case')} in {counted(len(files), 'file')}")
        for title, by_name in counts.items():
            _echo_counts(title.replace("_", " "), by_name)
        if problems:
            click.echo(f"\n{counted(problems, 'problem')}; `rageval cases validate` lists them", err=True)
    raise SystemExit(1 if problems else 0)


@cases.command()
def schema() -> None:
    """Print the JSON Schema of one line of a JSONL case file, for editors."""
    click.echo(json_text(case_schema(), 2))


@cases.command()
@PATHS
@click.option("--docs", metavar="DIR", type=FOLDER, help="Folder of the notes (default: `notes` in the configuration).")
@click.option("--index", "is_index", is_flag=True, help="Look for the golds in the target's index, too.")
@click.option("--target", metavar="SPEC", help="The target of --index (default: as configured).")
@JSON
@exit_codes({0: "every case can be won", 1: "some cannot"})
def audit(paths: Sequence[Path], docs: Path | None, target: str | None, *, is_index: bool, as_json: bool) -> None:
    """Look for wrong labels.

    Finds golds that no note contains any more, cases that cannot pass, questions that occur twice or contain their
    answer, categories that need more golds, golds that no stored run retrieved, and notes that changed.

    PATHS are case files or folders; without any, the files that `cases` in the configuration names.
    """
    project = find_project({"target": target} if target else {})
    cases = sound_cases(case_files(paths))
    findings = list(_findings(project, cases, docs or project.notes, is_index=is_index))
    unwinnable = list(dict.fromkeys(finding.case.key for finding in findings if finding.is_unwinnable))
    if as_json:
        listed = [finding.content() for finding in findings]
        content = {"cases": len(cases), "unwinnable": unwinnable, "findings": listed}
        echo_json(content, _next(findings))
    else:
        for finding in findings:
            mark = "✘" if finding.is_unwinnable else "!"
            click.echo(printable(f"{mark} {finding}"))
        click.echo(audit_in_words(findings, len(cases)))
        if docs is None and project.notes is None and not is_index:
            click.echo(
                "golds were not looked for in the notes: name their folder with --docs, or use --index", err=True
            )
    raise SystemExit(1 if unwinnable else 0)


def _findings(
    project: Project, cases: Sequence[EvalCase], notes: Path | None, *, is_index: bool
) -> Iterator[AuditFinding]:
    if notes is not None:
        yield from findings_in_notes(cases, notes)
    if is_index:
        yield from findings_in_index(cases, asyncio.run(_chunks(project)), project.settings.gold_by)
    yield from findings_in_files(cases)
    yield from findings_in_runs(cases, project.reports)


async def _chunks(project: Project) -> list[Chunk]:
    """Return all chunks of the configured target's index; raise SettingsError if it does not list them."""
    target = make_target(project)
    chunks = None
    try:
        if isinstance(target, ListsChunks):
            chunks = await target.index_chunks()
    finally:
        await target.aclose()
    if chunks is None:
        raise SettingsError(
            f"--index: target {target.name} does not list its chunks (GET /api/v1/index/chunks); use --docs DIR"
        )
    return chunks


def _next(findings: Sequence[AuditFinding]) -> list[str]:
    """Return commands that mend the labels, of cases that cannot be won first; a run if all can be won."""
    unwinnable = [finding for finding in findings if finding.is_unwinnable]
    if unwinnable:
        return [_label_command(finding) for finding in unwinnable]
    return ["rageval run", *(_label_command(finding) for finding in findings)]


def _label_command(finding: AuditFinding) -> str:
    return f"rageval label {shlex.join([finding.case.source.file, '--case', finding.case.id])}"


# ── counting ──────────────────────────────────────────────────────────────────────────────────────────────────


def _counts(files: Sequence[CaseFile]) -> dict[str, dict[str, int]]:
    every = list(chain.from_iterable(file.cases for file in files))
    spellings: Counter[str] = Counter()
    for file in files:
        for names, number in file.spellings.items():
            spellings["+".join(names) or "question only"] += number
    return {
        "file": {_name_in_counts(file): len(file.cases) for file in files},
        "spelling": _most_first(spellings),
        **{field.name: _frequencies(_described(every, field)) for field in DESCRIPTIVE_FIELDS},
        "tag": _frequencies(chain.from_iterable(case.tags for case in every)),
        "answerable": _frequencies(_yes_or_no(case.answerable) for case in every),
        "requires_kg": _frequencies(_yes_or_no(case.requires_kg) for case in every),
        "gold": _frequencies(chain.from_iterable(map(_gold_kinds, every))),
    }


def _name_in_counts(file: CaseFile) -> str:
    """Return the name that the cases of a file have in their keys, which stands for several files in some formats."""
    return path_text(file.cases[0].source.file if file.cases else file.path)


def _described(cases: Sequence[EvalCase], field: DescriptiveField) -> Iterator[str]:
    for case in cases:
        yield getattr(case, field.name) or field.absent or "not said"


def _yes_or_no(value: bool) -> str:
    return "yes" if value else "no"


def _gold_kinds(case: EvalCase) -> list[str]:
    names = [name for name in Gold.__slots__ if name != "ids_are_prefixes"]
    kinds = [name for name in names if getattr(case.gold, name) is not None]
    if case.assertions:
        kinds.append("assertions")
    if case.expected_tools is not None or case.forbidden_tools or case.max_tool_calls is not None:
        kinds.append("tools")
    return kinds or ["none"]


def _frequencies(values: Iterable[str]) -> dict[str, int]:
    return _most_first(Counter(values))


def _most_first(counter: Counter[str]) -> dict[str, int]:
    return dict(sorted(counter.items(), key=lambda item: (-item[1], item[0])))


def _echo_counts(title: str, by_name: Mapping[str, int]) -> None:
    """Print numbers first: names of any script and width then need no alignment."""
    if not by_name:
        return
    click.echo(f"\nby {title}")
    width = max(len(f"{number:,}") for number in by_name.values())
    for name, number in by_name.items():
        click.echo(f"  {number:>{width},}  {escape_text(name)}")
