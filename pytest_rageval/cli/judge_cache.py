"""`rageval judge-cache`: count, export, import and prune stored judgements."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

import click

from pytest_rageval.cli.options import JSON, PLACE, echo_json, exit_codes
from pytest_rageval.cli.output import from_here, write_output
from pytest_rageval.config.project import find_project
from pytest_rageval.errors import RagevalError
from pytest_rageval.io.output_encoding import json_for
from pytest_rageval.io.suggestions import and_more
from pytest_rageval.judges.cache.cache_entries import (
    BadEntry,
    EntryGroup,
    add,
    entries,
    entry_groups,
    entry_line,
    open_entries,
    prune,
    read_entries,
)
from pytest_rageval.text import counted, file_size, printable

MOST_PROBLEMS = 100

_CACHE = click.option(
    "--cache",
    metavar="PATH",
    type=PLACE,
    help="The cache's file (default: judge_cache.sqlite of this project, in its reports folder, below cache/).",
)


@click.group()
def judge_cache() -> None:
    """Count, export, import and prune the judgements that are stored between runs."""


@judge_cache.command()
@_CACHE
@JSON
def stats(cache: Path | None, *, as_json: bool) -> None:
    """Count the judgements by rubric and model, with the days of the first and the last."""
    path = _path(cache)
    with open_entries(path) as connection:
        groups = entry_groups(connection)
        size = _size(path)
    number = sum(group.entries for group in groups)
    if as_json:
        listed = [group._asdict() for group in groups]
        echo_json({"path": str(path), "bytes": size, "entries": number, "groups": listed})
        return
    click.echo(f"{_shown(path)}: {counted(number, 'judgement')}, {file_size(size)}")
    _echo_groups(groups)


@judge_cache.command()
@click.argument("file", type=PLACE)
@_CACHE
@exit_codes({1: "entries that cannot be read were left out"})
def export(file: Path, cache: Path | None) -> None:
    """Write all judgements to FILE, or to standard output for `-`: JSON, one a line, sorted by key.

    Equal caches give equal bytes: the file can be committed, compared and imported elsewhere. Entries that cannot be
    read are named and left out.
    """
    lines = []
    left_out = []
    with open_entries(_path(cache)) as connection:
        for key, entry in entries(connection):
            if isinstance(entry, BadEntry):
                left_out.append(f"entry {printable(key[:12])}… left out: {entry}")
            else:
                lines.append(f"{entry_line(entry)}\n")
    if str(file) == "-":
        click.echo(json_for(sys.stdout, "".join(lines)), nl=False)
    else:
        write_output(file, "".join(lines), _shown(file))
    click.echo(f"exported {counted(len(lines), 'judgement')}", err=True)
    for problem in _bounded(left_out):
        click.echo(problem, err=True)
    raise SystemExit(1 if left_out else 0)


@judge_cache.command(name="import")
@click.argument("file", type=PLACE)
@_CACHE
@click.option("--replace", is_flag=True, help="Replace existing judgements by those of FILE.")
def import_(file: Path, cache: Path | None, *, replace: bool) -> None:
    """Import the judgements of FILE, as `export` writes it, into the cache: all, or none if a line is wrong.

    Existing judgements stay, unless --replace is given. A missing cache is created.
    """
    try:
        found = read_entries(file)
    except RagevalError as error:
        raise RagevalError(*_bounded(list(error.problems)), "nothing is imported") from None
    with open_entries(_path(cache), create=True) as connection:
        counts = add(connection, found, replace=replace)
    click.echo(
        f"read {counted(len(found), 'judgement')}: {counts['added']:,} added, "
        f"{counts['replaced']:,} replaced, {counts['kept']:,} there already"
    )


@judge_cache.command(name="prune")
@_CACHE
@click.option("--older-than", metavar="DAYS", type=click.IntRange(0, 100_000), help="Only what is older than that.")
@click.option("--model", help="Only judgements by this model, as `stats` names it.")
@click.option("--rubric", help="Only judgements of this rubric.")
@click.option("--dry-run", is_flag=True, help="Show what would be removed, and remove nothing.")
def prune_(cache: Path | None, older_than: int | None, model: str | None, rubric: str | None, *, dry_run: bool) -> None:
    """Remove the judgements that match all given options; no other command removes any."""
    if older_than is None and model is None and rubric is None:
        raise click.UsageError("say what may go: --older-than, --model, --rubric, or several of them")
    path = _path(cache)
    with open_entries(path) as connection:
        before = sum(group.entries for group in entry_groups(connection))
        removed = prune(connection, older_than_days=older_than, model=model, rubric=rubric, dry_run=dry_run)
    number = sum(group.entries for group in removed)
    verb = "would remove" if dry_run else "removed"
    size = f"; {file_size(_size(path))} are left" if removed and not dry_run else ""
    click.echo(f"{_shown(path)}: {verb} {number:,} of {counted(before, 'judgement')}{size}")
    _echo_groups(removed)


def _path(cache: Path | None) -> Path:
    return cache or from_here(find_project().judge_cache_file)


def _size(path: Path) -> int:
    """Return the size of the file and of its write-ahead log."""
    parts = (path, path.with_name(f"{path.name}-wal"))
    return sum(part.stat().st_size for part in parts if part.exists())


def _echo_groups(groups: Iterable[EntryGroup]) -> None:
    """Print numbers first: names of any script and width then need no alignment."""
    for group in groups:
        days = f"{group.first[:10]} to {group.last[:10]}"
        line = f"  {group.entries:>9,}  {days}  {group.rubric} by {group.model}"
        click.echo(printable(line.replace("\n", "\\n")))


def _bounded(problems: list[str]) -> list[str]:
    more = len(problems) - MOST_PROBLEMS
    if more <= 0:
        return problems
    return [*problems[:MOST_PROBLEMS], and_more(more)]


def _shown(path: Path) -> str:
    return printable(str(path))
