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
        agreement, kappa = self.decisions.agreement, self.decisions.kappa
        if agreement is None:
            return f"{head}; nothing that both labelled"
        if kappa is None:
            return f"{head}; agreement {agreement.value:.0%}, kappa not defined (all places alike)"
        low, high = kappa.interval or (kappa.value, kappa.value)
        words = in_words(kappa.value)
        return f"{head}; agreement {agreement.value:.0%}, kappa {kappa.value:.2f} [{low:.2f}, {high:.2f}] ({words})"

    def as_mapping(self) -> dict[str, Json]:
        agreement, kappa = self.decisions.agreement, self.decisions.kappa
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
    ours, theirs = by_name[first], by_name[second]
    both = [name for name in ours if name in theirs and all(Marks.of(of[name]).is_label for of in (ours, theirs))]
    decided: list[tuple[bool, bool]] = []
    differences: list[Difference] = []
    for case_id in both:
        pair = ours[case_id], theirs[case_id]
        says = pair[0].answerable, pair[1].answerable
        if says[0] != says[1]:
            differences.append(Difference(case_id, None, first if says[0] else second))
        pools = [pool for pool in map(_pool, pair) if pool is not None]  # the case file has none
        places = [place for place in pools[0] if place in pools[-1]] if pools else []
        chunks = [*map(chunk_at, places)]  # without snippets, which cannot be checked here
        golds = [map(bool, matched_marks(case, Marks.of(case), chunks).golds) for case in pair]
        for place, is_ours, is_theirs in zip(places, *golds, strict=True):
            decided.append((is_ours, is_theirs))
            if is_ours != is_theirs and says[0] == says[1]:
                differences.append(Difference(case_id, str(place), first if is_ours else second))
    return LabelAgreement(first, second, len(both), Confusion.of(decided), tuple(differences))


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
