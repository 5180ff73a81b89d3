"""Formulas of the metrics with the numbers of one case filled in, to explain its scores."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from pytest_rageval.metrics.abstention import abstention
from pytest_rageval.metrics.query import labels
from pytest_rageval.metrics.registry import Measure
from pytest_rageval.model import Observation, Trace
from pytest_rageval.text import counted

Terms = Callable[[Observation, int], str]
"""The formula of a metric with the numbers of one observation; without a cut-off, over the whole list."""


def arithmetic(measure: Measure, obs: Observation) -> str:
    """Return the metric's formula with this case's numbers, as `1 / rank 4`; '' for a project's own metric."""
    judgement = obs.judgement_of(measure.metric.name)
    if judgement is not None:
        low, high = judgement.scale
        reasoning = f": {judgement.reasoning}" if judgement.reasoning else ""
        return f"{judgement.model} gave {judgement.scores[measure.metric.name]:g} on {low:g} to {high:g}{reasoning}"
    terms = TERMS.get(measure.metric.name)
    return terms(obs, measure.k or len(obs.hits)) if terms else ""


def _ranks(obs: Observation, k: int) -> list[int]:
    """Return the ranks within the top k that bring a gold for the first time."""
    return [rank for rank, _ in obs.matching.fresh if rank <= k]


def _matched_golds(obs: Observation, k: int) -> set[int]:
    return {gold for golds in obs.hits[:k] for gold in golds}


def _golds(number: int) -> str:
    return counted(number, "gold")


def _matching(obs: Observation, k: int) -> int:
    return sum(map(bool, obs.hits[:k]))


def _first(obs: Observation, k: int) -> str:
    ranks = _ranks(obs, k)
    return f"the first gold is at rank {ranks[0]}" if ranks else f"no gold among {_top(obs, k)}"


def _top(obs: Observation, k: int) -> str:
    chunks = min(k, len(obs.hits))
    return f"the top {chunks} chunks" if chunks > 1 else "the chunks" if not chunks else "the one chunk"


def _all(obs: Observation, k: int) -> str:
    numbers = sorted(gold + 1 for gold in _matched_golds(obs, k))
    groups = obs.gold.support_groups or [range(obs.golds)]
    choices = " or ".join("{" + ", ".join(str(gold + 1) for gold in group) + "}" for group in groups)
    return f"golds found: {', '.join(map(str, numbers)) or 'none'}; wanted: {choices}"


def _reciprocal(obs: Observation, k: int) -> str:
    ranks = _ranks(obs, k)
    return f"1 / rank {ranks[0]}" if ranks else "no chunk matches"


def _ndcg(obs: Observation, k: int) -> str:
    ranks = _ranks(obs, k)
    gain = math.fsum(1 / math.log2(rank + 1) for rank in ranks)
    ideal = math.fsum(1 / math.log2(rank + 1) for rank in range(1, min(obs.golds, k) + 1))
    return f"gain {gain:.4f} at ranks {ranks or 'none'} / ideal {ideal:.4f}"


def _map(obs: Observation, k: int) -> str:
    terms = " + ".join(f"{number}/{rank}" for number, rank in enumerate(_ranks(obs, k), start=1))
    return f"({terms or 0}) / {_golds(obs.golds)}"


def _precision(obs: Observation, k: int) -> str:
    return f"{_matching(obs, k)} matching of {counted(len(obs.hits[:k]), 'chunk')} returned in the top {k}"


def _irrelevant(obs: Observation, k: int) -> str:
    ranks = [rank for rank, is_wrong in enumerate(obs.matching.irrelevant or (), start=1) if is_wrong and rank <= k]
    return f"irrelevant golds at ranks {ranks or 'none'}"


def _cited(obs: Observation, _: int) -> str:
    cited = obs.matching.cited or ()
    golds = sorted({gold + 1 for reference in cited for gold in reference})
    references = counted(len(cited), "reference matches", "references match")
    return f"{sum(map(bool, cited))} of {references}; golds cited: {golds or 'none'} of {obs.golds}"


def _sets(reported: Iterable[str] | None, expected: Iterable[str] | None) -> str:
    ours, theirs = labels(reported or ()), labels(expected or ())
    common = ours & theirs
    return f"2 · {len(common)} common / ({len(ours)} found + {len(theirs)} expected){_names(theirs - ours)}"


def _names(missing: set[str]) -> str:
    return f"; missing {', '.join(sorted(missing))}" if missing else ""


def _trace(obs: Observation) -> Trace:
    return obs.answer.trace or Trace()


def _entities(obs: Observation, _: int) -> str:
    return _sets((entity.id for entity in _trace(obs).entities or ()), obs.gold.kg_entities)


def _edges(obs: Observation, _: int) -> str:
    return _sets(map(str, _trace(obs).kg_edges or ()), map(str, obs.gold.kg_edges or ()))


def _graph(obs: Observation, k: int) -> str:
    top = labels((_trace(obs).kg_entities or ())[:k])
    expected = labels(obs.gold.kg_entities or ())
    return f"{len(top & expected)} of {len(expected)} expected among the top {k} results{_names(expected - top)}"


def _abstention(obs: Observation, _: int) -> str:
    decision = abstention(obs)
    return f"{'abstained' if decision.value else 'did not abstain'}, decided by: {decision.decided_by}"


def _scope(obs: Observation, _: int) -> str:
    selection = obs.answer.folder_selection
    folders = ", ".join(selection.folders) if selection else ""
    places = ", ".join(anchor.rel_path for anchor in obs.gold.supports or ())
    return f"searched {folders or 'everything'}; golds in {places}"


def _answers(obs: Observation, _: int) -> str:
    return f"against {counted(len(obs.gold.answers or ()), 'gold answer')}"


TERMS: dict[str, Terms] = {
    "recall_any": _first,
    "recall_all": _all,
    "context_recall": lambda obs, k: f"{_golds(len(_matched_golds(obs, k)))} found / {_golds(obs.golds)}",
    "precision": _precision,
    "mrr": _reciprocal,
    "ndcg": _ndcg,
    "map": _map,
    "r_precision": lambda obs, _: f"{_golds(len(_ranks(obs, obs.golds)))} in the top {obs.golds} / {_golds(obs.golds)}",
    "f1": lambda obs, k: f"{_precision(obs, k)}; {len(_matched_golds(obs, k))} of {_golds(obs.golds)} found",
    "negative_accuracy": lambda obs, _: f"{counted(len(obs.hits), 'chunk')} came, none should",
    "specificity_accuracy": _irrelevant,
    "scope_miss": _scope,
    "attribution_hit": _cited,
    "citation_precision": _cited,
    "citation_recall": _cited,
    "recency_conflict_ok": lambda obs, _: f"rule {obs.gold.recency_conflict_rule}; {_cited(obs, 0)}",
    "entity_link_f1": _entities,
    "concept_map_f1": lambda obs, _: _sets(_trace(obs).concepts, obs.gold.concepts),
    "constraint_extraction_f1": lambda obs, _: _sets(_trace(obs).constraints, obs.gold.constraints),
    "hits": _graph,
    "kg_entity_recall": _graph,
    "kg_edge_f1": _edges,
    "exact_match": _answers,
    "token_f1": _answers,
    "key_fact_recall": lambda obs, _: f"of {len(obs.gold.key_facts or ())} key facts",
    "abstention_accuracy": _abstention,
    "hallucinated": _abstention,
    "over_abstention": _abstention,
}
