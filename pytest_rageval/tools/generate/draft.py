"""One draft of a case with the place that it came from, and the drafts of which something is left after all checks."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from pytest_rageval.cases.notes.gold_places import lost_places
from pytest_rageval.cases.notes.note_folder import NoteFolder, NoteSection
from pytest_rageval.model import Anchor, EvalCase, Gold, Json
from pytest_rageval.tools.question_likeness import near_duplicates
from pytest_rageval.words import fold

Origin = Literal["question and answer", "heading", "model"]
LONGEST_QUESTION = 500
"""Characters; what is longer is no question."""


class NotePassage(NamedTuple):
    """A section of a note."""

    rel_path: str
    section: NoteSection


@dataclass(frozen=True, slots=True)
class Draft:
    """A question that a passage answers. `quote` is text of the passage, which the anchor's snippet will be."""

    question: str
    passage: NotePassage
    quote: str
    origin: Origin
    answer: str | None = None
    key_facts: tuple[str, ...] = ()

    @property
    def anchor(self) -> Anchor:
        return Anchor(self.passage.rel_path, self.passage.section.heading_path, (self.quote,) if self.quote else ())

    def record(self) -> dict[str, Json]:
        """The line of a file of drafts."""
        anchor = self.anchor
        place: dict[str, Json] = {"rel_path": anchor.rel_path, "heading_path": anchor.heading_path}
        if anchor.snippets:
            place["snippets"] = list(anchor.snippets)
        digest = hashlib.sha256("\0".join((anchor.rel_path, fold(self.question))).encode()).hexdigest()[:12]
        record: dict[str, Json] = {"id": f"draft-{digest}", "question": self.question, "gold_supports": [place]}
        if self.key_facts:
            record["expected_key_facts"] = list(self.key_facts)
        if self.answer:
            record["reference"] = self.answer
        return record | {"tags": ["draft", "generated"], "metadata": {"draft": {"from": self.origin}}}


@dataclass(slots=True)
class Sifted:
    """Drafts that passed all checks, and how many did not: by reason."""

    drafts: list[Draft] = field(default_factory=list)
    not_in_text: int = 0
    repeated: int = 0


def sift(drafts: Iterable[Draft], notes: NoteFolder, questions: Sequence[str] = ()) -> Sifted:
    """Drop drafts whose anchor does not hold what they quote, and those that ask nearly what another one asks, or one
    of these `questions`, which are there already. Of two that are alike the first stays."""
    sifted = Sifted()
    sound: list[Draft] = []
    for draft in drafts:
        is_question = draft.question.strip() and len(draft.question) <= LONGEST_QUESTION
        if is_question and not lost_places(EvalCase("", draft.question, gold=Gold(supports=(draft.anchor,))), notes):
            sound.append(draft)
        else:
            sifted.not_in_text += 1
    repeated = {later for later, _ in near_duplicates([*questions, *(draft.question for draft in sound)])}
    sifted.drafts = [draft for at, draft in enumerate(sound, start=len(questions)) if at not in repeated]
    sifted.repeated = len(sound) - len(sifted.drafts)
    return sifted
