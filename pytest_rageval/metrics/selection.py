"""L2 Retrieval: what must not come, and what the choice of folders leaves out."""

from __future__ import annotations

from pytest_rageval.matching.spellings import path_form
from pytest_rageval.metrics.registry import metric
from pytest_rageval.metrics.retrieval import NOT_REPORTED
from pytest_rageval.model import NotApplicable, Observation
from pytest_rageval.text import counted

NOT_NEGATIVE = NotApplicable("not a negative case")
NOTHING_IRRELEVANT = NotApplicable("no irrelevant gold is labelled")
NO_PLACES = NotApplicable("no gold place is labelled")
NO_SELECTION = NotApplicable("the system reports no folder selection", is_unobserved=True)
UNKNOWN_MODE = NotApplicable("the folder mode was neither sent nor reported")
NOT_SELECTING = NotApplicable("folder selection is off")

SELECTING = ("on", "on_with_fallback")


def _irrelevant(obs: Observation, k: int) -> str:
    ranks = [rank for rank, is_wrong in enumerate(obs.matching.irrelevant or (), start=1) if is_wrong and rank <= k]
    return f"irrelevant golds at ranks {ranks or 'none'}"


def _scope(obs: Observation, _: int) -> str:
    selection = obs.answer.folder_selection
    folders = ", ".join(selection.folders) if selection else ""
    return f"searched {folders or 'everything'}; golds in {', '.join(one.rel_path for one in obs.gold.supports or ())}"


@metric(
    layer="L2",
    better="higher",
    binary=True,
    needs=("chunks", "gold"),
    terms=lambda obs, _: f"{counted(len(obs.hits), 'chunk')} came, none should",
    gates=("negative_accuracy >= 1 tag L2_negative_fail",),
)
def negative_accuracy(obs: Observation) -> float | NotApplicable:
    """1 if nothing was returned (above the system's own threshold) although something was asked, else 0.

    For cases of category `negative` whose list of relevant ids is empty: nothing may come. Higher is better. Not
    applicable to other cases or where no retrieved chunks are reported. Source: true negative rate.

    >>> score("negative_accuracy", retrieved("", gold="", category="negative"))
    1.0
    >>> score("negative_accuracy", retrieved("x", gold="", category="negative"))
    0.0
    """
    if obs.case.category != "negative" or obs.gold.chunk_ids != ():
        return NOT_NEGATIVE
    if obs.matching.hits is None:
        return NOT_REPORTED
    return float(not obs.matching.hits)


@metric(
    layer="L2",
    better="higher",
    binary=True,
    needs=("chunks", "gold.irrelevant"),
    terms=_irrelevant,
    gates=("specificity_accuracy >= 1 tag L2_specificity_fail",),
)
def specificity_accuracy(obs: Observation, k: int) -> float | NotApplicable:
    """1 if none of the golds that must not come is among the top k chunks, else 0.

    Higher is better. Not applicable to cases without irrelevant golds or where no retrieved chunks are reported.
    Source: hard-negative tests of retrieval.

    The look-alike comes at rank 3:

    >>> score("specificity_accuracy@2", retrieved("a b alike", gold="a", irrelevant="alike"))
    1.0
    >>> score("specificity_accuracy@3", retrieved("a b alike", gold="a", irrelevant="alike"))
    0.0
    """
    gold = obs.case.gold
    if not (gold.irrelevant_supports or gold.irrelevant_ids):
        return NOTHING_IRRELEVANT
    if obs.matching.irrelevant is None:
        return NOT_REPORTED
    return float(not any(obs.matching.irrelevant[:k]))


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


def _steps(path: str) -> tuple[str, ...]:
    return tuple([step for step in path_form(path).split("/") if step not in ("", ".")])
