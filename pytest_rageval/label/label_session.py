"""A labelling session without a screen: cases, marks, undo over all of them, and saving."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from itertools import chain

from pytest_rageval.cases.marks import Marks, Place, label_place
from pytest_rageval.errors import CaseError
from pytest_rageval.label.label_store import (
    CaseState,
    Decision,
    DraftStore,
    LabelStore,
    decision_on,
    edited_draft,
    states_of_line,
)
from pytest_rageval.label.note_places import gold_place
from pytest_rageval.label.opening import PoolSource
from pytest_rageval.label.pools import Candidate, MatchedMarks, Pool, matched_marks
from pytest_rageval.language.words import fold
from pytest_rageval.model import EvalCase
from pytest_rageval.text import counted

NO_POOL = Pool()
MOST_GROUPS = 9
"""Each group has a key of one digit."""


class LabelSession:
    """Cases labelled one after another. Leaving a case saves it; undo works across cases.

    message  a message for the person, if any
    row      the current candidate; with `range_start`, the other end of the selected range
    asks_to_clear  True if the next `ask_to_clear` clears the golds; a face resets it after any other key
    """

    def __init__(
        self, cases: Sequence[EvalCase], store: LabelStore, source: PoolSource, *, is_blind: bool = False
    ) -> None:
        if not cases:
            raise CaseError("there is no case to label")
        self.store = store
        self.source = source
        self.is_blind = is_blind
        self.states = [CaseState(case, store.marks_of(case)) for case in cases]
        self._saved = list(self.states)
        self._more: dict[int, Pool] = {}
        self._skipped: set[int] = set()
        self._undo: list[tuple[int, CaseState]] = []
        self._redo: list[tuple[int, CaseState]] = []
        self._shown: tuple[object, Pool] | None = None
        self.message = ""
        self.asks_to_clear = False
        self.row = 0
        self.group = 1
        self.range_start: int | None = None
        self.at = next((at for at in range(len(cases)) if not self.is_labelled(at)), 0)
        self._arrive(self.at)

    # ── what there is ─────────────────────────────────────────────────────────────────────────────────────────

    @property
    def cases(self) -> list[EvalCase]:
        return [state.case for state in self.states]

    @property
    def case(self) -> EvalCase:
        return self.states[self.at].case

    @property
    def marks(self) -> Marks:
        return self.states[self.at].marks

    @property
    def drafts(self) -> DraftStore | None:
        """Return the store of drafts, if drafts are accepted."""
        return self.store if isinstance(self.store, DraftStore) else None

    @property
    def is_saved(self) -> bool:
        return self.states[self.at] == self._saved[self.at]

    @property
    def undo_steps(self) -> int:
        return len(self._undo)

    @property
    def labelled(self) -> int:
        """Return how many cases are labelled or, of drafts, decided."""
        return sum(map(self.is_labelled, range(len(self.cases))))

    def is_labelled(self, at: int) -> bool:
        if self.drafts is not None:
            return self._decision_on(at) is not None
        return self.states[at].marks.is_label

    def _decision_on(self, at: int) -> Decision | None:
        """Return the decision on a draft; that on a conversation was made at one of its turns."""
        return decision_on(states_of_line(self.states, at))

    @property
    def waits_for(self) -> Future[Pool] | None:
        """Return the future of the case's pool until it is done."""
        future = self.source.pool(self.case)
        return None if future.done() else future

    @property
    def pool(self) -> Pool:
        """Return the candidates of the case and of further questions; only the marked places until they arrive."""
        future = self.source.pool(self.case)
        pool = future.result() if future.done() and not future.cancelled() else NO_POOL
        more = self._more.get(self.at)
        # Kept until one of these changes: a face reads the pool many times for each key.
        key = (self.at, pool, more, self.marks.golds, self.marks.irrelevant)
        if self._shown is None or self._shown[0] != key:
            full = pool if more is None else pool.with_more(more)
            self._shown = key, full.with_places(self.case, self.marks)
        return self._shown[1]

    def matches(self) -> MatchedMarks:
        """Match each candidate to the marks."""
        return matched_marks(self.case, self.marks, [candidate.chunk for candidate in self.pool.candidates])

    def _selected_of(self, hits: Sequence[frozenset[int]]) -> list[int]:
        return list(chain.from_iterable(hits[row] for row in self.selected))

    def do(self, name: str, *arguments: object) -> None:
        """Call a method for a key or a command: what was said before is gone, and only a second `u` clears golds."""
        self.message = ""
        if name != "ask_to_clear":
            self.asks_to_clear = False
        getattr(self, name)(*arguments)

    # ── pointing ──────────────────────────────────────────────────────────────────────────────────────────────

    def move(self, by: int) -> None:
        """Move to another candidate."""
        self.range_start = None
        self.row = min(max(0, len(self.pool.candidates) - 1), max(0, self.row + by))

    def extend(self, by: int) -> None:
        """Move to another candidate, and select all between the first of these moves and here."""
        start = self.row if self.range_start is None else self.range_start
        self.move(by)
        self.range_start = start

    @property
    def selected(self) -> range:
        """Return the selected rows."""
        if not self.pool.candidates:
            return range(0)
        other = self.row if self.range_start is None else self.range_start
        first, last = sorted((self.row, other))
        return range(first, last + 1)

    def find(self, text: str) -> bool:
        """Move to the next candidate whose text, path or heading contains these words."""
        candidates = self.pool.candidates
        for step in range(1, len(candidates) + 1):
            row = (self.row + step) % len(candidates)
            chunk = candidates[row].chunk
            searched = " ".join(filter(None, (chunk.rel_path, chunk.heading_path, chunk.text)))
            if fold(text) in fold(searched):
                self.row = row
                self.range_start = None
                return True
        self.message = f"no chunk here holds {text!r}; / asks the systems for more"
        return False

    # ── marking ───────────────────────────────────────────────────────────────────────────────────────────────

    def toggle_gold(self) -> None:
        """Mark the selected candidates as golds of the present group; unmark them if all are golds."""
        golds = self.matches().golds
        if all(golds[row] for row in self.selected):
            self._change(self.marks.without_golds(self._selected_of(golds)))
        else:
            self._mark(self.marks, lambda marks, place: marks.with_gold(place, self.group), skip=golds)

    def toggle_irrelevant(self) -> None:
        """Mark the selected candidates as irrelevant; unmark them if all are."""
        golds, irrelevant = self.matches()
        if all(irrelevant[row] for row in self.selected):
            self._change(self.marks.without_irrelevant(self._selected_of(irrelevant)))
        else:
            self._mark(self.marks.without_golds(self._selected_of(golds)), Marks.with_irrelevant, skip=irrelevant)

    def put_in_group(self, group: int) -> None:
        """Make the selected candidates golds of this group."""
        if self._is_of_ids("groups"):
            return
        golds = self.matches().golds
        marks = self.marks
        for gold in self._selected_of(golds):
            marks = marks.in_group(gold, group)
        self._mark(marks, lambda marks, place: marks.with_grouped_gold(place, group), skip=golds)
        self.group = group

    def next_group(self) -> None:
        """Put the golds that follow into the next group; after the first empty one return to the first."""
        if self._is_of_ids("groups"):
            return
        groups = len(self.marks.groups)
        if not groups and self.marks.golds:
            groups = 1  # golds without a group are one
        is_last = self.group > groups or self.group >= MOST_GROUPS
        self.group = 1 if is_last else self.group + 1
        self.message = f"golds that follow go into group {self.group}"

    def _is_of_ids(self, what: str) -> bool:
        """Return True, and say so, if the golds are ids, which have neither groups nor snippets."""
        if self.pool.kind(self.marks) == "anchors":
            return False
        self.message = f"{what} are for places; this case's golds are ids"
        return True

    def add_snippet(self, snippet: str) -> None:
        """Make the current candidate a gold that quotes this passage."""
        candidate = self.candidate
        if candidate is None or not snippet.strip() or self._is_of_ids("snippets"):
            return
        marks = self.marks
        golds = sorted(self.matches().golds[self.row])
        if not golds:
            place = gold_place(candidate.chunk, "anchors", None)
            if place is None:
                self.message = "this chunk says no path, so that it cannot be a gold here"
                return
            marks = marks.with_gold(place, self.group)
            golds = [marks.golds.index(place)]
        self._change(marks.with_snippet(golds[0], snippet.strip()))

    def set_answerable(self, *, is_answerable: bool = True) -> None:
        """Set whether the notes contain an answer; if they do not, there are no golds."""
        if is_answerable:
            self._change(replace(self.marks, answerable=True))
        else:
            self._change(self.marks.unanswerable())

    def ask_to_clear(self) -> None:
        """Set that the notes contain no answer; if that clears golds, only at the second call in a row."""
        self.asks_to_clear = bool(self.marks.golds) and not self.asks_to_clear
        if self.asks_to_clear:
            self.message = f"u again clears {counted(len(self.marks.golds), 'gold')}; anything else keeps them"
        else:
            self.set_answerable(is_answerable=False)

    @property
    def candidate(self) -> Candidate | None:
        """Return the current candidate."""
        candidates = self.pool.candidates
        if not candidates:
            return None
        return candidates[min(self.row, len(candidates) - 1)]

    def _mark(self, marks: Marks, mark: Callable[[Marks, Place], Marks], *, skip: Sequence[frozenset[int]]) -> None:
        """Mark the selected candidates, except those that `skip` has something for."""
        kind = self.pool.kind(self.marks)
        marks = replace(marks, kind=kind)
        for row in self.selected:
            place = gold_place(self.pool.candidates[row].chunk, kind, self.source.notes)
            if place is None:
                what = "path" if kind == "anchors" else "id"
                self.message = f"chunk {row + 1} says no {what}; it cannot be marked"
            elif not skip[row]:
                marks = mark(marks, place)
        self._change(marks)

    def _change(self, marks: Marks) -> None:
        self._change_state(replace(self.states[self.at], marks=marks))

    def _change_state(self, state: CaseState) -> None:
        if state != self.states[self.at]:
            self._undo.append((self.at, self.states[self.at]))
            self._redo.clear()
            self.states[self.at] = state

    # ── drafts ────────────────────────────────────────────────────────────────────────────────────────────────

    def decide(self, decision: Decision) -> None:
        """Accept or drop the draft, and open the next undecided one."""
        if self.drafts is None:
            self.message = "y and n are for drafts"
            return
        decided = self._decision_on(self.at)
        if self.states[self.at].decision is None and decided is not None and decided != decision:
            self.message = f"the conversation is {decided} at another of its turns; undo that with z"
            return
        self._change_state(replace(self.states[self.at], decision=decision))
        self.next_unlabelled()

    def edit_draft(self, text: str) -> None:
        """Replace the text of the draft."""
        try:
            self._change_state(edited_draft(self.states[self.at], text))
        except CaseError as error:
            self.message = str(error)

    # ── undo ──────────────────────────────────────────────────────────────────────────────────────────────────

    def undo(self) -> None:
        """Undo the last change, on whichever case it was made, and open that case."""
        self._step(self._undo, self._redo, "undo")

    def redo(self) -> None:
        """Redo the change that was undone last."""
        self._step(self._redo, self._undo, "redo")

    def _step(self, steps: list[tuple[int, CaseState]], others: list[tuple[int, CaseState]], name: str) -> None:
        """Return to the last state of one stack, and push the present one on the other."""
        if not steps:
            self.message = f"nothing to {name}"
        elif steps[-1][0] == self.at or self.save():
            at, state = steps.pop()
            others.append((at, self.states[at]))
            if at != self.at:
                self._arrive(at)
            self.states[at] = state

    # ── going on ──────────────────────────────────────────────────────────────────────────────────────────────

    def save(self) -> bool:
        """Save the case's labels if they have changed; return False and set a message if that fails."""
        if self.is_saved:
            return True
        state = self.states[self.at]
        kind = self.pool.kind(self.marks)
        places = dict.fromkeys(label_place(candidate.chunk, kind) for candidate in self.pool.candidates)
        try:
            self.message = self.store.save(state, [place for place in places if place is not None])
        except (CaseError, OSError) as error:
            self.message = str(error)
            return False
        self._saved[self.at] = state
        return True

    def go(self, by: int) -> None:
        """Save, and open the next case (1) or the previous one (-1)."""
        to = self.at + by
        is_there = 0 <= to < len(self.states)
        which = "last" if by > 0 else "first"
        self._leave_for(to if is_there else None, f"this is the {which} case")

    def next_unlabelled(self) -> None:
        """Save, and open the next case that is unlabelled and was not skipped."""
        order = [*range(self.at + 1, len(self.states)), *range(self.at)]
        to = next((at for at in order if not self.is_labelled(at) and at not in self._skipped), None)
        what = "labelled" if self.drafts is None else "decided"
        self._leave_for(to, f"no other case is left to be {what}")

    def skip(self) -> None:
        """Leave the case unchanged, and open the next."""
        self._change_state(self._saved[self.at])
        self._skipped.add(self.at)
        self.go(1)

    def _leave_for(self, to: int | None, otherwise: str) -> None:
        self.message = ""
        if self.save() and to is not None:
            self._arrive(to)
        else:
            self.message = self.message or otherwise

    def open_case(self, case_id: str) -> None:
        """Open the case with this id; raise CaseError if there is none."""
        ids = [state.case.id for state in self.states]
        if case_id not in ids:
            raise CaseError(f"there is no case {case_id!r} to label")
        self._arrive(ids.index(case_id))

    def ask_more(self, question: str) -> Future[Pool]:
        """Ask another question; `take_more` takes its candidates."""
        self.message = f"asking: {question}"
        return self.source.ask(self.case, question)

    def take_more(self, at: int, pool: Pool) -> None:
        """Add the candidates of another question to the case that it was asked for."""
        earlier = self._more.get(at)
        before = len(self.pool.candidates)
        self._more[at] = pool if earlier is None else earlier.with_more(pool)
        if at == self.at:
            self.message = f"{counted(len(self.pool.candidates) - before, 'more chunk')}"

    def _arrive(self, at: int) -> None:
        self.at = at
        self.row = 0
        self.group = 1
        self.range_start = None
        self.source.pool(self.case)
        self.source.prepare(self.cases[at + 1 :])


def unlabelled(cases: Iterable[EvalCase], store: LabelStore) -> list[EvalCase]:
    """Return the unlabelled cases."""
    return [case for case in cases if not store.marks_of(case).is_label]
