"""The registry of metrics: those of this package, of entry points of installed packages, and of the user."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib.metadata import EntryPoint

from pytest_rageval.errors import SettingsError
from pytest_rageval.io.importing import plugged_in
from pytest_rageval.metrics.abstention import abstention_accuracy, hallucinated, over_abstention
from pytest_rageval.metrics.answer import exact_match, key_fact_recall, token_f1
from pytest_rageval.metrics.citations import attribution_hit, citation_precision, citation_recall, recency_conflict_ok
from pytest_rageval.metrics.graph import hits, kg_edge_f1, kg_entity_recall
from pytest_rageval.metrics.judged import (
    abstention_quality,
    citation_accuracy,
    claim_support,
    composite,
    correctness,
    faithfulness,
    groundedness,
    reference_match,
    relevance,
    synthesis,
)
from pytest_rageval.metrics.ontology.rates import CHECKED
from pytest_rageval.metrics.operations import (
    chunks_skipped_due_to_context_rate,
    empty_response_rate,
    error_rate,
    judge_error_rate,
    no_chunks_generated_rate,
    overall_score,
    timeout_rate,
)
from pytest_rageval.metrics.query import concept_map_f1, constraint_extraction_f1, entity_link_f1
from pytest_rageval.metrics.registry import Metric, Registry
from pytest_rageval.metrics.retrieval import (
    context_recall,
    f1,
    map_,
    mrr,
    ndcg,
    negative_accuracy,
    precision,
    r_precision,
    recall_all,
    recall_any,
    specificity_accuracy,
)
from pytest_rageval.metrics.scope import scope_miss

GROUP = "rageval.metrics"
"""Entry points of this group load to a metric or to a list of them."""


def builtin_metrics() -> tuple[Metric, ...]:
    """The metrics of this package, layer by layer."""
    return (
        entity_link_f1,
        concept_map_f1,
        constraint_extraction_f1,
        recall_any,
        recall_all,
        context_recall,
        precision,
        mrr,
        ndcg,
        map_,
        r_precision,
        f1,
        negative_accuracy,
        specificity_accuracy,
        scope_miss,
        attribution_hit,
        citation_precision,
        citation_recall,
        recency_conflict_ok,
        hits,
        kg_entity_recall,
        kg_edge_f1,
        *CHECKED,
        exact_match,
        token_f1,
        key_fact_recall,
        groundedness,
        correctness,
        relevance,
        faithfulness,
        citation_accuracy,
        abstention_quality,
        synthesis,
        composite,
        reference_match,
        claim_support,
        abstention_accuracy,
        hallucinated,
        over_abstention,
        error_rate,
        timeout_rate,
        empty_response_rate,
        judge_error_rate,
        no_chunks_generated_rate,
        chunks_skipped_due_to_context_rate,
        overall_score,
    )


def load_registry(extra: Iterable[Metric] = ()) -> Registry:
    """All known metrics: built in, from entry points, and `extra`.

    What cannot be loaded, is no metric, or takes the name of another is a SettingsError; all such problems together.
    """
    registry = Registry(builtin_metrics())
    problems: list[str] = []
    for point in sorted(plugged_in(GROUP), key=lambda point: (point.name, point.value)):
        problems += _add(registry, _loaded(point, problems), f"entry point {point.name} = {point.value}: ")
    problems += _add(registry, extra, "")
    if problems:
        raise SettingsError(*problems)
    return registry


def _add(registry: Registry, metrics: Iterable[Metric], place: str) -> Iterator[str]:
    for metric in metrics:
        try:
            registry.add(metric)
        except SettingsError as error:
            yield from (place + problem for problem in error.problems)


def _loaded(point: EntryPoint, problems: list[str]) -> list[Metric]:
    try:
        loaded = point.load()
    except Exception as error:  # noqa: BLE001  another package's module may raise anything; its name is what helps
        problems.append(
            f"entry point {point.name} = {point.value}: {type(error).__name__}: {error}; uninstall or mend it"
        )
        return []
    return list(loaded) if isinstance(loaded, list | tuple) else [loaded]
