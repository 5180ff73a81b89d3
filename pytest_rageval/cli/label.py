"""`rageval label`: golds marked in the terminal and written back into the case file."""

from __future__ import annotations

import importlib.util
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import click

from pytest_rageval.cases.gold_places import whole_notes_line
from pytest_rageval.cases.note_folder import NoteFolder
from pytest_rageval.cli.options import FOLDER, PLACE, echo_json
from pytest_rageval.cli.output import columns
from pytest_rageval.config.project import Project, find_project
from pytest_rageval.errors import CaseError, SettingsError
from pytest_rageval.label.label_agreement import agreements
from pytest_rageval.label.label_lines import LabelLines
from pytest_rageval.label.label_session import LabelSession, unlabelled
from pytest_rageval.label.label_store import LabelStore, opinion_file, opinion_files, opinions
from pytest_rageval.label.opening import (
    Labelling,
    cases_to_label,
    label_store,
    pool_source,
    project_systems,
)
from pytest_rageval.model import EvalCase
from pytest_rageval.text import cut, printable


@click.command()
@click.argument("path", metavar="CASES", type=PLACE)
@click.option("--target", "targets", multiple=True, metavar="SPEC", help="System to ask (repeatable).")
@click.option("--notes", type=FOLDER, help="Folder of notes to search by words, too (default: as configured).")
@click.option("--blind", metavar="NAME", help="NAME's second opinion, in CASES.labels.NAME.jsonl.")
@click.option("--agree", "is_agreement", is_flag=True, help="Compare opinions; open the disagreements.")
@click.option("--unlabelled", "is_unlabelled", is_flag=True, help="Only unlabelled cases.")
@click.option("--case", "case_id", metavar="ID", help="Open this case first.")
@click.option("--plain", "is_plain", is_flag=True, help="No screen: chunks by number, one command a line.")
@click.option("--json", "as_json", is_flag=True, help="With --agree: one JSON object, and no screen.")
@click.option("--web", "is_web", is_flag=True, help="The same in a browser, on this machine (extra web).")
def label(
    path: Path,
    targets: tuple[str, ...],
    notes: Path | None,
    blind: str | None,
    case_id: str | None,
    *,
    is_agreement: bool,
    is_unlabelled: bool,
    is_plain: bool,
    as_json: bool,
    is_web: bool,
) -> None:
    """Mark the chunks that hold the answer, case by case; the labels are written into CASES.

    Each case is asked with k = 20; the chunks of all systems and of a word search over the notes are merged in the
    order of retrieval, or shuffled with --blind. CASES may be X.drafts.jsonl: its drafts are accepted into X.jsonl one
    by one. Every case is saved when it is left; CASES.bak holds the file as it was.
    """
    labelling = Labelling(path, targets, notes, blind)
    of_terminal = (targets, notes, blind is not None, is_agreement, is_unlabelled, is_plain, as_json)
    is_web_mixed = is_web and any(of_terminal)
    _check_usage(labelling, is_agreement=is_agreement, is_web_mixed=is_web_mixed, as_json=as_json)
    project = find_project({"target": targets[0]} if targets else {})
    cases = cases_to_label(path, project)
    if is_web:
        from pytest_rageval.cli.web import serve_label_page  # here, because a terminal needs none of it

        serve_label_page(project, path, case_id)
        return
    disputes: dict[str, list[str]] = {}
    if is_agreement:
        disputes = _disputes(path, cases, project, as_json=as_json)
        cases = [case for case in cases if case.id in disputes]
        can_label = is_plain or sys.stdin.isatty()
        if as_json or not cases or not can_label:
            return
    store = label_store(labelling, project)
    if is_unlabelled:
        cases = unlabelled(cases, store)
        if not cases:
            click.echo(f"{printable(str(path))}: every case is labelled")
            return
    has_screen = _has_screen(is_plain=is_plain)
    _label(labelling, project, cases, store, case_id=case_id, disputes=disputes, has_screen=has_screen)


