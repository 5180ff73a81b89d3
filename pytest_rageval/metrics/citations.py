"""L2 Retrieval as far as it reached the answer: citation precision and recall, rules for conflicting sources."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from pytest_rageval.matching.spellings import path_form
from pytest_rageval.metrics.abstention import ABSTAINED, NO_ANSWER, UNANSWERABLE, abstention
from pytest_rageval.metrics.registry import metric
from pytest_rageval.metrics.retrieval import UNLABELLED
from pytest_rageval.model import Anchor, NotApplicable, Observation, Score
from pytest_rageval.text import counted
from pytest_rageval.words import fold

NO_REFERENCES = NotApplicable("the system reports no references", is_unobserved=True)
NO_RULE = NotApplicable("no rule for conflicts is labelled")
NO_DATES = NotApplicable("golds are ids, which have no date")


def _cited(obs: Observation, _: int) -> str:
    cited = obs.matching.cited or ()
    golds = sorted({gold + 1 for reference in cited for gold in reference})
    references = counted(len(cited), "reference matches", "references match")
    return f"{sum(map(bool, cited))} of {references}; golds cited: {golds or 'none'} of {obs.golds}"


@metric(layer="L2", better="higher", binary=True, needs=("references", "gold"), terms=_cited)
def attribution_hit(obs: Observation) -> float | NotApplicable:
    """1 if any reference that the answer cites matches a gold, else 0.

    Higher is better; 0 where nothing was cited. Not applicable to unanswerable cases, without gold, where no references
    are reported, or where the system abstained. Source: attribution to identified sources (Rashkin et al. 2023), by
    place instead of by judgement.

    >>> score("attribution_hit", cited("x a", gold="a b"))
    1.0
    >>> score("attribution_hit", cited("x y", gold="a b"))
    0.0
    """
    if not obs.case.answerable:
        return UNANSWERABLE
    references = _references(obs)
    return references if isinstance(references, NotApplicable) else float(any(references))


@metric(layer="L2", better="higher", needs=("references", "gold"), terms=_cited)
def citation_precision(obs: Observation) -> float | NotApplicable:
    """Cited references that match a gold / cited references, each as often as it is listed.

    In [0, 1], higher is better; 0 where nothing was cited. Not applicable without gold, where no references are
    reported, or where the system abstained. Source: citation precision of ALCE (Gao et al. 2023), by place.

    One of the three references matches: 1 / 3.

    >>> score("citation_precision", cited("x a y", gold="a b"))
    0.3333333333333333
    """
    references = _references(obs)
    if isinstance(references, NotApplicable):
        return references
    return sum(map(bool, references)) / (len(references) or 1)


@metric(layer="L2", better="higher", needs=("references", "gold"), terms=_cited)
def citation_recall(obs: Observation) -> float | NotApplicable:
    """Golds that a cited reference matches / golds.

    In [0, 1], higher is better; 0 where nothing was cited. Not applicable without gold, where no references are
    reported, or where the system abstained. Source: citation recall of ALCE (Gao et al. 2023), by place.

    `a` is cited, `b` is not: 1 / 2.

    >>> score("citation_recall", cited("x a y", gold="a b"))
    0.5
    """
    references = _references(obs)
    if isinstance(references, NotApplicable):
        return references
    return len(frozenset().union(*references)) / obs.matching.golds


@metric(
    layer="L2",
    better="higher",
    binary=True,
    needs=("answer", "references", "gold.supports", "gold.recency_conflict_rule", "judge:conflict_acknowledged"),
    gates=("recency_conflict_ok >= 1 tag L2_recency_fail",),
    terms=lambda obs, k: f"rule {obs.gold.recency_conflict_rule}; {_cited(obs, k)}",
)
def recency_conflict_ok(obs: Observation) -> float | Score | NotApplicable:
    """1 if the answer deals with sources that contradict each other as the case's rule asks, else 0.

    `cite_newer`: the newest gold is cited, by `date` where every gold has one (of equal dates any), else the first
    listed. `cite_both`: every gold is cited. `acknowledge_both`: every gold is cited, and the conflict is acknowledged:
    a judge that scores `conflict_acknowledged` decides; without one the answer must name every gold, by a citation
    mark such as `[1]`, or by quoting its snippet, its date or its file (a name of one word counts only with its
    ending). The detail `decided_by` says which. Higher is better. Not applicable without a rule or gold, where no
    references are reported, where the system abstained, or for `cite_newer` where golds are ids. Source: the rules of
    this project's case format.

    The note of 2024 is the newer one, and both are cited:

    >>> score("recency_conflict_ok", cited("old", gold="old:2023 new:2024", rule="cite_newer"))
    0.0
    >>> score("recency_conflict_ok", cited("new old", gold="old:2023 new:2024", rule="cite_both"))
    1.0
    >>> both = cited("new old", gold="old:2023 new:2024", rule="acknowledge_both", text="It is 30 Hz [1].")
    >>> score("recency_conflict_ok", both)
    0.0
    >>> both = cited("new old", gold="old:2023 new:2024", rule="acknowledge_both", text="30 Hz [1], but 29 in 2023.")
    >>> score("recency_conflict_ok", both)
    1.0
    """
    rule = obs.case.gold.recency_conflict_rule
    if rule is None:
        return NO_RULE
    references = _references(obs)
    if isinstance(references, NotApplicable):
        return references
    cited = frozenset().union(*references)
    if rule == "cite_newer":
        return NO_DATES if obs.matching.kind == "ids" else float(bool(cited & _newest(obs.case.gold.supports or ())))
    is_all = len(cited) == obs.matching.golds
    if rule == "cite_both" or not is_all:
        return float(is_all)
    judgement = obs.judged("conflict_acknowledged")
    if judgement is not None:
        middle = sum(judgement.scale) / 2
        return Score(float(judgement.scores["conflict_acknowledged"] >= middle), {"decided_by": "judge"})
    if obs.answer.text is None:
        return NO_ANSWER
    return Score(float(_names_all(obs, obs.answer.text, references)), {"decided_by": "answer text"})


def _references(obs: Observation) -> tuple[frozenset[int], ...] | NotApplicable:
    """Return the golds that each reference matches, or why citations do not apply."""
    matching = obs.matching
    if not matching.golds:
        return UNLABELLED
    if matching.cited is None:
        return NO_REFERENCES
    return ABSTAINED if abstention(obs).value else matching.cited


def _newest(places: Sequence[Anchor]) -> frozenset[int]:
    # ISO dates sort as text; a less precise date sorts before those within it.
    dates = [place.date or "" for place in places]
    if not all(dates):
        return frozenset((0,))
    return frozenset([at for at, date in enumerate(dates) if date == max(dates)])


def _names_all(obs: Observation, text: str, references: Sequence[frozenset[int]]) -> bool:
    marked = [references[number - 1] for number in _marks(text) if number <= len(references)]
    named = set().union(*marked)
    folded = fold(text)
    places = (obs.case.gold.supports or ()) if obs.matching.kind == "anchors" else ()
    dates = [place.date for place in places]
    for at, place in enumerate(places):
        names = [*place.snippets, *_file_names(place.rel_path)]
        if place.date is not None and dates.count(place.date) == 1:
            names.append(place.date)
        if _contains_any(folded, names):
            named.add(at)
    return len(named) == obs.matching.golds


def _marks(text: str) -> Iterator[int]:
    """Yield the numbers of citation marks: [1], [2, 5], and [1-3] as 1, 2, 3."""
    for mark in _MARK.finditer(text):
        for first, last in _NUMBERS.findall(mark.group()):
            yield from range(max(1, int(first)), int(last or first) + 1)


def _file_names(path: str) -> Iterator[str]:
    name = path_form(path).rpartition("/")[2]
    stem = name.rpartition(".")[0] or name
    words = re.sub(r"[-_\s]+", " ", stem).strip()
    if name != stem:
        yield name
    if " " in words:
        yield stem
        yield words


def _contains_any(folded: str, names: Iterable[str]) -> bool:
    """Return True if the text holds one of the names between word borders."""
    return any(
        re.search(rf"(?<!\w){re.escape(name)}(?!\w)", folded) is not None for name in filter(None, map(fold, names))
    )


_MARK = re.compile(r"\[\d{1,3}(?:\s*[,;–-]\s*\d{1,3})*\]")
_NUMBERS = re.compile(r"(\d+)(?:\s*[–-]\s*(\d+))?")
