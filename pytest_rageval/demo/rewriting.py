"""Rewriting of follow-ups: "And in 2023?" after a question becomes a question that stands alone, by rules on words."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pytest_rageval.demo.parameters import Ask, PriorTurn
from pytest_rageval.demo.retrieval import question_terms

ASKED_BEFORE = 20
"""Earlier questions to read, the last ones: each is rewritten with the one before it."""

LONGEST = 2_000
"""Characters of a question that are rewritten. A longer one says what it is about, and stays."""

_COURTESY = re.compile(
    r"\s*(?:ok(?:ay)?|great|perfect|thanks?|thank you|thx|cheers|hi|hello|hey|bye|goodbye"
    r"|감사합니다|고마워요?|안녕하세요)"
    r"(?:[\s,]+(?:a lot|so much|very much|again|there|everyone|you|thanks?|great|that (?:is|was) all))*[\s.!]*",
    re.IGNORECASE,
)
_LEAD = re.compile(
    r"\s*(?:(?:and|but|or|so|also|then|ok|okay)\b[\s,]*)*(?P<about>(?:what|how) about\b\s*)?", re.IGNORECASE
)
_ASKS = re.compile(
    r"(?:what|which|who|whose|whom|when|where|why|how|is|are|was|were|do|does|did|has|have|had|can|could|may|might|must"
    r"|should|shall|will|would|(?:at|by|for|from|in|of|on|since|to|until|with) (?:what|which|whom|how))\b",
    re.IGNORECASE,
)
_PREPOSITIONS = (
    "about|after|at|before|between|by|during|for|from|in|into|of|on|over|per|since|to|under|until|with|within"
)
_PHRASE = re.compile(rf"(?P<preposition>{_PREPOSITIONS})\s+(?P<rest>\S.*)", re.IGNORECASE)
_YEAR = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")
_ONLY_A_YEAR = re.compile(
    r"(?:(?:and|but|what about|how about|그럼|그러면|그리고)\s+)*(?:(?:for|in|of)\s+)?"
    r"(?P<year>(?:19|20)\d\d)(?:년(?:에는|에도|에|엔|은|도)?)?",
    re.IGNORECASE,
)
_PRONOUN = re.compile(
    r"\b(?:its?|they|them|their|(?:that|this|these|those)(?=\s+(?:is|are|was|were|does|do|did)\b|\s*[.?!]*\s*$))\b"
    r"|\bthere(?=\s*[.?!]*\s*$)",
    re.IGNORECASE,
)
_HANGUL = re.compile("[가-힣]")
_NAME = re.compile(r"(?<=[\s(])[A-Z][\w-]*(?:\s(?:of\s|the\s)?[A-Z0-9][\w-]*)*")
_NOUNS = re.compile(rf"\b(?:the|an?|our|my|your)\s+(\w[\w-]*(?:\s+(?!(?:{_PREPOSITIONS})\b)\w[\w-]*)?)", re.IGNORECASE)


def reply_to_courtesy(question: str) -> str | None:
    """Return the reply to thanks or a greeting; None if something is asked."""
    if not _is_courtesy(question):
        return None
    if _HANGUL.search(question):
        return "무엇이든 물어보세요."
    return "You are welcome. Ask anything about the notes."


def standalone_question(ask: Ask) -> str:
    """Return the question as it stands alone: itself, unless it refers to an earlier question."""
    if not ask.rewrite:
        return ask.question
    before = ""
    for question in _asked_before(ask.history):
        if not _is_courtesy(question):
            before = _resolved(question, before)
    return _resolved(ask.question, before)


def _is_courtesy(question: str) -> bool:
    return len(question) <= LONGEST and _COURTESY.fullmatch(question) is not None


def _asked_before(history: Sequence[PriorTurn]) -> list[str]:
    asked = [turn.text for turn in history if turn.role == "user"]
    return asked[-ASKED_BEFORE:]


def _resolved(question: str, before: str) -> str:
    """Return a question with what it leaves out, taken from the question before, which stands alone."""
    if not before or not question.strip() or _is_courtesy(question):
        return question
    if len(question) > LONGEST or len(before) > LONGEST:
        return question
    only_year = _ONLY_A_YEAR.fullmatch(question.strip(" ?!."))
    years = _YEAR.findall(before)
    if only_year is not None and len(years) == 1:
        return before.replace(years[0], only_year["year"])
    lead = _LEAD.match(question)
    rest = question[lead.end() :] if lead else question
    is_about = lead is not None and lead["about"] is not None
    is_fragment = is_about or (rest != question and not _ASKS.match(rest))
    if is_fragment and rest.strip(" ?!."):
        return _with_fragment(rest.strip(" ?!."), before)
    pronoun = _PRONOUN.search(question)
    if pronoun is not None:
        return _with_topic(question, pronoun, before)
    if len(question_terms(question)) < 2:
        return f"{question} {before}"
    return question


def _with_fragment(fragment: str, before: str) -> str:
    """Ask the question before about something else: "in Japan" takes the place of "in Korea"."""
    phrase = _PHRASE.fullmatch(fragment)
    if phrase is None:
        return _about(fragment, before)
    # A name ends with its last capital letter; another phrase at the next preposition, or with the question.
    name = r"[A-Z][\w-]*(?:\s[A-Z0-9][\w-]*)*"
    words = rf"(?:(?!\b(?:{_PREPOSITIONS})\b)[^?!.])+?(?=\s+(?:{_PREPOSITIONS})\b|[?!.\s]*$)"
    alike = re.compile(rf"\b(?i:{phrase['preposition']})\s+(?:{name}|{words})")
    places = list(alike.finditer(before))
    if not places:
        return f"{before.rstrip(' ?!.')} {fragment}?"
    last = places[-1]
    return before[: last.start()] + fragment + before[last.end() :]


def _about(fragment: str, before: str) -> str:
    """Ask the question before about another thing, which takes the place of its topic."""
    topic = _topic(before)
    if topic is None:
        return f"{before.rstrip(' ?!.')} {fragment}?"
    article = re.compile(r"(?:the|an?|our|my|your)\s+(?=\S)", re.IGNORECASE)
    return before.replace(topic, article.sub("", fragment, count=1))


def _with_topic(question: str, pronoun: re.Match[str], before: str) -> str:
    """Put the topic of the question before in the place of a pronoun."""
    topic = _topic(before)
    if topic is None:
        return f"{question} {before}"
    has_article = f"the {topic}" in before or not topic[0].isupper()
    named = f"the {topic}" if has_article else topic
    if pronoun[0].lower() in ("its", "their"):
        named = f"{named}'s"
    return question[: pronoun.start()] + named + question[pronoun.end() :]


def _topic(question: str) -> str | None:
    """Return what a question is about: its last name inside a sentence, else its first noun with an article."""
    names = [name for name in _NAME.findall(question) if question_terms(name)]
    if names:
        return str(names[-1])
    nouns = _NOUNS.findall(question)
    return str(nouns[0]) if nouns else None
