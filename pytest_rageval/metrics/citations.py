"""L2 Retrieval around the ranking: the folders that were chosen, citations, and rules for conflicting sources."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from pytest_rageval.language.words import fold
from pytest_rageval.matching.spellings import path_form
from pytest_rageval.metrics.abstention import ABSTAINED, NO_ANSWER, UNANSWERABLE, abstention
from pytest_rageval.metrics.registry import metric
from pytest_rageval.metrics.retrieval import UNLABELLED
from pytest_rageval.model import Anchor, NotApplicable, Observation, Score
from pytest_rageval.text import counted

NO_REFERENCES = NotApplicable("the system reports no references", is_unobserved=True)
NO_RULE = NotApplicable("no rule for conflicts is labelled")
NO_DATES = NotApplicable("golds are ids, which have no date")
NO_PLACES = NotApplicable("no gold place is labelled")
NO_SELECTION = NotApplicable("the system reports no folder selection", is_unobserved=True)
UNKNOWN_MODE = NotApplicable("the folder mode was neither sent nor reported")
NOT_SELECTING = NotApplicable("folder selection is off")

SELECTING = ("on", "on_with_fallback")


def _scope(obs: Observation, _: int) -> str:
    selection = obs.answer.folder_selection
    folders = ", ".join(selection.folders) if selection else ""
    return f"searched {folders or 'everything'}; golds in {', '.join(one.rel_path for one in obs.gold.supports or ())}"


def _cited(obs: Observation, _: int) -> str:
    golds = sorted(gold + 1 for gold in frozenset[int]().union(*obs.cited))
    references = counted(len(obs.cited), "reference matches", "references match")
    return f"{sum(map(bool, obs.cited))} of {references}; golds cited: {golds or 'none'} of {obs.golds}"


def uncited(obs: Observation) -> NotApplicable | None:
    """Return why citations cannot be compared with golds."""
    if not obs.matching.golds:
        return UNLABELLED
    if obs.matching.cited is None:
        return NO_REFERENCES
    return ABSTAINED if abstention(obs).value else None


def _unattributed(obs: Observation) -> NotApplicable | None:
    return uncited(obs) if obs.case.answerable else UNANSWERABLE


def _without_rule(obs: Observation) -> NotApplicable | None:
    return NO_RULE if obs.case.gold.recency_conflict_rule is None else uncited(obs)


cites = partial(metric, layer="L2", better="higher", needs=("references", "gold"), missing=uncited, terms=_cited)


@metric(
    layer="L2",
    better="lower",
    binary=True,
    aggregate="scope_miss_rate",
    terms=_scope,
    needs=("folder_selection", "gold.supports"),
)
def scope_miss(obs: Observation) -> float | NotApplicable:
    """1 if the folders that the system chose to search exclude every gold place, else 0.

    A folder includes everything below it; the root, or an empty selection, includes everything. Folders are written
    from the same root as `rel_path` and compared step by step. Strict: a later fallback to all folders does not undo a
    miss. Lower is better; the mean is `scope_miss_rate`. Not applicable without anchors, where no selection is
    reported, or unless the folder mode is `on` or `on_with_fallback`: the mode that was sent, else the one that the
    system reports as `folder_selection.mode`. Source: miss rate of a routing step.

    The gold stands in `lab/imaging`, which `lab` includes and `lab/im` does not:

    >>> score("scope_miss", searched("lab personal", gold="lab/imaging/drift.md"))
    0.0
    >>> score("scope_miss", searched("lab/im", gold="lab/imaging/drift.md"))
    1.0
    >>> score("scope_miss", searched("lab/im", gold="lab/imaging/drift.md", mode="off"))
    NotApplicable(reason='folder selection is off')
    """
    places = obs.case.gold.supports
    if not places:
        return NO_PLACES
    selection = obs.answer.folder_selection
    if selection is None:
        return NO_SELECTION
    mode = obs.params.get("folder_mode", selection.extra.get("mode"))
    if mode not in SELECTING:
        return UNKNOWN_MODE if mode is None else NOT_SELECTING
    folders = [_steps(folder) for folder in selection.folders]
    paths = [_steps(place.rel_path) for place in places]
    is_included = not folders or any(path[: len(folder)] == folder for folder in folders for path in paths)
    return float(not is_included)


@cites(binary=True, missing=_unattributed)
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
    return float(any(obs.cited))


@cites()
def citation_precision(obs: Observation) -> float | NotApplicable:
    """Cited references that match a gold / cited references, each as often as it is listed.

    In [0, 1], higher is better; 0 where nothing was cited. Not applicable without gold, where no references are
    reported, or where the system abstained. Source: citation precision of ALCE (Gao et al. 2023), by place.

    One of the three references matches: 1 / 3.

    >>> score("citation_precision", cited("x a y", gold="a b"))
    0.3333333333333333
    """
    return sum(map(bool, obs.cited)) / (len(obs.cited) or 1)


@cites()
def citation_recall(obs: Observation) -> float | NotApplicable:
    """Golds that a cited reference matches / golds.

    In [0, 1], higher is better; 0 where nothing was cited. Not applicable without gold, where no references are
    reported, or where the system abstained. Source: citation recall of ALCE (Gao et al. 2023), by place.

    `a` is cited, `b` is not: 1 / 2.

    >>> score("citation_recall", cited("x a y", gold="a b"))
    0.5
    """
    return len(frozenset().union(*obs.cited)) / obs.golds


@metric(
    layer="L2",
    better="higher",
    binary=True,
    needs=("answer", "references", "gold.supports", "gold.recency_conflict_rule", "judge:conflict_acknowledged"),
    missing=_without_rule,
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
    cited = frozenset().union(*obs.cited)
    if rule == "cite_newer":
        if obs.matching.kind == "ids":
            return NO_DATES
        newest = _newest(obs.case.gold.supports or ())
        return float(not cited.isdisjoint(newest))
    is_all = len(cited) == obs.matching.golds
    if rule == "cite_both" or not is_all:
        return float(is_all)
    judgement = obs.judged("conflict_acknowledged")
    if judgement is not None:
        middle = sum(judgement.scale) / 2
        return Score(float(judgement.scores["conflict_acknowledged"] >= middle), {"decided_by": "judge"})
    if obs.answer.text is None:
        return NO_ANSWER
    return Score(float(_names_all(obs, obs.answer.text)), {"decided_by": "answer text"})


def _steps(path: str) -> tuple[str, ...]:
    return tuple([step for step in path_form(path).split("/") if step not in ("", ".")])


def _newest(places: Sequence[Anchor]) -> frozenset[int]:
    # ISO dates sort as text; a less precise date sorts before those within it.
    dates = [place.date or "" for place in places]
    if not all(dates):
        return frozenset((0,))
    newest = max(dates)
    return frozenset([at for at, date in enumerate(dates) if date == newest])


def _names_all(obs: Observation, text: str) -> bool:
    # A mark beyond the references names nothing.
    marked = [obs.cited[number - 1] for number in _marks(text) if number <= len(obs.cited)]
    named = set().union(*marked)
    folded = fold(text)
    places = (obs.case.gold.supports or ()) if obs.matching.kind == "anchors" else ()
    dates = [place.date for place in places]
    for at, place in enumerate(places):
        names = [*place.snippets, *_file_names(place.rel_path)]
        # A date that two golds share tells neither from the other.
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
    # A stem of one word, such as `setup`, stands in too many sentences to name a file.
    if " " in words:
        yield stem
        yield words


def _contains_any(folded: str, names: Iterable[str]) -> bool:
    """Return True if the text holds one of the names between word borders."""
    for name in filter(None, map(fold, names)):
        if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", folded) is not None:
            return True
    return False


_MARK = re.compile(r"\[\d{1,3}(?:\s*[,;–-]\s*\d{1,3})*\]")
_NUMBERS = re.compile(r"(\d+)(?:\s*[–-]\s*(\d+))?")
