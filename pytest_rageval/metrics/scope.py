"""L2 Retrieval, before the search: whether the folders chosen to search in hold the golds."""

from __future__ import annotations

from pytest_rageval.matching.places import path_form
from pytest_rageval.metrics.registry import metric
from pytest_rageval.model import NotApplicable, Observation

NO_PLACES = NotApplicable("no gold place is labelled")
NO_SELECTION = NotApplicable("the system reports no folder selection", is_unobserved=True)
UNKNOWN_MODE = NotApplicable("the folder mode was neither sent nor reported")
NOT_SELECTING = NotApplicable("folder selection is off")

SELECTING = ("on", "on_with_fallback")


@metric(
    layer="L2",
    better="lower",
    binary=True,
    aggregate="scope_miss_rate",
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
