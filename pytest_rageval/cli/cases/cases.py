"""`rageval cases`: check case files, count their cases, print the JSON Schema of a case, convert other tools' files."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from pytest_rageval.cases import CaseFile, case_schema
from pytest_rageval.cli.cases.audit import audit
from pytest_rageval.cli.cases.case_paths import PATHS, case_files, path_text
from pytest_rageval.cli.cases.convert import convert
from pytest_rageval.cli.cases.draft_answer import draft_answer
from pytest_rageval.cli.cases.draft_traces import draft_traces
from pytest_rageval.cli.cases.export_cases import export_cases
from pytest_rageval.cli.exit_codes import exit_codes
from pytest_rageval.cli.json_output import echo_json
from pytest_rageval.gates.gate import UNCATEGORISED
from pytest_rageval.io.json_text import json_text
from pytest_rageval.io.messages import shown
from pytest_rageval.model import EvalCase, Gold
from pytest_rageval.text import counted

_JSON = click.option("--json", "as_json", is_flag=True, help="Write one JSON object instead of text.")


@click.group()
def cases() -> None:
    """Check, count, describe and convert case files."""


cases.add_command(audit)
cases.add_command(convert)
cases.add_command(export_cases)
cases.add_command(draft_answer)
cases.add_command(draft_traces)


@cases.command()
@PATHS
@_JSON
@exit_codes({0: "no problems", 1: "problems", 2: "wrong usage, or nothing to check"})
def validate(paths: Sequence[Path], *, as_json: bool) -> None:
    """Load case files and list everything that is wrong with them.

    PATHS are files or folders; without any, the files that `cases` in the configuration names, below the current
    folder.
    """
    files = case_files(paths)
    number, problems = sum(len(file.cases) for file in files), [line for file in files for line in file.problems]
    if as_json:
        listed = [{"path": path_text(f.path), "cases": len(f.cases), "problems": list(f.problems)} for f in files]
        broken = [path_text(file.path) for file in files if file.problems]
        commands = (
            [f"rageval cases validate {shlex.join(broken)}"] if broken else ["rageval cases audit", "rageval run"]
        )
        echo_json({"cases": number, "problems": len(problems), "files": listed}, commands)
    else:
        for problem in problems:
            click.echo(problem)
        click.echo(f"{counted(len(files), 'file')}, {counted(number, 'case')}, {counted(len(problems), 'problem')}")
    raise SystemExit(1 if problems else 0)


@cases.command()
@PATHS
@_JSON
@exit_codes({1: "records with problems were not counted"})
def stats(paths: Sequence[Path], *, as_json: bool) -> None:
    """Count the sound cases by file, spelling, category, difficulty, domain, tag, answerability and kind of gold.

    PATHS as for `validate`. Records with problems are not counted; their number is said.
    """
    files = case_files(paths)
    counts = _counts(files)
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


# ── counting ──────────────────────────────────────────────────────────────────────────────────────────────────


def _counts(files: Sequence[CaseFile]) -> dict[str, dict[str, int]]:
    """By what, then by name, how many cases; the most frequent first."""
    every = [case for file in files for case in file.cases]
    spelling: Counter[str] = Counter()
    for file in files:
        for names, number in file.spellings.items():
            spelling["+".join(names) or "question only"] += number
    return {
        "file": {path_text(file.cases[0].source.file if file.cases else file.path): len(file.cases) for file in files},
        "spelling": _sorted(spelling),
        "category": _sorted(Counter(case.category or UNCATEGORISED for case in every)),
        "difficulty": _sorted(Counter(case.difficulty or "not said" for case in every)),
        "domain": _sorted(Counter(case.domain or "not said" for case in every)),
        "tag": _sorted(Counter(tag for case in every for tag in case.tags)),
        "answerable": _sorted(Counter("yes" if case.answerable else "no" for case in every)),
        "requires_kg": _sorted(Counter("yes" if case.requires_kg else "no" for case in every)),
        "gold": _sorted(Counter(kind for case in every for kind in _gold_kinds(case))),
    }


def _gold_kinds(case: EvalCase) -> list[str]:
    kinds = [name for name in Gold.__slots__ if name != "ids_are_prefixes" and getattr(case.gold, name) is not None]
    return kinds or ["none"]


def _sorted(counter: Counter[str]) -> dict[str, int]:
    return dict(sorted(counter.items(), key=lambda item: (-item[1], item[0])))


# ── showing ───────────────────────────────────────────────────────────────────────────────────────────────────


def _echo_counts(title: str, by_name: Mapping[str, int]) -> None:
    """Numbers first: names of any script and width then need no aligning."""
    if not by_name:
        return
    click.echo(f"\nby {title}")
    width = max(len(f"{number:,}") for number in by_name.values())
    for name, number in by_name.items():
        click.echo(f"  {number:>{width},}  {shown(name)}")
