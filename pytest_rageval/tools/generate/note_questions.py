"""Questions that stand in notes: `Q: … A: …` in many spellings, and headings that are questions."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pytest_rageval.tools.generate.draft import Draft, NotePassage
from pytest_rageval.words import sentences

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
    """The drafts that a section of a note holds in so many words."""
    pairs = list(_pairs(passage.section.text))
    for question, answer in pairs:
        yield Draft(question, passage, _first_sentence(answer), "question and answer", answer)
    heading = passage.section.heading_path.rpartition(" > ")[2].lstrip("# ").strip()
    if _QUESTION_END.search(heading) and not pairs and (paragraph := _first_paragraph(passage.section.text)):
        reference = paragraph if len(paragraph) <= LONGEST_ANSWER else None
        yield Draft(_plain(heading), passage, _first_sentence(paragraph), "heading", reference)


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    """Questions with their answers; an answer goes on to the end of its paragraph, a question without one is none."""
    question, answer = list[str](), list[str]()
    is_over = False
    for line in [*_lines_without_code(text), "Q:"]:
        is_blank, is_question = not line.strip(), _QUESTION.match(line)
        if any(answer) and (is_blank or is_question):
            yield _plain(" ".join(map(str.strip, question))), _plain("\n".join(answer))
            question, answer = [], []
        is_over = is_blank or (is_over and not is_question)
        if is_question:
            question, answer = [_QUESTION.sub("", line)], []
        elif is_blank:
            continue
        elif answer:
            answer.append(line)
        elif question and _ANSWER.match(line):
            answer = [_ANSWER.sub("", line)]
        else:
            question = [*question, line] if question and not is_over else []


def _lines_without_code(text: str) -> Iterator[str]:
    is_code = False
    for line in text.split("\n"):
        is_fence = _FENCE.match(line) is not None
        is_code = is_code != is_fence
        if not is_code and not is_fence:
            yield line


def _plain(text: str) -> str:
    """Without emphasis at its ends and blank lines around."""
    return re.sub(r"^(?:\*\*|__)|(?:\*\*|__)$", "", text.strip()).strip()


def _first_paragraph(text: str) -> str:
    return next((part.strip() for part in re.split(r"\n\s*\n", text) if any(map(str.isalnum, part))), "")


def _first_sentence(text: str) -> str:
    """What an anchor quotes: enough to find the place, and text as it stands there."""
    return next((sentence for sentence in sentences(text) if sentence in text), "")
