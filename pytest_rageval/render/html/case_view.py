"""The views of cases, from the files of a run: all cases of a page, or one case."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

from pytest_rageval.cases.conversations import MOST_TURNS
from pytest_rageval.comparison.baseline import Side
from pytest_rageval.comparison.case_changes import CUT
from pytest_rageval.comparison.case_diff import READ, CaseLines, Record, representative_trial
from pytest_rageval.comparison.listed_case import ListedCase, listed_case
from pytest_rageval.errors import SettingsError
from pytest_rageval.io.sealed_lines import Place
from pytest_rageval.metrics.registry import Registry
from pytest_rageval.model.case import turn_id
from pytest_rageval.render.html.page_run import PageRun, compared_side
from pytest_rageval.run.plan import Plan
from pytest_rageval.runs.case_place import conversation_unit
from pytest_rageval.runs.reader import StoredRun
from pytest_rageval.runs.records.line_form import OBSERVATIONS, RESULTS
from pytest_rageval.runs.records.line_scan import may_have_cut_answer, places_of_cases, trials_at
from pytest_rageval.runs.records.record_files import record_paths
from pytest_rageval.views.case import case_view
from pytest_rageval.views.case_content import CaseContext, CaseView
from pytest_rageval.views.conversation import TurnView, turn_view

OBSERVED = frozenset({"case_key", "trial", "case", "answer"})
"""The members of an observation that a view needs."""


def case_views(page: PageRun, cases: Sequence[ListedCase]) -> Iterator[CaseView | None]:
    """Yield the view of each of these cases: None for one without a record, nothing if no records are kept."""
    keys = {case.key for case in cases}
    units = {_unit(case) for case in cases if case.conversation}
    # The other turns are read too: the page of a turn shows its conversation.
    others = {case.key for case in page.cases if case.conversation and _unit(case) in units} - keys
    if not page.side.run or not page.side.has_records:
        return
    lines = read_case_lines(page.side.run, keys | others, page.damages)
    other = page.before if page.compared else None
    before = _read_answers(other, keys, page.damages) if other else {}
    if not lines:
        return
    in_conversation = {case.key for case in cases if case.conversation} | others
    talks = (lines.trials(key) for key in lines if key in in_conversation)
    context = CaseContext(
        page.run_id,
        page.config,
        page.metrics["metrics"],
        page.registry,
        page.names,
        other=other.run_id if other else None,
        comparison=page.compared,
        turns=_turns(talks, page.config.get("k")),
    )
    for case in cases:
        of_case = lines.get(case.key)
        if of_case is None:
            yield None
        else:
            yield case_view(of_case, before.get(case.key), case.change, context)


def _unit(case: ListedCase) -> tuple[str, str]:
    """Return what the turns of one conversation share."""
    return case.file, case.conversation


def _turns(recorded: Iterable[Mapping[int, Record]], k: int | None) -> Mapping[str, Sequence[TurnView]]:
    """Return the turns among recorded cases, each with its trials, by the key of their conversation."""
    turns: dict[str, list[TurnView]] = {}
    for trials in recorded:
        record = representative_trial(trials)
        unit = conversation_unit(record)
        if unit is not None:
            turns.setdefault(unit, []).append(turn_view(record, k))
    return turns


def conversation_turns(run: StoredRun, unit: str) -> Sequence[TurnView]:
    """Return the recorded turns of a conversation, from its key."""
    keys = {turn_id(unit, number) for number in range(1, MOST_TURNS + 1)}
    places = _places(run, RESULTS, keys)
    trials = (trials_at(of_case, READ) for of_case in places.values())
    turns = _turns(trials, run.config.get("k")).get(unit, ())
    return sorted(turns, key=lambda turn: turn.number)


@dataclass(frozen=True, slots=True)
class RecordedCase:
    """A case with what its run keeps of it."""

    case: ListedCase
    """The list entry, without a comparison."""
    record: Record
    """The record of the trial that decides the outcome."""
    observation: Record | None
    """Its line of observations.jsonl; None if the run keeps none."""
    view: CaseView
    before: Record | None = None
    """Its record in the run that this one was compared with; None if that run does not keep it."""
    new_gates: Sequence[str] = ()
    """The metrics of the gates that are new to a known failure, without their cut-offs."""


def recorded_case_of(
    run: StoredRun, last: Record, registry: Registry, baseline: Path, plan: Plan | None = None
) -> RecordedCase:
    """Return the case of its `last` record in the run. `baseline`: the file of the project's baseline."""
    key = last["case_key"]
    # The record of a killed run can be in a worker's file.
    lines = read_case_lines(run, {key}).get(key) or CaseLines({last["trial"]: last}, {})
    record = representative_trial(lines.records)
    metrics = (run.metrics or {}).get("metrics", {})
    comparison = (run.metrics or {}).get("comparison")
    unit = conversation_unit(record)
    context = CaseContext(
        run.run_id,
        run.config,
        metrics,
        registry,
        names={},
        plan=plan,
        comparison=comparison,
        turns={unit: conversation_turns(run, unit)} if unit else {},
    )
    earlier = _earlier(run, key, baseline)
    view = case_view(lines, earlier, "same", context)
    before = representative_trial(earlier.records) if earlier is not None else None
    observation = lines.observations.get(record["trial"])
    return RecordedCase(listed_case(record), record, observation, view, before, context.new_gates(key))


