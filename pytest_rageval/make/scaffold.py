"""The first files of a project, and the folder of the demo; an edited file is never overwritten."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from string import Template
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from pytest_rageval.cases.discovery import find_case_files
from pytest_rageval.cases.note_folder import NoteFolder, NoteSection
from pytest_rageval.config.files import case_globs, has_table
from pytest_rageval.config.options import HTTP, kind_of
from pytest_rageval.config.toml_text import toml_document, toml_value
from pytest_rageval.errors import SettingsError
from pytest_rageval.io.atomic import write_text
from pytest_rageval.make.ci_files import CI_FILES, ci_file
from pytest_rageval.make.unfinished_init import UnfinishedInit
from pytest_rageval.runs.folder import GITIGNORE

CONFIGURATION = "rageval.toml"
FIRST_CASES = "evalcases/first.jsonl"
CASES_GITIGNORE = """\
# Files as they were before `rageval label` and others changed them.
*.bak
# Left by a writer that was killed; removed later.
.*.rageval-tmp
"""
REPLACED = "replaced: written by the last `rageval init`, and edited by nobody"
FROM_NOTES = 3
LOOKED_AT = 200
"""Notes to read at most, until enough of them have a heading."""
UNANSWERABLE = {"id": "not-in-the-notes", "question": "Who won the 2087 election?", "answerable": False}
QUESTION = {"id": "first-question", "question": "Write a question here that your documents answer."}


class Choice(NamedTuple):
    """A person's choices: the system that answers, the folder of its notes, the CI of its tests."""

    target: str = "demo"
    notes: Path | None = None
    ci: Literal["github", "gitlab", "none"] = "none"
    mapping: Mapping[str, Any] | None = None
    """How the target's own JSON is asked and read, if it is a server with one."""
    start: str | None = None
    """The command that starts the server in CI."""
    headers: Mapping[str, str] = MappingProxyType({})
    """The headers that the server wants, as `env:NAME`."""
    is_sampled: bool = False
    """Whether the mapping is from a sample reply, so that its request is a guess."""
    is_ci_alone: bool = False
    """Whether the project has all files but the one for CI."""


class ScaffoldFile(NamedTuple):
    """A file of the scaffold, relative to the project, and in words whether it was written."""

    path: str
    state: str
    is_written: bool = False


def scaffold(root: Path, choice: Choice, *, is_unfinished: bool) -> list[ScaffoldFile]:
    """Write all files; raise SettingsError if one cannot be written, or the notes are no folder.

    If something is still missing, such as a reply of the server, the next call replaces the files that are not edited
    by then.
    """
    if choice.notes is not None and not choice.notes.is_dir():
        raise SettingsError(f"--notes: {choice.notes} is not a folder; name the one that your system answers from")
    unfinished = UnfinishedInit(root)
    contents = dict(_contents(root, choice, unfinished))  # render all before writing the first
    written = [_write(root, name, text, unfinished) for name, text in contents.items()]
    try:
        if is_unfinished:
            unfinished.remember(file.path for file in written if file.is_written)
        elif not choice.is_ci_alone:
            unfinished.forget()
    except OSError as error:
        raise SettingsError(f"{error.filename}: cannot be written: {error.strerror}") from None
    if FIRST_CASES not in contents and not choice.is_ci_alone:
        there = _case_files(root, "")[0].relative_to(root).as_posix()
        written.append(ScaffoldFile(FIRST_CASES, f"not written: there are cases already, such as {there}"))
    return written


def _contents(root: Path, choice: Choice, unfinished: UnfinishedInit) -> Iterator[tuple[str, str]]:
    """Yield the files by name. If pyproject.toml configures the project already, ours gets the suffix `.new`."""
    if choice.is_ci_alone:
        yield CI_FILES[choice.ci], ci_file(choice.ci, root, choice.target, choice.start, choice.headers)
        return
    is_elsewhere = has_table(root) and not (root / CONFIGURATION).exists()
    configuration = f"{CONFIGURATION}.new" if is_elsewhere else CONFIGURATION
    url = toml_value(choice.target)
    values = {"target": f"target = {url}", "url": url, "notes": _notes_line(root, choice.notes), "server": ""}
    if choice.mapping is not None:
        table = {"target": {"url": choice.target, "mapping": choice.mapping}}
        origin = "found by one question"
        if choice.is_sampled:
            origin = "from a sample reply; its `request` is a guess, nothing was asked"
        values["target"] = f"# target: the table below, {origin}"
        values["server"] = toml_document(table).lstrip()
    elif kind_of(choice.target) is HTTP:
        values["server"] = Template(_template("server.toml")).substitute(values)
    if choice.headers:
        values["target"] += f"\nheaders = {toml_value(choice.headers)}"
    yield configuration, Template(_template("rageval.toml")).substitute(values)
    first_cases = _template("demo_cases.jsonl") if choice.target == "demo" else _first_cases(choice.notes)
    are_cases_missing = unfinished.has_written(FIRST_CASES) or not _case_files(root, first_cases)
    if are_cases_missing:
        yield FIRST_CASES, first_cases
    yield "reports/.gitignore", GITIGNORE
    folder = root / "evalcases"
    if (are_cases_missing or folder.is_dir()) and not (folder / ".gitignore").exists():
        yield "evalcases/.gitignore", CASES_GITIGNORE
    if choice.ci != "none":
        yield CI_FILES[choice.ci], ci_file(choice.ci, root, choice.target, choice.start, choice.headers)


