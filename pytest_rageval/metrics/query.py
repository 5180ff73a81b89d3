"""L1 Query understanding: set F1 of the linked entities, concepts and constraints of the question."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set

from pytest_rageval.language.words import as_label
from pytest_rageval.metrics.registry import Metric, metric
from pytest_rageval.model import NotApplicable, Observation, Trace

NO_TRACE = NotApplicable("the system reports no trace of this", is_unobserved=True)
_UNTRACED = Trace()


def set_terms(reported: Iterable[str] | None, expected: Iterable[str] | None) -> str:
    """Return the formula of a set F1 with its numbers."""
    ours = labels(reported or ())
    theirs = labels(expected or ())
    common = ours & theirs
    return f"2 · {len(common)} common / ({len(ours)} found + {len(theirs)} expected){missing_terms(theirs - ours)}"


def missing_terms(missing: set[str]) -> str:
    return f"; missing {', '.join(sorted(missing))}" if missing else ""


def compares(part: str, gold: str, *gates: str) -> Metric:
    """Declare the metric of the names in a part of the trace, against a label of the case."""
    unlabelled = NotApplicable(f"no {part} are labelled")

    def missing(obs: Observation) -> NotApplicable | None:
        # None is not labelled; an empty list says that there is nothing to find.
        if getattr(obs.gold, gold) is None:
            return unlabelled
        return NO_TRACE if _names(obs, part) is None else None

    def terms(obs: Observation, _: int) -> str:
        return set_terms(_names(obs, part), getattr(obs.gold, gold))

    needs = ("trace", f"gold.{gold}")
    return metric(layer="L1", better="higher", needs=needs, gates=gates, missing=missing, terms=terms)


@compares("entities", "kg_entities", "entity_link_f1 >= 0.50 tag L1_mapping_fail")
def entity_link_f1(obs: Observation) -> float:
    """Set F1 of the entities that the system linked in the question, by id, against the expected entities.

    F1 = 2·|linked ∩ gold| / (|linked| + |gold|), in [0, 1], higher is better; labels are compared after NFKC, case
    folding and trimming. Where nothing is expected: 1 if nothing was linked, else 0. Not applicable without
    `gold.kg_entities` or where the trace reports no entities. Source: set F1 (F-measure of van Rijsbergen, β = 1).

    Three are linked, two of them expected, and two more are missing: 2·2 / (3 + 4).

    >>> score("entity_link_f1", traced("entities", "Laneige kr 2024", gold="laneige kr serum share"))
    0.5714285714285714
    """
    return _label_f1(obs, "entities", obs.gold.kg_entities)


@compares("concepts", "concepts", "concept_map_f1 >= 0.50 tag L1_concept_fail")
def concept_map_f1(obs: Observation) -> float:
    """Set F1 of the categories that the system mapped the question to, against the expected concepts.

    F1 = 2·|mapped ∩ gold| / (|mapped| + |gold|), in [0, 1], higher is better; labels as for `entity_link_f1`. Where
    nothing is expected: 1 if nothing was mapped, else 0. Not applicable without `gold.concepts` or where the trace
    reports no concepts. Source: set F1.

    One of the two is right, and nothing is missing: 2·1 / (2 + 1).

    >>> score("concept_map_f1", traced("concepts", "brand market", gold="brand"))
    0.6666666666666666
    """
    return _label_f1(obs, "concepts", obs.gold.concepts)


@compares("constraints", "constraints")
def constraint_extraction_f1(obs: Observation) -> float:
    """Set F1 of the rules that the system applied, against the constraints that the question states.

    F1 = 2·|applied ∩ gold| / (|applied| + |gold|), in [0, 1], higher is better; labels as for `entity_link_f1`. Where
    nothing is expected: 1 if nothing was applied, else 0. Not applicable without `gold.constraints` or where the trace
    reports no constraints. Source: set F1.

    The question states none, and none was applied:

    >>> score("constraint_extraction_f1", traced("constraints", "", gold=""))
    1.0
    """
    return _label_f1(obs, "constraints", obs.gold.constraints)


def labels(names: Iterable[str]) -> set[str]:
    """Return names as they are compared; blank names are dropped."""
    return {label for label in map(as_label, names) if label}


def set_f1(reported: Set[object], expected: Set[object]) -> float:
    """Return 2·|both| / (|reported| + |expected|), in [0, 1]; 1 if both are empty."""
    if not reported and not expected:
        # Nothing was expected and nothing came: the system is right.
        return 1.0
    return 2 * len(reported & expected) / (len(reported) + len(expected))


def _label_f1(obs: Observation, part: str, expected: Sequence[str] | None) -> float:
    return set_f1(labels(_names(obs, part) or ()), labels(expected or ()))


def _names(obs: Observation, part: str) -> list[str] | None:
    """Return the names in a part of the trace, of entities their ids; None if it is not reported."""
    named = getattr(obs.answer.trace or _UNTRACED, part)
    return None if named is None else [getattr(name, "id", name) for name in named]
