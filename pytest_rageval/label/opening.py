"""What a labelling session is opened with: the cases of a file, where labels go, and who is asked for chunks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from pytest_rageval.cases import load_file
from pytest_rageval.cases.drafts import ENDING
from pytest_rageval.config.project import Project
from pytest_rageval.errors import CaseError, Problems, SettingsError
from pytest_rageval.io.masking import Mask
from pytest_rageval.io.suggestions import did_you_mean
from pytest_rageval.label.asking import AskedSystem, PoolAsking, PoolSource
from pytest_rageval.label.draft_store import DraftStore
from pytest_rageval.label.label_store import CaseFileStore, LabelStore, OpinionStore, opinion_file
from pytest_rageval.label.notes_search import NotesSearch
from pytest_rageval.model import EvalCase
from pytest_rageval.prepare import target_in
from pytest_rageval.targets import check_target


class Labelling(NamedTuple):
    """What is labelled and how.

    path     the case file, or a file of drafts
    targets  systems to ask, by their spellings; none: the project's
    notes    folder that is searched as well; None: the project's, if it has one
    blind    whose second opinion it is; None: the labels of the file itself
    """

    path: Path
    targets: tuple[str, ...] = ()
    notes: Path | None = None
    blind: str | None = None

    @property
    def is_of_drafts(self) -> bool:
        return self.path.name.endswith(ENDING)


def cases_to_label(path: Path, project: Project) -> list[EvalCase]:
    """The cases of a file; CaseError where there is no such file, or it is broken."""
    if not path.is_file():
        near = [file.name for file in path.parent.glob("*.jsonl")] if path.parent.is_dir() else []
        raise CaseError(f"{path}: there is no such file{did_you_mean(path.name, near)}")
    loaded = load_file(path, project.root, max_line_bytes=project.settings.max_line_bytes)
    if loaded.problems:
        raise CaseError(*loaded.problems)
    return list(loaded.cases)


def label_store(labelling: Labelling, project: Project) -> LabelStore:
    """Where labels go; CaseError where they cannot be written there."""
    if labelling.is_of_drafts:
        return DraftStore(labelling.path, project.root, notes_folder(labelling, project))
    if labelling.blind is not None:
        return OpinionStore(opinion_file(labelling.path, labelling.blind), project.root)
    return CaseFileStore(labelling.path, notes_folder(labelling, project))


def notes_folder(labelling: Labelling, project: Project) -> Path | None:
    """The folder of notes that is named or configured."""
    if labelling.notes is not None:
        return labelling.notes
    if project.settings.notes is not None:
        folder = project.root / project.settings.notes
        if not folder.is_dir():
            raise SettingsError(f"notes: there is no folder {folder}")
        return folder
    return None


def pool_source(
    labelling: Labelling, project: Project, cases: Sequence[EvalCase], systems: Sequence[AskedSystem]
) -> PoolSource:
    """Who is asked for chunks, to be closed: the systems and the notes; SettingsError where nobody can be."""
    notes = notes_folder(labelling, project)
    if not systems and notes is None:
        raise SettingsError("no system to ask: name one with --target, e.g. --target demo, or a folder with --notes")
    anchors = (anchor for case in cases for anchor in (case.gold.supports or ()))
    search = NotesSearch(notes) if notes is not None else None
    return PoolSource(systems, search, (anchor.rel_path for anchor in anchors))


def project_systems(
    labelling: Labelling, project: Project, cases: Sequence[EvalCase], environment: Mapping[str, str] | None = None
) -> list[AskedSystem]:
    """The systems that are named, else the project's own; SettingsError where one cannot be asked.

    environment  as of `target_in`
    """
    specs = labelling.targets or tuple(filter(None, (project.settings.target,)))
    problems = Problems()
    systems = [problems.attempt(asked_system, project, spec, cases, environment) for spec in specs]
    problems.raise_all()
    return [system for system in systems if system is not None]


def asked_system(
    project: Project, spec: str, cases: Sequence[EvalCase], environment: Mapping[str, str] | None = None,
    name: str | None = None,
) -> AskedSystem:  # fmt: skip
    """The system of this spelling, asked as the project says; SettingsError where it cannot be.

    name  how it is called, if not as its target is
    """
    settings = project.settings
    target = target_in(project, spec, environment)
    if problems := check_target(target, spec, cases, is_partial_allowed=True):
        raise SettingsError(*problems)
    mask = Mask(settings.secrets(environment))
    return AskedSystem(name or target.name, target, PoolAsking(settings.longest_call, settings.ask_params, mask))
