"""Extractive answers: the fewest sentences of the retrieved chunks that cover the question, cited, or none."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from pytest_rageval.demo.chunking import NoteChunk
from pytest_rageval.demo.retrieval import Hit, text_terms
from pytest_rageval.text import counted

CHUNKS_READ = 5
"""Only the first chunks are read, so the answer is the same whether 5 or 50 were asked for ..."""

FAINTEST = 0.65
"""... and of those the ones that score at least this share of the best."""

PROMPT = "quote-1"
"""Version of the rules by which sentences are chosen and joined."""

SENTENCES = 3
LEAST_SHARE = 0.3
"""The share of the question, weighted by rarity, that one passage must cover to contain the answer."""

LEAST_UNION = 0.5
"""... unless all passages together cover this share, as for a question with many parts."""

LEAST_RARITY = 0.35
"""The least weight of a question, in terms that no chunk has; a single common word weighs less."""

GAIN = 0.15
"""The share of the question that a further sentence must newly cover."""

FROM_HEADING = 0.7
"""A term in the headings counts less: they give the section's subject, not the sentence's."""

FROM_SCORE = 0.5
"""The part of the chunk's score that is added to each of its sentences."""

FROM_YEAR = 0.25
"""The bonus of a sentence about the year in the question."""

SAME_SUBJECT = 0.6
"""Two sentences have the same subject if both cover this share of the question, headings included."""

ABOUT_AS_MUCH = 0.85
"""... and the worse one has at least this share of the better one's value."""

_CITED = re.compile(r"([ \t]?)\[(\d{1,3}(?:\s?[,–-]\s?\d{1,3}){0,20})\]")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_YEAR = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")
_HANGUL = re.compile("[가-힣]")


@dataclass(frozen=True, slots=True)
class WrittenAnswer:
    """The answer with the chunks it cites, `[1]` being the first; or the reason why there is none.

    `remarks` say what was changed in a model's answer, one line each.
    """

    text: str
    cited: tuple[NoteChunk, ...] = ()
    abstain_reason: str | None = None
    remarks: tuple[str, ...] = ()


class ModelDraft(NamedTuple):
    """A model's text; `[2]` is the second passage that it was shown. None: they do not contain the answer."""

    text: str | None
    is_cut: bool = False


class _Sentence(NamedTuple):
    """A sentence of a chunk; `covered` are question terms in it, `about` those in its headings as well."""

    chunk: NoteChunk
    order: int
    text: str
    covered: frozenset[str]
    about: frozenset[str]
    value: float


class _Question:
    """A question and the weights of its terms: a term weighs more, the fewer chunks have it."""

    def __init__(self, text: str, terms: Sequence[str], rarity: Callable[[str], float]) -> None:
        self.years = frozenset(_YEAR.findall(text))
        self._weights = {term: rarity(term) for term in terms}
        self.rarity = math.fsum(self._weights.values())

    def terms_in(self, text: str) -> frozenset[str]:
        return _terms(text) & self._weights.keys()

    def share(self, terms: frozenset[str]) -> float:
        """Return the share of the question that these terms are, from 0 to 1."""
        return math.fsum(weight for term, weight in self._weights.items() if term in terms) / self.rarity


def write(text: str, terms: Sequence[str], hits: Sequence[Hit], rarity: Callable[[str], float]) -> WrittenAnswer:
    """Write an extractive answer to a question with these terms; `rarity` weighs a term by how few chunks have it."""
    question = _Question(text, terms, rarity)
    if question.rarity < LEAST_RARITY * rarity(""):  # no chunk has the empty term
        return _abstained(text, "ambiguous_question")
    if not hits:
        return _abstained(text, "no_relevant_context")
    read = [hit for hit in hits[:CHUNKS_READ] if hit.score >= FAINTEST * hits[0].score]
    if not _is_covered(question, read):
        return _abstained(text, "insufficient_information")
    years = frozenset[str]().union(*(_years(hit.chunk) for hit in read))
    if question.years and question.years.isdisjoint(years):
        return _abstained(text, "insufficient_information")
    sentences = sorted(_sentences(question, read), key=lambda sentence: (-sentence.value, sentence.order))
    if not sentences:
        return _abstained(text, "insufficient_information")
    best = sentences[0]
    older = _other_version(question, best, sentences)
    if older is not None:
        newer, older = sorted((best, older), key=lambda sentence: sentence.chunk.meta["date"], reverse=True)
        return _two_versions(newer, older)
    chosen = _further(question, best, sentences)
    return _joined(_with_neighbour(chosen, sentences))


def _is_covered(question: _Question, read: Sequence[Hit]) -> bool:
    """Return True if one passage covers enough of the question to hold its answer, or all of them together do."""
    covered: list[frozenset[str]] = []
    for hit in read:
        in_headings = question.terms_in(_headings(hit.chunk))
        covered.append(in_headings.union(*map(question.terms_in, hit.chunk.quotable)))
    if max(map(question.share, covered)) >= LEAST_SHARE:
        return True
    return question.share(frozenset[str]().union(*covered)) >= LEAST_UNION