def _earlier(run: StoredRun, key: str, baseline: Path) -> CaseLines | None:
    """Return the case in the run that this one was compared with, if that run keeps records and was comparable."""
    comparison = (run.metrics or {}).get("comparison")
    # A case whose content changed is another case: its answer before says nothing.
    if comparison is None or not comparison["compared"] or key in comparison["changed_cases"]:
        return None
    side = compared_side(run, run.path.parent.parent, baseline)
    if side is None or side.run is None or not side.has_records:
        return None
    return read_case_lines(side.run, {key}).get(key)


class StoredLines(Mapping[str, CaseLines]):
    """The lines of some cases by case, read from their files on each access.

    Parsed, those of 1,000 cases take 30 MB, and a report shows one case after the other.

    damages  where an observation is noted that is damaged and left out; None to raise its SettingsError
    effect   what is not shown without an observation
    """

    def __init__(
        self,
        records: Mapping[str, Sequence[Place]],
        observations: Mapping[str, Sequence[Place]],
        damages: list[str] | None,
        effect: str,
    ) -> None:
        self._records = records
        self._observations = observations
        self._damages = damages
        self._effect = effect

    def trials(self, key: str) -> Mapping[int, Record]:
        """Return the records of a case by trial, without its observations."""
        return trials_at(self._records[key], READ)

    def __getitem__(self, key: str) -> CaseLines:
        records = self.trials(key)
        try:
            observations = trials_at(self._observations.get(key, ()), OBSERVED)
        except SettingsError as damage:
            if self._damages is None:
                raise
            self._damages.append(f"{damage}; {self._effect}")
            observations = {}
        return CaseLines(records, observations)

    def __iter__(self) -> Iterator[str]:
        return iter(self._records)

    def __len__(self) -> int:
        return len(self._records)


def read_case_lines(run: StoredRun, keys: Set[str], damages: list[str] | None = None) -> StoredLines:
    """Find records and observations of some cases; each file is read once from front to back.

    With `damages`, unreadable observations are listed there and left out; without, the first is a SettingsError.
    """
    effect = "expected answers and golds that were not retrieved are not shown"
    observations: Mapping[str, Sequence[Place]] = {}
    try:
        observations = _places(run, OBSERVATIONS, keys)
    except SettingsError as damage:
        if damages is None:
            raise
        damages.append(f"{damage}; {effect}")
    return StoredLines(_places(run, RESULTS, keys), observations, damages, effect)


def _read_answers(side: Side, keys: Set[str], damages: list[str]) -> Mapping[str, CaseLines]:
    """Find the records of some cases, and observations of those whose answer is cut in its record; `damages` as above.

    For a baseline whose run is gone, read the records stored next to it.
    """
    if side.run is None:
        return {key: CaseLines({record["trial"]: record}, {}) for key, record in side.records(keys).items()}
    effect = "cases are not shown as they were before"
    try:
        records = places_of_cases(side.run.path / RESULTS, keys)
        # Observations are the largest file: only a cut answer needs its own.
        cut_keys = {key for key, places in records.items() if _has_cut_answer(places)}
        observations = _places(side.run, OBSERVATIONS, cut_keys)
    except SettingsError as damage:
        damages.append(f"{damage}; {effect}")
        return {}
    return StoredLines(records, observations, damages, effect)


def _has_cut_answer(places: Iterable[Place]) -> bool:
    """Return True if a record at these places holds the beginning of its answer only."""
    # Few are cut, and to parse a record takes eight times as long as to read its line.
    possible = [place for place in places if may_have_cut_answer(place.read())]
    return any((record["answer"] or "").endswith(CUT) for record in trials_at(possible, READ).values())


def _places(run: StoredRun, name: str, keys: Set[str]) -> dict[str, list[Place]]:
    """Return the places of the lines of one kind by case."""
    places: dict[str, list[Place]] = {}
    if not keys:
        return places
    # A killed run has a file for each worker as well.
    for path in record_paths(run.path, name):
        for key, in_file in places_of_cases(path, keys).items():
            places.setdefault(key, []).extend(in_file)
    return places
