"""Merging of shards that ran on different machines into one run, equal to an undivided run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from pytest_rageval.cases.canonical import content_hash
from pytest_rageval.comparison.baseline import Side
from pytest_rageval.errors import SettingsError
from pytest_rageval.io.suggestions import listed
from pytest_rageval.model import EvalCase
from pytest_rageval.run.extent import Extent
from pytest_rageval.run.finish import FinishedRun, finish
from pytest_rageval.run.plan import Plan
from pytest_rageval.runs.comparable import other_configuration
from pytest_rageval.runs.config import dataset_hash_of
from pytest_rageval.runs.ratings import Rating, read_ratings, write_ratings
from pytest_rageval.runs.reader import StoredRun
from pytest_rageval.runs.records.line_form import OBSERVATION, OBSERVATIONS, RESULT, RESULTS
from pytest_rageval.runs.results_file import RunWriter
from pytest_rageval.runs.run_files import lines_in_order
from pytest_rageval.text import counted


def check_parts(runs: Sequence[StoredRun], cases: Iterable[EvalCase] = ()) -> None:
    """Raise SettingsError unless the runs are parts of one: same configuration, no case twice, none missing.

    `cases`: the project's, if available, to name missing ones.
    """
    first = runs[0]
    problems = []
    for run in runs[1:]:
        difference = other_configuration(first.config, run.config)
        if difference is not None:
            problems.append(f"{run.run_id} was run with another configuration than {first.run_id}: {difference}")
    named = Counter(run.path.resolve() for run in runs)
    for path, times in named.items():
        if times > 1:
            problems.append(f"{path.name} is named {times} times; name each shard once")
    contents: dict[str, str] = {}
    where: dict[str, str] = {}
    doubled: dict[tuple[str, str], list[str]] = {}
    for run in runs:
        if run.metrics is None:
            problems.append(f"{run.run_id} was interrupted; finish it first with --rageval-resume {run.run_id}")
        elif run.damage is not None:
            problems.append(run.damage)
        for record in run.records():
            key = record["case_key"]
            if where.setdefault(key, run.run_id) != run.run_id:
                doubled.setdefault((where[key], run.run_id), []).append(key)
            # Other keys end with a test of the project's own, which is no case of the dataset.
            if key == f"{record['source']['file']}::{record['test_case_id']}":
                contents[key] = record["content_hash"]
    for (first_id, second_id), keys in doubled.items():
        shared = f"{counted(len(keys), 'case')}: {listed(sorted(set(keys)))}"
        problems.append(f"{first_id} and {second_id} overlap in {shared}")
    if not problems and dataset_hash_of(contents.items()) != first.config["dataset_hash"]:
        problems.append(_gap(runs, contents, cases))
    if problems:
        raise SettingsError(*(f"merge: {problem}" for problem in problems))


def merge(
    runs: Sequence[StoredRun], plan: Plan, reports: Path, baseline: Side | None, baseline_name: str
) -> FinishedRun:
    """Write the checked parts as one run, in the order of the case files."""
    ratings = _ratings_of(runs)  # before a folder is made: a file of ratings may be damaged
    config = {**runs[0].config, "shard": None}
    writer = RunWriter.new(reports, plan, config)
    try:
        writer.folder.log(f"merged from {', '.join(run.run_id for run in runs)}")
        # By lines: the records of all shards need not fit into memory.
        for line in lines_in_order((run.path / RESULTS for run in runs), RESULT):
            writer.take(line.encode())
        for line in lines_in_order((run.path / OBSERVATIONS for run in runs), OBSERVATION):
            writer.folder.append(OBSERVATIONS, line)
        if ratings:
            write_ratings(writer.folder.path, ratings)
        keys = {key for key, _ in writer.rows}
        return finish(writer, plan, Extent(every=keys, expected=keys), baseline, baseline_name)
    finally:
        writer.folder.close()


def _ratings_of(runs: Sequence[StoredRun]) -> dict[str, Rating]:
    """Return the thumbs and notes that people gave to the answers of all parts, which share no case."""
    ratings: dict[str, Rating] = {}
    for run in runs:
        ratings |= read_ratings(run.path)
    return ratings


def _gap(runs: Sequence[StoredRun], contents: Mapping[str, str], cases: Iterable[EvalCase]) -> str:
    missing = [case.key for case in cases if contents.get(case.key) != content_hash(case)]
    named = f": {listed(missing)}" if missing else ""
    shards = [run.config.get("shard") for run in runs]
    of = {shard.partition("/")[2] for shard in shards if shard}
    if len(of) == 1 and all(shards):
        [number_of_shards] = of
        planned = {f"{number}/{number_of_shards}" for number in range(1, int(number_of_shards) + 1)}
        lacking = sorted(planned - set(shards))
        if lacking:
            return f"shards are missing: {', '.join(lacking)}"
    return f"the runs do not cover all cases{named or '; was one of them cut short?'}"