def _check_usage(labelling: Labelling, *, is_agreement: bool, is_web_mixed: bool, as_json: bool) -> None:
    """Raise UsageError for options that do not go together. `is_web_mixed`: --web, and options of the terminal."""
    if labelling.is_of_drafts and (labelling.blind or is_agreement):
        raise click.UsageError("--blind and --agree are for cases, not for drafts")
    if labelling.blind is not None and is_agreement:
        raise click.UsageError("--blind writes an opinion, --agree compares them; give one of the two")
    if is_web_mixed:
        raise click.UsageError(
            "--web goes with --case alone; the page asks what the configuration names, and knows one opinion"
        )
    if as_json and not is_agreement:
        raise click.UsageError("--json goes with --agree")


def _label(
    labelling: Labelling,
    project: Project,
    cases: list[EvalCase],
    store: LabelStore,
    *,
    case_id: str | None,
    disputes: dict[str, list[str]],
    has_screen: bool,
) -> None:
    """Show the cases until a person leaves them. `disputes`: the labels on which opinions differ, by case."""
    systems = project_systems(labelling, project, cases)
    with closing(pool_source(labelling, project, cases, systems)) as source:
        session = LabelSession(cases, store, source, is_blind=labelling.blind is not None)
        if case_id is not None:
            session.open_case(case_id)
        if has_screen:
            _run_screen(session, disputes)
        else:
            _run_lines(session)
        known_notes = source.notes
    if session.message and not session.is_saved:
        raise CaseError(session.message)
    # Accepted drafts have left their file; they are cases of another one now.
    if known_notes is not None and not labelling.is_of_drafts:
        _tell_whole_notes(cases_to_label(labelling.path, project), known_notes)


def _tell_whole_notes(cases: Sequence[EvalCase], notes: NoteFolder) -> None:
    """Say on standard error which golds cover a whole note, which makes any of its sections a hit."""
    line = whole_notes_line(cases, notes)
    if line is not None:
        click.echo(printable(line), err=True)


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


def _run_screen(session: LabelSession, opinions: dict[str, list[str]]) -> None:
    from pytest_rageval.label.label_screen import LabelScreen  # here, because it is an extra

    LabelScreen(session, opinions).run(mouse=False)  # so that the terminal can select text
    click.echo(f"{session.labelled} of {len(session.cases)} in {printable(session.store.file_name)}")


def _run_lines(session: LabelSession) -> None:
    try:
        LabelLines(session, click.echo).run(_typed_lines())
    except KeyboardInterrupt:
        session.save()
        click.echo(f"\nstopped; what was marked is in {printable(session.store.file_name)}", err=True)


def _typed_lines() -> Iterator[str]:
    while True:
        if sys.stdin.isatty():
            click.echo("> ", nl=False)
        line = sys.stdin.readline()
        if not line:
            return
        yield line


def _disputes(path: Path, cases: Sequence[EvalCase], project: Project, *, as_json: bool) -> dict[str, list[str]]:
    """Print how far the opinions agree; return the disputed labels by case, for the screen."""
    files = opinion_files(path)
    if not files:
        name = opinion_file(path, "NAME").name
        raise CaseError(f"{path}: there is no second opinion ({name}); `rageval label … --blind NAME` writes one")
    opinions_by_name = {name: opinions(file, project.root) for name, file in files.items()}
    results = agreements(cases, opinions_by_name)
    disputes: dict[str, dict[str, None]] = {}
    for result in results:
        if not as_json:
            click.echo(printable(f"{result.first} and {result.second}: {result.sentence}"))
        for difference in result.differences:
            disputes.setdefault(difference.case, {})[f"{difference.gold_of}: {difference.what}"] = None
            if not as_json:
                line = f"  {difference.case}: {difference.what}, says {difference.gold_of} alone"
                click.echo(printable(cut(line, max(columns(), 100))))
    if as_json:
        commands = [f"rageval label {shlex.quote(str(path))} --agree"] if disputes else ["rageval run"]
        echo_json({"agreements": [result.as_mapping() for result in results]}, commands)
    return {case: list(lines) for case, lines in disputes.items()}