def _notes_line(root: Path, notes: Path | None) -> str:
    """Return the line that names the folder of notes, relative to the project; a comment without one."""
    if notes is None:
        return '# notes = "notes"         '
    return f"notes = {toml_value(Path(os.path.relpath(notes, root)).as_posix())}"


def _case_files(root: Path, first_cases: str) -> list[Path]:
    """Return the project's own case files, without one that an earlier scaffold has written and nobody changed."""
    found = find_case_files(root, case_globs(root))
    return [path for path in found if path != root / FIRST_CASES or path.read_bytes() != first_cases.encode()]


def _template(name: str) -> str:
    return (files(__package__) / "templates" / name).read_text(encoding="utf-8")


def _write(root: Path, name: str, text: str, unfinished: UnfinishedInit) -> ScaffoldFile:
    """Write a file, or `X.new` (`X.new2`, …) next to an edited one with other content."""
    numbered = [f"{name}.new{number}" for number in range(2, 100)]
    names = [name, f"{name}.new", *numbered]
    try:
        for place in names:
            path = root / place
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                with path.open("x", encoding="utf-8", newline="\n") as file:
                    file.write(text)
            except FileExistsError:
                if path.is_file() and path.read_bytes() == text.encode():
                    return ScaffoldFile(place, "was there already")
                if unfinished.has_written(place):
                    write_text(path, text)
                    return ScaffoldFile(place, REPLACED, is_written=True)
                continue
            is_own = place == name and not name.endswith(".new")
            state = "written" if is_own else "written beside yours: take from it what you want"
            return ScaffoldFile(place, state, is_written=True)
    except OSError as error:
        raise SettingsError(f"{error.filename or root / name}: cannot be written: {error.strerror}") from None
    raise SettingsError(f"{root / name}: there are {len(names)} of it already; remove some")


def _first_cases(notes: Path | None) -> str:
    """Return cases to be rewritten: about headings of the notes, if any, and one that no note answers."""
    cases: list[Mapping[str, Any]] = []
    if notes is not None:
        cases += _about(notes)
    if not cases:
        cases.append(QUESTION)
    cases.append(UNANSWERABLE)
    lines = [json.dumps(case, ensure_ascii=False) for case in cases]
    return "\n".join(lines) + "\n"


def _about(notes: Path) -> Iterator[dict[str, Any]]:
    number = 0
    folder = NoteFolder(notes)
    markdown = [rel_path for rel_path in folder.rel_paths if rel_path.endswith(".md")]
    for rel_path in markdown[:LOOKED_AT]:
        if number == FROM_NOTES:
            return
        heading_path = _deepest_early(folder.sections(rel_path) or ())
        if not heading_path:
            continue
        number += 1
        # Skip a heading that is a question: `rageval generate` drafts it with its answer.
        title = heading_path.rpartition(" > ")[2].lstrip("# ").rstrip("?？؟ ")
        yield {
            "id": f"note-{number}",
            "question": f"What is there to know about {title}?",
            "gold_supports": [{"rel_path": rel_path, "heading_path": heading_path}],
        }


def _deepest_early(sections: Iterable[NoteSection]) -> str:
    """Return the path of the last of a note's first headings before one of the same level: it has a text of its own."""
    deepest = ""
    for heading_path, _, _ in sections:
        if heading_path and deepest and not heading_path.startswith(f"{deepest} > "):
            break
        deepest = heading_path or deepest
    return deepest


PACKAGE = Path(__file__).parents[1]
DEMO_CONFIGURATION = """\
# The shipped cases against the demo system inside the package.
target = "demo"
known_failures = "ratchet"  # the demo fails some cases; those are known from the baseline
ontology = "knowledge/ontology.toml"
"""


def demo_project(folder: Path) -> None:
    """Make the folder unless it exists; raise SettingsError if something else is there."""
    configuration = folder / "rageval.toml"
    if configuration.is_file() and (folder / "evalcases").is_dir():
        return
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise SettingsError(f"{folder}: is there already, and is no project of the demo; name another folder")
    try:
        (folder / "reports").mkdir(parents=True)
        (folder / "knowledge").mkdir()
        shutil.copytree(shipped("evalcases"), folder / "evalcases")
        shutil.copy(shipped("reports/baseline.json"), folder / "reports")
        shutil.copy(PACKAGE / "demo" / "knowledge" / "ontology.toml", folder / "knowledge")
        configuration.write_text(DEMO_CONFIGURATION, encoding="utf-8")  # last: the mark of a whole project
    except OSError as error:
        raise SettingsError(f"{error.filename or folder}: cannot be written: {error.strerror}") from None


def shipped(name: str) -> Path:
    """Return a file of the demo's project: in the installed package, or in the repository."""
    installed = PACKAGE / "demo" / "project" / name
    return installed if installed.exists() else PACKAGE.parent / name
