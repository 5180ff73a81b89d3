"""L3 Knowledge graph: hits@k, entity recall and edge F1 of the graph results against the expected ones."""

from __future__ import annotations

from functools import partial

from pytest_rageval.language.words import as_label
from pytest_rageval.metrics.query import labels, missing_terms, set_f1, set_terms
from pytest_rageval.metrics.registry import metric
from pytest_rageval.model import Edge, NotApplicable, Observation

UNLABELLED = NotApplicable("no graph entities are expected")
NO_EDGES = NotApplicable("no graph edges are labelled")
NO_RESULTS = NotApplicable("the system reports no graph results", is_unobserved=True)


def _unexpected(obs: Observation) -> NotApplicable | None:
    if not labels(obs.gold.kg_entities or ()):
        return UNLABELLED
    return NO_RESULTS if obs.answer.trace is None or obs.answer.trace.kg_entities is None else None


def _label_sets(obs: Observation, k: int) -> tuple[set[str], set[str]]:
    """Return the labels of the top k graph results and of the expected entities."""
    trace = obs.answer.trace
    return labels(((trace and trace.kg_entities) or ())[:k]), labels(obs.gold.kg_entities or ())


def _graph(obs: Observation, k: int) -> str:
    top, expected = _label_sets(obs, k)
    missing = missing_terms(expected - top)
    return f"{len(top & expected)} of {len(expected)} expected among the top {k} results{missing}"


def _edges(obs: Observation, _: int) -> str:
    trace = obs.answer.trace
    return set_terms(map(str, (trace and trace.kg_edges) or ()), map(str, obs.gold.kg_edges or ()))


of_graph = partial(
    metric, layer="L3", better="higher", needs=("trace", "gold.kg_entities"), missing=_unexpected, terms=_graph
)


@of_graph(binary=True, gates=("hits >= 0.80 when requires_kg=true tag L3_kg_fail",))
def hits(obs: Observation, k: int) -> float:
    """1 if any expected entity is among the top k graph results, else 0.

    Higher is better; names are compared after NFKC, case folding and trimming. Not applicable where no entity is
    expected or the trace reports no graph results. Source: hits@k of knowledge graph completion, success@k of
    trec_eval.

    >>> score("hits@2", traced("kg_entities", "x laneige y", gold="laneige sulwhasoo"))
    1.0
    """
    results, expected = _label_sets(obs, k)
    return float(bool(results & expected))


@of_graph()
def kg_entity_recall(obs: Observation, k: int) -> float:
    """Expected entities among the top k graph results / expected entities.

    In [0, 1], higher is better; names are compared as for `hits`. Not applicable where no entity is expected or the
    trace reports no graph results. Source: recall@k.

    One of the two expected is there: 1 / 2.

    >>> score("kg_entity_recall@3", traced("kg_entities", "x laneige y", gold="laneige sulwhasoo"))
    0.5
    """
    results, expected = _label_sets(obs, k)
    return len(results & expected) / len(expected)


@metric(
    layer="L3",
    better="higher",
    needs=("trace", "gold.kg_edges"),
    gates=("kg_edge_f1 >= 0.50 tag L3_edge_fail",),
    terms=_edges,
)
def kg_edge_f1(obs: Observation) -> float | NotApplicable:
    """Set F1 of the triples that the system took from its graph, against the expected edges.

    F1 = 2·|found ∩ gold| / (|found| + |gold|), in [0, 1], higher is better; an edge is right if subject, predicate and
    object all are, each compared after NFKC, case folding and trimming. Where nothing is expected: 1 if nothing was
    found, else 0. Not applicable without `gold.kg_edges` or where the trace reports no edges. Source: set F1.

    One of two edges found is among the two expected: 2·1 / (2 + 2).

    >>> score("kg_edge_f1", traced("kg_edges", "a|soldIn|kr a|soldIn|us", gold="a|soldIn|kr a|madeBy|b"))
    0.5
    """
    if obs.gold.kg_edges is None:
        return NO_EDGES
    if obs.answer.trace is None or obs.answer.trace.kg_edges is None:
        return NO_RESULTS
    edges = {_label(edge) for edge in obs.answer.trace.kg_edges}
    expected = {_label(edge) for edge in obs.gold.kg_edges}
    return set_f1(edges, expected)


def _label(edge: Edge) -> tuple[str, str, str]:
    return as_label(edge.subject), as_label(edge.predicate), as_label(edge.object)
