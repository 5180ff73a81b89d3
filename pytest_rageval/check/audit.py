"""Checks of labels: lost golds, near duplicates, questions that contain the answer."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple

from pytest_rageval.cases.canonical import content_hash
from pytest_rageval.cases.gold_places import ALL_NEEDED, cannot_be_won, missing_places, wide_golds
from pytest_rageval.cases.note_folder import NoteFolder, changed_notes
from pytest_rageval.cases.refusal_golds import golds_decline
from pytest_rageval.errors import SettingsError
from pytest_rageval.io.messages import shown_value
from pytest_rageval.io.suggestions import listed
from pytest_rageval.language.words import normalise
from pytest_rageval.matching.dialects import MISSED
from pytest_rageval.matching.places import GoldBy, match
from pytest_rageval.model import Answer, Chunk, EvalCase
from pytest_rageval.runs.reader import StoredRun
from pytest_rageval.runs.run_ref import in_time
from pytest_rageval.text import counted

LEAST_LIKENESS = 0.8
"""The share of common word pairs from which two questions are near duplicates."""


def shingles(question: str) -> frozenset[tuple[str, str]]:
    """Return the pairs of neighbouring words, with the beginning and the end as words."""
    words = ["", *normalise(question).split(), ""]
    return frozenset(pairwise(words))


def likeness(first: frozenset[tuple[str, str]], second: frozenset[tuple[str, str]]) -> float:
    """Return shared pairs as a share of all pairs, 0 to 1."""
    either = first | second
    return len(first & second) / len(either) if either else 1.0


def near_duplicates(questions: Sequence[str], least: float = LEAST_LIKENESS) -> Iterator[tuple[int, int]]:
    """Yield each question that resembles an earlier one, with the first such: (later, earlier)."""
    sets = [shingles(question) for question in questions]
    counts = Counter(chain.from_iterable(sets))
    # Sets that are alike share one of their rarest pairs: only those are looked up (prefix filtering).
    by_rare: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for later, members in enumerate(sets):
        rarest = sorted(members, key=lambda shingle: (counts[shingle], shingle))
        prefix = rarest[: len(rarest) - ceil(least * len(rarest)) + 1]
        candidates = sorted(set[int]().union(*(by_rare[shingle] for shingle in prefix)))
        match = next((earlier for earlier in candidates if likeness(members, sets[earlier]) >= least), None)
        if match is not None:
            yield later, match
        for shingle in prefix:
            by_rare[shingle].append(later)


SHORTEST_ANSWER = 4
"""Least characters of an answer that counts as given away; `yes` and `12` are in many questions by chance."""
CHOICES = (" or ", " oder ", " ou ", " o ", " 또는 ", " 아니면 ")
"""Words of a question that names its answers because it asks for one of them."""


class AuditFinding(NamedTuple):
    """A finding about one case: its kind, the wrong value, and what to do."""

    kind: str
    case: EvalCase
    message: str
    remedy: str
    is_unwinnable: bool = False

    def __str__(self) -> str:
        return f"{self.case.source}: case {shown_value(self.case.id)}: {self.message}; {self.remedy}"

    def content(self) -> dict[str, Any]:
        """Return the finding as JSON."""
        return {
            "kind": self.kind,
            "case": self.case.key,
            "file": self.case.source.file,
            "line": self.case.source.line,
            "message": self.message,
            "remedy": self.remedy,
            "unwinnable": self.is_unwinnable,
        }


def findings_in_files(cases: Sequence[EvalCase]) -> Iterator[AuditFinding]:
    """Find near-duplicate questions, categories that need more golds, questions that contain their answer."""
    yield from _duplicates(cases)
    for case in cases:
        yield from _arity(case)
        yield from _given_away(case)
        yield from _declining(case)


def _declining(case: EvalCase) -> Iterator[AuditFinding]:
    """Yield a right answer that only says that there is none: a correct refusal would fail."""
    if _declines(case):
        golds = case.gold.answers or ()
        message = f"the right answer says that there is none: {shown_value(golds[0], 60)}"
        yield AuditFinding("declining", case, message, 'write "answerable": false instead of it')


def _declines(case: EvalCase) -> bool:
    return case.answerable and golds_decline(case.gold.answers or (), case.question)


def declining_golds_line(cases: Iterable[EvalCase]) -> str | None:
    """Return a line that names the cases whose right answer only says that there is none; None without any."""
    named = [case.id for case in cases if _declines(case)]
    if not named:
        return None
    golds = counted(len(named), "right answer says", "right answers say")
    return f'{golds} that there is none: {listed(named)}; write "answerable": false instead (rageval cases audit)'


def _duplicates(cases: Sequence[EvalCase]) -> Iterator[AuditFinding]:
    """Yield nearly equal questions in the same scope, after the same turns."""
    by_scope: dict[Any, list[EvalCase]] = {}
    for case in cases:
        by_scope.setdefault((case.vaults, case.folders, case.history), []).append(case)
    for group in by_scope.values():
        for later, earlier in near_duplicates([case.question for case in group]):
            case = group[later]
            other = group[earlier]
            message = f"question {shown_value(case.question)} is nearly that of {other.key} ({other.source})"
            yield AuditFinding("near_duplicate", case, message, "drop one, or make them differ")


def _arity(case: EvalCase) -> Iterator[AuditFinding]:
    if case.category not in ALL_NEEDED or not case.answerable:
        return
    golds = len(case.gold.supports or case.gold.chunk_ids or ())
    groups = case.gold.support_groups or ()
    if golds == 1:
        message = f"category {case.category!r} with one gold"
    elif groups and min(map(len, groups)) == 1:
        message = f"category {case.category!r}, but a group of one gold is enough"
    else:
        return
    yield AuditFinding("arity", case, message, "label all that is needed, or choose another category")


def _given_away(case: EvalCase) -> Iterator[AuditFinding]:
    question = f" {normalise(case.question)} "
    if not case.answerable or any(word in f" {case.question.lower()} " for word in CHOICES):
        return
    for answer in case.gold.answers or ():
        text = normalise(answer)
        if len(text) >= SHORTEST_ANSWER and f" {text} " in question:
            message = f"the question holds its answer {shown_value(answer)}"
            yield AuditFinding("given_away", case, message, "ask without it")
            return


def audit_in_words(findings: Sequence[AuditFinding], cases: int) -> str:
    """Summarise the audit: `5 of 135 cases cannot be won, 12 findings`."""
    unwinnable = len({finding.case.key for finding in findings if finding.is_unwinnable})
    return f"{unwinnable} of {counted(cases, 'case')} cannot be won, {counted(len(findings), 'finding')}"


MOST_RUNS = 20
"""The newest runs whose retrieved chunks are checked."""


def findings_in_notes(cases: Sequence[EvalCase], folder: Path) -> Iterator[AuditFinding]:
    """Find golds whose file, heading or snippet no note contains, and those whose note has changed since."""
    notes = NoteFolder(folder)
    for case in cases:
        lost = missing_places(case, notes)
        supports = case.gold.supports or ()
        is_unwinnable = cannot_be_won(case, {place.gold for place in lost}, len(supports))
        for place in lost:
            message = f"gold_supports[{place.gold}].{place.message}"
            yield AuditFinding(f"lost_{place.kind}", case, message, place.remedy, is_unwinnable)
        for wide in wide_golds(case, notes):
            message = f"{gold_name(case, wide.gold, 'anchors')} covers {wide.sections} sections, the whole note"
            yield AuditFinding("whole_note", case, message, "name the section that holds the answer, or add a snippet")
        gone = {supports[place.gold].rel_path for place in lost if place.kind == "file"}
        for rel_path in changed_notes(case, folder):
            if rel_path not in gone:
                message = f"{shown_value(rel_path)} changed since it was labelled"
                remedy = "look at the gold again and save it with rageval label"
                yield AuditFinding("note_changed", case, message, remedy)


def findings_in_index(cases: Sequence[EvalCase], chunks: Sequence[Chunk], gold_by: GoldBy) -> Iterator[AuditFinding]:
    """Find golds that match no chunk of the index: no question can retrieve them."""
    index = Answer(chunks=tuple(chunks))
    all_chunks = counted(len(chunks), "chunk")
    for case in cases:
        matching = match(case, index, gold_by)
        matched: set[int] = set().union(*(matching.hits or ()))
        lost = [gold for gold in range(matching.golds) if gold not in matched]
        is_unwinnable = cannot_be_won(case, lost, matching.golds)
        for gold in lost:
            message = f"{gold_name(case, gold, matching.kind)} matches none of {all_chunks} of the index"
            remedy = "index the note, or label what the index holds"
            yield AuditFinding("not_indexed", case, message, remedy, is_unwinnable)


@dataclass(slots=True)
class _CaseInRuns:
    """What stored runs hold of one case in its present form.

    records  how many of its records have chunks
    kind     of its gold, in the newest of them, as are flags
    matched  the numbers of the golds that any of them retrieved
    """

    records: int = 0
    kind: str = "none"
    flags: Sequence[str] = ()
    matched: set[int] = field(default_factory=set)

    def add(self, record: Mapping[str, Any]) -> None:
        matches = [chunk["matches"] for chunk in record["retrieved_chunks"]]
        self.kind = record["gold"]
        self.records += 1
        self.flags = record.get("flags", [])
        self.matched.update(*matches)


def findings_in_runs(cases: Sequence[EvalCase], reports: Path) -> Iterator[AuditFinding]:
    """Find golds that no stored run retrieved, though it asked the case in its present form."""
    in_runs = _cases_in_runs(cases, reports / "runs")
    for case in cases:
        found = in_runs.get(case.key)
        if found is None:
            continue
        golds = (case.gold.supports if found.kind == "anchors" else case.gold.chunk_ids) or ()
        for gold in range(len(golds)):
            if gold not in found.matched:
                records = counted(found.records, "record")
                message = f"{gold_name(case, gold, found.kind)} was retrieved in none of {records}"
                missed = f"gold {gold + 1} is {MISSED}: "
                for flag in found.flags:
                    if flag.startswith(missed):
                        message += f", though {flag.removeprefix(missed)}"
                yield AuditFinding("never_retrieved", case, message, "check the gold, or the index")


def _cases_in_runs(cases: Sequence[EvalCase], runs: Path) -> dict[str, _CaseInRuns]:
    """Return what the newest runs hold of the cases that they asked in their present form, by case key."""
    hashes = {case.key: content_hash(case) for case in cases}
    in_runs: dict[str, _CaseInRuns] = {}
    newest = in_time(runs)[-MOST_RUNS:] if runs.is_dir() else ()
    for run in newest:
        try:
            for record in StoredRun(run).records():
                key = record["case_key"]
                is_same = hashes.get(key) == record["content_hash"]
                if is_same and record["retrieved_chunks"] and not record["error"]:
                    found = in_runs.get(key, _CaseInRuns())
                    found.add(record)
                    in_runs[key] = found
        except (SettingsError, OSError, KeyError, TypeError):
            continue  # a damaged run says nothing about labels; `rageval runs list` reports it
    return in_runs


def gold_name(case: EvalCase, gold: int, kind: str) -> str:
    """Return the gold's key and its place or id, for a message."""
    if kind == "anchors":
        return f"gold_supports[{gold}] {shown_value(str((case.gold.supports or ())[gold]))}"
    ids = list(dict.fromkeys([*(case.gold.chunk_ids or ()), *(case.gold.relevance or ())]))
    return f"gold id {shown_value(ids[gold])}"
