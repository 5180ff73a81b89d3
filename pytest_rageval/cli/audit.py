"""`rageval cases audit`: what may be wrong with the labels, against the notes, the index and stored runs."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from pytest_rageval.cli.case_paths import PATHS, case_files, sound_cases
from pytest_rageval.cli.exit_codes import exit_codes
from pytest_rageval.cli.json_output import echo_json
from pytest_rageval.config.project import Project, find_project
from pytest_rageval.errors import SettingsError
from pytest_rageval.model import Chunk, EvalCase
from pytest_rageval.prepare import make_target
from pytest_rageval.targets.http_target import ListsChunks
from pytest_rageval.text import printable
from pytest_rageval.tools.audit import (
    AuditFinding,
    audit_in_words,
    findings_in_files,
    findings_in_index,
    findings_in_notes,
    findings_in_runs,
)


@click.command()
@PATHS
@click.option("--docs", metavar="DIR", type=click.Path(exists=True, file_okay=False, path_type=Path),
              help="Folder of the notes (default: `notes` in the configuration).")  # fmt: skip
@click.option("--index", "is_index", is_flag=True, help="Look for the golds in the target's index, too.")
@click.option("--target", metavar="SPEC", help="The target of --index (default: as configured).")
@click.option("--json", "as_json", is_flag=True, help="Write one JSON object instead of text.")
@exit_codes({0: "every case can be won", 1: "some cannot"})
def audit(paths: Sequence[Path], docs: Path | None, target: str | None, *, is_index: bool, as_json: bool) -> None:
    """Look for labels that are wrong: golds that no note holds any more, cases that nobody can win, questions asked
    twice or holding their answer, categories that need more golds, golds that no stored run retrieved, notes that
    changed since they were labelled.

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
            click.echo(printable(f"{'✘' if finding.is_unwinnable else '!'} {finding}"))
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
    """All chunks of the configured target's index; SettingsError where it does not list them."""
    target = make_target(project)
    try:
        chunks = await target.index_chunks() if isinstance(target, ListsChunks) else None
    finally:
        await target.aclose()
    if chunks is None:
        raise SettingsError(
            f"--index: target {target.name} does not list its chunks (GET /api/v1/index/chunks); use --docs DIR"
        )
    return chunks


def _next(findings: Sequence[AuditFinding]) -> list[str]:
    """Where the labels can be mended: the cases that nobody can win first; a run, where all can be won."""
    unwinnable = [finding for finding in findings if finding.is_unwinnable]
    labels = [
        f"rageval label {shlex.join([finding.case.source.file, '--case', finding.case.id])}"
        for finding in unwinnable or findings
    ]
    return labels if unwinnable else ["rageval run", *labels]
