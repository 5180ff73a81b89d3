"""`rageval cases`: check, count, describe, convert, export and draft cases."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import click

from pytest_rageval.cases import CaseFile, case_schema
from pytest_rageval.cases.drafts import ENDING, add_drafts, check_is_drafts
from pytest_rageval.cases.exchange.formats import READERS, WRITERS, Parts, read_other
from pytest_rageval.cli.answers import read_traced
from pytest_rageval.cli.audit import audit
from pytest_rageval.cli.case_paths import PATHS, case_files, path_text, sound_cases
from pytest_rageval.cli.exit_codes import exit_codes
from pytest_rageval.cli.json_output import echo_json
from pytest_rageval.comparison.case_diff import representative_trial
from pytest_rageval.config.project import find_project
from pytest_rageval.errors import SettingsError
from pytest_rageval.gates.gate import UNCATEGORISED
from pytest_rageval.io.atomic import write_lines, write_text
from pytest_rageval.io.json_text import json_text
from pytest_rageval.io.line_index import record_at
from pytest_rageval.io.masking import Mask
from pytest_rageval.io.messages import shown
from pytest_rageval.model import Answer, EvalCase, Gold, Json
from pytest_rageval.runs.disk.reader import open_stored_run
from pytest_rageval.targets.answer_files import load_answers
from pytest_rageval.targets.answers_target import AnswersTarget
from pytest_rageval.text import counted, printable
from pytest_rageval.tools.answer_draft import answer_draft, drafts_file_of
from pytest_rageval.tools.trace_answers import drafts_of
from pytest_rageval.tools.trace_spans import FORMATS

_JSON = click.option("--json", "as_json", is_flag=True, help="Write one JSON object instead of text.")


@click.group()
def cases() -> None:
    """Check, count, describe and convert case files."""


cases.add_command(audit)


@cases.command("export")
@PATHS
@click.option("--to", "form", type=click.Choice([*WRITERS]), required=True, help="What to write.")
@click.option("-o", "--output", metavar="DIR", default=".", type=click.Path(file_okay=False, path_type=Path),
              help="Folder for the files (default: this one).")  # fmt: skip
@click.option("--answers", metavar="FILE", type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="Answers to put beside the cases: a file as for --rageval-target answers:FILE.")  # fmt: skip
@click.option("--force", is_flag=True, help="Replace files that are there already.")
def export_cases(paths: Sequence[Path], form: str, output: Path, answers: Path | None, *, force: bool) -> None:
    """Write cases as a test set of another tool.

    PATHS are files or folders; without any, the files that `cases` in the configuration names. What a format has no
    field for is kept in one named `rageval`, if it has room for that, so that `rageval cases convert` brings it back;
    what it has no room for is said.
    """
    cases = _with_unique_ids(sound_cases(case_files(paths)))
    given = _answers_by_id(answers, cases) if answers is not None else {}
    written = WRITERS[form](cases, given)
    places = {output / name: lines for name, lines in written.files.items()}
    if not force and (taken := [str(path) for path in places if path.exists()]):
        raise SettingsError(
            f"{', '.join(taken)}: there already; choose another folder with -o, or replace with --force"
        )
    for path, lines in places.items():
        write_lines(path, lines)
        click.echo(printable(str(path)))
    for note in written.notes:
        click.echo(printable(note), err=True)
    click.echo(f"{counted(len(cases), 'case')}" + (f", {counted(len(given), 'answer')}" if answers else ""))


def _with_unique_ids(cases: Sequence[EvalCase]) -> list[EvalCase]:
    """An id that stands in several files is given its file before it."""
    counts = Counter(case.id for case in cases)
    return [case if counts[case.id] == 1 else replace(case, id=case.key) for case in cases]


def _answers_by_id(path: Path, cases: Sequence[EvalCase]) -> dict[str, Answer]:
    target = AnswersTarget(load_answers(path, shown_as=path.as_posix()))
    return {case.id: answer for case in cases if (answer := target.of(case)) is not None}


@cases.command("from-traces")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--format", "form", type=click.Choice(FORMATS), required=True, help="Who wrote FILE.")
@click.option("--feedback", type=click.Choice(["down", "up"]), default="down", show_default=True,
              help="What people said of the answers.")  # fmt: skip
@click.option("-o", "--output", metavar="FILE", type=click.Path(path_type=Path),
              help=f"The file of drafts to add to (default: FILE's name with {ENDING}).")  # fmt: skip
def draft_traces(file: Path, form: str, feedback: str, output: Path | None) -> None:
    """Draft cases from the traces in FILE whose answers people disliked: question, bad answer, what it cited, no gold.

    Drafts stand in a file that no run asks, until somebody labels them. A question that is there already is left out.
    """
    path = output or file.with_name(f"{file.name.removesuffix(file.suffix)}{ENDING}")
    check_is_drafts(path)
    traced = read_traced(file, form)
    drafts = drafts_of(traced, feedback)
    mask = Mask(find_project().settings.secrets())
    added = add_drafts(path, [mask.value(draft) for draft in drafts])
    judged = sum(entry.feedback is not None for entry in traced)
    click.echo(
        f"{counted(len(traced), 'trace')}, {judged} with feedback, {counted(len(drafts), 'question')} {feedback}"
    )
    if added:
        click.echo(printable(f"{path}: {counted(added, 'new draft')}; no run asks them before they are labelled"))
    elif drafts:
        click.echo(printable(f"{path}: nothing new"))


@cases.command("draft")
@click.argument("run")
@click.argument("case")
@click.option("-o", "--output", metavar="FILE", type=click.Path(path_type=Path),
              help=f"The file of drafts to add to (default: the one beside the case's file, X{ENDING}).")  # fmt: skip
@click.option("--reports", metavar="DIR", help="Folder of runs (default: as configured).")
def draft_answer(run: str, case: str, output: Path | None, reports: str | None) -> None:
    """Draft a case from the answer to CASE (its key or id) in RUN: question, bad answer, what it cited, no gold.

    Drafts stand in a file that no run asks, until somebody labels them. A question that is there already is left out.
    """
    project = find_project({"reports": reports})
    stored = open_stored_run(project.reports, run, project.baseline_file)
    key = stored.find(case)["case_key"]
    records = {trial: record_at(place) for (name, trial), place in stored.record_places().items() if name == key}
    record = representative_trial(records)
    place = stored.observation_places().get((key, record["trial"]))
    draft = answer_draft(record, record_at(place) if place else None, stored.run_id)
    if draft is None:
        raise SettingsError(f"run {stored.run_id} keeps no texts (redact): there is no question to draft a case from")
    path = output or project.root / drafts_file_of(record)
    check_is_drafts(path)
    added = add_drafts(path, [Mask(project.settings.secrets()).value(draft)])
    what = f"a new draft, {draft['id']}; no run asks it before it is labelled" if added else "nothing new"
    click.echo(printable(f"{path}: {what}"))


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


@cases.command()
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@click.option("--from", "form", type=click.Choice(READERS), help="Format of PATH (default: recognised).")
@click.option("--qrels", metavar="FILE", type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="Relevance judgements of TREC, for the topics in PATH.")  # fmt: skip
@click.option("--run", metavar="FILE", type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="A run of TREC, for the topics in PATH: what a system retrieved.")  # fmt: skip
@click.option("--split", metavar="NAME", help="Split of a folder of BEIR (default: test) or RAGTruth (default: all).")
@click.option("-o", "--output", metavar="FILE", type=click.Path(path_type=Path),
              help="The case file to write (default: standard output).")  # fmt: skip
@click.option("--answers", metavar="FILE", type=click.Path(path_type=Path),
              help="Write what a system gave, too: a file for --rageval-target answers:FILE.")  # fmt: skip
@click.option("--labels", metavar="FILE", type=click.Path(path_type=Path),
              help="Write what people said of answers, too (RAGTruth): a file for `rageval calibrate`.")  # fmt: skip
@click.option("--force", is_flag=True, help="Replace files that are there already.")
def convert(
    path: Path,
    form: str | None,
    qrels: Path | None,
    run: Path | None,
    split: str | None,
    output: Path | None,
    answers: Path | None,
    labels: Path | None,
    *,
    force: bool,
) -> None:
    """Convert PATH to a case file: a test set of Ragas, DeepEval or promptfoo (JSON, JSONL, CSV or Parquet), of SQuAD
    or TREC, or a folder of BEIR or RAGTruth.

    Questions, references, contexts, relevant ids and labels take the names that they have here; what else there is
    goes into `metadata`. Where PATH cannot be read, nothing is written.
    """
    for target in (output, answers, labels):
        if target is not None and target.suffix != ".jsonl":
            raise SettingsError(f"{target}: what is written is JSON lines; choose a name that ends with .jsonl")
        if target is not None and target.exists() and not force:
            raise SettingsError(f"{target}: there already; choose another name, or replace it with --force")
    result = read_other(path, path.as_posix(), form, Parts(qrels, run, split))
    if output is None:
        click.echo(_lines(result.cases), nl=False)
    else:
        _write(output, result.cases)
        click.echo(f"{output}: {counted(len(result.cases), 'case')}")
    _put(result.answers, answers, "answer", "--answers", f"score them with --rageval-target answers:{answers}")
    _put(result.labels, labels, "label", "--labels", f"rageval calibrate {labels}")
    if result.repeated:
        click.echo(
            f"{counted(result.repeated, 'row')} left out that repeat{'s' * (result.repeated == 1)} an earlier one",
            err=True,
        )
    for note in result.notes:
        click.echo(note, err=True)
    if result.unused:
        click.echo(f"{counted(result.unused, 'check')} without a counterpart here: kept in metadata.assert", err=True)


def _put(records: Sequence[Mapping[str, Json]], file: Path | None, noun: str, option: str, use: str) -> None:
    """Write what stood beside the cases where a file is named for it; else say that it is left out."""
    if records and file is not None:
        _write(file, records)
        click.echo(f"{file}: {counted(len(records), noun)}; {use}", err=True)
    elif records:
        click.echo(f"{counted(len(records), noun)} left out; {option} FILE keeps them", err=True)


def _write(file: Path, records: Iterable[Mapping[str, Json]]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    write_text(file, _lines(records))


def _lines(records: Iterable[Mapping[str, Json]]) -> str:
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
