"""A person's marks on one case: golds in groups, irrelevant places, answerable or not."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from pytest_rageval.model import Anchor, Chunk, EvalCase, Gold

Place = Anchor | str
"""A place in a document, or the id of a chunk."""
Kind = Literal["anchors", "ids"]


@dataclass(frozen=True, slots=True)
class Marks:
    """Golds and irrelevant places, all of one kind.

    groups  positions in `golds` as an OR of ANDs; empty if no gold was put into a group: any of them is enough then,
            and all are needed in categories such as `multi_hop`
    """

    kind: Kind = "anchors"
    golds: tuple[Place, ...] = ()
    groups: tuple[tuple[int, ...], ...] = ()
    irrelevant: tuple[Place, ...] = ()
    answerable: bool = True

    @classmethod
    def of(cls, case: EvalCase) -> Marks:
        """Return the marks of a case: places if it names any, else ids."""
        gold = case.gold
        has_ids = bool(gold.chunk_ids or gold.irrelevant_ids) or gold.ids_are_prefixes
        # A label has one kind only: a chunk found by its place and by its id would count twice.
        if has_ids and not gold.supports and not gold.irrelevant_supports:
            return cls("ids", gold.chunk_ids or (), (), gold.irrelevant_ids or (), case.answerable)
        supports = gold.supports or ()
        groups = gold.support_groups or ()
        return cls("anchors", supports, groups, gold.irrelevant_supports or (), case.answerable)

    @property
    def is_label(self) -> bool:
        """Return True if the case has a gold or is marked unanswerable."""
        return bool(self.golds) or not self.answerable

    def group_of(self, gold: int) -> int | None:
        """Return the 1-based group of a gold; None if it has none."""
        if not self.groups:
            return 1
        return next((number for number, group in enumerate(self.groups, start=1) if gold in group), None)

    def with_gold(self, place: Place, group: int = 1) -> Marks:
        """Add a gold to a group; the case becomes answerable, and the place is no longer irrelevant."""
        marks = replace(self, irrelevant=tuple(other for other in self.irrelevant if other != place), answerable=True)
        if place not in marks.golds:
            marks = replace(marks, golds=(*marks.golds, place))
            if not marks.groups and group == 1:
                return marks
        elif group == 1:
            return marks
        return marks.in_group(marks.golds.index(place), group)

    def with_grouped_gold(self, place: Place, group: int) -> Marks:
        """Add a gold to a group, which is written down even if it is the first one."""
        marks = self.with_gold(place, group)
        return marks.in_group(marks.golds.index(place), group)

    def in_group(self, gold: int, group: int) -> Marks:
        """Move a gold into a 1-based group and write all groups down; empty groups are removed."""
        if self.groups and self.group_of(gold) == group:
            return self
        # Golds without groups are one group.
        members = [list(inner) for inner in self.groups] or [list(range(len(self.golds)))]
        for inner in members:
            if gold in inner:
                inner.remove(gold)
        while len(members) < group:
            members.append([])
        members[group - 1] = sorted({*members[group - 1], gold})
        return replace(self, groups=tuple(tuple(inner) for inner in members if inner))

    def without_golds(self, golds: Iterable[int]) -> Marks:
        """Remove golds by position, also from their groups."""
        gone = set(golds)
        kept = [at for at in range(len(self.golds)) if at not in gone]
        # Groups name golds by position: those behind a removed one move up.
        position = {old: new for new, old in enumerate(kept)}
        groups: list[tuple[int, ...]] = []
        for group in self.groups:
            left = tuple(position[at] for at in group if at in position)
            if left:
                groups.append(left)
        return replace(self, golds=tuple(self.golds[at] for at in kept), groups=tuple(groups))

    def with_irrelevant(self, place: Place) -> Marks:
        """Add an irrelevant place, which cannot stay a gold."""
        marks = self.without_golds([at for at, gold in enumerate(self.golds) if gold == place])
        if place in marks.irrelevant:
            return marks
        return replace(marks, irrelevant=(*marks.irrelevant, place))

    def without_irrelevant(self, places: Iterable[int]) -> Marks:
        """Remove irrelevant places by position."""
        gone = set(places)
        return replace(self, irrelevant=tuple(place for at, place in enumerate(self.irrelevant) if at not in gone))

    def with_snippet(self, gold: int, snippet: str) -> Marks:
        """Add a passage to a gold; a chunk must quote one of its passages. Ids have none and stay unchanged."""
        place = self.golds[gold]
        if not isinstance(place, Anchor) or snippet in place.snippets:
            return self
        quoted = replace(place, snippets=(*place.snippets, snippet))
        return replace(self, golds=(*self.golds[:gold], quoted, *self.golds[gold + 1 :]))

    def unanswerable(self) -> Marks:
        """Remove all golds and mark the case as unanswerable from the corpus."""
        return replace(self, golds=(), groups=(), answerable=False)


def label_place(chunk: Chunk, kind: Kind) -> Place | None:
    """Return a chunk's name in labels of this kind; None if it has no such name."""
    if kind == "ids":
        return chunk.chunk_id or chunk.doc_id
    return Anchor(chunk.rel_path, chunk.heading_path or "") if chunk.rel_path else None


def case_with_marks(case: EvalCase, marks: Marks) -> EvalCase:
    """Return the case with these marks."""
    if marks.kind == "ids":
        ids = tuple(str(place) for place in marks.golds)
        irrelevant = tuple(str(place) for place in marks.irrelevant)
        gold = replace(case.gold, chunk_ids=ids or None, irrelevant_ids=irrelevant or None)
    else:
        gold = replace(
            case.gold,
            supports=_anchors(marks.golds) or None,
            support_groups=marks.groups or None,
            irrelevant_supports=_anchors(marks.irrelevant) or None,
        )
    return replace(case, gold=gold, answerable=marks.answerable)


def _anchors(places: tuple[Place, ...]) -> tuple[Anchor, ...]:
    return tuple(place for place in places if isinstance(place, Anchor))


def gold_of(marks: Marks, case: EvalCase) -> Gold:
    """Return the marks alone as gold, for matching chunks."""
    return case_with_marks(replace(case, gold=Gold(ids_are_prefixes=case.gold.ids_are_prefixes)), marks).gold
