"""Write the files that a project begins with, and never over one that is there."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any, Literal, NamedTuple

from pytest_rageval.cases.discovery import find_case_files
from pytest_rageval.config.files import case_globs, has_table
from pytest_rageval.config.toml_text import toml_value
from pytest_rageval.errors import SettingsError
from pytest_rageval.runs.folder import GITIGNORE

CI = ("github", "gitlab", "none")
CI_FILES = {"github": ".github/workflows/rageval.yml", "gitlab": ".gitlab-ci.yml"}
CONFIGURATION = "rageval.toml"
FIRST_CASES = "evalcases/first.jsonl"
FROM_NOTES = 3
LOOKED_AT = 200
"""Notes that are read at most, until enough of them have a heading."""
UNANSWERABLE = {"id": "not-in-the-notes", "question": "Who won the 2087 election?", "answerable": False}
QUESTION = {"id": "first-question", "question": "Write a question here that your documents answer."}
_HEADING = re.compile(r"(#{1,6})\s+(.*?)(?:\s+#+)?\s*$")
_FENCE = re.compile(r"\s{0,3}(```|~~~)")


class Choice(NamedTuple):
    """What a person said: the system that answers, the folder of its notes, where its tests run."""

    target: str = "demo"
    notes: Path | None = None
    ci: Literal["github", "gitlab", "none"] = "none"


class Scaffolded(NamedTuple):
    """A file of the scaffold, relative to the project, and what became of it, in words."""

    path: str
    state: str


def scaffold(root: Path, choice: Choice) -> list[Scaffolded]:
    """Write all files; SettingsError where one cannot be written, or the notes are no folder."""
    if choice.notes is not None:
        check_notes(choice.notes)
    contents = dict(_contents(root, choice))  # all of them before the first is written
    done = [_write(root, name, text) for name, text in contents.items()]
    if FIRST_CASES not in contents:
        there = _case_files(root)[0].relative_to(root).as_posix()
        done.append(Scaffolded(FIRST_CASES, f"not written: there are cases already, such as {there}"))
    return done


def _contents(root: Path, choice: Choice) -> Iterator[tuple[str, str]]:
    """The files by name. Where pyproject.toml configures the project already, ours goes beside it."""
    configuration = f"{CONFIGURATION}.new" if _is_configured_elsewhere(root) else CONFIGURATION
    values = {"target": toml_value(choice.target), "notes": _notes_line(root, choice.notes), "server": ""}
    if choice.target.startswith(("http://", "https://")):
        values["server"] = Template(_template("server.toml")).substitute(values)
    yield configuration, Template(_template("rageval.toml")).substitute(values)
    if not _case_files(root):
        is_demo = choice.target == "demo"
        yield FIRST_CASES, _template("demo_cases.jsonl") if is_demo else as_lines(cases_about(choice.notes))
    yield "reports/.gitignore", GITIGNORE
    if choice.ci != "none":
        yield CI_FILES[choice.ci], _template(f"{choice.ci}.yml")


def _notes_line(root: Path, notes: Path | None) -> str:
    """The key that names the folder of notes, relative to the project; without a folder as a comment."""
    if notes is None:
        return '# notes = "notes"         '
    place = Path(os.path.relpath(notes, root))
    return f"notes = {toml_value(place.as_posix())}"


def _is_configured_elsewhere(root: Path) -> bool:
    return has_table(root) and not (root / CONFIGURATION).exists()


def _case_files(root: Path) -> list[Path]:
    """Case files of the project's own; the one that a scaffold of before has written does not count."""
    return [path for path in find_case_files(root, case_globs(root)) if path != root / FIRST_CASES]


def _template(name: str) -> str:
    return (files(__package__) / "templates" / name).read_text(encoding="utf-8")


def _write(root: Path, name: str, text: str) -> Scaffolded:
    """Write a file, or `X.new` (`X.new2`, …) beside one of another content."""
    beside = [name, f"{name}.new", *(f"{name}.new{number}" for number in range(2, 100))]
    try:
        for place in beside:
            path = root / place
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                with path.open("x", encoding="utf-8", newline="\n") as file:
                    file.write(text)
            except FileExistsError:
                if path.is_file() and path.read_bytes() == text.encode():
                    return Scaffolded(place, "was there already")
                continue
            is_own = place == name and not name.endswith(".new")
            return Scaffolded(place, "written" if is_own else "written beside yours: take from it what you want")
    except OSError as error:
        raise SettingsError(f"{error.filename or root / name}: cannot be written: {error.strerror}") from None
    raise SettingsError(f"{root / name}: there are {len(beside)} of it already; remove some")


class Heading(NamedTuple):
    """A heading of a note: `# Water > ## Boiling`, and its own words."""

    path: str
    title: str

    @property
    def question(self) -> str:
        """Not the heading itself where it asks: that is a draft of `rageval generate`, which knows the answer, too."""
        return f"What is there to know about {self.title.rstrip('?？؟ ')}?"


def cases_about(notes: Path | None) -> list[dict[str, Any]]:
    """Cases to be rewritten: about headings of the notes where there are some, and one that no note answers."""
    about = list(_about(notes)) if notes is not None else []
    return [*(about or [QUESTION]), UNANSWERABLE]


def check_notes(notes: Path) -> None:
    """SettingsError where this is no folder."""
    if not notes.is_dir():
        raise SettingsError(f"--notes: {notes} is not a folder; name the one that your system answers from")


def as_lines(cases: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(case, ensure_ascii=False) + "\n" for case in cases)


def _about(notes: Path) -> Iterator[dict[str, Any]]:
    number = 0
    for path in sorted(notes.rglob("*.md"))[:LOOKED_AT]:
        heading = _deepest_early(path)
        if heading is None or number == FROM_NOTES:
            continue
        number += 1
        yield {
            "id": f"note-{number}",
            "question": heading.question,
            "gold_supports": [{"rel_path": path.relative_to(notes).as_posix(), "heading_path": heading.path}],
        }


def _deepest_early(path: Path) -> Heading | None:
    """Of a note's first headings the last before one of the same level or above: it has a text of its own."""
    above: list[str] = []
    title = ""
    is_code = False
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    for line in lines:
        is_code ^= _FENCE.match(line) is not None
        heading = None if is_code else _HEADING.match(line)
        if heading is None:
            continue
        level = len(heading[1])
        if above and level <= len(above[-1].split(" ", 1)[0]):
            break
        above.append(f"{heading[1]} {heading[2]}")
        title = heading[2]
    return Heading(" > ".join(above), title) if title else None
