"""Which metrics are there? Those that come with the package, those of installed packages, those of the user."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib.metadata import EntryPoint, entry_points

from pytest_rageval.errors import SettingsError
from pytest_rageval.metrics import abstention, answer, citations, graph, judged, operations, query, retrieval, scope
from pytest_rageval.metrics.ontology import rates
from pytest_rageval.metrics.registry import Metric, Registry

GROUP = "rageval.metrics"
"""Entry points of this group load to a metric or to a list of them."""


def builtin_metrics() -> tuple[Metric, ...]:
    """The metrics of this package, layer by layer."""
    return (
        query.entity_link_f1,
        query.concept_map_f1,
        query.constraint_extraction_f1,
        retrieval.recall_any,
        retrieval.recall_all,
        retrieval.context_recall,
        retrieval.precision,
        retrieval.mrr,
        retrieval.ndcg,
        retrieval.map_,
        retrieval.r_precision,
        retrieval.f1,
        retrieval.negative_accuracy,
        retrieval.specificity_accuracy,
        scope.scope_miss,
        citations.attribution_hit,
        citations.citation_precision,
        citations.citation_recall,
        citations.recency_conflict_ok,
        graph.hits,
        graph.kg_entity_recall,
        graph.kg_edge_f1,
        *rates.CHECKED,
        answer.exact_match,
        answer.token_f1,
        answer.key_fact_recall,
        judged.groundedness,
        judged.correctness,
        judged.relevance,
        judged.faithfulness,
        judged.citation_accuracy,
        judged.abstention_quality,
        judged.synthesis,
        judged.composite,
        judged.reference_match,
        judged.claim_support,
        abstention.abstention_accuracy,
        abstention.hallucinated,
        abstention.over_abstention,
        operations.error_rate,
        operations.timeout_rate,
        operations.empty_response_rate,
        operations.no_chunks_generated_rate,
        operations.chunks_skipped_due_to_context_rate,
        operations.overall_score,
    )


def load_registry(extra: Iterable[Metric] = ()) -> Registry:
    """All known metrics: built in, from entry points, and `extra`.

    What cannot be loaded, is no metric, or takes the name of another is a SettingsError; all such problems together.
    """
    registry = Registry(builtin_metrics())
    problems: list[str] = []
    for point in sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value)):
        problems += _add(registry, _loaded(point, problems), f"entry point {point.name} = {point.value}: ")
    problems += _add(registry, extra, "")
    if problems:
        raise SettingsError(*problems)
    return registry


def _add(registry: Registry, metrics: Iterable[Metric], place: str) -> Iterator[str]:
    for one in metrics:
        try:
            registry.add(one)
        except SettingsError as error:
            yield from (place + problem for problem in error.problems)


def _loaded(point: EntryPoint, problems: list[str]) -> list[Metric]:
    try:
        loaded = point.load()
    # Another package's module may raise anything; the user needs to know which package it was.
    except Exception as error:  # noqa: BLE001 because of the line above
        problems.append(
            f"entry point {point.name} = {point.value}: {type(error).__name__}: {error}; uninstall or mend it"
        )
        return []
    return list(loaded) if isinstance(loaded, list | tuple) else [loaded]
