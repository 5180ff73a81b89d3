"""`rageval label`: golds marked in the terminal and written back into the case file."""

from __future__ import annotations

import importlib.util
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import click

from pytest_rageval.cli.options import echo_json
from pytest_rageval.cli.output import columns
from pytest_rageval.config.project import Project, find_project
from pytest_rageval.errors import CaseError, SettingsError
from pytest_rageval.label.label_agreement import LabelAgreement, agreements, disputed
from pytest_rageval.label.label_lines import LabelLines
from pytest_rageval.label.label_session import LabelSession, unlabelled
from pytest_rageval.label.label_store import opinion_file, opinion_files, opinions
from pytest_rageval.label.opening import (
    Labelling,
    cases_to_label,
    label_store,
    pool_source,
    project_systems,
)
from pytest_rageval.model import EvalCase
from pytest_rageval.text import printable


class LabelOptions(NamedTuple):
    """The flags of the command."""

    is_agreement: bool
    is_unlabelled: bool
    is_plain: bool
    as_json: bool
    is_web: bool


@click.command()
@click.argument("path", metavar="CASES", type=click.Path(path_type=Path))
@click.option("--target", "targets", multiple=True, metavar="SPEC", help="System to ask (repeatable).")
@click.option(
    "--notes",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder of notes that a plain word search looks through as well (default: as configured).",
)
@click.option("--blind", metavar="NAME", help="NAME's second opinion, in CASES.labels.NAME.jsonl.")
@click.option("--agree", "is_agreement", is_flag=True, help="Compare opinions; open the disagreements.")
@click.option("--unlabelled", "is_unlabelled", is_flag=True, help="Only cases of which nothing is said yet.")
@click.option("--case", "case_id", metavar="ID", help="Open this case first.")
@click.option("--plain", "is_plain", is_flag=True, help="No screen: chunks by number, one command a line.")
@click.option("--json", "as_json", is_flag=True, help="With --agree: one JSON object, and no screen.")
@click.option("--web", "is_web", is_flag=True, help="The same in a browser, on this machine (extra web).")
def label(path: Path, case_id: str | None, **options: Any) -> None:
    """Mark the chunks that hold the answer, case by case; the labels are written into CASES.

    Each case is asked with k = 20; the chunks of all systems and of a word search over the notes are merged in the
    order of retrieval, or shuffled with --blind. CASES may be X.drafts.jsonl: its drafts are accepted into X.jsonl one
    by one. Every case is saved when it is left; CASES.bak holds the file as it was.
    """
    labelling = Labelling(path, **{name: options.pop(name) for name in ("targets", "notes", "blind")})
    flags = LabelOptions(**options)
    _check(labelling, flags)
    if flags.is_web:
        from pytest_rageval.cli.web import serve_label_page  # here, because a terminal needs none of it

        cases_to_label(path, find_project({}))  # problems of the file are reported here, not on a page
        serve_label_page(find_project({}), path, case_id, labelling.blind)
        return
    project = find_project({"target": labelling.targets[0]} if labelling.targets else {})
    cases = cases_to_label(path, project)
    others: dict[str, list[str]] = {}
    if flags.is_agreement:
        results = _agreement(path, cases, project, as_json=flags.as_json)
        cases = [case for case in cases if case.id in disputed(results)]
        others = _disputes(results)
        if flags.as_json or not cases or (not flags.is_plain and not sys.stdin.isatty()):
            return
    store = label_store(labelling, project)
    if flags.is_unlabelled:
        cases = unlabelled(cases, store)
        if not cases:
            click.echo(f"{printable(str(path))}: every case is labelled")
            return
    is_screen = _has_screen(is_plain=flags.is_plain)
    systems = project_systems(labelling, project, cases)
    with closing(pool_source(labelling, project, cases, systems)) as source:
        session = LabelSession(cases, store, source, is_blind=labelling.blind is not None)
        if case_id is not None:
            session.open_case(case_id)
        _run_screen(session, others) if is_screen else _run_lines(session)
    if session.message and not session.is_saved:
        raise CaseError(session.message)


def _run_screen(session: LabelSession, opinions: dict[str, list[str]]) -> None:
    from pytest_rageval.label.label_screen import LabelScreen  # here, because it is an extra

    LabelScreen(session, opinions).run(mouse=False)  # so that the terminal can select text
    click.echo(f"{session.labelled} of {len(session.cases)} in {printable(session.store.file_name)}")


def _check(labelling: Labelling, options: LabelOptions) -> None:
    if labelling.is_of_drafts and (labelling.blind or options.is_agreement):
        raise click.UsageError("--blind and --agree are for cases, not for drafts")
    if labelling.blind is not None and options.is_agreement:
        raise click.UsageError("--blind writes an opinion, --agree compares them; give one of the two")
    beside_web = (*labelling.targets, labelling.notes, options.is_agreement, options.is_unlabelled)
    if options.is_web and (any(beside_web) or options.is_plain or options.as_json):
        raise click.UsageError("--web goes with --case and --blind alone; the page asks what the configuration names")
    if options.as_json and not options.is_agreement:
        raise click.UsageError("--json goes with --agree")


def _has_screen(*, is_plain: bool) -> bool:
    """Return True if a full screen is available; without the extra use lines, without a terminal raise an error."""
    if is_plain:
        return False
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise SettingsError("no terminal here; --plain reads commands by line from standard input")
    if importlib.util.find_spec("textual") is None:
        click.echo("the full screen needs pip install 'pytest-rageval[cli]'; numbers by line instead", err=True)
        return False
    return True


def _run_lines(session: LabelSession) -> None:
    face = LabelLines(session, click.echo)

    def lines() -> Iterator[str]:
        while True:
            if sys.stdin.isatty():
                click.echo("> ", nl=False)
            line = sys.stdin.readline()
            if not line:
                return
            yield line

    try:
        face.run(lines())
    except KeyboardInterrupt:
        session.save()
        click.echo(f"\nstopped; what was marked is in {printable(session.store.file_name)}", err=True)


# ── second opinions ───────────────────────────────────────────────────────────────────────────────────────────


def _agreement(path: Path, cases: Sequence[EvalCase], project: Project, *, as_json: bool) -> list[LabelAgreement]:
    """Compare, and print the result."""
    files = opinion_files(path)
    if not files:
        name = opinion_file(path, "NAME").name
        raise CaseError(f"{path}: there is no second opinion ({name}); `rageval label … --blind NAME` writes one")
    results = agreements(cases, {name: opinions(file, project.root) for name, file in files.items()})
    if as_json:
        is_disputed = any(result.differences for result in results)
        commands = [f"rageval label {shlex.quote(str(path))} --agree"] if is_disputed else ["rageval run"]
        echo_json({"agreements": [result.as_mapping() for result in results]}, commands)
        return results
    for result in results:
        for line in _agreement_lines(result):
            click.echo(printable(line))
    return results


def _agreement_lines(result: LabelAgreement) -> Iterator[str]:
    yield f"{result.first} and {result.second}: {result.sentence}"
    width = columns()
    for difference in result.differences:
        line = f"  {difference.case_id}: {difference.sentence}"
        yield line if len(line) <= max(width, 100) else f"{line[: max(width, 100) - 1]}…"


def _disputes(results: Sequence[LabelAgreement]) -> dict[str, list[str]]:
    """Return the disputed labels by case, for the screen."""
    disputes: dict[str, list[str]] = {}
    for result in results:
        for difference in result.differences:
            disputes.setdefault(difference.case_id, []).append(f"{difference.gold_of}: {difference.what}")
    return {case_id: list(dict.fromkeys(lines)) for case_id, lines in disputes.items()}
