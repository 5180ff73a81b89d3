"""Rubrics by name: those shipped in this folder, and a project's own, which replace them or add metrics."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from pytest_rageval.errors import SettingsError
from pytest_rageval.io.suggestions import suggestion
from pytest_rageval.judges.rubrics.conversation import HISTORY, OF_CONVERSATION
from pytest_rageval.judges.rubrics.rubric_file import nearest_of, read_rubric, read_text_rubric, rubric_of_table
from pytest_rageval.model import JudgeRequest, Rubric

OUTCOME = "expected_outcome"
FOLDER = Path(__file__).parent
SUFFIXES = (".toml", ".txt", ".md")
_LARGEST_FILE = 256 * 1024
"""Bytes of a rubric file, since every request includes it."""


@cache
def rubric_names() -> tuple[str, ...]:
    """Return the names of all shipped rubrics, sorted."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.toml")))


@cache
def load_rubric(name: str) -> Rubric:
    """Return the shipped rubric of that name; raise SettingsError with the nearest name for an unknown one.

    It is read unchecked: the tests check its table, which would cost 15 ms at each start.
    """
    if name not in rubric_names():
        raise SettingsError(f"unknown rubric {name!r}{nearest_of(name, rubric_names())}")
    content = (FOLDER / f"{name}.toml").read_bytes()
    return rubric_of_table(name, content, tomllib.loads(content.decode()))


def rubric_of(request: JudgeRequest) -> Rubric:
    """Return the rubric of a request: the one that it brings, else the shipped one of its name."""
    return request.wording or load_rubric(request.rubric)


def check_rubrics(folder: Path, shown: str | None = None) -> dict[str, Rubric]:
    """Read the rubrics in a project's folder, by name; raise one SettingsError with all problems of all files.

    `shown` is the folder as messages name it. Each file replaces the shipped rubric of its name, or is a new one.
    """
    place = shown or str(folder)
    if not folder.is_dir():
        raise SettingsError(f"rubrics: {place} is not there or empty; expected a folder")
    paths = [path for path in sorted(folder.iterdir()) if _is_rubric_file(path)]
    if not paths:
        expected = f"rubric files, as in {rubric_names()[0]}.toml"
        raise SettingsError(f"rubrics: {place} is not there or empty; expected {expected}")
    rubrics: dict[str, Rubric] = {}
    problems: list[str] = []
    stems: dict[str, Path] = {}
    for path in paths:
        if path.stem in stems:
            problems.append(f"{place}/{path.name}: {stems[path.stem].name} is the same rubric; keep one of the two")
        stems[path.stem] = path
        try:
            rubrics[path.stem] = _own(path, f"{place}/{path.name}")
        except SettingsError as error:
            problems += error.problems
    if problems:
        raise SettingsError(*problems)
    return rubrics


def _is_rubric_file(path: Path) -> bool:
    return path.suffix in SUFFIXES and path.stem.casefold() != "readme"


def _own(path: Path, shown: str) -> Rubric:
    name = path.stem
    shipped = load_rubric(name) if name in rubric_names() else None
    if shipped is None:
        _check_new_name(name, shown)
    content = _content(path, shown)
    if path.suffix == ".toml":
        rubric = read_rubric(name, content, shown)
    else:
        rubric = read_text_rubric(name, content, shown, shipped)
    problems = list(_missing_parts(rubric) if shipped is None else _mismatches(rubric, shipped))
    if problems:
        raise SettingsError(*(f"{shown}: {problem}" for problem in problems))
    return rubric


def _check_new_name(name: str, shown: str) -> None:
    # Stricter than usual: completeness and conciseness are valid names, though similar to correctness.
    meant = suggestion(name, rubric_names(), cutoff=0.85)
    if meant is not None:
        remedy = f"did you mean {meant!r}? A new one needs a name less like it"
        raise SettingsError(f"{shown}: unknown rubric {name!r}; {remedy}")
    if re.fullmatch(r"[a-z][a-z0-9_]*", name) is None:
        remedy = "use lower-case letters, digits and underscores, as in politeness"
        raise SettingsError(f"{shown}: {name!r} cannot be a metric's name; {remedy}")


def _content(path: Path, shown: str) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST_FILE + 1)
    except OSError as error:
        raise SettingsError(f"{shown}: cannot be read: {error.strerror or error}") from None
    if len(content) > _LARGEST_FILE:
        raise SettingsError(f"{shown}: larger than {_LARGEST_FILE // 1024} KiB; a rubric goes out with every request")
    return content


def _missing_parts(rubric: Rubric) -> Iterator[str]:
    """Yield the parts that a rubric needs to be a metric of its own and does not have."""
    if rubric.scores.keys() != {rubric.name}:
        written = ", ".join(rubric.scores) or "nothing"
        yield f'scores holds {written}, expected {rubric.name} = "FIELD": a new file is one metric of its name'
    if "answer" not in rubric.variables:
        yield "prompt has no {answer}, without which there is nothing to judge"
    yield from _claim_problems(rubric)
    yield from _reserved_problems(rubric)
    if OUTCOME in rubric.variables:
        yield f"prompt has {{{OUTCOME}}}, which only conversation_completeness is given; leave it out"


def _claim_problems(rubric: Rubric) -> Iterator[str]:
    for name in sorted(rubric.variables & {"claim", "claims"}):
        yield f"prompt has {{{name}}}, which only claim_support is given; write {{answer}}"


def _reserved_problems(rubric: Rubric) -> Iterator[str]:
    """Yield the variables that no rubric of a project is given."""
    if "criterion" in rubric.variables:
        yield "prompt has {criterion}, which only assertions of type llm-rubric are given; write it into the prompt"
    for name in sorted(rubric.variables & {"first_answer", "second_answer"}):
        yield f"prompt has {{{name}}}, which only compare --pairwise is given; write {{answer}}"


def _mismatches(own: Rubric, shipped: Rubric) -> Iterator[str]:
    """Yield what a project's rubric lacks of the shipped one it replaces: scores, required fields, placeholders."""
    if own.scores.keys() != shipped.scores.keys():
        expected = ", ".join(f'{score} = "FIELD"' for score in shipped.scores) or "no score"
        yield f"scores holds {', '.join(own.scores) or 'nothing'}, expected {expected}"
    if not shipped.scores:  # then its other fields are the judgement
        for field in shipped.schema["required"]:
            if field not in own.schema["required"]:
                yield f"schema.required lacks {field!r}, which is what this rubric is asked for"
    needed = shipped.variables & {"question", "answer", "contexts", OUTCOME}
    if OUTCOME in own.variables - shipped.variables:
        yield f"prompt has {{{OUTCOME}}}, which only conversation_completeness is given; leave it out"
    if shipped.name in OF_CONVERSATION:
        needed |= {HISTORY}
    if "references" in shipped.variables:
        needed -= {"contexts"}  # optional, since the answer is judged by the references
    yield from _reserved_problems(own)
    reads_claims = "claims" in shipped.variables
    if reads_claims and "claim" not in own.variables:
        needed |= {"claims"}
    for name in sorted(needed - own.variables):
        yield f"prompt has no {{{name}}}, without which {shipped.name} cannot be judged"
    if not reads_claims:
        yield from _claim_problems(own)
