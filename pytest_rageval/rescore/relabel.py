"""New labels for the cases of a stored run, from case files with the same questions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from pytest_rageval.cases.canonical import case_from_mapping, content_hash
from pytest_rageval.cases.loading import CaseFile
from pytest_rageval.errors import CaseError
from pytest_rageval.io.masking import Mask
from pytest_rageval.matching.dialects import FileNames, PlaceRules, namesakes_of
from pytest_rageval.matching.places import GoldBy
from pytest_rageval.model import EvalCase
from pytest_rageval.runs.comparable import asked_differently
from pytest_rageval.runs.config import dataset_hash_of, dataset_version
from pytest_rageval.runs.reader import StoredRun
from pytest_rageval.runs.records.observation_line import matched_to
from pytest_rageval.runs.records.record_files import record_at
from pytest_rageval.runs.records.record_texts import CUT

Line = Mapping[str, Any]
Lines = Iterator[Line]


@dataclass(frozen=True, slots=True)
class Labels:
    """The cases of a run with their current labels, by the run's key.

    `kept`: keys of the run that no file has; they keep their labels. `unasked`: how many cases of the files the run
    has not asked. `dataset` and `version` are the resulting values of config.json.
    """

    cases: Mapping[str, EvalCase]
    kept: tuple[str, ...]
    unasked: int
    dataset: str
    version: str

    @property
    def changed(self) -> dict[str, str]:
        """Return the members of config.json that change with these labels."""
        return {"dataset_hash": self.dataset, "dataset_version": self.version}

    def of(self, file: str, case_id: str) -> EvalCase | None:
        """Return a case with its new labels; None if they are unchanged."""
        return self.cases.get(_key(file, case_id))

    def applied(self, lines: Lines, gold_by: GoldBy, rules: PlaceRules) -> Lines:
        """Yield the lines of observations.jsonl with these labels, and the answers matched to them."""
        rules = rules._replace(golds=FileNames(namesakes_of(self.cases.values())))
        for line in lines:
            case = self.of(line["case"]["source"][0], line["case"]["id"])
            yield line if case is None else matched_to(line, case, gold_by, rules)


def read_new_labels(run: StoredRun, files: Sequence[CaseFile], root: Path, mask: Mask) -> Labels:
    """Return the run's cases from these files, found by key, else by id.

    Raise CaseError with all problems at once: those of the files, ambiguous ids, and cases whose question, or other
    input to the system, differs from what the run asked.
    """
    problems: list[str] = []
    by_key: dict[str, EvalCase] = {}
    for file in files:
        problems += file.problems
        by_key |= {case.key: case for case in file.cases}
    if problems:
        raise CaseError(*problems)
    records = {_key(record["source"]["file"], record["test_case_id"]): record for record in run.records()}
    by_id: dict[str, list[EvalCase]] = {}
    for case in by_key.values():
        by_id.setdefault(case.id, []).append(case)
    cases: dict[str, EvalCase] = {}
    for key, record in records.items():
        namesakes = by_id.get(record["test_case_id"], [])
        if key in by_key:
            cases[key] = by_key[key]
        elif len(namesakes) == 1:
            cases[key] = namesakes[0]
        elif namesakes:
            listed = ", ".join(str(case.source) for case in namesakes)
            problems.append(f"{key}: its id is that of {len(namesakes)} cases ({listed}); leave all but one out")
    # What was asked stands in the run without its credentials.
    problems += _changed({key: mask.value(case) for key, case in cases.items()}, records, run)
    if problems:
        raise CaseError(*problems)
    return _labels(run, files, root, cases, records)


def _labels(
    run: StoredRun,
    files: Sequence[CaseFile],
    root: Path,
    found: Mapping[str, EvalCase],
    records: Mapping[str, Line],
) -> Labels:
    used = {case.key for case in found.values()}
    every = chain.from_iterable(file.cases for file in files)
    unasked = [case for case in every if case.key not in used]
    kept = tuple(key for key in records if key not in found)
    cases: dict[str, EvalCase] = {}
    for key, case in found.items():
        cases[key] = case
        if case.key != key:
            # A case keeps its key, and thus its place in baselines, if its labels come from another file.
            recorded = case.source._replace(**records[key]["source"])
            cases[key] = replace(case, source=recorded)
    contents = {key: record["content_hash"] for key, record in records.items()}
    contents |= {key: content_hash(case) for key, case in cases.items()}
    if run.config["shard"] is not None:
        # A shard has the dataset of the whole, so that shards can be merged.
        contents |= {case.key: content_hash(case) for case in unasked}
    dataset = dataset_hash_of(contents.items())
    # The commit of the files names the dataset only if the cases are theirs alone.
    is_theirs = used == found.keys() and not kept
    labelled_by = [file.path for file in files] if is_theirs else []
    version = dataset_version(dataset, labelled_by, root)
    if dataset == run.config["dataset_hash"]:
        version = run.config["dataset_version"]
    return Labels(cases, kept, len(unasked), dataset, version)


def _key(file: str, case_id: str) -> str:
    return f"{file}::{case_id}"


def _changed(cases: Mapping[str, EvalCase], records: Mapping[str, Line], run: StoredRun) -> list[str]:
    """Describe each case that differs from what was asked."""
    changed: dict[str, str] = {}
    for key, case in cases.items():
        written = records[key]["question"]
        # Records hold cut questions; None was left out of them.
        if written is not None and case.question[:CUT] != written[:CUT]:
            changed[key] = "question"
    # Observations hold what a record lacks: the whole question, the history, the parameters.
    for place in run.observation_places().values():
        old = case_from_mapping(record_at(place)["case"])
        new = cases.get(old.key)
        names = [] if new is None else asked_differently(old, new)
        if names:
            changed[old.key] = " and ".join(names)
    problems = []
    for key, what in sorted(changed.items()):
        case = cases[key]
        problems.append(
            f"{case.source}: case {case.id!r}: its {what} changed since it was asked; ask it again with pytest"
        )
    return problems
