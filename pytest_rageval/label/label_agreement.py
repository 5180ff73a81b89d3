"""Agreement of two people's labels: kappa over the places that both judged, and the cases on which they differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

from pytest_rageval.cases.marks import Marks, Place
from pytest_rageval.label.label_store import POOL
from pytest_rageval.label.pools import chunk_at, matched_marks
from pytest_rageval.model import Anchor, EvalCase, Json
from pytest_rageval.stats.agreement import Confusion, in_words
from pytest_rageval.text import counted

THE_FILE = "the case file"


class Difference(NamedTuple):
    """One case that two people labelled differently.

    place  the place that only one of them has as a gold; None if one says that there is no answer
    gold_of  who has it as a gold, or says that there is an answer
    """

    case: str
    place: str | None
    gold_of: str

    @property
    def what(self) -> str:
        """Return the subject of the dispute."""
        return "answerable" if self.place is None else f"gold {self.place}"


class LabelAgreement(NamedTuple):
    """The agreement of two people's labels. Positive in `decisions`: the place is no gold."""

    first: str
    second: str
    cases: int
    decisions: Confusion
    differences: tuple[Difference, ...]

    @property
    def sentence(self) -> str:
        """Summarise: `2 cases, 4 places; agreement 75%, kappa 0.50 [-0.27, 0.98] (moderate)`."""
        head = f"{counted(self.cases, 'case')}, {counted(self.decisions.n, 'place')}"
        agreement = self.decisions.agreement
        kappa = self.decisions.kappa
        if agreement is None:
            return f"{head}; nothing that both labelled"
        if kappa is None:
            return f"{head}; agreement {agreement.value:.0%}, kappa not defined (all places alike)"
        low, high = kappa.interval or (kappa.value, kappa.value)
        words = in_words(kappa.value)
        return f"{head}; agreement {agreement.value:.0%}, kappa {kappa.value:.2f} [{low:.2f}, {high:.2f}] ({words})"

    def as_mapping(self) -> dict[str, Json]:
        agreement = self.decisions.agreement
        kappa = self.decisions.kappa
        return {
            "first": self.first,
            "second": self.second,
            "cases": self.cases,
            "places": self.decisions.n,
            "agreement": agreement and agreement.value,
            "kappa": kappa and kappa.value,
            "kappa_interval": list(kappa.interval) if kappa and kappa.interval else None,
            "answerable_differs": sum(difference.place is None for difference in self.differences),
            "differences": [difference._asdict() for difference in self.differences],
        }


def agreements(cases: Sequence[EvalCase], opinions: Mapping[str, Sequence[EvalCase]]) -> list[LabelAgreement]:
    """Compare the case file and all second opinions pairwise; only cases that both labelled."""
    by_name = {name: {case.id: case for case in labelled} for name, labelled in opinions.items()}
    by_name = {THE_FILE: {case.id: case for case in cases}, **by_name}
    return [_agreement(by_name, first, second) for first, second in combinations(by_name, 2)]


def _agreement(by_name: Mapping[str, Mapping[str, EvalCase]], first: str, second: str) -> LabelAgreement:
    ours = by_name[first]
    theirs = by_name[second]
    both = [name for name in ours if name in theirs and _is_labelled(ours[name]) and _is_labelled(theirs[name])]
    decided: list[tuple[bool, bool]] = []
    differences: list[Difference] = []
    for case_id in both:
        our_case = ours[case_id]
        their_case = theirs[case_id]
        is_agreed = our_case.answerable == their_case.answerable
        if not is_agreed:
            differences.append(Difference(case_id, None, first if our_case.answerable else second))
        places = _common_places(our_case, their_case)
        our_golds = _are_golds(our_case, places)
        their_golds = _are_golds(their_case, places)
        for place, is_ours, is_theirs in zip(places, our_golds, their_golds, strict=True):
            decided.append((is_ours, is_theirs))
            # Golds of one alone follow from a dispute over the answer, which is listed already.
            if is_ours != is_theirs and is_agreed:
                differences.append(Difference(case_id, str(place), first if is_ours else second))
    return LabelAgreement(first, second, len(both), Confusion.of(decided), tuple(differences))


def _is_labelled(case: EvalCase) -> bool:
    return Marks.of(case).is_label


def _common_places(our_case: EvalCase, their_case: EvalCase) -> list[Place]:
    """Return the places that both people were shown; the case file keeps none, so that the other's count."""
    ours = _pool(our_case)
    theirs = _pool(their_case)
    if ours is None:
        return theirs or []
    if theirs is None:
        return ours
    return [place for place in ours if place in theirs]


def _are_golds(case: EvalCase, places: Sequence[Place]) -> list[bool]:
    """Return for each place whether the labels have it as a gold."""
    chunks = [chunk_at(place) for place in places]  # without snippets, which cannot be checked here
    return [bool(golds) for golds in matched_marks(case, Marks.of(case), chunks).golds]


def _pool(case: EvalCase) -> list[Place] | None:
    written = case.metadata.get(POOL)
    if not isinstance(written, list):
        return None
    places: list[Place] = []
    for entry in written:
        if isinstance(entry, str):
            places.append(entry)
        elif isinstance(entry, Mapping) and isinstance(entry.get("rel_path"), str):
            places.append(Anchor(entry["rel_path"], str(entry.get("heading_path") or "")))
    return places
