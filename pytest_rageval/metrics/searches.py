"""L2 Retrieval of an agent: what its searches brought, each with its own ranks.

A search is a tool call with `retrieved_chunks`. All are off by default, and on in runs whose cases expect tools.
"""

from __future__ import annotations

import json
from functools import partial

from pytest_rageval.metrics.calls import SCALE
from pytest_rageval.metrics.registry import metric
from pytest_rageval.metrics.retrieval import UNLABELLED
from pytest_rageval.metrics.tools import NO_CALLS
from pytest_rageval.model import Json, NotApplicable, Observation, ToolCall
from pytest_rageval.text import counted

NO_SEARCH = NotApplicable("no tool call reports retrieved_chunks", is_unobserved=True)
NO_PLACES = NotApplicable("the searches report texts without a place", is_unobserved=True)
NO_GOLD_FOUND = NotApplicable("no search brought a gold")


def _unsearched(obs: Observation) -> NotApplicable | None:
    if obs.answer.tool_calls is None:
        return NO_CALLS
    return None if obs.answer.searches else NO_SEARCH


def _unmatched(obs: Observation) -> NotApplicable | None:
    if not obs.golds:
        return UNLABELLED
    missing = _unsearched(obs)
    if missing is not None:
        return missing
    # None is a search without places, and an empty list one that brought nothing.
    return None if any(hits is not None for hits in obs.matching.searches) else NO_PLACES


search_metric = partial(metric, layer="L2", on_by_default=False)


def _found(obs: Observation, k: int) -> frozenset[int]:
    """Return the golds among the top k chunks of any search."""
    found: frozenset[int] = frozenset()
    for hits in obs.matching.searches:
        # Each search has ranks of its own: the union counts a gold once.
        found = found.union(*(hits or ())[:k])
    return found


def _recall_terms(obs: Observation, k: int) -> str:
    found = len(_found(obs, k))
    searches = counted(len(obs.answer.searches), "search", "searches")
    return f"{found} found in {searches} / {counted(obs.golds, 'gold')}"


@search_metric(better="higher", needs=("chunks", "gold"), missing=_unmatched, terms=_recall_terms)
def search_recall(obs: Observation, k: int) -> float | NotApplicable:
    """Golds among the top k chunks of any search / golds: recall over the union of all searches.

    In [0, 1], higher is better. Not applicable without gold, and where the system reports no searches. Source:
    recall@k of trec_eval, over several searches.

    The third search brings `b` at rank 1, none brings `d`:

    >>> score("search_recall@2", agent_searched("x a", "y z", "b", gold="a b d"))
    0.6666666666666666
    """
    return len(_found(obs, k)) / obs.golds


def _first_search(obs: Observation) -> int | None:
    for number, hits in enumerate(obs.matching.searches, start=1):
        if any(hits or ()):
            return number
    return None


@search_metric(
    better="lower",
    scale=SCALE,
    unit="searches",
    needs=("chunks", "gold"),
    missing=_unmatched,
    terms=lambda obs, _: f"of {counted(len(obs.answer.searches), 'search', 'searches')}",
)
def searches_to_gold(obs: Observation) -> float | NotApplicable:
    """The number of the search that first brought a gold, counted from 1.

    Lower is better. Not applicable without gold, where no search brought one, and where the system reports no searches.
    Source: the rules of this project.

    >>> score("searches_to_gold", agent_searched("x", "y a", "b", gold="a b"))
    2.0
    """
    number = _first_search(obs)
    return NO_GOLD_FOUND if number is None else float(number)


@search_metric(better="lower", scale=SCALE, unit="searches", needs=("chunks",), missing=_unsearched)
def repeated_searches(obs: Observation) -> float | NotApplicable:
    """Searches with the same tool and arguments as an earlier one.

    Lower is better. Case and white space of texts do not count. Not applicable where the system reports no searches.
    Source: the rules of this project.

    >>> score("repeated_searches", agent_searched("x", "x", "y"))
    1.0
    """
    searches = obs.answer.searches
    return float(len(searches) - len({_identity(search) for search in searches}))


def _identity(search: ToolCall) -> str:
    arguments = {name: _plain(value) for name, value in search.arguments.items()}
    # The order in which a model writes arguments means nothing.
    return json.dumps([search.server, search.name, arguments], sort_keys=True)


def _plain(value: Json) -> Json:
    return " ".join(value.casefold().split()) if isinstance(value, str) else value