def checked(question: str, draft: ModelDraft, shown: Sequence[NoteChunk]) -> WrittenAnswer:
    """Check a model's answer over the chunks that it was shown, `[1]` being the first of them.

    Citations are renumbered in their order. One that names no chunk is removed, with a remark.
    """
    if draft.text is None:
        return _abstained(question, "insufficient_information")
    places: dict[int, int] = {}
    unknown: dict[int, None] = {}

    def renumber(citation: re.Match[str]) -> str:
        kept: dict[int, None] = {}
        for number in _cited_numbers(citation[2]):
            if 1 <= number <= len(shown):
                kept[number] = None
                places.setdefault(number, len(places) + 1)
            else:
                unknown[number] = None
        if not kept:
            return ""
        return citation[1] + "".join(f"[{places[number]}]" for number in kept)

    text = _CITED.sub(renumber, draft.text).strip()
    remarks = []
    if unknown:
        numbers = ", ".join(f"[{number}]" for number in list(unknown)[:5])
        if len(unknown) > 5:
            numbers += ", …"
        remarks.append(f"citations of none of the {counted(len(shown), 'passage')} shown were taken out: {numbers}")
    if draft.is_cut:
        remarks.append("the answer is cut off where it became too long")
    return WrittenAnswer(text, tuple(shown[number - 1] for number in places), remarks=tuple(remarks))


def _cited_numbers(written: str) -> Iterator[int]:
    """Yield the numbers of `1, 3-5`."""
    for part in written.split(","):
        numbers = [int(number) for number in re.split("[–-]", part)]
        if len(numbers) == 2 and numbers[0] < numbers[1]:
            first, last = numbers
            yield from range(first, last + 1)
        else:
            yield from numbers


def _sentences(question: _Question, hits: Sequence[Hit]) -> Iterator[_Sentence]:
    order = 0
    for hit in hits:
        heading = question.terms_in(_headings(hit.chunk))
        for text in hit.chunk.quotable:
            covered = question.terms_in(text)
            value = question.share(covered)
            value += FROM_HEADING * question.share(heading - covered)
            value += FROM_SCORE * hit.score
            if not question.years.isdisjoint(_YEAR.findall(text)):
                value += FROM_YEAR
            yield _Sentence(hit.chunk, order, text, covered, covered | heading, value)
            order += 1


def _further(question: _Question, best: _Sentence, sentences: Sequence[_Sentence]) -> list[_Sentence]:
    chosen = [best]
    covered = best.about

    def gain(sentence: _Sentence) -> float:
        return question.share(sentence.covered - covered)

    while len(chosen) < SENTENCES:
        following = max(sentences, key=lambda sentence: (gain(sentence), -sentence.order))
        if gain(following) < GAIN:
            break
        chosen.append(following)
        covered |= following.about
    return chosen


def _with_neighbour(chosen: list[_Sentence], sentences: Sequence[_Sentence]) -> list[_Sentence]:
    """Add to a single sentence the next one of its section, or the one before: often the reason."""
    if len(chosen) > 1:
        return chosen
    (alone,) = chosen
    in_section = [sentence for sentence in sentences if sentence.chunk is alone.chunk]
    by_distance = {sentence.order - alone.order: sentence for sentence in in_section}
    neighbour = by_distance.get(1, by_distance.get(-1))
    return chosen if neighbour is None else [alone, neighbour]


def _other_version(question: _Question, best: _Sentence, sentences: Sequence[_Sentence]) -> _Sentence | None:
    """Find a sentence of a note of another date on the same terms that fits about as well, with other numbers."""
    for other in sentences:
        dates = {best.chunk.meta.get("date", ""), other.chunk.meta.get("date", "")}
        if len(dates) < 2 or "" in dates or other.value < ABOUT_AS_MUCH * best.value:
            continue
        if question.share(best.about & other.about) < SAME_SUBJECT:
            continue
        # If the question names a year, a sentence about another year is another subject, not another version.
        if question.years and not question.years.issuperset(_YEAR.findall(f"{best.text} {other.text}")):
            continue
        numbers = set(_NUMBER.findall(best.text)) - question.years
        other_numbers = set(_NUMBER.findall(other.text)) - question.years
        if numbers and other_numbers and numbers != other_numbers:
            return other
    return None


def _two_versions(newer: _Sentence, older: _Sentence) -> WrittenAnswer:
    dated = f"{older.chunk.meta['date']}, {older.chunk.rel_path}"
    if _HANGUL.search(newer.text):
        text = f"{newer.text} [1] 더 오래된 노트({dated})에는 다르게 적혀 있다: {older.text} [2]"
    else:
        text = f"{newer.text} [1] An older note ({dated}) reads differently: {older.text} [2]"
    return WrittenAnswer(text, (newer.chunk, older.chunk))


def _joined(chosen: Sequence[_Sentence]) -> WrittenAnswer:
    chosen = sorted(chosen, key=lambda sentence: (sentence.chunk is not chosen[0].chunk, sentence.order))
    cited = {sentence.chunk.chunk_id: sentence.chunk for sentence in chosen}
    number_of = {chunk_id: number for number, chunk_id in enumerate(cited, start=1)}
    quotations = [f"{sentence.text} [{number_of[sentence.chunk.chunk_id]}]" for sentence in chosen]
    return WrittenAnswer(" ".join(quotations), tuple(cited.values()))


def _abstained(question: str, reason: str) -> WrittenAnswer:
    if _HANGUL.search(question):
        return WrittenAnswer("노트에서 이 질문에 대한 답을 찾지 못했습니다.", abstain_reason=reason)
    return WrittenAnswer("The notes do not answer this question.", abstain_reason=reason)


def _headings(chunk: NoteChunk) -> str:
    return f"{chunk.heading_path} {chunk.folder}"


def _years(chunk: NoteChunk) -> frozenset[str]:
    """Return the years in a passage, its note's date included."""
    return frozenset(_YEAR.findall(f"{chunk.heading_path} {chunk.text} {chunk.meta.get('date', '')}"))


@lru_cache(maxsize=20_000)
def _terms(text: str) -> frozenset[str]:
    return frozenset(text_terms(text))
