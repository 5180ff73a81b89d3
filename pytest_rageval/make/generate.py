"""Drafts of cases from a folder of notes: questions found in the text, and the checks that all drafts pass."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from pytest_rageval.cases.gold_places import missing_places
from pytest_rageval.cases.note_folder import NoteFolder, NoteSection
from pytest_rageval.check.audit import near_duplicates
from pytest_rageval.language.words import fold, sentences
from pytest_rageval.model import Anchor, EvalCase, Gold, Json

Origin = Literal["question and answer", "heading", "model"]
LONGEST_QUESTION = 500
"""Characters; what is longer is no question."""


class NotePassage(NamedTuple):
    """A section of a note."""

    rel_path: str
    section: NoteSection


@dataclass(frozen=True, slots=True)
class Draft:
    """A question that a passage answers. `quote` is text of the passage, and becomes the anchor's snippet."""

    question: str
    passage: NotePassage
    quote: str
    origin: Origin
    answer: str | None = None
    key_facts: tuple[str, ...] = ()

    @property
    def anchor(self) -> Anchor:
        snippets = (self.quote,) if self.quote else ()
        return Anchor(self.passage.rel_path, self.passage.section.heading_path, snippets)

    def record(self) -> dict[str, Json]:
        """Return the draft as a line of a file of drafts."""
        identity = "\0".join((self.anchor.rel_path, fold(self.question)))
        digest = hashlib.sha256(identity.encode()).hexdigest()[:12]
        record: dict[str, Json] = {"id": f"draft-{digest}", "question": self.question, **self.gold_fields()}
        return record | {"tags": ["draft", "generated"], "metadata": {"draft": {"from": self.origin}}}

    def gold_fields(self) -> dict[str, Json]:
        """Return its gold by the fields of a line."""
        anchor = self.anchor
        place: dict[str, Json] = {"rel_path": anchor.rel_path, "heading_path": anchor.heading_path}
        if anchor.snippets:
            place["snippets"] = list(anchor.snippets)
        gold: dict[str, Json] = {"gold_supports": [place]}
        if self.key_facts:
            gold["expected_key_facts"] = list(self.key_facts)
        if self.answer:
            gold["reference"] = self.answer
        return gold


class SiftedDrafts(NamedTuple):
    """Drafts that passed all checks, and counts of those that did not, by reason."""

    drafts: Sequence[Draft] = ()
    not_in_text: int = 0
    repeated: int = 0


def sift(drafts: Sequence[Draft], notes: NoteFolder, questions: Sequence[str] = ()) -> SiftedDrafts:
    """Drop drafts whose anchor lacks their quotation, and those that resemble an earlier one or one of `questions`."""
    sound = [draft for draft in drafts if _is_in_text(draft, notes)]
    new_questions = [draft.question for draft in sound]
    repeated = {later for later, _ in near_duplicates([*questions, *new_questions])}
    kept = [draft for at, draft in enumerate(sound, start=len(questions)) if at not in repeated]
    return SiftedDrafts(kept, not_in_text=len(drafts) - len(sound), repeated=len(sound) - len(kept))


def _is_in_text(draft: Draft, notes: NoteFolder) -> bool:
    """Return True for a question of usual length whose quotation is in the place of its anchor."""
    if not draft.question.strip() or len(draft.question) > LONGEST_QUESTION:
        return False
    case = EvalCase("", draft.question, gold=Gold(supports=(draft.anchor,)))
    return not missing_places(case, notes)


LONGEST_ANSWER = 600
"""Characters of a first paragraph that a draft takes for the answer."""
_EMPHASIS = r"(?:\*\*|__)?"
_NUMBER = rf"[ \t]*\d{{0,3}}[ \t]*{_EMPHASIS}[ \t]*[:.)\uFF1A][ \t]*{_EMPHASIS}[ \t]*"
_MARK = rf"^[ \t]*(?:[-*+>][ \t]+)*{_EMPHASIS}(?:%s){_NUMBER}"
_QUESTION = re.compile(_MARK % "Q|Question|Frage|질문|문|質問|问", re.IGNORECASE)
_ANSWER = re.compile(_MARK % "A|Answer|Antwort|답변|답|回答|答", re.IGNORECASE)
_QUESTION_END = re.compile(r"[?\uFF1F\u061F]\s*$")
_FENCE = re.compile(r"^\s*(?:```|~~~)")


def questions_in(passage: NotePassage) -> Iterator[Draft]:
    """Yield the drafts that a section of a note states literally."""
    pairs = list(_pairs(passage.section.text))
    for question, answer in pairs:
        yield Draft(question, passage, _first_sentence(answer), "question and answer", answer)
    if pairs:
        return
    heading = passage.section.heading_path.rpartition(" > ")[2].lstrip("# ").strip()
    paragraph = _first_paragraph(passage.section.text)
    if _QUESTION_END.search(heading) and paragraph:
        reference = paragraph if len(paragraph) <= LONGEST_ANSWER else None
        yield Draft(_plain(heading), passage, _first_sentence(paragraph), "heading", reference)


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    """Yield questions with their answers, each up to the end of its paragraph; skip unanswered questions."""
    question: list[str] = []
    answer: list[str] = []
    is_over = False  # the paragraph of the question
    for line in [*_lines_without_code(text), "Q:"]:  # a last question ends the answer above it
        is_blank = not line.strip()
        is_question = _QUESTION.match(line) is not None
        if any(answer) and (is_blank or is_question):
            yield _plain(" ".join(map(str.strip, question))), _plain("\n".join(answer))
            question = []
            answer = []
        if is_question:
            question = [_QUESTION.sub("", line)]
            answer = []
            is_over = False
        elif is_blank:
            is_over = True
        elif answer:
            answer.append(line)
        elif question and _ANSWER.match(line):
            answer = [_ANSWER.sub("", line)]
        elif question and not is_over:
            question.append(line)
        else:
            question = []


def _lines_without_code(text: str) -> Iterator[str]:
    is_code = False
    for line in text.split("\n"):
        is_fence = _FENCE.match(line) is not None
        is_code ^= is_fence
        if not is_code and not is_fence:
            yield line


def _plain(text: str) -> str:
    """Strip emphasis at the ends and blank lines around."""
    return re.sub(r"^(?:\*\*|__)|(?:\*\*|__)$", "", text.strip()).strip()


def _first_paragraph(text: str) -> str:
    for paragraph in re.split(r"\n\s*\n", text):
        if any(map(str.isalnum, paragraph)):
            return paragraph.strip()
    return ""


def _first_sentence(text: str) -> str:
    """Return the quotation for an anchor: enough to find the place, and literally in the text."""
    return next((sentence for sentence in sentences(text) if sentence in text), "")
